//! TLS: the certificates of a cluster, and streams that carry it or not.

use std::io::{self, Read as _, Write as _};
use std::ops::DerefMut;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, ClientConnection, ConnectionCommon, RootCertStore, ServerConfig, ServerConnection,
};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::Failure;
use crate::config::Settings;

/// Either side of a connection.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A stream with TLS or without.
pub(crate) type AnyStream = Box<dyn Stream>;

/// What servers of a cluster show each other.
static CLUSTER: OnceLock<(Arc<ServerConfig>, Arc<ClientConfig>)> = OnceLock::new();

/// From here on all servers and clients of this process speak TLS, if the three keys name files.
pub(crate) fn use_in_cluster(settings: &Settings, keys: [&str; 3]) -> Result<bool, Failure> {
    let [Some(ca), Some(cert), Some(key)] = keys.map(|key| path(settings, key)) else {
        return Ok(false);
    };
    let roots = Arc::new(roots(ca)?);
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), provider()).build()?;
    let server =
        ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let server = server
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain(cert)?, private(key)?)?;
    let client =
        ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let client = client
        .with_root_certificates(roots)
        .with_client_auth_cert(chain(cert)?, private(key)?)?;
    Ok(CLUSTER.set((Arc::new(server), Arc::new(client))).is_ok())
}

/// What TiDB shows to clients of SQL; with a CA it checks certificates that they show.
pub(crate) fn for_clients(settings: &Settings) -> Result<Option<Arc<ServerConfig>>, Failure> {
    let (Some(cert), Some(key)) = (
        path(settings, "security.ssl-cert"),
        path(settings, "security.ssl-key"),
    ) else {
        return Ok(None);
    };
    let server =
        ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let server = match path(settings, "security.ssl-ca") {
        Some(ca) => {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots(ca)?), provider());
            server.with_client_cert_verifier(verifier.allow_unauthenticated().build()?)
        }
        None => server.with_no_client_auth(),
    };
    Ok(Some(Arc::new(
        server.with_single_cert(chain(cert)?, private(key)?)?,
    )))
}

/// The server's side of a connection in the cluster.
pub(crate) fn accepted<S: Stream + 'static>(stream: S) -> Result<AnyStream, Failure> {
    Ok(match CLUSTER.get() {
        Some((server, _)) => Box::new(Tls::new(stream, ServerConnection::new(Arc::clone(server))?)),
        None => Box::new(stream),
    })
}

/// The client's side of a connection in the cluster, to a `host:port`.
pub(crate) fn connected<S: Stream + 'static>(
    stream: S,
    address: &str,
) -> Result<AnyStream, Failure> {
    let Some((_, client)) = CLUSTER.get() else {
        return Ok(Box::new(stream));
    };
    let host = address
        .rsplit_once(':')
        .map_or(address, |(host, _)| host)
        .trim_matches(['[', ']']);
    let name = ServerName::try_from(host.to_owned())?;
    Ok(Box::new(Tls::new(
        stream,
        ClientConnection::new(Arc::clone(client), name)?,
    )))
}

/// The server's side of a client of SQL that has asked for TLS.
pub(crate) fn accepted_client<S: Stream + 'static>(
    stream: S,
    config: Arc<ServerConfig>,
) -> Result<AnyStream, Failure> {
    Ok(Box::new(Tls::new(stream, ServerConnection::new(config)?)))
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn path<'a>(settings: &'a Settings, key: &str) -> Option<&'a Path> {
    settings
        .get(key)
        .and_then(Value::as_str)
        .filter(|path| !path.is_empty())
        .map(Path::new)
}

fn roots(file: &Path) -> Result<RootCertStore, Failure> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(file)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

fn chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let certificates = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    certificates
        .map_err(|error| format!("cannot read certificates of {}: {error}", file.display()).into())
}

fn private(file: &Path) -> Result<PrivateKeyDer<'static>, Failure> {
    let key = PrivateKeyDer::from_pem_file(file);
    key.map_err(|error| format!("cannot read the key {}: {error}", file.display()).into())
}

/// A stream below TLS. The session does no I/O of its own; this carries its records.
struct Tls<S, C> {
    stream: S,
    session: C,
    /// Records on their way out.
    out: Vec<u8>,
}

impl<S, C, D> Tls<S, C>
where
    S: AsyncRead + AsyncWrite + Unpin,
    C: DerefMut<Target = ConnectionCommon<D>>,
{
    fn new(stream: S, session: C) -> Self {
        Self {
            stream,
            session,
            out: Vec::new(),
        }
    }

    /// Sends all records that are due.
    fn send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.out)?;
        }
        while !self.out.is_empty() {
            let sent = ready!(Pin::new(&mut self.stream).poll_write(context, &self.out))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.out.drain(..sent);
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Receives some records; says whether there were any.
    fn receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut room = [0; 8192];
        let mut buffer = ReadBuf::new(&mut room);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
        let mut records = buffer.filled();
        if records.is_empty() {
            return Poll::Ready(Ok(false));
        }
        while !records.is_empty() {
            self.session.read_tls(&mut records)?;
            let state = self.session.process_new_packets();
            state.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
        Poll::Ready(Ok(true))
    }
}

impl<S, C, D> AsyncRead for Tls<S, C>
where
    S: AsyncRead + AsyncWrite + Unpin,
    C: DerefMut<Target = ConnectionCommon<D>> + Unpin,
{
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            match this.session.reader().read(buffer.initialize_unfilled()) {
                Ok(read) => {
                    buffer.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The other side closed the stream without saying so first.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Poll::Ready(Ok(()));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
            // What a handshake answers must go out, else nothing comes in.
            if this.send(context)?.is_pending() && this.session.is_handshaking() {
                return Poll::Pending;
            }
            let received = ready!(this.receive(context));
            // A refusal is told to the other side, if it can be.
            let _ = received.is_err() && this.send(context).is_ready();
            if !received? {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S, C, D> AsyncWrite for Tls<S, C>
where
    S: AsyncRead + AsyncWrite + Unpin,
    C: DerefMut<Target = ConnectionCommon<D>> + Unpin,
{
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        while this.session.is_handshaking() {
            ready!(this.send(context))?;
            if this.session.is_handshaking() && !ready!(this.receive(context))? {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        ready!(this.send(context))?;
        let written = this.session.writer().write(bytes)?;
        // What does not go out now goes with the next write or flush.
        let _ = this.send(context)?;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().send(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.session.send_close_notify();
        ready!(this.send(context))?;
        Pin::new(&mut this.stream).poll_shutdown(context)
    }
}
