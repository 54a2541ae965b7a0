//! A host over SSH: one multiplexed connection, over it the assay binary at work there. The connection may be lost and made
//! again; what was asked to survive that does.

mod channel;
mod config;
mod connection;
mod failure;
mod keys;
mod lease;
mod target;
mod trust;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

pub use self::failure::ConnectError;
pub use self::keys::{HostKey, Presented};
pub use self::target::{Jump, Target, Worker};
pub use self::trust::{Look, Standing, remember};

use self::connection::Connection;
use super::local::describe;
use super::remote::{Ending, Survivor, Task};
use super::transfer::{self, Sent, Source, TransferError};
use super::{Claim, Command, Host, HostError, Lease, OnLoss, Output, Pending, Retry, Watch};

/// How much longer than a command's own limit its answer may take.
const ANSWER: Duration = Duration::from_secs(30);
/// How long a host that cannot be reached is tried when what runs there is to be stopped.
const STOP: Duration = Duration::from_secs(10);

/// Folders on this machine that connections use.
#[derive(Clone, Debug)]
pub struct Folders {
    /// For sockets: short, and gone after a restart.
    pub runtime: PathBuf,
    /// For what may be made again.
    pub cache: PathBuf,
    /// The user's home.
    pub home: Option<PathBuf>,
}

/// The assay binary that a host is given.
#[derive(Clone, Debug)]
pub struct Binary {
    /// Where it is on this machine.
    pub path: PathBuf,
    /// Its SHA-256, as hex digits.
    pub sha256: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// Whether it is another than this program's own, for another kind of machine.
    pub is_foreign: bool,
}

/// What hosts have in common.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Folders on this machine.
    pub folders: Folders,
    /// For whom the host works, as its jobs and its lease say.
    pub owner: String,
    /// How long a lost host is tried to be reached again.
    pub patience: Duration,
}

/// A host over SSH.
pub struct SshHost(Arc<Reach>);

/// The connection, if there is one, and how the last attempt to make one failed.
#[derive(Default)]
struct Line {
    connection: Option<Arc<Connection>>,
    failure: Option<(Instant, ConnectError)>,
}

/// What reaches the host; its lease's heart, too, has a hold of it.
struct Reach {
    target: Target,
    binary: Binary,
    settings: Settings,
    directory: OnceLock<PathBuf>,
    line: Mutex<Line>,
    /// All patience with it was in vain: until it answers again, each command tries it once.
    given_up: AtomicBool,
    /// The lease's token.
    lease: Mutex<Option<String>>,
    /// One channel at a time is open for transfers.
    channel: Arc<Semaphore>,
}

impl SshHost {
    /// Connects to a host; assay is sent to it if it is not there.
    ///
    /// # Errors
    /// It cannot be reached, does not let the user in, or cannot run assay.
    pub async fn connect(
        target: Target,
        binary: Binary,
        settings: Settings,
    ) -> Result<Self, HostError> {
        let reach = Reach {
            target,
            binary,
            settings,
            directory: OnceLock::new(),
            line: Mutex::default(),
            given_up: AtomicBool::new(false),
            lease: Mutex::new(None),
            channel: Arc::new(Semaphore::new(1)),
        };
        reach.connected().await?;
        Ok(Self(Arc::new(reach)))
    }

    /// Asks a host for its key, known or not, without logging in.
    ///
    /// # Errors
    /// It cannot be reached.
    pub async fn key_of(target: &Target, folders: &Folders) -> Result<Presented, HostError> {
        let asked = connection::key_of(target, folders).await;
        asked.map_err(|source| unreachable(target, source))
    }

    /// Asks a host for its key, without logging in, and looks it up in the pins and the user's list of known hosts.
    ///
    /// # Errors
    /// It cannot be reached.
    pub async fn look_at_key(target: &Target, folders: &Folders) -> Result<Look, HostError> {
        let looked = trust::look(target, folders).await;
        looked.map_err(|source| unreachable(target, source))
    }
}

