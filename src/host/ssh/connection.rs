//! One connection: `ssh` as the master of a multiplexed session, and over it the channel to the assay binary there, which is
//! sent first where it is missing.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use openssh::{Child, ControlPersist, KnownHosts, OwningCommand, Session, SessionBuilder, Stdio};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::time::timeout;

use super::failure::ConnectError;
use super::keys::{self, Pins, Presented};
use super::target::{Jump, Target, Worker};
use super::{Binary, Folders, config};
use crate::host::Retry;
use crate::host::remote::{HELLO, Link};

/// How long the master outlives this process, should that be killed.
const PERSIST: usize = 10;
/// The longest that `ssh` may take to log in; its own limit covers only what comes before.
const LOGIN: Duration = Duration::from_secs(30);
/// The longest that a host's shell may take to start assay.
const SHELL: Duration = Duration::from_secs(30);
/// The longest that sending the binary may take.
const SEND: Duration = Duration::from_secs(600);
/// How long a host that turns connections or sessions away is asked again.
const BUSY: Duration = Duration::from_secs(30);
/// What a shell may print before it does what it was asked.
const NOISE: u64 = 1 << 20;
/// How the shell says that there is no binary, and that it has arrived.
const MISSING: &str = "assay-missing ";
const ARRIVED: &str = "assay-arrived";
/// How it says that sudo has no objection to the user.
const VALID: &str = "assay-sudo-valid";

/// A program on the host, over the session.
pub(super) type Program = OwningCommand<Arc<Session>>;
/// The same, started.
pub(super) type Started = Child<Arc<Session>>;

/// A connection to a host that is being served.
pub(super) struct Connection {
    /// What is asked goes over this.
    pub(super) link: Link,
    _serving: Started,
    /// For the channels of transfers. The last one that has it ends the master, by its socket.
    pub(super) session: Arc<Session>,
    /// Holds the configuration and the master's socket, and so goes last.
    _folder: TempDir,
}

/// Tries again where a host turns it away for having too many connections, after pauses of `longest` at the most.
pub(super) async fn while_busy<T, F>(
    longest: Duration,
    attempt: impl Fn() -> F,
) -> Result<T, ConnectError>
where
    F: Future<Output = Result<T, ConnectError>>,
{
    let retry = Retry::within(BUSY, Duration::from_millis(200), longest);
    let mut pauses = retry.pauses();
    loop {
        match attempt().await {
            Err(error) if error.is_passing() && pauses.next(false).await => {}
            result => return result,
        }
    }
}

impl Connection {
    /// Connects. Where a host turns it away for having too many connections, it is asked again.
    pub(super) async fn open(
        target: &Target,
        binary: &Binary,
        folders: &Folders,
    ) -> Result<Self, ConnectError> {
        let longest = Duration::from_secs(3);
        while_busy(longest, || Self::attempt(target, binary, folders)).await
    }

    async fn attempt(
        target: &Target,
        binary: &Binary,
        folders: &Folders,
    ) -> Result<Self, ConnectError> {
        let folder = prepare(target, folders).await?;
        let session = Arc::new(log_in(target, folder.path()).await?);
        let (link, serving) = start(&session, target, binary).await?;
        Ok(Self {
            link,
            _serving: serving,
            session,
            _folder: folder,
        })
    }
}

/// Asks a host for its key, whether it is known or not: for the pinned one if it has that.
pub(super) async fn key_of(target: &Target, folders: &Folders) -> Result<Presented, ConnectError> {
    let mut way = target.clone();
    way.host_keys.clear();
    keys::patiently(|| async {
        let folder = prepare(&way, folders).await?;
        keys::presented_of(&way, &target.host_keys, &folder.path().join("config")).await
    })
    .await
}

/// A folder with the configuration for `target`, and the pinned keys on the way there.
pub(super) async fn prepare(target: &Target, folders: &Folders) -> Result<TempDir, ConnectError> {
    let other = |error: std::io::Error| ConnectError::Other(error.to_string());
    let folder = tempfile::Builder::new()
        .prefix("assay-")
        .tempdir_in(&folders.runtime)
        .map_err(other)?;
    let (config, known_hosts) = (folder.path().join("config"), folder.path().join("known"));
    let pins = Pins::of(&folders.cache);
    let mut known = String::new();
    let mut way: Vec<&Target> = target.way().collect();
    way.reverse();
    for host in way {
        std::fs::write(&known_hosts, &known).map_err(other)?;
        std::fs::write(&config, config::text(host, &known_hosts)).map_err(other)?;
        if host.host_keys.is_empty() {
            continue;
        }
        let line = match pins.line(host) {
            Some(line) => line,
            None => {
                let presented = keys::presented_of(host, &host.host_keys, &config).await?;
                let wrong = || ConnectError::ChangedKey {
                    presented: presented.key.to_string(),
                    known: host.host_keys.join(", "),
                };
                pins.learn(host, &presented.key).ok_or_else(wrong)?
            }
        };
        known.push_str(&line);
    }
    std::fs::write(&known_hosts, &known).map_err(other)?;
    Ok(folder)
}

