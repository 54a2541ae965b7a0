//! Hosts: where commands run and files lie. One trait; this machine, and a fake for tests.
//! Work on a host is done by the assay binary itself (`assay agent NAME`), never by shell text.

mod agent;
mod calibrate;
mod channel;
mod clock;
mod facts;
mod fake;
mod fan_out;
pub mod lab;
mod lease;
mod local;
mod mounts;
mod nics;
mod orphan;
pub mod preflight;
mod process;
mod remote;
mod retry;
mod ssh;
pub mod transfer;
mod tree;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

pub use agent::{AgentError, Hearing, Reply, ask, call, look};
pub use calibrate::{
    Calibration, Measure, Outlier, Request as CalibrationRequest, calibrate, outliers,
};
pub use channel::{Channel, Channels};
pub use clock::{ClockOffset, clock_offset};
pub use facts::{
    BlockDevice, CLOCK_DAEMONS, Cgroup, Facts, FileSystem, Limit, Limits, Nic, SYSCTLS, Word,
    gather,
};
pub use fake::{Call, FakeHost, Fault, Files};
pub use fan_out::fan_out;
pub use lease::Claim;
pub use local::LocalHost;
pub use mounts::{Mount, mount_of, mounts};
pub use orphan::when_orphaned;
pub use remote::{serve, supervise};
pub use retry::Retry;
pub use ssh::{
    Binary, ConnectError, Folders, HostKey, Jump, Look, Presented, Settings, SshHost, Standing,
    Target, Worker, remember,
};
use tokio_util::sync::CancellationToken;
use transfer::{Sent, Source, TransferError};

/// The file that says whose a folder of a deployment is: only folders with one are emptied, replaced or removed.
/// It is no data, so that a fetch leaves it where it is.
pub const MARKER_FILE: &str = ".assay-marker";

/// A boxed future, so that the traits of the adapters can be used as objects.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A machine that commands run on.
pub trait Host: Send + Sync {
    /// The name in the inventory.
    fn name(&self) -> &str;

    /// The absolute folder on the host that holds deployments and snapshots.
    fn directory(&self) -> &Path;

    /// Runs a command to its end, its limit, or the watcher's stop, whichever is first.
    /// On the latter two its whole process group is ended, TERM first, then KILL.
    fn run<'a>(
        &'a self,
        command: &'a Command,
        watch: Watch<'a>,
    ) -> Pending<'a, Result<Output, HostError>>;

    /// Copies a folder of the host, without its [`MARKER_FILE`], into a local one, which must not exist; folders above it
    /// are made. On failure nothing is left of it. Links in the folder stay links; one in its place is refused.
    fn fetch<'a>(&'a self, remote: &'a Path, local: &'a Path)
    -> Pending<'a, Result<(), HostError>>;

    /// Brings a file or tree of this machine to `remote`, whole or not at all; folders above it are made. What is there
    /// already stays; something else there is an error, unless `replace` lets one file take the place of another.
    /// A content that the host received before is not sent again.
    fn send<'a>(
        &'a self,
        source: &'a Source,
        remote: &'a Path,
        replace: bool,
        progress: transfer::Progress,
    ) -> Pending<'a, Result<Sent, TransferError>>;

    /// Holds the host for one run until the guard is dropped or this process ends. It may be lost before, when somebody
    /// removes what holds it: [`Lease::check`] tells.
    fn lease<'a>(&'a self, claim: Claim<'a>) -> Pending<'a, Result<Lease, HostError>>;

    /// What time it is there, µs of Unix time. By default the host has this machine's clock.
    fn time(&self) -> Pending<'_, Result<i64, HostError>> {
        Box::pin(async { Ok(jiff::Timestamp::now().as_microsecond()) })
    }

    /// Gives back what is kept there, such as a lease and a connection. Nothing is asked of it afterwards.
    fn close(&self) -> Pending<'_, ()> {
        Box::pin(async {})
    }
}

/// A program, its arguments and its limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// What is run.
    pub program: Program,
    /// Its arguments, each one word.
    pub args: Vec<String>,
    /// What it reads first; its standard input stays open until it ends, so that it can see its caller die.
    pub stdin: Vec<u8>,
    /// The longest it may take.
    pub limit: Duration,
    /// The longest it may print nothing, if that is limited.
    pub silence: Option<Duration>,
    /// What becomes of it when the connection to the host is lost.
    pub on_loss: OnLoss,
}

impl Command {
    /// A command that reads nothing, may be silent, and ends with the connection.
    #[must_use]
    pub fn new(program: Program, args: Vec<String>, limit: Duration) -> Self {
        Self {
            program,
            args,
            stdin: Vec::new(),
            limit,
            silence: None,
            on_loss: OnLoss::End,
        }
    }
}

