//! Why a transfer fails.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::name;
use crate::host::HostError;
use crate::units::Bytes;

/// Why a transfer failed.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The agent could not be started, or the connection to it was lost.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Files on the host are in the way of it.
    #[error("cannot transfer files to or from `{host}`")]
    OnHost {
        /// The host.
        host: String,
        /// What is wrong there.
        source: Fault,
    },
    /// Files on this machine are in the way of it.
    #[error(transparent)]
    Here(Fault),
    /// The host sent and took nothing for too long.
    #[error("`{host}` was silent for {} during a transfer", humantime::format_duration(*limit))]
    Silent {
        /// The host.
        host: String,
        /// The longest silence that is waited for.
        limit: Duration,
    },
    /// The agent ended in the middle.
    #[error("`assay agent {agent}` on `{host}` ended {how} in the middle of a transfer{stderr}")]
    Ended {
        /// The host.
        host: String,
        /// The agent.
        agent: String,
        /// `with status 1`, `by a signal`.
        how: String,
        /// The end of its standard error, after a colon.
        stderr: String,
    },
    /// The agent said something that this version does not understand.
    #[error("`assay agent {agent}` on `{host}` sent what is no part of a transfer")]
    Garbled {
        /// The host.
        host: String,
        /// The agent.
        agent: String,
        /// What is wrong with it.
        source: io::Error,
    },
}

impl From<TransferError> for io::Error {
    fn from(error: TransferError) -> Self {
        let kind = match &error {
            TransferError::OnHost { source, .. } | TransferError::Here(source) => source.kind(),
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

impl TransferError {
    /// Whether the same call may succeed if it is made again as things are: only the connection is at fault.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        match self {
            Self::Host(error) => error.may_pass(),
            Self::Silent { .. } => true,
            Self::OnHost { .. } | Self::Here(_) | Self::Ended { .. } | Self::Garbled { .. } => {
                false
            }
        }
    }
}

/// What is wrong with files, here or on a host. It travels from there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The disk is full or too small.
    #[error("no space left on device ({} wanted, {} free at `{}`)", Bytes(*wanted), Bytes(*free), path.display())]
    Space {
        /// Where it is written to.
        #[serde(with = "name")]
        path: PathBuf,
        /// Bytes that are still to be written there.
        wanted: u64,
        /// Bytes that are free there.
        free: u64,
    },
    /// Owner or mode forbid it.
    #[error("permission denied: cannot {what} `{}`", path.display())]
    Denied {
        /// What was tried.
        what: String,
        /// On what.
        #[serde(with = "name")]
        path: PathBuf,
    },
    /// Something else is where it should go.
    #[error("`{}` exists and is something else", path.display())]
    Exists {
        /// The path.
        #[serde(with = "name")]
        path: PathBuf,
    },
    /// It was written to, replaced or removed meanwhile.
    #[error("`{}` changed while it was sent", path.display())]
    Changed {
        /// The file.
        #[serde(with = "name")]
        path: PathBuf,
    },
    /// It is neither a file, a folder nor a link, or a link where a file or folder is wanted.
    #[error("`{}` is {kind}, which is not transferred", path.display())]
    Kind {
        /// The path.
        #[serde(with = "name")]
        path: PathBuf,
        /// What it is.
        kind: String,
    },
    /// A list of files that could reach other places than those it should.
    #[error("`{}` is refused: {why}", path.display())]
    Refused {
        /// The path in the list.
        #[serde(with = "name")]
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The cache is in use.
    #[error("`{}` is in use by a transfer", path.display())]
    Busy {
        /// The cache's folder.
        #[serde(with = "name")]
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot {what} `{}`: {why}", path.display())]
    Io {
        /// What was tried.
        what: String,
        /// On what.
        #[serde(with = "name")]
        path: PathBuf,
        /// Why it failed.
        why: String,
    },
}

impl Fault {
    /// The kind of error that it would be here.
    fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Space { .. } => io::ErrorKind::StorageFull,
            Self::Denied { .. } => io::ErrorKind::PermissionDenied,
            Self::Exists { .. } => io::ErrorKind::AlreadyExists,
            Self::Changed { .. }
            | Self::Kind { .. }
            | Self::Refused { .. }
            | Self::Busy { .. }
            | Self::Io { .. } => io::ErrorKind::Other,
        }
    }

    /// What the operating system's refusal to do `what` to `path` means. A full disk is asked what is free.
    pub(super) fn of(what: &str, path: &Path, error: &io::Error) -> Self {
        let (what, path) = (what.to_owned(), path.to_owned());
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Space {
                free: free(&path),
                wanted: 0,
                path,
            },
            io::ErrorKind::PermissionDenied => Self::Denied { what, path },
            _ => Self::Io {
                what,
                path,
                why: error.to_string(),
            },
        }
    }

    /// Says how many bytes were still to be written, if the disk is full.
    pub(super) fn wanting(mut self, bytes: u64) -> Self {
        if let Self::Space { wanted, .. } = &mut self {
            *wanted = bytes;
        }
        self
    }
}

/// Bytes that are free where `path` is or will be; none if nobody can tell.
pub(super) fn free(path: &Path) -> u64 {
    let mut places = path.ancestors();
    places
        .find_map(|place| match rustix::fs::statvfs(place) {
            Err(Errno::NOENT) => None,
            found => Some(found.map_or(0, |found| found.f_bavail * found.f_frsize)),
        })
        .unwrap_or(0)
}

/// Says what was tried on what when the operating system refuses.
pub(super) trait Tried<T> {
    /// The fault names `what` was tried on `path`.
    fn tried(self, what: &str, path: &Path) -> Result<T, Fault>;
}

impl<T, E: Into<io::Error>> Tried<T> for Result<T, E> {
    fn tried(self, what: &str, path: &Path) -> Result<T, Fault> {
        self.map_err(|error| Fault::of(what, path, &error.into()))
    }
}

/// What ends one end of a transfer.
#[derive(Debug)]
pub(super) enum Stop {
    /// The stream to the other end broke, or what came is no part of a transfer.
    Stream(io::Error),
    /// Files on this end.
    Here(Fault),
    /// Files on the other end.
    There(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Here(fault)
    }
}
