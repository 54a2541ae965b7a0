//! Channels of raw bytes over a connection, for transfers.

use std::sync::Arc;

use tokio::io::BufReader;
use tokio::time::timeout;

use super::connection::{self, Connection};
use super::{ANSWER, Reach, unreachable};
use crate::host::{Channel, Channels, HostError, Output, Pending, SshHost};

/// What a host's shell says before the agent's first byte; before it come what its start-up files print.
const BEGIN: &str = "assay-channel";
/// Bytes that the pipes to and from `ssh` hold; what any user may set (`/proc/sys/fs/pipe-max-size`). The usual 64 KiB cost a
/// switch between this process and `ssh` every other packet.
const PIPE: usize = 1 << 20;

impl Channels for SshHost {
    fn host(&self) -> &str {
        &self.0.target.name
    }

    fn open<'a>(&'a self, agent: &'a str) -> Pending<'a, Result<Channel, HostError>> {
        Box::pin(open(&self.0, agent))
    }
}

/// Starts an agent, once the host has no other channel open: its sshd may allow two sessions, and one is for commands.
async fn open(reach: &Arc<Reach>, agent: &str) -> Result<Channel, HostError> {
    let place = Arc::clone(&reach.channel).acquire_owned().await;
    let connection = reach.connected().await?;
    let script = connection::agent_script(&reach.binary.sha256, &reach.target.worker, agent);
    let script = format!("echo {BEGIN}; {script}");
    let opened = connection::open(&mut connection::sh(&connection.session, &script)).await;
    let mut child = opened.map_err(|source| unreachable(&reach.target, source))?;
    let stdin = child.stdin().take().expect("it is piped");
    let stderr = child.stderr().take().expect("it is piped");
    let stdout = child.stdout().take().expect("it is piped");
    let _ = rustix::pipe::fcntl_setpipe_size(&stdin, PIPE);
    let _ = rustix::pipe::fcntl_setpipe_size(&stdout, PIPE);
    let mut stdout = BufReader::with_capacity(256 << 10, stdout);
    let what = format!("assay agent {agent}");
    match timeout(ANSWER, connection::marked(&mut stdout, &[BEGIN])).await {
        Ok(Some(_)) => {}
        Ok(None) | Err(_) => return Err(reach.lost(&what)),
    }
    let reach = Arc::clone(reach);
    let tail = tokio::spawn(connection::tail(stderr));
    let ended = async move {
        let ended = child.wait().await;
        drop(place);
        let stderr = tail.await.unwrap_or_default();
        match ended {
            Ok(status) => Ok(Output {
                status: status.code(),
                stderr,
            }),
            Err(_) if is_there(&connection).await => Ok(Output {
                status: None,
                stderr,
            }),
            Err(_) => Err(reach.lost(&what)),
        }
    };
    Ok(Channel {
        stdin: Box::new(stdin),
        stdout: Box::new(stdout),
        ended: Box::pin(ended),
    })
}

/// Whether a connection still stands: a program that was killed and a link that was cut look the same at first.
async fn is_there(connection: &Connection) -> bool {
    !connection.link.is_lost() && connection.session.check().await.is_ok()
}
