//! Raw bytes to and from an agent on a host: what a transport offers to transfers.

use std::future::Future;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

use super::{HostError, Output, Pending};

/// Starts `assay agent NAME` on a host with raw bytes as its standard input and output (a channel of its own beside the
/// commands).
pub trait Channels: Send + Sync {
    /// The host's name for messages.
    fn host(&self) -> &str;

    /// Starts the agent. At most one channel of a host is open at a time.
    fn open<'a>(&'a self, agent: &'a str) -> Pending<'a, Result<Channel, HostError>>;
}

/// A running agent and its streams. Dropping it leaves the agent at the end of its input, on which it exits.
pub struct Channel {
    /// What the agent reads.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// What the agent writes.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Ends when the agent has; its exit status and the end of its standard error; an error when the connection was lost.
    pub ended: Pin<Box<dyn Future<Output = Result<Output, HostError>> + Send>>,
}
