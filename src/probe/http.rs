//! One HTTP request, without a proxy: what is asked is on this host or beside it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Cause, ProbeError, Secret, Tls, tls};
use crate::units::{Bytes, Duration};

/// Bytes that an answer may have.
const LONGEST: u64 = 16 << 20;

/// Redirects that are followed; PD has one from a follower to its leader.
const REDIRECTS: usize = 3;

/// A request over HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// What is asked; [`url`] makes one.
    pub url: String,
    /// Whom to trust and who asks; wanted for `https`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Who asks, where the server wants to know a name and a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<Login>,
    /// The method.
    #[serde(default)]
    pub method: Method,
    /// What is sent; it is said to be JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// How long the whole answer may take.
    #[serde(default = "super::timeout")]
    pub timeout: Duration,
}

/// A name and a password (HTTP's `Basic`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The name.
    pub user: String,
    /// The password.
    pub password: Secret,
}

/// A method of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Reads.
    #[default]
    Get,
    /// Acts, or adds.
    Post,
    /// Sets.
    Put,
    /// Removes.
    Delete,
}

/// What came back, whatever its status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The status: 200 and so on.
    pub status: u16,
    /// The body; bytes that are no UTF-8 are replaced. At most 16 MiB.
    pub body: String,
}

impl Http {
    /// A `GET` of `url` with the usual limit, neither encrypted nor with a login.
    #[must_use]
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            tls: None,
            login: None,
            method: Method::Get,
            body: None,
            timeout: super::TIMEOUT,
        }
    }
}

impl Answer {
    /// Whether the status says that it went well.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl fmt::Display for Http {
    /// `http://kv1:20180/status`, or with another method than `GET` as well: `POST http://…`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.method {
            Method::Get => f.write_str(&shown(&self.url)),
            Method::Post | Method::Put | Method::Delete => {
                write!(f, "{} {}", method(self.method), shown(&self.url))
            }
        }
    }
}

/// The URL of a port of a host; an IPv6 address gets its brackets. `path` starts with a slash, or is empty.
#[must_use]
pub fn url(host: &str, port: u16, path: &str, tls: bool) -> String {
    let scheme = if tls { "https" } else { "http" };
    format!("{scheme}://{}{path}", place(host, port))
}

/// `host:port`; an IPv6 address gets its brackets.
pub(super) fn place(host: &str, port: u16) -> String {
    if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// Sends the request and reads the whole answer.
pub(super) async fn send(request: &Http) -> Result<Answer, ProbeError> {
    let client = client(request)?;
    let limit = request.timeout;
    let failed = |source| ProbeError::Http {
        url: request.to_string(),
        source,
    };
    let answer = super::within(limit, exchange(&client, request)).await;
    answer.map_err(failed)
}

fn client(request: &Http) -> Result<reqwest::Client, ProbeError> {
    let url = reqwest::Url::parse(&request.url);
    let url = url.map_err(|e| impossible(request, &e.to_string()))?;
    if !url.username().is_empty() || url.password().is_some() {
        let why = "a name and a password go into `login`";
        return Err(impossible(request, why));
    }
    match (url.scheme(), &request.tls) {
        ("http", _) | ("https", Some(_)) => {}
        ("https", None) => return Err(impossible(request, "no certificate authority is given")),
        _ => return Err(impossible(request, "it is neither `http` nor `https`")),
    }
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::limited(REDIRECTS))
        .tls_backend_preconfigured(tls::config(request.tls.as_ref())?)
        .build()
        .map_err(|e| impossible(request, &e.to_string()))
}

fn impossible(request: &Http, why: &str) -> ProbeError {
    ProbeError::Impossible(format!("`{}`: {why}", shown(&request.url)))
}

async fn exchange(client: &reqwest::Client, request: &Http) -> Result<Answer, Cause> {
    let mut building = client.request(method(request.method), &request.url);
    if let Some(login) = &request.login {
        building = building.basic_auth(&login.user, Some(login.password.reveal()));
    }
    if let Some(body) = &request.body {
        let json = (reqwest::header::CONTENT_TYPE, "application/json");
        building = building.header(json.0, json.1).body(body.clone());
    }
    let mut response = building.send().await.map_err(|e| Cause::of(&e))?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|e| Cause::of(&e))? {
        body.extend_from_slice(&chunk);
        if body.len() as u64 > LONGEST {
            return Err(Cause::Long(Bytes(LONGEST)));
        }
    }
    Ok(Answer {
        status: response.status().as_u16(),
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

fn method(method: Method) -> reqwest::Method {
    match method {
        Method::Get => reqwest::Method::GET,
        Method::Post => reqwest::Method::POST,
        Method::Put => reqwest::Method::PUT,
        Method::Delete => reqwest::Method::DELETE,
    }
}

/// A URL without the name and password that it may have.
pub(super) fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit_once('@').map_or(authority, |(_, h)| h);
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_address_stands_in_brackets() {
        assert_eq!(
            url("::1", 2379, "/pd/ping", false),
            "http://[::1]:2379/pd/ping"
        );
        assert_eq!(url("[::1]", 2379, "", true), "https://[::1]:2379");
        assert_eq!(
            url("kv1", 20180, "/status", false),
            "http://kv1:20180/status"
        );
    }

    #[test]
    fn a_password_in_a_url_is_not_shown() {
        for (url, text) in [
            ("http://a:b@c:1/d@e", "http://c:1/d@e"),
            ("http://a:p@ss@c?x=1", "http://c?x=1"),
            ("http://c:1/", "http://c:1/"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(Http::get(url).to_string(), text);
        }
    }
}
