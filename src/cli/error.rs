//! From errors to messages, hints and exit codes: the only place that knows them all.

use std::error::Error;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::{output, text};
use crate::artifacts::ArchiveError;
use crate::database::DatabaseError;
use crate::host::{AgentError, ConnectError, HostError};
use crate::pack::PackError;
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

    /// The same with the values of secrets replaced by their names.
    pub(super) fn hidden(mut self, hide: &dyn Fn(&str) -> String) -> Self {
        for message in &mut self.messages {
            *message = hide(message);
        }
        self.hint = self.hint.map(|hint| hide(&hint));
        self
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

    /// What went wrong with some of `count` hosts: one is told by itself, several together.
    pub(super) fn all(mut failures: Vec<Self>, count: usize) -> Self {
        if failures.len() == 1 {
            return failures.remove(0);
        }
        let first = format!("{} of {count} hosts cannot be used", failures.len());
        let mut hints: Vec<String> = failures.iter().filter_map(|f| f.hint.clone()).collect();
        hints.dedup();
        let messages = failures.into_iter().map(|f| f.messages.join(": "));
        Self {
            messages: std::iter::once(first).chain(messages).collect(),
            hint: (!hints.is_empty()).then(|| hints.join("; ")),
            ..Self::new(Code::Host, "")
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

    /// What to do about it.
    pub(super) fn hinted(&self) -> Option<&str> {
        self.hint.as_deref()
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

/// What to do when the operating system of a host refuses; a program that cannot be run is not a folder to be made.
fn host_io_hint(what: &str, error: &std::io::Error) -> Option<&'static str> {
    use std::io::ErrorKind::{NotFound, PermissionDenied};
    match error.kind() {
        NotFound if what.starts_with("run `") => {
            Some("see that it is installed on the host; if it is, name its path")
        }
        PermissionDenied if what.starts_with("run `") => {
            Some("see that it is a program which the user on the host may run")
        }
        _ => io_hint(error),
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        Self::from_host(&error)
    }
}

impl Failure {
    /// A failure of a host.
    pub(super) fn from_host(error: &HostError) -> Self {
        let hint = match error {
            HostError::Held {
                seems_dead: true, ..
            } => Some(
                "it seems dead: see that it is, then take the host from it with `--break-lease`"
                    .into(),
            ),
            HostError::Held { .. } => Some(
                "wait for that run to end, or stop it with Ctrl-C; a dead one holds nothing".into(),
            ),
            HostError::Io { what, source, .. } => host_io_hint(what, source).map(str::to_owned),
            HostError::Connect { host, source, .. } => Some(connect_hint(host, source)),
            HostError::Lost { .. } => {
                Some("see that the host is up and reached, then try again".into())
            }
            HostError::Gone { .. } => {
                Some(
                    "see why in the host's journal: `journalctl -u 'assay-*'`. If logind ends what a user leaves behind there \
                     (`KillUserProcesses=yes`), `loginctl enable-linger` for the user that logs in keeps it"
                        .into(),
                )
            }
            HostError::Limit { .. } | HostError::Silence { .. } | HostError::Stopped { .. } => None,
        };
        let failure = Self::from_error(Code::Host, error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// What to do about a host that cannot be used.
fn connect_hint(host: &str, error: &ConnectError) -> String {
    match error {
        ConnectError::NoClient => "install OpenSSH's client, such as Debian's `openssh-client`".into(),
        ConnectError::Unresolved(_) => format!("give `{host}` an `address` in the inventory"),
        ConnectError::TimedOut | ConnectError::Unreachable(_) => {
            "see that it is up, that its `address` is right, and that no firewall drops its SSH port".into()
        }
        ConnectError::Refused => "start its sshd, or set its `port` in the inventory".into(),
        // A jump host that is no host of the inventory.
        ConnectError::UnknownKey { .. } if host.contains(['@', ':']) => {
            "compare the fingerprint with that of the host, then log in there with `ssh` by hand, which asks whether it is right".into()
        }
        ConnectError::UnknownKey { .. } => format!(
            "compare the fingerprint with that of the host, then `assay hosts trust -i INVENTORY {host}`, or pin it as `host_key` in the inventory"
        ),
        ConnectError::ChangedKey { .. } => {
            "somebody may be answering in its place. If it was installed anew, remove the old key with `ssh-keygen -R` or from \
             the inventory, then `assay hosts trust`"
                .into()
        }
        ConnectError::Denied(_) => {
            "try `ssh` to it by hand; set `user` and `identity_file` in the inventory, or load the key into the agent".into()
        }
        ConnectError::TurnedAway(_) => "its sshd allows few logins at once (`MaxStartups`), or bans this machine".into(),
        ConnectError::NoSession(_) => "raise `MaxSessions` of its sshd: assay needs two".into(),
        ConnectError::Jump { jump, source } => connect_hint(jump, source),
        ConnectError::SudoPassword => {
            "allow it without one: `NOPASSWD:` for the user in `/etc/sudoers.d/`, or log in as a user that needs no `become`".into()
        }
        ConnectError::SudoTerminal => "remove `requiretty` for the user in `/etc/sudoers`".into(),
        ConnectError::SudoForbidden(_) => "allow the user in `/etc/sudoers.d/`, or remove `become`".into(),
        ConnectError::SudoMissing => "install sudo there, or log in as root without `become`".into(),
        ConnectError::Unfit(_) => {
            "name a binary for that kind of machine as `assay` in the inventory, such as one that is linked statically".into()
        }
        ConnectError::Full(_) => "free space in the home of the user that logs in".into(),
        ConnectError::Other(_) => "try `ssh` to it by hand, with `-v`".into(),
    }
}

impl From<PackError> for Failure {
    fn from(error: PackError) -> Self {
        let code = match error {
            PackError::NoSystem { .. } => Code::Usage,
            PackError::Wrong { .. } | PackError::Keys { .. } | PackError::Read { .. } => {
                Code::Usage
            }
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

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        if let Some(host) = error.host() {
            return Self::from_host(host);
        }
        let hint = error.hint();
        let failure = Self::from_error(Code::Host, &error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        Self::from_error(Code::Internal, &error)
    }
}