impl SshHost {
    async fn download(&self, remote: &Path, local: &Path) -> Result<(), HostError> {
        let target = transfer::Target {
            channels: self,
            directory: self.directory(),
        };
        let options = transfer::Options::new(again(self.0.settings.patience));
        match transfer::download(target, remote, local, &options).await {
            Ok(_) => Ok(()),
            Err(TransferError::Host(error)) => Err(error),
            Err(error) => {
                let what = format!("copy `{}` to `{}`", remote.display(), local.display());
                Err(self.0.io(what, error.into()))
            }
        }
    }
}

impl SshHost {
    async fn upload(
        &self,
        source: &Source,
        remote: &Path,
        replace: bool,
        progress: transfer::Progress,
    ) -> Result<Sent, TransferError> {
        let target = transfer::Target {
            channels: self,
            directory: self.directory(),
        };
        let options = transfer::Options {
            progress,
            ..transfer::Options::new(again(self.0.settings.patience))
        };
        transfer::upload(target, source, remote, replace, &options).await
    }
}

impl Reach {
    /// The connection, made if there is none.
    async fn connected(&self) -> Result<Arc<Connection>, HostError> {
        let asked = Instant::now();
        let mut line = self.line.lock().await;
        if let Some(connection) = line.connection.as_ref().filter(|c| !c.link.is_lost()) {
            return Ok(Arc::clone(connection));
        }
        line.connection = None;
        // An attempt that failed while this one waited for it counts for both: each takes ten seconds at a dead host.
        if let Some((when, error)) = &line.failure
            && *when >= asked
        {
            return Err(unreachable(&self.target, error.clone()));
        }
        let opened = Connection::open(&self.target, &self.binary, &self.settings.folders).await;
        let connection = opened.map_err(|error| {
            line.failure = Some((Instant::now(), error.clone()));
            unreachable(&self.target, error)
        })?;
        self.enter(&connection).await?;
        self.given_up.store(false, Relaxed);
        Ok(Arc::clone(line.connection.insert(Arc::new(connection))))
    }

    /// Finds out where the host's directory is.
    async fn enter(&self, connection: &Connection) -> Result<(), HostError> {
        let entered = timeout(ANSWER, connection.link.enter(&self.target.directory)).await;
        match entered {
            Ok(Ok(Ok(directory))) => {
                let known = self.directory.get_or_init(|| directory.clone());
                if *known == directory {
                    return Ok(());
                }
                let what = format!("find its directory `{}` again", known.display());
                Err(self.io(what, std::io::Error::other("it is another now")))
            }
            Ok(Ok(Err(end))) => Err(self.failed(&end)),
            Ok(Err(_)) | Err(_) => Err(self.lost("enter its directory")),
        }
    }

    /// The connection, made again as long as there is patience for what may pass.
    async fn reached(
        &self,
        patience: Duration,
        stop: &CancellationToken,
    ) -> Result<Arc<Connection>, HostError> {
        let deadline = Instant::now() + patience;
        let mut pauses = again(patience).pauses();
        loop {
            let error = match self.connected().await {
                Ok(connection) => return Ok(connection),
                Err(error) => error,
            };
            if !error.may_pass() {
                return Err(error);
            }
            tracing::debug!(host = self.target.name, %error, "not reached");
            let go_on = tokio::select! {
                go_on = pauses.next(false) => go_on && Instant::now() < deadline,
                () = stop.cancelled() => false,
            };
            if !go_on {
                self.given_up.store(true, Relaxed);
                return Err(error);
            }
        }
    }

    /// How long the host is tried before a command that is not, or no longer, at work there counts as lost.
    fn patience(&self, stop: &CancellationToken) -> Duration {
        match (self.given_up.load(Relaxed), stop.is_cancelled()) {
            (true, _) => Duration::ZERO,
            (false, true) => STOP,
            (false, false) => self.settings.patience,
        }
    }