/// Starts the master.
async fn log_in(target: &Target, folder: &Path) -> Result<Session, ConnectError> {
    let config = folder.join("config");
    let persist = PERSIST.try_into().expect("it is not zero");
    let mut builder = SessionBuilder::default();
    builder
        .known_hosts_check(KnownHosts::Strict)
        .control_persist(ControlPersist::IdleFor(persist))
        .control_directory(folder)
        .config_file(&config);
    let connected = timeout(LOGIN, builder.connect_mux(config::name(target, target))).await;
    let error = match connected {
        Ok(Ok(session)) => return Ok(session),
        Ok(Err(openssh::Error::Connect(error))) => error,
        Ok(Err(error)) => return Err(ConnectError::Other(chain(&error))),
        Err(_) => return Err(ConnectError::TimedOut),
    };
    if error.kind() == std::io::ErrorKind::NotFound {
        return Err(ConnectError::NoClient);
    }
    let log = error.to_string();
    Err(match ConnectError::of_ssh(&log) {
        ConnectError::TurnedAway(_) if log.contains("UNKNOWN port") => {
            return Err(jump_failure(target, folder, &log).await);
        }
        ConnectError::UnknownKey { .. } | ConnectError::ChangedKey { .. } => {
            key_failure(target, &config, &log).await
        }
        error => error,
    })
}

/// What is wrong with a key that `ssh` refused.
async fn key_failure(target: &Target, config: &Path, log: &str) -> ConnectError {
    let presented = match keys::presented(target, config).await {
        Ok(presented) => presented.key.to_string(),
        Err(error) => return error,
    };
    let mut known = keys::known(log);
    if known.is_empty() {
        known.clone_from(&target.host_keys);
    }
    if known.is_empty() {
        return ConnectError::UnknownKey { presented };
    }
    let known = known.join(", ");
    ConnectError::ChangedKey { presented, known }
}

/// What is wrong with the jump host: `ssh` only says that it has closed the connection.
async fn jump_failure(target: &Target, folder: &Path, log: &str) -> ConnectError {
    let said = ConnectError::of_ssh(log);
    let (jump, source) = match &target.jump {
        Some(Jump::Host(jump)) => {
            let config = folder.join("config");
            let known = folder.join("known");
            let written = std::fs::write(&config, config::text(jump, &known));
            let source = match written {
                Ok(()) => match Box::pin(log_in(jump, folder)).await {
                    Ok(_) => return said,
                    Err(error) => error,
                },
                Err(error) => ConnectError::Other(error.to_string()),
            };
            (jump.name.clone(), source)
        }
        Some(Jump::Other(jump)) => (jump.clone(), said),
        None => return said,
    };
    let source = Box::new(source);
    ConnectError::Jump { jump, source }
}

/// Starts assay over the session; where it is missing it is sent first.
async fn start(
    session: &Arc<Session>,
    target: &Target,
    binary: &Binary,
) -> Result<(Link, Started), ConnectError> {
    let mut sent = false;
    loop {
        let script = start_script(binary, &target.worker);
        match first_word(session, &script).await {
            Ok(First::Hello(served)) => return Ok(*served),
            Ok(First::Missing(machine)) if !sent => {
                fits(&machine, binary)?;
                send(session, target, binary).await?;
            }
            Ok(First::Missing(_)) => {
                return Err(ConnectError::Unfit("it was sent and is not there".into()));
            }
            // It may have been damaged since it was sent, and is sent once more; then the host says better what is wrong.
            Err(ConnectError::Unfit(_)) if !sent => send(session, target, binary).await?,
            Err(error) => return Err(error),
        }
        sent = true;
    }
}

/// How the shell answers: assay serves, or is missing on a machine of this kind.
enum First {
    Hello(Box<(Link, Started)>),
    Missing(String),
}

