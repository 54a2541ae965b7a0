//! Why something was not asked, or not answered as wanted.

use std::path::PathBuf;

use super::words;
use crate::units::{Bytes, Duration};

/// Why a question was not answered.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The request of an agent cannot be understood.
    #[error("cannot understand the request to `{agent}`")]
    Request {
        /// The agent.
        agent: String,
        /// Why not.
        source: serde_json::Error,
    },
    /// The request cannot be carried out, wherever and whenever.
    #[error("cannot carry out the request: {0}")]
    Impossible(String),
    /// A certificate or key cannot be used.
    #[error("cannot use the {what} `{}`: {why}", path.display())]
    Certificate {
        /// What it is to be: `certificate`, `private key`.
        what: &'static str,
        /// Its file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// A program cannot be started.
    #[error("cannot run `{program}`")]
    Program {
        /// The program.
        program: String,
        /// Why not.
        source: std::io::Error,
    },
    /// There was no answer over HTTP.
    #[error("cannot ask `{url}`")]
    Http {
        /// What was asked, without a password.
        url: String,
        /// Why.
        source: Cause,
    },
    /// There was no connection to a database.
    #[error("cannot connect to {server}")]
    Connect {
        /// The server.
        server: String,
        /// Why.
        source: Cause,
    },
    /// A statement failed.
    #[error("statement {number} of {of} failed at {server}")]
    Statement {
        /// Which one, from 1.
        number: usize,
        /// How many there were.
        of: usize,
        /// The server.
        server: String,
        /// Why.
        source: Cause,
    },
    /// What was answered is not the text format of Prometheus.
    #[error("line {line} of `{url}` is no metric: {why}")]
    Metric {
        /// What was asked.
        url: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        why: &'static str,
    },
    /// What was waited for did not come.
    #[error("{wanted}: not within {limit}; last: {found}")]
    Unmet {
        /// What was waited for.
        wanted: String,
        /// How long.
        limit: Duration,
        /// What was there instead at the end.
        found: String,
    },
}

/// Why there was no answer, or a refusal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// It took too long.
    #[error("no answer within {0}")]
    Silent(Duration),
    /// The connection failed.
    #[error("{0}")]
    Connection(String),
    /// The server says why: its code and text.
    #[error("{code}: {text}")]
    Server {
        /// Its code: a number and a state of MySQL's, an SQLSTATE of PostgreSQL's.
        code: String,
        /// What it says.
        text: String,
    },
    /// The answer is longer than anybody can want.
    #[error("the answer is longer than {0}")]
    Long(Bytes),
}

impl Cause {
    /// The cause that a library or the system gives.
    pub(super) fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        Self::Connection(words::innermost(error))
    }
}

impl ProbeError {
    /// Why the same question may be answered later; an error if it never will.
    pub(super) fn passing(self) -> Result<String, Self> {
        match self {
            Self::Http { source, .. } | Self::Connect { source, .. } => Ok(source.to_string()),
            Self::Statement {
                number: 1,
                of: 1,
                source,
                ..
            } => Ok(source.to_string()),
            Self::Statement { number, source, .. } => Ok(format!("statement {number}: {source}")),
            Self::Metric { .. } | Self::Unmet { .. } => Ok(self.to_string()),
            Self::Request { .. }
            | Self::Impossible(_)
            | Self::Certificate { .. }
            | Self::Program { .. } => Err(self),
        }
    }
}
