//! Why the work on a data directory is refused or fails.

use std::io;
use std::path::{Path, PathBuf};

use super::Marker;
use crate::units::Bytes;

/// Why the work on a data directory is refused or fails.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The path is one that assay never works on.
    #[error("`{}` is no place for data: {why}", path.display())]
    Place {
        /// The path.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The directory is not this deployment's.
    #[error("`{}` is left alone: it {}, wanted is the marker of {wanted}", path.display(), carried(found.as_ref()))]
    NotOurs {
        /// The directory.
        path: PathBuf,
        /// The marker that it carries.
        found: Option<Marker>,
        /// The marker that it had to carry.
        wanted: Marker,
    },
    /// Something that has to be there is not.
    #[error("there is no {what} at `{}`", path.display())]
    Missing {
        /// What.
        what: &'static str,
        /// Where.
        path: PathBuf,
    },
    /// The data contains something that cannot be copied.
    #[error("`{}` is a {kind}, which a snapshot cannot hold", path.display())]
    Kind {
        /// The thing.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// The data was written to meanwhile.
    #[error("`{}` changed while it was copied: its database has to be stopped", path.display())]
    Changed {
        /// The file or folder.
        path: PathBuf,
    },
    /// The disk is too small.
    #[error("no space left on device ({} wanted, {} free at `{}`)", Bytes(*wanted), Bytes(*free), path.display())]
    Space {
        /// The folder that is written to.
        path: PathBuf,
        /// Bytes wanted in all.
        wanted: u64,
        /// Bytes free before.
        free: u64,
    },
    /// The file system cannot share a file's blocks.
    #[error("cannot share the blocks of `{}` with its copy (reflink)", path.display())]
    Reflink {
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The files are not those of the manifest.
    #[error("`{}` differs from its snapshot's manifest: {why}", path.display())]
    Differs {
        /// The file.
        path: PathBuf,
        /// In what.
        why: String,
    },
    /// A marker or manifest cannot be understood.
    #[error("cannot understand `{}`", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: serde_json::Error,
    },
    /// The request of an agent cannot be understood.
    #[error("cannot understand the request to `{agent}`")]
    Request {
        /// The agent.
        agent: String,
        /// Why not.
        source: serde_json::Error,
    },
    /// The operating system refused.
    #[error("cannot {what} `{}`", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

fn carried(found: Option<&Marker>) -> String {
    match found {
        Some(marker) => format!("carries the marker of {marker}"),
        None => "carries no marker of assay".to_owned(),
    }
}

/// Says what was tried on what when the operating system refuses.
pub(super) trait Tried<T> {
    /// The error names `what` was tried on `path`.
    fn tried(self, what: &'static str, path: &Path) -> Result<T, SnapshotError>;
}

impl<T, E: Into<io::Error>> Tried<T> for Result<T, E> {
    fn tried(self, what: &'static str, path: &Path) -> Result<T, SnapshotError> {
        self.map_err(|error| SnapshotError::Io {
            what,
            path: path.to_owned(),
            source: error.into(),
        })
    }
}
