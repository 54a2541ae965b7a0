//! Which snapshot method a host gets.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Attention, Capabilities, Copy, Reflink, SnapshotMethod};
use crate::host::{self, AgentError, Bounds, Host};
use crate::spec::Method;

/// A method and why it is this one.
pub struct Choice {
    /// The method.
    pub method: Box<dyn SnapshotMethod>,
    /// Why, as a text for people: `xfs at `/data` shares blocks`.
    pub why: String,
}

/// Why a host gets no method.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// The host could not be asked.
    #[error("cannot find out what the files on `{host}` can do")]
    Probe {
        /// The host.
        host: String,
        /// Why it failed.
        source: AgentError,
    },
    /// The experiment wants shared blocks, the file system has none.
    #[error("files in `{}` on `{host}` ({file_system}) cannot share blocks: {why}", directory.display())]
    NoReflink {
        /// The host.
        host: String,
        /// The directory that was tried.
        directory: PathBuf,
        /// The type of its file system.
        file_system: String,
        /// The system's words.
        why: String,
    },
}

/// The method for data and snapshots in `directory` on a host; asks the host only if it matters.
///
/// # Errors
/// The host cannot be asked, or cannot do what is wanted.
pub async fn choose(
    host: &dyn Host,
    wanted: Method,
    directory: &Path,
    attention: Attention<'_>,
) -> Result<Choice, ChoiceError> {
    if wanted == Method::Copy {
        return Ok(Choice {
            method: Box::new(Copy),
            why: "the experiment asks for it".to_owned(),
        });
    }
    let can = ask(host, directory, attention)
        .await
        .map_err(|source| ChoiceError::Probe {
            host: host.name().to_owned(),
            source,
        })?;
    let place = directory.display();
    let (file_system, why) = (can.file_system, can.why.unwrap_or_default());
    match (wanted, can.reflink) {
        (_, true) => Ok(Choice {
            method: Box::new(Reflink),
            why: format!("{file_system} at `{place}` shares blocks"),
        }),
        (Method::Reflink, false) => Err(ChoiceError::NoReflink {
            host: host.name().to_owned(),
            directory: directory.to_owned(),
            file_system,
            why,
        }),
        (Method::Auto | Method::Copy, false) => Ok(Choice {
            method: Box::new(Copy),
            why: format!("{file_system} at `{place}` cannot share blocks: {why}"),
        }),
    }
}

async fn ask(
    host: &dyn Host,
    directory: &Path,
    attention: Attention<'_>,
) -> Result<Capabilities, AgentError> {
    let request = json!({ "directory": directory });
    let bounds = Bounds {
        limit: attention.limit,
        stop: &attention.stop,
    };
    host::ask(host, "snapshot-probe", &request, bounds).await
}
