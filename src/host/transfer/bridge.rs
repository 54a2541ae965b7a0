//! A channel's streams for a thread that may block, and that thread itself.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::error::{Stop, TransferError};
use super::wire::{Wire, garbled};
use crate::host::{Channel, Channels, Output};

/// How long an agent may take to end, and to say why it did, once its streams are closed.
const FAREWELL: Duration = Duration::from_secs(10);

/// How long the thread lets the other end work when its pipe is full. Else it is woken for every packet's worth of room:
/// `cargo bench --bench hosts -- upload --rounds 1` takes 135,000 switches of processes instead of 75,000. A pipe of 1 MiB
/// lasts that long at 500 MB/s.
const NAP: Duration = Duration::from_millis(2);

/// What this machine's end of a transfer speaks through.
pub(super) type Line = Wire<FromHost, ToHost>;

/// How long is waited for a stream.
#[derive(Clone)]
struct Patience {
    runtime: Handle,
    gone: CancellationToken,
    silence: Duration,
}

impl Patience {
    fn wait<T>(&self, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.gone.cancelled() => Err(io::ErrorKind::NotConnected.into()),
                done = timeout(self.silence, work) => {
                    done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
                }
            }
        })
    }
}

/// What an agent writes.
pub(super) struct FromHost {
    stream: Box<dyn AsyncRead + Send + Unpin>,
    patience: Patience,
}

impl Read for FromHost {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.patience.wait(self.stream.read(buffer))
    }
}

/// What an agent reads.
pub(super) struct ToHost {
    stream: Box<dyn AsyncWrite + Send + Unpin>,
    patience: Patience,
}

impl Write for ToHost {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.patience.wait(self.stream.write(bytes))?;
        if written < bytes.len() {
            std::thread::sleep(NAP);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.patience.wait(self.stream.flush())
    }
}

/// Opens a channel and lets `work` speak to the agent on a thread of its own; returns its state and what it came to.
/// When the future is dropped, the thread's next read or write fails.
pub(super) async fn converse<S, T>(
    channels: &dyn Channels,
    agent: &str,
    silence: Duration,
    mut state: S,
    work: impl FnOnce(&mut S, &mut Line) -> Result<T, Stop> + Send + 'static,
) -> (Option<S>, Result<T, TransferError>)
where
    S: Send + 'static,
    T: Send + 'static,
{
    let channel = match channels.open(agent).await {
        Ok(channel) => channel,
        Err(error) => return (Some(state), Err(error.into())),
    };
    let Channel {
        stdin,
        stdout,
        ended,
    } = channel;
    let gone = CancellationToken::new();
    let _gone = gone.clone().drop_guard();
    let patience = Patience {
        runtime: Handle::current(),
        gone,
        silence,
    };
    let talk = tokio::task::spawn_blocking(move || {
        let input = FromHost {
            stream: stdout,
            patience: patience.clone(),
        };
        let output = ToHost {
            stream: stdin,
            patience,
        };
        let mut line = Wire::new(input, output);
        let result = work(&mut state, &mut line);
        (state, result)
    });
    let (state, result) = match talk.await {
        Ok(talked) => talked,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down.
            Err(_) => return (None, Err(silent(channels, silence))),
        },
    };
    // Another channel may be opened only when this one's place on the host is free.
    let farewell = timeout(FAREWELL, ended).await;
    let result = result.map_err(|stop| match stop {
        Stop::Here(fault) => TransferError::Here(fault),
        Stop::There(source) => TransferError::OnHost {
            host: channels.host().to_owned(),
            source,
        },
        Stop::Stream(source) if source.kind() == io::ErrorKind::InvalidData => {
            TransferError::Garbled {
                host: channels.host().to_owned(),
                agent: agent.to_owned(),
                source,
            }
        }
        Stop::Stream(error) if error.kind() == io::ErrorKind::TimedOut => silent(channels, silence),
        Stop::Stream(_) => match farewell {
            Ok(Ok(output)) => ended_early(channels, agent, &output),
            Ok(Err(error)) => error.into(),
            Err(_) => silent(channels, silence),
        },
    });
    (Some(state), result)
}

fn silent(channels: &dyn Channels, limit: Duration) -> TransferError {
    let host = channels.host().to_owned();
    TransferError::Silent { host, limit }
}

fn ended_early(channels: &dyn Channels, agent: &str, output: &Output) -> TransferError {
    let stderr = match output.stderr.trim() {
        "" => String::new(),
        text => format!(": {text}"),
    };
    let how = match output.status {
        Some(status) => format!("with status {status}"),
        None => "by a signal".to_owned(),
    };
    TransferError::Ended {
        host: channels.host().to_owned(),
        agent: agent.to_owned(),
        how,
        stderr,
    }
}

/// The answer is one that fits nowhere here.
pub(super) fn unexpected() -> Stop {
    garbled("an answer to another question")
}

/// Hears of bytes as they are transferred.
pub type Progress = Arc<dyn Fn(u64) + Send + Sync>;
