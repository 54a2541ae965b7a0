//! Files and trees to and from hosts: packed where it pays, verified by sha256, taken up where a lost connection left them,
//! and never sent twice, since a host keeps what it received in a cache by content.
//!
//! Both ends are this program: the host's one is an agent with a channel of its own ([`Channels`]). The ends speak lines
//! of JSON and contents in chunks (`wire.rs`), in plain blocking code; on this machine it runs on a thread of its own
//! (`bridge.rs`). What comes from the other end is checked before it is a path here (`list.rs`).

mod agent;
mod bridge;
mod cache;
mod content;
mod copy;
mod download;
mod error;
mod list;
mod name;
mod offer;
mod receive;
mod source;
mod stage;
mod tidy;
mod upload;
mod wire;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use agent::{Served, is_ours, serve};
pub use bridge::Progress;
pub use cache::Tidied;
pub use copy::copy;
pub use download::{Received, download};
pub use error::{Fault, TransferError};
pub use source::Source;
pub use tidy::{CACHE_LIMIT, tidy_cache};
pub use upload::{Sent, provide, upload};

use super::{Channels, Retry};

/// The agent that receives an upload.
const RECEIVE: &str = "store-receive";
/// The agent that sends a download.
const SEND: &str = "store-send";
/// The agent that tidies the cache.
const TIDY: &str = "store-tidy";

/// The other end of a transfer.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// How it is reached.
    pub channels: &'a dyn Channels,
    /// The host's absolute folder, which the cache is in.
    pub directory: &'a Path,
}

/// How a transfer is done.
#[derive(Clone)]
pub struct Options {
    /// How often it goes on after a lost connection.
    pub retry: Retry,
    /// The longest time in which no byte comes or goes: then the connection counts as lost.
    pub silence: Duration,
    /// Hears of the bytes of files as they are transferred, from another thread.
    pub progress: Progress,
}

impl Options {
    /// For a host that may be silent for a minute; nobody hears of progress.
    #[must_use]
    pub fn new(retry: Retry) -> Self {
        Self {
            retry,
            silence: Duration::from_secs(60),
            progress: Arc::new(|_| {}),
        }
    }
}
