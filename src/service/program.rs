//! One program on this host, run to its end or its limit.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::{Deserialize, Serialize};

use super::ServiceError;
use super::error::{Printed, Tried};
use super::owner::Owner;

/// How much of the end of each stream is kept.
const TAIL: usize = 64 << 10;
/// How long a process group may take after SIGTERM, and the kernel after SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
/// How long the streams are read after the program's end: a process that it left behind may hold them open.
const DRAIN: Duration = Duration::from_secs(2);
/// Where programs are looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The request of `service-run`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The program, by name or absolute path.
    pub program: PathBuf,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Its environment besides `PATH`, `HOME`, `USER`, `LOGNAME` and `LANG`; it has nothing else.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where it runs; `/` if nothing is said.
    #[serde(default)]
    pub directory: Option<PathBuf>,
    /// The user whom it runs as; `None` for the one who asks.
    #[serde(default)]
    pub owner: Option<String>,
    /// The longest that it may take; it is killed then, with its whole process group.
    pub limit: Duration,
    /// What it reads.
    #[serde(default)]
    pub stdin: String,
}

/// How a program ended by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// Its exit status; `None` after a signal.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The end of what it printed, at most 64 KiB; what is no UTF-8 is replaced.
    pub stdout: String,
    /// The end of its errors, likewise.
    pub stderr: String,
}

impl Ran {
    /// Whether it ended with status 0.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.status == Some(0)
    }
}

/// Runs a program to its end, such as the check of a config or what makes a data directory.
///
/// # Errors
/// The user is not there, it cannot be started, or it outlives its limit.
pub fn run(request: &Run) -> Result<Ran, ServiceError> {
    let owner = request.owner.as_deref().map(Owner::of).transpose()?;
    let mut command = Command::new(&request.program);
    command
        .args(&request.args)
        .current_dir(request.directory.as_deref().unwrap_or(Path::new("/")))
        .env_clear()
        .env("PATH", PATH)
        .env("LANG", "C.UTF-8");
    if let Some(owner) = &owner {
        command.env("HOME", &owner.home);
        command.env("USER", &owner.name).env("LOGNAME", &owner.name);
        // Whoever is that user already needs no rights to become it.
        if rustix::process::geteuid().as_raw() != owner.uid {
            command.uid(owner.uid).gid(owner.gid);
        }
    }
    command.envs(&request.env);
    finish(command, request.stdin.as_bytes(), request.limit)
}

/// Runs a command to its end, or kills its group at the limit.
pub(super) fn finish(
    mut command: Command,
    stdin: &[u8],
    limit: Duration,
) -> Result<Ran, ServiceError> {
    let program = PathBuf::from(command.get_program());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = command.spawn().tried("run", &program)?;
    let group = Group::of(&child);
    feed(&mut child, stdin);
    let stdout = Stream::read(child.stdout.take());
    let stderr = Stream::read(child.stderr.take());
    let ended = group.leader_ended();
    let in_time = ended.recv_timeout(limit) != Err(RecvTimeoutError::Timeout);
    if !in_time {
        group.signal(Signal::TERM);
        let _ = ended.recv_timeout(GRACE);
    }
    // What it left behind goes as well; until it is reaped, its number names no other group.
    group.signal(Signal::KILL);
    let _ = ended.recv_timeout(GRACE);
    let status = reap(&mut child);
    let deadline = Instant::now() + DRAIN;
    let (stdout, stderr) = (stdout.end(deadline), stderr.end(deadline));
    if !in_time {
        let printed = [("its output", stdout), ("its errors", stderr)];
        let printed = printed.map(|(name, text)| (name.to_owned(), text));
        return Err(ServiceError::Limit {
            program: program.display().to_string(),
            limit,
            printed: Printed(printed.into()),
        });
    }
    Ok(Ran {
        status: status.and_then(|status| status.code()),
        signal: status.and_then(|status| status.signal()),
        stdout,
        stderr,
    })
}

/// One that is beyond killing is left to the system.
fn reap(child: &mut Child) -> Option<ExitStatus> {
    child.try_wait().ok().flatten()
}

fn feed(child: &mut Child, bytes: &[u8]) {
    let Some(mut stdin) = child.stdin.take() else {
        return;
    };
    let bytes = bytes.to_owned();
    // A program that does not read is free not to.
    std::thread::spawn(move || stdin.write_all(&bytes));
}