async fn first_word(session: &Arc<Session>, script: &str) -> Result<First, ConnectError> {
    let mut shell = open(&mut sh(session, script)).await?;
    let stdin = shell.stdin().take().expect("it is piped");
    let stderr = shell.stderr().take().expect("it is piped");
    let mut stdout = BufReader::new(shell.stdout().take().expect("it is piped"));
    let stderr = tokio::spawn(tail(stderr));
    match timeout(SHELL, marked(&mut stdout, &[HELLO, MISSING])).await {
        Ok(Some((HELLO, _))) => Ok(First::Hello(Box::new((Link::new(stdin, stdout), shell)))),
        Ok(Some((_, machine))) => Ok(First::Missing(machine)),
        Ok(None) => {
            drop(stdin);
            let said = timeout(SHELL, stderr).await.ok().and_then(Result::ok);
            match ConnectError::of_shell(&said.unwrap_or_default()) {
                ConnectError::SudoPassword => Err(sudo_failure(session).await),
                error => Err(error),
            }
        }
        Err(_) => Err(ConnectError::Other(format!(
            "its shell did not start assay within {} s",
            SHELL.as_secs()
        ))),
    }
}

/// What is wrong when sudo wants a password: it does so as well of a user who has no rights. `-v` tells them apart.
async fn sudo_failure(session: &Arc<Session>) -> ConnectError {
    let script = format!("sudo -n -v && echo {VALID}");
    let Ok(mut shell) = open(&mut sh(session, &script)).await else {
        return ConnectError::SudoPassword;
    };
    let stderr = shell.stderr().take().expect("it is piped");
    let mut stdout = BufReader::new(shell.stdout().take().expect("it is piped"));
    let heard = async { tokio::join!(marked(&mut stdout, &[VALID]), tail(stderr)) };
    match timeout(SHELL, heard).await {
        // All that the user may do needs no password, and this is not of it.
        Ok((Some(_), _)) => ConnectError::SudoForbidden("the user may run other commands".into()),
        Ok((None, said)) => match ConnectError::of_shell(&said) {
            error @ ConnectError::SudoForbidden(_) => error,
            _ => ConnectError::SudoPassword,
        },
        Err(_) => ConnectError::SudoPassword,
    }
}

/// The first line that begins with one of `marks`, and its rest. What a shell's start-up files print comes before it.
pub(super) async fn marked<'a>(
    stdout: &mut (impl tokio::io::AsyncBufRead + Unpin),
    marks: &[&'a str],
) -> Option<(&'a str, String)> {
    let mut text = Vec::new();
    let mut noise = 0;
    while noise < NOISE {
        text.clear();
        let read = stdout.take(NOISE).read_until(b'\n', &mut text).await.ok()?;
        if read == 0 {
            return None;
        }
        noise += read as u64;
        let line = String::from_utf8_lossy(&text);
        // A prompt or another text without an end may stand before it on its line.
        let found = marks.iter().find_map(|mark| {
            let (_, rest) = line.split_once(*mark)?;
            Some((*mark, rest.trim().to_owned()))
        });
        if found.is_some() {
            return found;
        }
    }
    None
}

