//! What a run leaves: the folder's layout and format, its events, writer, reader and checksums.

mod checksums;
mod event;
mod layout;
mod log;
mod manifest;
mod reader;
mod result;
mod state;
mod writer;

use std::path::{Path, PathBuf};

pub use checksums::{Verification, sha256_of, verify, write_sums};
pub use event::{Entry, Event, Status, Tunables};
pub use layout::Layout;
pub use log::{EventLog, is_written, read_events};
pub use manifest::{FORMAT, HostRecord, Manifest};
pub use reader::{Run, created, list_runs, read_files, read_result};
pub use result::{Measured, Numbers, RoundResult};
pub use state::{Current, End, Ready, RoundState, State};
pub use writer::{SpecTexts, create_run, plan_text, write_new, write_revision};

/// Why a run's folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The operating system refused.
    #[error("cannot {what} `{}`", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A file holds no such JSON.
    #[error("`{}` is damaged at line {line}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A file is not what it should be.
    #[error("`{}` is damaged: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The folder is no run.
    #[error("`{}` is no run: it has no manifest.json", .0.display())]
    NoRun(PathBuf),
    /// The folder was written by another version of assay.
    #[error("`{}` has format {found}; this assay reads format {FORMAT}", path.display())]
    Format {
        /// The manifest.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// The run has no checksums yet.
    #[error("run `{}` is not finished: it has no SHA256SUMS yet", .0.display())]
    Unfinished(PathBuf),
    /// The run's folder was removed or moved away while it was written.
    #[error("`{}` was removed or replaced while the run went on", .0.display())]
    Gone(PathBuf),
    /// Another process writes the run.
    #[error("`{}` is written by another assay process", .0.display())]
    Busy(PathBuf),
}

impl ArchiveError {
    pub(crate) fn io(what: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            what,
            path: path.to_owned(),
            source,
        }
    }
}
