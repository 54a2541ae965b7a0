//! This machine's side of an upload.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::bridge::{Line, converse};
use super::cache;
use super::error::{Fault, Stop, TransferError};
use super::list::below;
use super::source::{Files, Source};
use super::wire::{Answer, Delivery, Place, Want};
use super::{Options, RECEIVE, Target};

/// What an upload came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Bytes of all files.
    pub bytes: u64,
    /// Bytes of contents that went over the wire, packed ones as they were packed; nothing of what the host had.
    pub sent: u64,
    /// How many files there are.
    pub files: usize,
}

/// Brings a file or tree to `remote` on a host: received into the host's cache, verified, made beside `remote`, renamed.
/// Folders above are made. If the same is there already, nothing happens. With `replace`, another file may be there.
///
/// # Errors
/// It cannot be read, something else is at `remote`, a disk is full, the connection is lost more often than
/// [`Options::retry`] allows. What has come of a content stays in the cache, and the next call goes on from there.
pub async fn upload(
    target: Target<'_>,
    source: &Source,
    remote: &Path,
    replace: bool,
    options: &Options,
) -> Result<Sent, TransferError> {
    let path = remote.to_owned();
    deliver(target, source, Place::Path { path, replace }, options).await
}

/// Brings a file into a host's cache and returns its path there, where it must only be read.
///
/// # Errors
/// As [`upload`]; a folder is refused.
pub async fn provide(
    target: Target<'_>,
    source: &Source,
    options: &Options,
) -> Result<(PathBuf, Sent), TransferError> {
    let Some(sha256) = source.sha256() else {
        return Err(TransferError::Here(Fault::Kind {
            path: source.root().to_owned(),
            kind: "a folder".to_owned(),
        }));
    };
    let path = cache::place_in(target.directory, sha256);
    let sent = deliver(target, source, Place::Cache, options).await?;
    Ok((path, sent))
}

/// An upload over as many connections as it takes.
struct Upload {
    delivery: Delivery,
    files: Arc<Files>,
    progress: Arc<dyn Fn(u64) + Send + Sync>,
    /// Bytes that went over the wire.
    sent: Arc<AtomicU64>,
}

async fn deliver(
    target: Target<'_>,
    source: &Source,
    place: Place,
    options: &Options,
) -> Result<Sent, TransferError> {
    let files = source.all();
    let sent = Arc::new(AtomicU64::new(0));
    let mut state = Upload {
        delivery: Delivery {
            directory: target.directory.to_owned(),
            place,
            entries: files.entries.clone(),
        },
        progress: Arc::clone(&options.progress),
        sent: Arc::clone(&sent),
        files,
    };
    let mut pauses = options.retry.pauses();
    loop {
        let before = sent.load(Ordering::Relaxed);
        let (channels, silence) = (target.channels, options.silence);
        let talk = converse(channels, RECEIVE, silence, state, Upload::run).await;
        let (back, result) = talk;
        let error = match result {
            Ok(()) => break,
            Err(error) => error,
        };
        let went_on = sent.load(Ordering::Relaxed) > before;
        state = match back {
            Some(state) if error.is_repeatable() && pauses.next(went_on).await => state,
            _ => return Err(error),
        };
        tracing::info!(host = channels.host(), %error, "an upload goes on after a lost connection");
    }
    Ok(Sent {
        bytes: source.bytes(),
        sent: sent.load(Ordering::Relaxed),
        files: source.files(),
    })
}

impl Upload {
    fn run(&mut self, line: &mut Line) -> Result<(), Stop> {
        let result = self.converse(line);
        match result {
            // The host may have said why it no longer listens.
            Err(Stop::Stream(error)) => Err(match last_words(line) {
                Some(fault) => self.here_or_there(fault),
                None => Stop::Stream(error),
            }),
            Err(Stop::There(fault)) => Err(self.here_or_there(fault)),
            other => other,
        }
    }

    fn converse(&mut self, line: &mut Line) -> Result<(), Stop> {
        line.say(&self.delivery)?;
        loop {
            match line.hear()? {
                Answer::Alive => {}
                Answer::Wants(wants) => {
                    for want in wants {
                        self.send(want, line)?;
                    }
                }
                Answer::Done => return Ok(()),
                Answer::Failed(fault) => return Err(Stop::There(fault)),
            }
        }
    }

    fn send(&self, want: Want, line: &mut Line) -> Result<(), Stop> {
        let wanted = self.files.entries.get(want.file);
        if !wanted.is_some_and(|entry| entry.is_file() && want.from <= entry.size()) {
            return Err(super::wire::garbled("what is wanted is not there"));
        }
        line.say(&self.files.packing(want.file))?;
        let mut wire = |bytes| {
            self.sent.fetch_add(bytes, Ordering::Relaxed);
        };
        let mut step = |bytes| (self.progress)(bytes);
        let steps: (&mut dyn FnMut(u64), &mut dyn FnMut(u64)) = (&mut step, &mut wire);
        self.files
            .send(want.file, want.from, &mut line.output, steps)
    }

    /// A content that is not what was listed changed on this machine.
    fn here_or_there(&self, fault: Fault) -> Stop {
        match fault {
            Fault::Changed { path } if path.is_relative() => Stop::Here(Fault::Changed {
                path: below(&self.files.root, &path),
            }),
            fault => Stop::There(fault),
        }
    }
}

fn last_words(line: &mut Line) -> Option<Fault> {
    loop {
        match line.hear() {
            Ok(Answer::Failed(fault)) => return Some(fault),
            Ok(Answer::Alive | Answer::Wants(_) | Answer::Done) => {}
            Err(_) => return None,
        }
    }
}
