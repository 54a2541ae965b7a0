//! This machine's side of a download.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::bridge::{Line, Progress, converse, unexpected};
use super::content::{self, Arriving};
use super::error::{Fault, Stop, TransferError, Tried, free};
use super::list::{Entry, Found, below, check};
use super::stage::{self, Stage};
use super::wire::{Fetch, Offer, Packing, garbled};
use super::{Options, SEND, Target};
use std::sync::Arc;

/// What a download came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Bytes of all files.
    pub bytes: u64,
    /// How many files there are.
    pub files: usize,
}

/// Files that are asked for at a time.
const BATCH: usize = 4096;

/// Copies a file or folder of a host, without its [`MARKER_FILE`](crate::host::MARKER_FILE), to `local`, which must not
/// exist; folders above it are made. Links in a folder stay links; one in its place is refused. Of a file that grows
/// meanwhile the bytes count that it had when it was listed. Everything is on disk when this returns; on failure nothing is
/// left.
///
/// # Errors
/// It cannot be read, changes meanwhile, `local` exists, a disk is full, the connection is lost more often than
/// [`Options::retry`] allows.
pub async fn download(
    target: Target<'_>,
    remote: &Path,
    local: &Path,
    options: &Options,
) -> Result<Received, TransferError> {
    let mut state = Download {
        remote: remote.to_owned(),
        local: local.to_owned(),
        progress: Arc::clone(&options.progress),
        listed: None,
        moved: 0,
    };
    let mut pauses = options.retry.pauses();
    loop {
        let (channels, silence) = (target.channels, options.silence);
        let before = state.moved;
        let (back, result) = converse(channels, SEND, silence, state, Download::run).await;
        let error = match result {
            Ok(received) => return Ok(received),
            Err(error) => error,
        };
        state = match back {
            Some(state) if error.is_repeatable() && pauses.next(state.moved > before).await => {
                state
            }
            _ => return Err(error),
        };
        tracing::info!(host = channels.host(), %error, "a download goes on after a lost connection");
    }
}

/// A download over as many connections as it takes.
struct Download {
    remote: PathBuf,
    local: PathBuf,
    progress: Progress,
    /// What is to come, once the host said.
    listed: Option<Listed>,
    /// Bytes that came.
    moved: u64,
}

struct Listed {
    stage: Stage,
    entries: Vec<Entry>,
    /// Files that are to be asked for.
    files: Vec<Found>,
    /// How many of them are whole.
    done: usize,
    /// What has come of the next one.
    open: Option<Opened>,
}

struct Opened {
    file: File,
    digest: Sha256,
    length: u64,
}

impl Download {
    fn run(&mut self, line: &mut Line) -> Result<Received, Stop> {
        let result = self.converse(line);
        if matches!(&result, Err(Stop::Here(_) | Stop::There(_))) {
            // Nothing is left of it.
            self.listed = None;
        }
        result
    }

    fn converse(&mut self, line: &mut Line) -> Result<Received, Stop> {
        if self.listed.is_none() {
            self.listed = Some(self.list(line)?);
        }
        let listed = self.listed.as_mut().expect("it was just set");
        while listed.done < listed.files.len() {
            let end = listed.files.len().min(listed.done + BATCH);
            line.say(&Fetch::Send {
                path: self.remote.clone(),
                files: listed.files[listed.done..end].to_vec(),
                from: listed.open.as_ref().map_or(0, |open| open.length),
            })?;
            while listed.done < end {
                listed.receive(line, &self.remote, &self.progress, &mut self.moved)?;
            }
        }
        // Everything is here; whether the agent still listens does not matter.
        let _ = line.say(&Fetch::End);
        Ok(self.finish()?)
    }