/// The process group of a child that is not yet reaped.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(i32::try_from(child.id()).ok().and_then(Pid::from_raw))
    }

    /// Hears when the leader has ended; it stays to be reaped.
    fn leader_ended(&self) -> Receiver<()> {
        let (tell, ended) = channel();
        let leader = self.0;
        std::thread::spawn(move || {
            if let Some(leader) = leader {
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                while matches!(
                    waitid(WaitId::Pid(leader), options),
                    Err(rustix::io::Errno::INTR)
                ) {}
            }
            drop(tell);
        });
        ended
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.0 {
            // It fails only when nothing is left to be signalled.
            let _ = kill_process_group(leader, signal);
        }
    }
}

/// The end of a stream, read on a thread of its own.
struct Stream {
    tail: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

impl Stream {
    fn read(stream: Option<impl Read + Send + 'static>) -> Self {
        let tail = Arc::new(Mutex::new(Vec::new()));
        let (tell, ended) = channel();
        let into = Arc::clone(&tail);
        std::thread::spawn(move || {
            let _tell = tell;
            let Some(mut stream) = stream else { return };
            let mut chunk = vec![0; 8 << 10];
            while let Ok(n @ 1..) = stream.read(&mut chunk) {
                let mut tail = into.lock().unwrap_or_else(PoisonError::into_inner);
                tail.extend_from_slice(&chunk[..n]);
                if tail.len() > 2 * TAIL {
                    let more = tail.len() - TAIL;
                    tail.drain(..more);
                }
            }
        });
        Self { tail, ended }
    }

    /// What was read of it when it ended, or at the deadline.
    fn end(self, deadline: Instant) -> String {
        let left = deadline.saturating_duration_since(Instant::now());
        let _ = self.ended.recv_timeout(left);
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let start = tail.len().saturating_sub(TAIL);
        String::from_utf8_lossy(&tail[start..]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Run {
        Run {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: BTreeMap::new(),
            directory: None,
            owner: None,
            limit: Duration::from_secs(60),
            stdin: String::new(),
        }
    }

    #[test]
    fn a_program_reads_prints_and_ends_with_its_status_in_its_directory_and_environment() {
        let mut run_in = sh("cat; pwd; echo $A >&2; echo ${SECRET-none} >&2; exit 3");
        run_in.stdin = "in\n".into();
        run_in.directory = Some("/usr".into());
        run_in.env.insert("A".into(), "b c".into());
        let ran = run(&run_in).unwrap();
        assert_eq!((ran.status, ran.signal), (Some(3), None));
        assert_eq!(ran.stdout, "in\n/usr\n");
        assert_eq!(ran.stderr, "b c\nnone\n");
        let ran = run(&sh("kill -KILL $$")).unwrap();
        assert_eq!((ran.status, ran.signal), (None, Some(9)));
    }

    #[test]
    fn only_the_end_of_a_long_output_is_kept() {
        let ran = run(&sh("seq 100000")).unwrap();
        assert_eq!(ran.stdout.len(), TAIL);
        assert!(ran.stdout.ends_with("99999\n100000\n"));
    }

    /// A script whose processes all hold a lock, and a file that can be locked when none of them is left.
    fn held(folder: &Path, script: &str) -> (Run, std::fs::File) {
        let path = folder.join("held");
        let lock = std::fs::File::create(&path).unwrap();
        let script = format!("exec 9<{}; flock 9; {script}", path.display());
        (sh(&script), lock)
    }

    fn until_nobody_holds(lock: &std::fs::File) {
        rustix::fs::flock(lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    }

    #[test]
    fn at_its_limit_a_program_is_killed_with_its_whole_group() {
        let folder = tempfile::tempdir().unwrap();
        let script = "trap '' TERM; echo so far; (trap '' TERM; sleep 600) & sleep 600";
        let (mut never, lock) = held(folder.path(), script);
        never.limit = Duration::from_secs(1);
        let error = run(&never).unwrap_err().to_string();
        assert!(error.contains("longer than its limit of 1s"), "{error}");
        assert!(error.contains("so far"), "{error}");
        until_nobody_holds(&lock);
    }

    #[test]
    fn what_a_program_leaves_behind_is_killed_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let (leaves, lock) = held(folder.path(), "sleep 600 & exit 0");
        let start = Instant::now();
        assert!(run(&leaves).unwrap().is_success());
        until_nobody_holds(&lock);
        assert!(start.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_that_names_it() {
        let mut missing = sh("");
        missing.program = "/no/such/program".into();
        let error = run(&missing).unwrap_err().to_string();
        assert_eq!(error, "cannot run `/no/such/program`");
    }
}