/// The end of what a program says on its standard error.
pub(super) async fn tail(mut stderr: impl AsyncRead + Unpin) -> String {
    const TAIL: usize = 64 << 10;
    let (mut text, mut chunk) = (Vec::new(), [0; 8 << 10]);
    while let Ok(n @ 1..) = stderr.read(&mut chunk).await {
        text.extend_from_slice(&chunk[..n]);
        let over = text.len().saturating_sub(TAIL);
        text.drain(..over);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Whether this binary is one for a machine that says `Linux x86_64`.
fn fits(machine: &str, binary: &Binary) -> Result<(), ConnectError> {
    if binary.is_foreign || machine == own_machine() {
        return Ok(());
    }
    Err(ConnectError::Unfit(format!(
        "it is a {machine} machine, this assay is for {}",
        own_machine()
    )))
}

/// What `uname -s -m` says on a machine like this.
fn own_machine() -> String {
    let machine = rustix::system::uname();
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    format!("{} {}", text(machine.sysname()), text(machine.machine()))
}

/// Sends the binary: whole, and found to be itself, or not at all.
async fn send(
    session: &Arc<Session>,
    target: &Target,
    binary: &Binary,
) -> Result<(), ConnectError> {
    let file = File::open(&binary.path).map_err(|e| {
        ConnectError::Other(format!("cannot read `{}`: {e}", binary.path.display()))
    })?;
    let mut command = sh(session, &send_script(&binary.sha256, &target.worker));
    command.stdin(Stdio::from(file));
    let mut shell = open(&mut command).await?;
    let stderr = shell.stderr().take().expect("it is piped");
    let mut stdout = BufReader::new(shell.stdout().take().expect("it is piped"));
    let heard = async { tokio::join!(marked(&mut stdout, &[ARRIVED]), tail(stderr)) };
    match timeout(SEND, heard).await {
        Ok((Some(_), _)) => Ok(()),
        Ok((None, said)) => Err(ConnectError::of_shell(&said)),
        Err(_) => Err(ConnectError::TimedOut),
    }
}

/// A script for the host's shell. Its text has no quotes, newlines or exclamation marks of its own that a login shell other
/// than `sh` would read otherwise.
pub(super) fn sh(session: &Arc<Session>, script: &str) -> Program {
    let mut command = Session::to_command(Arc::clone(session), "sh");
    command.arg("-c").arg(script);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Where a host keeps binaries: in the home of whoever logs in, unless another user, who may not look into that, is to run
/// them.
fn shelf(worker: &Worker) -> &'static str {
    match worker {
        Worker::Login | Worker::Root => "${XDG_CACHE_HOME:-$HOME/.cache}/assay",
        Worker::User(_) => "/var/tmp/assay-$(id -u)",
    }
}

/// Runs the binary as `agent NAME` in the place of the shell.
pub(super) fn agent_script(sha256: &str, worker: &Worker, agent: &str) -> String {
    let prefix: String = worker
        .prefix()
        .iter()
        .map(|word| format!("{word} "))
        .collect();
    format!(
        "exec {prefix}\"{}/{sha256}/assay\" agent {agent}",
        shelf(worker)
    )
}

/// The shelf counts only if it belongs to whoever logs in: anybody can make a folder in `/var/tmp`.
fn start_script(binary: &Binary, worker: &Worker) -> String {
    let (sha256, bytes) = (&binary.sha256, binary.bytes);
    format!(
        "d=\"{}\"; f=\"$d/{sha256}/assay\"; if [ -O \"$d\" ] && [ -x \"$f\" ] && [ $(wc -c <\"$f\") -eq {bytes} ]; then {}; \
         fi; echo {MISSING}$(uname -s -m)",
        shelf(worker),
        agent_script(sha256, worker, "serve"),
    )
}

fn send_script(sha256: &str, worker: &Worker) -> String {
    format!(
        "umask 022; b=\"{}\"; d=\"$b/{sha256}\"; t=\"$d/new-$$\"; mkdir -p \"$b\"; \
         if [ ! -O \"$b\" ]; then echo \"$b\" belongs to somebody else >&2; exit 1; fi; \
         mkdir -p \"$d\" && cat >\"$t\" && chmod 755 \"$t\" && \
         s=$(\"$t\" agent self) && if [ \"$s\" = {sha256} ]; then mv -f \"$t\" \"$d/assay\" && echo {ARRIVED}; \
         else echo it arrived damaged >&2; fi; rm -f \"$t\"",
        shelf(worker)
    )
}

/// Opens a channel. sshd refuses it, before anything is started, when it has as many as it wants; it counts one that has
/// just ended a moment longer.
pub(super) async fn open(command: &mut Program) -> Result<Started, ConnectError> {
    let patience = Duration::from_secs(10);
    let retry = Retry::within(patience, Duration::from_millis(20), Duration::from_secs(1));
    let mut pauses = retry.pauses();
    loop {
        let error = match command.spawn().await {
            Ok(child) => return Ok(child),
            Err(error) => error,
        };
        let text = chain(&error);
        if !text.contains("open refused") {
            return Err(ConnectError::Other(text));
        }
        if !pauses.next(false).await {
            return Err(ConnectError::NoSession(text));
        }
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

impl Binary {
    /// The binary at `path`, which is another than this program's own if `is_foreign`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(path: PathBuf, is_foreign: bool) -> std::io::Result<Self> {
        use std::io::Read as _;

        use sha2::Digest as _;
        let mut file = File::open(&path)?;
        let mut hash = sha2::Sha256::new();
        let (mut chunk, mut bytes) = (vec![0; 256 << 10], 0);
        loop {
            match file.read(&mut chunk)? {
                0 => break,
                n => {
                    hash.update(&chunk[..n]);
                    bytes += n as u64;
                }
            }
        }
        let digest = hash.finalize();
        let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self {
            path,
            sha256,
            bytes,
            is_foreign,
        })
    }
}
