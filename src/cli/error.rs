//! From errors to messages, hints and exit codes: the only place that knows them all.

use std::error::Error;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::{output, text};
use crate::artifacts::ArchiveError;
use crate::database::pack::PackError;
use crate::host::{AgentError, HostError};
use crate::report::ReportError;
use crate::runner::RunError;
use crate::spec::{Located, Problems};

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
    /// The problems of a spec, for machines.
    problems: Vec<Located>,
}

impl Failure {
    /// A failure with only a message.
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            shown: None,
            messages: vec![message.into()],
            hint: None,
            problems: Vec::new(),
        }
    }

    /// A spec that is refused.
    pub(super) fn refused(problems: &Problems) -> Self {
        let shown = problems.render(text::is_coloured());
        let count = match problems.len() {
            1 => "1 problem".to_owned(),
            n => format!("{n} problems"),
        };
        Self {
            code: Code::Usage,
            shown: Some(format!(
                "{}

{count}; nothing was changed",
                shown.trim_end()
            )),
            messages: vec![format!("the spec has {count}")],
            hint: None,
            problems: problems.list(),
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
            problems: Vec::new(),
        }
    }

    /// Adds causes.
    pub(super) fn because(mut self, causes: Vec<String>) -> Self {
        self.messages.extend(causes);
        self
    }

    /// Prints a text above the message, which says enough: causes are for machines then.
    pub(super) fn above(mut self, text: String) -> Self {
        let first = self.messages.first().map_or("", String::as_str);
        let (red, plain) = (text::RED, text::PLAIN);
        let text = output::clean(text.trim_end());
        self.shown = Some(format!("{text}\n{red}error:{plain} {first}"));
        self
    }

    /// The message with its causes, in one line.
    pub(super) fn message(&self) -> String {
        self.messages.join(": ")
    }

    /// Says what to do.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The failure for machines.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "error": self.messages.first(),
            "causes": self.messages.get(1..).unwrap_or_default(),
            "hint": self.hint,
            "exit": self.code as i32,
            "problems": self.problems,
        })
    }

    /// Prints it to standard error.
    pub(super) fn print(&self) {
        match &self.shown {
            Some(text) => output::say(text.trim_end()),
            None => {
                let mut messages = self.messages.iter();
                let first = messages.next().map_or("", String::as_str);
                output::say(format_args!(
                    "{}error:{} {}",
                    text::RED,
                    text::PLAIN,
                    output::clean(first)
                ));
                messages
                    .for_each(|m| output::say(format_args!("  caused by: {}", output::clean(m))));
            }
        }
        if let Some(hint) = &self.hint {
            output::say(format_args!("{}hint:{} {hint}", text::CYAN, text::PLAIN));
        }
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        let code = match error {
            ArchiveError::NoRun(_) | ArchiveError::Unfinished(_) | ArchiveError::Busy(_) => {
                Code::Usage
            }
            ArchiveError::Io { ref source, .. } if is_the_users(source) => Code::Usage,
            ArchiveError::Io { .. }
            | ArchiveError::Json { .. }
            | ArchiveError::Damaged { .. }
            | ArchiveError::Gone(_)
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
            ArchiveError::Gone(_) => Some("put it back where it was, then `assay resume`"),
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

/// Whether a path that the user named cannot serve, rather than something having broken.
fn is_the_users(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{IsADirectory, NotADirectory, PermissionDenied, ReadOnlyFilesystem};
    matches!(
        error.kind(),
        PermissionDenied | ReadOnlyFilesystem | NotADirectory | IsADirectory
    )
}

fn io_hint(error: &std::io::Error) -> Option<&'static str> {
    match error.kind() {
        std::io::ErrorKind::StorageFull => Some("free space there, then `assay resume`"),
        std::io::ErrorKind::PermissionDenied => {
            Some("check its owner and mode, or choose another folder with `--artifacts`")
        }
        std::io::ErrorKind::NotFound => Some("make its folder first, or name another"),
        std::io::ErrorKind::NotADirectory => {
            Some("a part of the path is a file; choose another folder with `--artifacts`")
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

impl From<PackError> for Failure {
    fn from(error: PackError) -> Self {
        let code = match error {
            PackError::NoSystem { .. } => Code::Usage,
            PackError::Wrong { .. } => Code::Internal,
        };
        Self::from_error(code, &error)
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