    async fn execute(&self, command: &Command, watch: Watch<'_>) -> Result<Output, HostError> {
        let what = describe(command);
        if watch.stop.is_cancelled() {
            return Err(self.stopped(what));
        }
        let limit = command.limit + ANSWER + self.settings.patience;
        let Watch { stop, line, log } = watch;
        let mut outages = Vec::new();
        let carried_out = self.carried_out(command, &stop, line, &mut outages);
        let end = match timeout(limit, carried_out).await {
            Ok(end) => end?,
            Err(_) => return Err(self.outlived(what, command.limit)),
        };
        let stderr = match &end {
            Ending::Itself { stderr, .. }
            | Ending::Limit { stderr }
            | Ending::Silence { stderr }
            | Ending::Stopped { stderr } => stderr.as_str(),
            Ending::Refused { .. } | Ending::Gone => "",
        };
        // What a command left in the run's folder tells of the outages that it survived.
        outages.extend((!stderr.is_empty()).then(|| stderr.to_owned()));
        if !outages.is_empty() {
            log(&outages.join("\n"));
        }
        match end {
            Ending::Itself { status, stderr } => Ok(Output { status, stderr }),
            Ending::Limit { .. } => Err(self.outlived(what, command.limit)),
            Ending::Silence { .. } => Err(HostError::Silence {
                host: self.target.name.clone(),
                what,
                silence: command.silence.unwrap_or_default(),
            }),
            Ending::Stopped { .. } => Err(self.stopped(what)),
            Ending::Gone => Err(HostError::Gone {
                host: self.target.name.clone(),
                what,
            }),
            Ending::Refused { .. } => Err(self.failed(&end)),
        }
    }

    /// Carries a command out over as many connections as it takes, or may take.
    async fn carried_out(
        &self,
        command: &Command,
        stop: &CancellationToken,
        line: &mut (dyn FnMut(&str) + Send),
        outages: &mut Vec<String>,
    ) -> Result<Ending, HostError> {
        let name = job_name(command);
        let mut heard = 0;
        let mut lost = None::<Instant>;
        loop {
            let connection = self.reached(self.patience(stop), stop).await?;
            if let Some(lost) = lost.take() {
                let gap = Duration::from_secs(lost.elapsed().as_secs());
                let (host, gap) = (&self.target.name, humantime::format_duration(gap));
                tracing::warn!("reached `{host}` again after {gap}");
                outages.push(format!(
                    "assay: the connection to `{host}` was lost for {gap}"
                ));
            }
            let job = (command.on_loss == OnLoss::Survive).then_some(Survivor {
                name: &name,
                owner: &self.settings.owner,
                heard: &mut heard,
            });
            let task = Task {
                command,
                job,
                stop,
                line: &mut *line,
            };
            let ended = connection.link.carry_out(task).await;
            match (ended, command.on_loss) {
                (Ok(end), OnLoss::Survive) => {
                    connection.link.forget(&name);
                    return Ok(end);
                }
                (Ok(end), OnLoss::End | OnLoss::Repeat) => return Ok(end),
                (Err(_), OnLoss::End) => return Err(self.lost(&describe(command))),
                (Err(_), OnLoss::Repeat) if stop.is_cancelled() => {
                    return Err(self.stopped(describe(command)));
                }
                (Err(_), OnLoss::Repeat | OnLoss::Survive) => {
                    let patience = humantime::format_duration(self.patience(stop));
                    tracing::warn!(
                        "lost the connection to `{}` during `{}`; it is tried for {patience}",
                        self.target.name,
                        describe(command)
                    );
                    lost = Some(Instant::now());
                }
            }
        }
    }

    async fn time(&self) -> Result<i64, HostError> {
        let connection = self.connected().await?;
        let asked = timeout(ANSWER, connection.link.time()).await;
        asked
            .ok()
            .and_then(Result::ok)
            .ok_or_else(|| self.lost("ask for the time"))
    }