    /// Asks what there is and makes everything but the files.
    fn list(&self, line: &mut Line) -> Result<Listed, Stop> {
        if std::fs::symlink_metadata(&self.local).is_ok() {
            let path = self.local.clone();
            return Err(Fault::Exists { path }.into());
        }
        line.say(&Fetch::List(self.remote.clone()))?;
        let Offer::List(found) = hear(line)? else {
            return Err(unexpected());
        };
        check(found.iter().map(|found| &found.entry))?;
        if found
            .iter()
            .any(|f| f.entry.is_file() && f.entry.size() != f.stamp.size())
        {
            return Err(garbled("a file has two sizes"));
        }
        let (path, free) = (self.local.clone(), free(&self.local));
        let wanted = found
            .iter()
            .map(|f| f.entry.size())
            .fold(0, u64::saturating_add);
        if wanted > free {
            return Err(Fault::Space { path, wanted, free }.into());
        }
        let stage = Stage::beside(&self.local, found[0].entry.is_file())?;
        for found in &found {
            stage.make(&found.entry)?;
        }
        let entries = found.iter().map(|found| found.entry.clone()).collect();
        Ok(Listed {
            stage,
            entries,
            files: found.into_iter().filter(|f| f.entry.is_file()).collect(),
            done: 0,
            open: None,
        })
    }

    fn finish(&mut self) -> Result<Received, Fault> {
        let listed = self.listed.take().expect("it is whole");
        let Listed { stage, entries, .. } = listed;
        stage.sync(entries.iter())?;
        // Whoever reads an archive owns it.
        stage.dress(entries.iter(), 0o700)?;
        stage.finish(false)?;
        stage::sync(self.local.parent().unwrap_or(Path::new("/")))?;
        Ok(Received {
            bytes: entries.iter().map(Entry::size).sum(),
            files: entries.iter().filter(|entry| entry.is_file()).count(),
        })
    }
}

impl Listed {
    /// Receives the next file, or the rest of it.
    fn receive(
        &mut self,
        line: &mut Line,
        remote: &Path,
        progress: &Progress,
        moved: &mut u64,
    ) -> Result<(), Stop> {
        let packing = match hear(line)? {
            Offer::Content(packing) => packing,
            _ => return Err(unexpected()),
        };
        let entry = &self.files[self.done].entry;
        let path = self.stage.of(entry);
        let opened = match &mut self.open {
            Some(opened) => opened,
            none => none.insert(Opened {
                file: self.stage.file(entry)?,
                digest: Sha256::new(),
                length: 0,
            }),
        };
        opened
            .take(line, packing, entry.size(), &path, &mut |bytes| {
                *moved += bytes;
                progress(bytes);
            })
            .map_err(|stop| match stop {
                Stop::Here(fault) => {
                    let left: u64 = self.files[self.done..].iter().map(|f| f.entry.size()).sum();
                    Stop::Here(fault.wanting(left - opened.length))
                }
                // A content that was torn is followed by the reason.
                stop => reason(line, stop),
            })?;
        let Offer::Sha256(sha256) = hear(line)? else {
            return Err(unexpected());
        };
        let Some(opened) = self.open.take() else {
            return Err(unexpected());
        };
        if content::hex(opened.digest) != sha256 {
            // What came before a lost connection is not what the file begins with now.
            let path = below(remote, &entry.path);
            return Err(Stop::There(Fault::Changed { path }));
        }
        let mode = Permissions::from_mode(entry.mode | 0o400);
        opened
            .file
            .set_permissions(mode)
            .tried("set the mode of", &path)?;
        opened.file.sync_all().tried("write", &path)?;
        self.done += 1;
        Ok(())
    }
}

impl Opened {
    fn take(
        &mut self,
        line: &mut Line,
        packing: Packing,
        size: u64,
        path: &Path,
        step: &mut dyn FnMut(u64),
    ) -> Result<(), Stop> {
        let left = size - self.length;
        let length = &mut self.length;
        let arriving = Arriving {
            file: &mut self.file,
            path,
            digest: &mut self.digest,
            step: &mut |bytes| {
                *length += bytes;
                step(bytes);
            },
        };
        content::receive(&mut line.input, packing, left, arriving)
    }
}

/// The next answer that is no sign of life.
fn hear(line: &mut Line) -> Result<Offer, Stop> {
    loop {
        match line.hear()? {
            Offer::Alive => {}
            Offer::Failed(fault) => return Err(Stop::There(fault)),
            offer => return Ok(offer),
        }
    }
}

/// Why a content was torn, if the host says so.
fn reason(line: &mut Line, stop: Stop) -> Stop {
    match stop {
        Stop::Stream(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {
            match hear(line) {
                Err(Stop::There(fault)) => Stop::There(fault),
                _ => Stop::Stream(error),
            }
        }
        stop => stop,
    }
}
