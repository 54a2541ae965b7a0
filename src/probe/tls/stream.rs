//! TLS as tokio-postgres wants it: a stream over its socket, with rustls in between.

use std::future::poll_fn;
use std::io::{self, Read as _, Write as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

/// Makes one connection secure.
pub(in crate::probe) struct Connector {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Connector {
    /// A connection to a server that has to prove that it is `name`.
    pub(in crate::probe) fn new(config: ClientConfig, name: ServerName<'static>) -> Self {
        Self {
            config: Arc::new(config),
            name,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Connector {
    type Stream = Secure<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Secure<S>>> + Send>>;

    fn connect(self, socket: S) -> Self::Future {
        Box::pin(async move {
            let session = ClientConnection::new(self.config, self.name);
            let mut secure = Secure {
                socket,
                session: session.map_err(io::Error::other)?,
            };
            poll_fn(|context| secure.shake_hands(context)).await?;
            Ok(secure)
        })
    }
}

/// A socket and the TLS session over it.
pub(in crate::probe) struct Secure<S> {
    socket: S,
    session: ClientConnection,
}

/// The socket as rustls uses one: what has to wait "would block", and the task is woken when it no longer does.
struct Socket<'a, 'b, S> {
    socket: &'a mut S,
    context: &'a mut Context<'b>,
}

fn now<T>(poll: Poll<io::Result<T>>) -> io::Result<T> {
    match poll {
        Poll::Ready(result) => result,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}

/// The reverse of [`now`].
fn later<T>(result: io::Result<T>) -> Poll<io::Result<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
        other => Poll::Ready(other),
    }
}

impl<S: AsyncRead + Unpin> io::Read for Socket<'_, '_, S> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(bytes);
        now(Pin::new(&mut *self.socket).poll_read(self.context, &mut buffer))?;
        Ok(buffer.filled().len())
    }
}

impl<S: AsyncWrite + Unpin> io::Write for Socket<'_, '_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        now(Pin::new(&mut *self.socket).poll_write(self.context, bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        now(Pin::new(&mut *self.socket).poll_flush(self.context))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Secure<S> {
    fn shake_hands(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.send(context))?;
            if !self.session.is_handshaking() {
                return Pin::new(&mut self.socket).poll_flush(context);
            }
            if ready!(self.receive(context))? == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// Sends everything that the session has for the other side.
    fn send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.wants_write() {
            let mut socket = Socket {
                socket: &mut self.socket,
                context,
            };
            if ready!(later(self.session.write_tls(&mut socket)))? == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Takes in what the other side sent; 0 bytes are its end.
    fn receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut socket = Socket {
            socket: &mut self.socket,
            context,
        };
        let bytes = ready!(later(self.session.read_tls(&mut socket)))?;
        if let Err(error) = self.session.process_new_packets() {
            // The other side is told why, if it can be.
            let _ = self.send(context);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
        }
        Poll::Ready(Ok(bytes))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Secure<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let secure = &mut *self;
        loop {
            match later(secure.session.reader().read(buffer.initialize_unfilled())) {
                Poll::Ready(read) => {
                    buffer.advance(read?);
                    return Poll::Ready(Ok(()));
                }
                Poll::Pending => {}
            }
            // What was received may want an answer, such as new keys; reading does not wait for it to leave.
            if let Poll::Ready(sent) = secure.send(context) {
                sent?;
            }
            ready!(secure.receive(context))?;
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Secure<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let taken = self.session.writer().write(bytes)?;
            let sent = self.send(context)?;
            if taken > 0 || bytes.is_empty() {
                return Poll::Ready(Ok(taken));
            }
            // The session takes nothing before some of what it has is sent.
            ready!(sent);
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.session.writer().flush()?;
        ready!(self.send(context))?;
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.session.send_close_notify();
        ready!(self.send(context))?;
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Secure<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}
