//! From errors to messages, hints and exit codes: the only place that knows them all.

use std::error::Error;
use std::process::ExitCode;

use super::text;
use crate::artifacts::ArchiveError;
use crate::host::{AgentError, HostError};
use crate::report::ReportError;
use crate::runner::RunError;

/// The exit codes, the same for every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// All is well.
    Fine = 0,
    /// assay itself failed.
    Internal = 1,
    /// The command line or the spec is wrong.
    Usage = 2,
    /// A host or a deployment failed.
    Host = 3,
    /// Rounds failed or are invalid.
    Rounds = 4,
    /// The user stopped it.
    Cancelled = 130,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

/// Why a command failed, in words for its user.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: Code,
    /// What is printed as it is, instead of message and causes.
    shown: Option<String>,
    messages: Vec<String>,
    hint: Option<String>,
}

impl Failure {
    /// A failure with only a message.
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            shown: None,
            messages: vec![message.into()],
            hint: None,
        }
    }

    /// A failure whose text is complete.
    pub(super) fn shown(code: Code, text: String) -> Self {
        Self {
            code,
            shown: Some(text),
            messages: Vec::new(),
            hint: None,
        }
    }

    /// A failure with the message and the causes of an error.
    pub(super) fn from_error(code: Code, error: &(dyn Error + 'static)) -> Self {
        let mut messages = Vec::new();
        let mut next = Some(error);
        while let Some(cause) = next {
            let message = cause.to_string();
            // Transparent errors repeat their source.
            if messages.last() != Some(&message) {
                messages.push(message);
            }
            next = cause.source();
        }
        Self {
            code,
            shown: None,
            messages,
            hint: None,
        }
    }

    /// Says what to do.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Prints it to standard error.
    pub(super) fn print(&self) {
        match &self.shown {
            Some(text) => anstream::eprintln!("{}", text.trim_end()),
            None => {
                let mut messages = self.messages.iter();
                let first = messages.next().map_or("", String::as_str);
                anstream::eprintln!("{}error:{} {first}", text::RED, text::PLAIN);
                messages.for_each(|m| anstream::eprintln!("  caused by: {m}"));
            }
        }
        if let Some(hint) = &self.hint {
            anstream::eprintln!("{}hint:{} {hint}", text::CYAN, text::PLAIN);
        }
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        let code = match error {
            ArchiveError::NoRun(_) | ArchiveError::Unfinished(_) | ArchiveError::Busy(_) => {
                Code::Usage
            }
            ArchiveError::Io { .. }
            | ArchiveError::Json { .. }
            | ArchiveError::Damaged { .. }
            | ArchiveError::Format { .. } => Code::Internal,
        };
        let hint = match &error {
            ArchiveError::NoRun(_) => {
                Some("`assay list` shows the runs; `--artifacts DIR` says where they are")
            }
            ArchiveError::Unfinished(_) => {
                Some("`assay status` says how far it is, `assay resume` finishes it")
            }
            ArchiveError::Busy(_) => {
                Some("`assay status` shows what it does; wait for it, or stop it with Ctrl-C")
            }
            ArchiveError::Format { .. } => {
                Some("read it with the version of assay that `assay list` names")
            }
            ArchiveError::Json { .. } | ArchiveError::Damaged { .. } => {
                Some("`assay verify` says which files changed since the run ended")
            }
            ArchiveError::Io { source, .. } => io_hint(source),
        };
        let failure = Self::from_error(code, &error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

fn io_hint(error: &std::io::Error) -> Option<&'static str> {
    match error.kind() {
        std::io::ErrorKind::StorageFull => Some("free space there, then `assay resume`"),
        std::io::ErrorKind::PermissionDenied => {
            Some("check its owner and mode, or choose another folder with `--artifacts`")
        }
        std::io::ErrorKind::ReadOnlyFilesystem => Some("choose another folder with `--artifacts`"),
        _ => None,
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        let hint = match &error {
            HostError::Held { .. } => {
                Some("wait for that run to end, or stop it with Ctrl-C; a dead one holds nothing")
            }
            HostError::Io { source, .. } => io_hint(source),
            HostError::Limit { .. } | HostError::Stopped { .. } => None,
        };
        let failure = Self::from_error(Code::Host, &error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Host(host) => host.into(),
            AgentError::Failed(_) | AgentError::Silent { .. } => {
                Self::from_error(Code::Host, &error)
            }
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Archive(archive) => archive.into(),
            RunError::Host(host) => host.into(),
            RunError::NoHost(_) => Self::from_error(Code::Internal, &error),
        }
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        Self::from_error(Code::Internal, &error)
    }
}
