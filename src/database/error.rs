//! Why something could not be done to a database.

use std::time::Duration;

use super::cluster::Member;
use crate::host::transfer::TransferError;
use crate::host::{AgentError, HostError};
use crate::pack::PackError;
use crate::package::PackageError;
use crate::service::UnitError;
use crate::template::TemplateError;

/// Why something could not be done to a database.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// An agent on a host failed.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// A host failed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A system's pack cannot be used.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// A file or command cannot be rendered.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A package cannot be obtained.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// A file cannot be brought to a host.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// A unit cannot be written.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// A process did not stop when it was asked to.
    #[error("`{instance}` did not stop within {} and was killed", humantime::format_duration(*limit))]
    Killed {
        /// The instance.
        instance: String,
        /// The limit.
        limit: Duration,
    },
    /// Something at one instance failed.
    #[error("{what} `{instance}`")]
    Instance {
        /// What was tried: `cannot start`.
        what: &'static str,
        /// The instance.
        instance: String,
        /// Why.
        source: Box<DatabaseError>,
    },
    /// A tunable or variable did not take effect.
    #[error("{name} of `{of}` is {found} where the experiment asks for {wanted}")]
    NotEffective {
        /// The component or instance.
        of: String,
        /// The tunable's or variable's name in backticks.
        name: String,
        /// What was asked for.
        wanted: String,
        /// What was read back.
        found: String,
    },
    /// Another version runs than was asked for.
    #[error("`{instance}` is version {found} where the experiment asks for {wanted}")]
    Version {
        /// The instance.
        instance: String,
        /// What was asked for.
        wanted: String,
        /// What runs.
        found: String,
    },
    /// It was not quiet in time.
    #[error("not quiet within {limit}: {condition}")]
    Restless {
        /// The limit.
        limit: String,
        /// The conditions that do not hold.
        condition: String,
    },
    /// TiUP failed.
    #[error("`{command}` {ended}: {said}")]
    Tiup {
        /// The command.
        command: String,
        /// How it ended: `ended with status 1`.
        ended: String,
        /// Its own last lines.
        said: String,
    },
    /// Anything else, in words.
    #[error("{0}")]
    Other(String),
}

impl DatabaseError {
    /// The error of something that was tried at an instance.
    pub(super) fn of(self, what: &'static str, member: &Member) -> Self {
        if self.host().is_some() {
            return self;
        }
        Self::Instance {
            what,
            instance: member.instance.id.clone(),
            source: Box::new(self),
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Package(error) => error.hint(),
            Self::Instance { source, .. } => source.hint(),
            Self::NotEffective { .. } => Some(
                "leave it away, or write the value that the version takes; `assay check` knows many traps".to_owned(),
            ),
            Self::Restless { .. } => Some(
                "give it longer with `rounds.settle.timeout`, or `rounds.settle.at_limit: warn`".to_owned(),
            ),
            Self::Tiup { said, .. } => tiup_hint(said),
            _ => None,
        }
    }

    /// The failure of a host that is behind it.
    #[must_use]
    pub fn host(&self) -> Option<&HostError> {
        match self {
            Self::Agent(AgentError::Host(host)) | Self::Host(host) => Some(host),
            Self::Instance { source, .. } => source.host(),
            Self::Transfer(TransferError::Host(host)) => Some(host),
            Self::Agent(_)
            | Self::Pack(_)
            | Self::Package(_)
            | Self::Transfer(_)
            | Self::Unit(_)
            | Self::Killed { .. }
            | Self::Template(_)
            | Self::NotEffective { .. }
            | Self::Version { .. }
            | Self::Restless { .. }
            | Self::Tiup { .. }
            | Self::Other(_) => None,
        }
    }
}

/// What to do about something that TiUP said.
fn tiup_hint(said: &str) -> Option<String> {
    let said = said.to_ascii_lowercase();
    let hint = if said.contains("conflict") {
        "TiUP keeps the ports and folders of all its clusters apart: give each variant a `topology` with ports of its own"
    } else if said.contains("no such file or directory") && said.contains("env:") {
        "install TiUP on this machine, or say where it is with `deploy.tiup`"
    } else if said.contains("could not be saved") {
        "TiUP does not change ports, folders and hosts of a cluster: `assay destroy` it, and deploy it anew"
    } else if said.contains("unknown flag") {
        "assay needs `tiup cluster` 1.12 or newer: `tiup update --self && tiup update cluster`"
    } else {
        return None;
    };
    Some(hint.to_owned())
}
