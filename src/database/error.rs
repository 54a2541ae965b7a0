//! Why something could not be done to a database.

use crate::host::{AgentError, HostError};
use crate::pack::PackError;
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
    /// Anything else, in words.
    #[error("{0}")]
    Other(String),
}

impl DatabaseError {
    /// The failure of a host that is behind it.
    #[must_use]
    pub fn host(&self) -> Option<&HostError> {
        match self {
            Self::Agent(AgentError::Host(host)) | Self::Host(host) => Some(host),
            Self::Instance { source, .. } => source.host(),
            Self::Agent(_)
            | Self::Pack(_)
            | Self::Template(_)
            | Self::NotEffective { .. }
            | Self::Version { .. }
            | Self::Restless { .. }
            | Self::Other(_) => None,
        }
    }
}