    /// Gives the lease back and ends the connection.
    async fn close(&self) {
        let token = self.lease.lock().await.take();
        let Some(connection) = self.line.lock().await.connection.take() else {
            return;
        };
        if let Some(token) = token {
            // A host that does not answer any more keeps it until it is broken.
            let _ = timeout(STOP, connection.link.release(&token)).await;
        }
    }

    fn failed(&self, end: &Ending) -> HostError {
        let Ending::Refused { what, errno, text } = end else {
            return self.lost("understand what it answers");
        };
        let source = match errno {
            Some(errno) => std::io::Error::from_raw_os_error(*errno),
            None => std::io::Error::other(text.clone()),
        };
        self.io(what.clone(), source)
    }

    fn io(&self, what: String, source: std::io::Error) -> HostError {
        let host = self.target.name.clone();
        HostError::Io { host, what, source }
    }

    fn lost(&self, what: &str) -> HostError {
        HostError::Lost {
            host: self.target.name.clone(),
            what: what.to_owned(),
        }
    }

    fn stopped(&self, what: String) -> HostError {
        let host = self.target.name.clone();
        HostError::Stopped { host, what }
    }

    fn outlived(&self, what: String, limit: Duration) -> HostError {
        let host = self.target.name.clone();
        HostError::Limit { host, what, limit }
    }
}

/// How a lost host is tried to be reached again.
fn again(patience: Duration) -> Retry {
    Retry::within(patience, Duration::from_millis(200), Duration::from_secs(5))
}

fn unreachable(target: &Target, source: ConnectError) -> HostError {
    HostError::Connect {
        host: target.name.clone(),
        address: match &target.jump {
            Some(Jump::Host(jump)) => format!("{} by way of `{}`", target.address, jump.name),
            Some(Jump::Other(jump)) => format!("{} by way of `{jump}`", target.address),
            None => target.address.clone(),
        },
        source: Box::new(source),
    }
}

/// A name for a job that no other has: `assay-load-0123456789abcdef`.
fn job_name(command: &Command) -> String {
    use std::hash::{BuildHasher as _, RandomState};
    let word = match &command.program {
        super::Program::Assay => command.args.last().map_or("assay", String::as_str),
        super::Program::Path(path) => path
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or("program"),
    };
    let word: String = word
        .chars()
        .map(|c| c.to_ascii_lowercase())
        .map(|c| {
            if c.is_ascii_lowercase() || c.is_ascii_digit() {
                c
            } else {
                '-'
            }
        })
        .take(40)
        .collect();
    let noise = RandomState::new().hash_one((std::process::id(), Instant::now()));
    format!("assay-{word}-{noise:016x}")
}

impl Host for SshHost {
    fn name(&self) -> &str {
        &self.0.target.name
    }

    fn directory(&self) -> &Path {
        self.0.directory.get().expect("it was connected")
    }

    fn run<'a>(
        &'a self,
        command: &'a Command,
        watch: Watch<'a>,
    ) -> Pending<'a, Result<Output, HostError>> {
        Box::pin(self.0.execute(command, watch))
    }

    fn fetch<'a>(
        &'a self,
        remote: &'a Path,
        local: &'a Path,
    ) -> Pending<'a, Result<(), HostError>> {
        Box::pin(self.download(remote, local))
    }

    fn send<'a>(
        &'a self,
        source: &'a Source,
        remote: &'a Path,
        replace: bool,
        progress: transfer::Progress,
    ) -> Pending<'a, Result<Sent, TransferError>> {
        Box::pin(self.upload(source, remote, replace, progress))
    }

    fn lease<'a>(&'a self, claim: Claim<'a>) -> Pending<'a, Result<Lease, HostError>> {
        Box::pin(lease::take(&self.0, claim))
    }

    fn time(&self) -> Pending<'_, Result<i64, HostError>> {
        Box::pin(self.0.time())
    }

    fn close(&self) -> Pending<'_, ()> {
        Box::pin(self.0.close())
    }
}
