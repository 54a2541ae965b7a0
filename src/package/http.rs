//! Asking a server, with limits, and again where only the connection or a busy server is at fault.

use std::error::Error;
use std::time::Duration;

use reqwest::redirect::{Attempt, Policy};
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use tokio::time::timeout;

use super::source::shown;
use super::{PackageError, Watch};
use crate::host::Retry;

/// The longest that a connection may take to be there.
const CONNECT: Duration = Duration::from_secs(30);
/// Redirects that are followed.
const REDIRECTS: usize = 10;
/// The largest manifest that is read; the largest of the public mirror has a few MiB.
const MANIFEST: usize = 64 << 20;

/// How servers are reached.
#[derive(Clone, Debug)]
pub struct Network {
    /// What is between here and there.
    pub proxy: Proxy,
    /// How often a lost connection is made again.
    pub retry: Retry,
}

/// A proxy between here and a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// What `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say.
    Environment,
    /// None.
    Never,
    /// The one with this URL.
    At(String),
}

impl Default for Network {
    fn default() -> Self {
        Self {
            proxy: Proxy::Environment,
            retry: Retry::within(
                Duration::from_secs(30),
                Duration::from_secs(1),
                Duration::from_secs(8),
            ),
        }
    }
}

/// What servers are asked with.
#[derive(Clone, Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    pub(super) retry: Retry,
    /// Whether it knows certificates, so that it can be used for any URL.
    pub(super) has_roots: bool,
}

impl Client {
    /// A client for `url`.
    pub(super) fn new(network: &Network, url: &Url) -> Result<Self, PackageError> {
        // An error says that there is one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let build = |without_roots: bool| {
            let mut builder = reqwest::Client::builder()
                .user_agent(concat!("assay/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(CONNECT)
                .redirect(Policy::custom(follow));
            match &network.proxy {
                Proxy::Environment => {}
                Proxy::Never => builder = builder.no_proxy(),
                Proxy::At(proxy) => builder = builder.proxy(reqwest::Proxy::all(proxy)?),
            }
            if without_roots {
                builder = builder.tls_certs_only([]);
            }
            builder.build()
        };
        // A machine without CA certificates can still use a mirror without TLS.
        let (http, has_roots) = match build(false) {
            Err(_) if url.scheme() == "http" => (build(true), false),
            built => (built, true),
        };
        Ok(Self {
            http: http.map_err(|source| PackageError::Client { source })?,
            retry: network.retry,
            has_roots,
        })
    }

    /// The same, which tries nothing again.
    pub(super) fn once(self) -> Self {
        let retry = Retry::NEVER;
        Self { retry, ..self }
    }

    pub(super) fn get(&self, url: &Url) -> RequestBuilder {
        self.http.get(url.clone())
    }

    /// A small file; `None` if there is none.
    pub(super) async fn text(
        &self,
        url: &Url,
        watch: &Watch,
    ) -> Result<Option<String>, PackageError> {
        let mut pauses = self.retry.pauses();
        loop {
            match self.attempt(url, watch).await {
                Err(error) if error.may_pass() => {
                    tracing::debug!(%error, "asking again");
                    if !watch.or_stop(pauses.next(false)).await? {
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
    }

    async fn attempt(&self, url: &Url, watch: &Watch) -> Result<Option<String>, PackageError> {
        let mut response = send(self.get(url), url, watch).await?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND | StatusCode::GONE => return Ok(None),
            status => return Err(refused(url, status)),
        }
        let mut body = Vec::new();
        while let Some(chunk) = next(&mut response, url, watch).await? {
            body.extend_from_slice(chunk.as_ref());
            if body.len() > MANIFEST {
                return Err(unreadable(url, "it is too large"));
            }
        }
        let text = String::from_utf8(body).map_err(|_| unreadable(url, "it is no text"))?;
        Ok(Some(text))
    }
}

/// Follows redirects, but none from TLS to none.
fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let was_secure = attempt.previous().iter().any(|url| url.scheme() == "https");
    if was_secure && attempt.url().scheme() != "https" {
        attempt.error("it is redirected to a URL without TLS")
    } else if attempt.previous().len() > REDIRECTS {
        attempt.error("it is redirected again and again")
    } else {
        attempt.follow()
    }
}

/// The response to a request, its body still to come.
pub(super) async fn send(
    request: RequestBuilder,
    url: &Url,
    watch: &Watch,
) -> Result<Response, PackageError> {
    let sent = watch.or_stop(timeout(watch.stall, request.send())).await?;
    sent.map_err(|_| stalled(url, watch))?
        .map_err(|error| unreachable(url, error))
}

/// The next piece of a body; `None` at its end.
pub(super) async fn next(
    response: &mut Response,
    url: &Url,
    watch: &Watch,
) -> Result<Option<impl AsRef<[u8]> + use<>>, PackageError> {
    let chunk = watch
        .or_stop(timeout(watch.stall, response.chunk()))
        .await?;
    let chunk = chunk.map_err(|_| stalled(url, watch))?;
    chunk.map_err(|error| unreachable(url, error))
}

/// Whether TLS itself failed, such as for a certificate that is not trusted, which waiting does not mend.
pub(super) fn is_of_tls(error: &reqwest::Error) -> bool {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(cause) = next {
        let inner = cause.downcast_ref::<std::io::Error>();
        let inner = inner.and_then(std::io::Error::get_ref);
        if inner.is_some_and(|inner| inner.is::<rustls::Error>()) || cause.is::<rustls::Error>() {
            return true;
        }
        // The source of such an error is that of the inner one, which would be passed over.
        next = match inner {
            Some(inner) => Some(inner),
            None => cause.source(),
        };
    }
    false
}

pub(super) fn refused(url: &Url, status: StatusCode) -> PackageError {
    PackageError::Status {
        url: shown(url),
        status,
    }
}

fn unreachable(url: &Url, error: reqwest::Error) -> PackageError {
    PackageError::Unreachable {
        url: shown(url),
        // It may hold credentials.
        source: error.without_url(),
    }
}

fn stalled(url: &Url, watch: &Watch) -> PackageError {
    PackageError::Stalled {
        url: shown(url),
        limit: watch.stall,
    }
}

fn unreadable(url: &Url, why: &str) -> PackageError {
    PackageError::Manifest {
        file: format!("`{}`", shown(url)),
        source: why.into(),
    }
}