/// What becomes of a command when the connection to its host is lost. On this machine there is none to lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLoss {
    /// It is ended there, and fails here.
    End,
    /// It is ended there and run again from its beginning: only for what may be repeated.
    Repeat,
    /// It goes on there under its own name, and its outcome is fetched when the host is reached again.
    Survive,
}

/// What a command runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Program {
    /// The assay binary on the host.
    Assay,
    /// Any program, by name or path.
    Path(PathBuf),
}

/// What watches a command: sees each line of its output and may stop it.
pub struct Watch<'a> {
    /// Ends the command when cancelled.
    pub stop: CancellationToken,
    /// Called with each line of standard output.
    pub line: &'a mut (dyn FnMut(&str) + Send),
    /// Called once, however the command ended, with the end of its standard error, if there is any.
    pub log: &'a mut (dyn FnMut(&str) + Send),
}

/// How long something on a host may take, and what ends it before that.
#[derive(Clone, Copy, Debug)]
pub struct Bounds<'a> {
    /// The longest it may take.
    pub limit: Duration,
    /// Ends it when cancelled.
    pub stop: &'a CancellationToken,
}

/// How a command ended by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The exit status; `None` after a signal.
    pub status: Option<i32>,
    /// The end of its standard error, at most 64 KiB.
    pub stderr: String,
}

/// A host that is held for one run, until this is dropped.
pub struct Lease(Box<dyn Hold>);

impl Lease {
    /// The lease that `hold` keeps.
    #[must_use]
    pub fn new(hold: impl Hold + 'static) -> Self {
        Self(Box::new(hold))
    }

    /// Whether it still keeps others out; cheap enough to ask before every round.
    ///
    /// # Errors
    /// It was lost: another run may hold the host by now.
    pub fn check(&self) -> Result<(), HostError> {
        self.0.check()
    }

    /// Whether it has kept others out until now: the host itself is asked.
    ///
    /// # Errors
    /// It was lost, or the host cannot be asked.
    pub async fn confirm(&self) -> Result<(), HostError> {
        self.0.confirm().await
    }
}

/// What holds a host as long as it is there.
pub trait Hold: Send + Sync {
    /// The error says that the host is no longer held, and why.
    ///
    /// # Errors
    /// It is no longer held, or nobody can tell.
    fn check(&self) -> Result<(), HostError>;

    /// Asks the host itself. By default [`Hold::check`] does.
    ///
    /// # Errors
    /// It is no longer held, or the host cannot be asked.
    fn confirm(&self) -> Pending<'_, Result<(), HostError>> {
        Box::pin(async { self.check() })
    }
}

/// Why something on a host failed.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// It outlived its limit and was killed.
    #[error("`{what}` on `{host}` took longer than its limit of {} and was killed", humantime::format_duration(*limit))]
    Limit {
        /// The host.
        host: String,
        /// The command.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// It printed nothing for too long and was killed.
    #[error("`{what}` on `{host}` printed nothing for {} and was killed", humantime::format_duration(*silence))]
    Silence {
        /// The host.
        host: String,
        /// The command.
        what: String,
        /// How long it may print nothing.
        silence: Duration,
    },
    /// It was stopped on request.
    #[error("`{what}` on `{host}` was stopped")]
    Stopped {
        /// The host.
        host: String,
        /// The command.
        what: String,
    },
    /// It cannot be reached, or used.
    #[error("cannot connect to `{host}` at {address}")]
    Connect {
        /// The host.
        host: String,
        /// Its address.
        address: String,
        /// Why.
        source: Box<ConnectError>,
    },
    /// The connection was lost, and with it what was done over it.
    #[error("lost the connection to `{host}` during `{what}`")]
    Lost {
        /// The host.
        host: String,
        /// The command.
        what: String,
    },
    /// It was to survive lost connections, and is gone: killed, or the host restarted.
    #[error(
        "`{what}` on `{host}` is gone without an outcome: it was killed, or the host restarted"
    )]
    Gone {
        /// The host.
        host: String,
        /// The command.
        what: String,
    },
    /// Another run holds the host.
    #[error("host `{host}` is held by {owner}")]
    Held {
        /// The host.
        host: String,
        /// Who holds it, since when.
        owner: String,
        /// Whether that one seems dead, so that its lease can be broken.
        seems_dead: bool,
    },
    /// The operating system refused.
    #[error("cannot {what} on `{host}`")]
    Io {
        /// The host.
        host: String,
        /// What was tried.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl HostError {
    /// Whether only the connection is at fault, so that the same may succeed once the host is reached again.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Connect { source, .. } => source.may_pass(),
            Self::Lost { .. } => true,
            Self::Limit { .. }
            | Self::Silence { .. }
            | Self::Stopped { .. }
            | Self::Gone { .. }
            | Self::Held { .. }
            | Self::Io { .. } => false,
        }
    }
}
