//! Why the work on a deployment's programs is refused or fails.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::snapshot::{Marker, SnapshotError};

/// Why the work on a deployment's programs is refused or fails.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// A directory is refused, not ours, or cannot be made or removed.
    #[error(transparent)]
    Directory(Box<SnapshotError>),
    /// The request of an agent cannot be understood.
    #[error("cannot understand the request to `{agent}`")]
    Request {
        /// The agent.
        agent: String,
        /// Why not.
        source: serde_json::Error,
    },
    /// Something that is asked for is not done.
    #[error("`{what}` is refused: {why}")]
    Refused {
        /// The path or name.
        what: String,
        /// Why.
        why: String,
    },
    /// A file is to belong to somebody whom the host does not know.
    #[error(
        "there is no user `{name}` on this host: make it, for example with `useradd --system --shell /bin/bash {name}`"
    )]
    User {
        /// The user.
        name: String,
    },
    /// A unit file by a name of ours is not ours.
    #[error("the unit `{}` is left alone: it {}, wanted is the one of {wanted}", path.display(), headed(found.as_ref()))]
    NotOurs {
        /// The unit file.
        path: PathBuf,
        /// Whose it says that it is.
        found: Option<Marker>,
        /// Whose it had to be.
        wanted: Box<Marker>,
    },
    /// The host has no systemd at work.
    #[error(
        "services need systemd, and it is not at work on this host (there is no `/run/systemd/system`)"
    )]
    NoSystemd,
    /// The user is not root and has no systemd of its own that stays.
    #[error(
        "services of a user other than root need that user's own systemd, and {missing}: give the host `become: true`, or run `loginctl enable-linger`"
    )]
    NoUserSystemd {
        /// What is missing.
        missing: String,
    },
    /// A tool of systemd failed.
    #[error("`{what}` failed: {said}")]
    Tool {
        /// The call.
        what: String,
        /// What it said.
        said: String,
    },
    /// There is no unit of that name.
    #[error("there is no unit `{unit}` on this host: it was not installed")]
    NoUnit {
        /// The unit.
        unit: String,
    },
    /// A unit ended instead of running.
    #[error("the unit `{unit}` {how} instead of running{printed}")]
    Ended {
        /// The unit.
        unit: String,
        /// `ended with status 1`.
        how: String,
        /// The ends of its journal and its log files.
        printed: Printed,
    },
    /// Units did not run within the limit.
    #[error("not started within {}: {}{printed}", humantime::format_duration(*limit), units.join(", "))]
    Late {
        /// The units that did not, with their states.
        units: Vec<String>,
        /// The limit.
        limit: Duration,
        /// The ends of their journals and log files.
        printed: Printed,
    },
    /// Processes of a unit cannot be killed.
    #[error(
        "processes of the unit `{unit}` are left although they were killed: {}",
        pids(processes)
    )]
    Remains {
        /// The unit.
        unit: String,
        /// The processes.
        processes: Vec<u32>,
    },
    /// A program outlived its limit and was killed.
    #[error("`{program}` took longer than its limit of {} and was killed{printed}", humantime::format_duration(*limit))]
    Limit {
        /// The program.
        program: String,
        /// The limit.
        limit: Duration,
        /// What it had printed.
        printed: Printed,
    },
    /// What an installation left beside a deployment's directory cannot be understood.
    #[error("cannot understand `{}`", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: serde_json::Error,
    },
    /// The operating system refused.
    #[error("cannot {what} `{}`", path.display())]
    Io {
        /// What was tried.
        what: String,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

fn headed(found: Option<&Marker>) -> String {
    match found {
        Some(marker) => format!("is the one of {marker}"),
        None => "was not made by assay".to_owned(),
    }
}

fn pids(processes: &[u32]) -> String {
    let texts: Vec<String> = processes.iter().map(u32::to_string).collect();
    texts.join(", ")
}

/// Ends of what programs printed, each with the name of where it was found; shown indented on lines of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed(pub Vec<(String, String)>);

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = self.0.iter().filter(|(_, text)| !text.trim().is_empty());
        for (place, text) in said {
            write!(f, "\n  {place}:")?;
            for line in text.trim_end().lines() {
                write!(f, "\n    {line}")?;
            }
        }
        Ok(())
    }
}

impl From<SnapshotError> for ServiceError {
    fn from(error: SnapshotError) -> Self {
        Self::Directory(Box::new(error))
    }
}

impl ServiceError {
    pub(super) fn refused(what: impl Into<String>, why: impl Into<String>) -> Self {
        let (what, why) = (what.into(), why.into());
        Self::Refused { what, why }
    }
}

/// Says what was tried on what when the operating system refuses.
pub(super) trait Tried<T> {
    /// The error names `what` was tried on `path`.
    fn tried(self, what: &str, path: &Path) -> Result<T, ServiceError>;
}

impl<T, E: Into<io::Error>> Tried<T> for Result<T, E> {
    fn tried(self, what: &str, path: &Path) -> Result<T, ServiceError> {
        self.map_err(|error| ServiceError::Io {
            what: what.to_owned(),
            path: path.to_owned(),
            source: error.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_printed_stands_below_the_message_and_nothing_leaves_no_line() {
        let printed = Printed(vec![
            ("its journal".into(), "one\ntwo\n".into()),
            ("`/a/log`".into(), "\n".into()),
        ]);
        let error = ServiceError::Ended {
            unit: "assay-x.service".into(),
            how: "ended with status 7".into(),
            printed,
        };
        assert_eq!(
            error.to_string(),
            "the unit `assay-x.service` ended with status 7 instead of running\n  its journal:\n    one\n    two"
        );
    }
}
