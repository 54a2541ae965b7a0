//! Real hosts for tests: one lab for the whole binary, made when the first test asks for it, and removed when the process
//! ends, however that is. Each test takes hosts of its own, so that faults of one do not disturb another.
//!
//! ```ignore
//! let Some(lab) = Lab::shared() else { return };   // says why it is skipped
//! let host = lab.take_host();                       // handed back, healed, when dropped
//! host.cut();
//! ```
#![expect(dead_code, reason = "tests of other parts use what these do not")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::skipped;

/// How many hosts the shared lab has. With three of a test's own lab there are ten: the machine's inotify instances are few.
pub(crate) const SHARED_HOSTS: usize = 7;
/// The most that anything is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A lab of a test.
pub(crate) struct Lab {
    name: String,
    folder: TempDir,
    up: Value,
    free: Mutex<Vec<usize>>,
    freed: Condvar,
    /// Removes the lab when its standard input ends, that is, when this process does.
    _watch: Child,
}

/// A host of a lab.
#[derive(Clone, Debug)]
pub(crate) struct LabHost {
    /// Its name in the inventory.
    pub(crate) name: String,
    /// Its IPv4 address.
    pub(crate) address: String,
    lab: String,
    /// The private key that opens it.
    pub(crate) identity: PathBuf,
    known_hosts: PathBuf,
}

/// A host that one test has for itself.
pub(crate) struct Taken<'a> {
    lab: &'a Lab,
    index: usize,
    host: LabHost,
}

/// The assay binary.
pub(crate) fn assay() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    command
        .stdin(Stdio::null())
        .env_remove("ASSAY_ARTIFACTS")
        .env_remove("ASSAY_LABS");
    command
}

/// A name for a lab that no other process, and no other test of this one, uses.
pub(crate) fn unique_name(of: &str) -> String {
    format!("t-{of}{}x", std::process::id())
}

/// Held by a test that makes a lab of its own: all hosts share the machine's limit on inotify instances, and it is low.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Polls until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "waited too long: {what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// Starts what removes a lab when this process ends.
fn watch(name: &str) -> Child {
    let mut watch = assay();
    watch.args(["lab", "watch", name]).stdin(Stdio::piped());
    watch.stdout(Stdio::null()).stderr(Stdio::null());
    watch.spawn().unwrap()
}

impl Lab {
    /// The lab that all tests of this process share, with an XFS below `/data` on each host; `None`, with the reason
    /// printed for each test that asks, where there can be none.
    pub(crate) fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Result<Lab, String>> = OnceLock::new();
        let lab = SHARED.get_or_init(|| Self::made("s", SHARED_HOSTS, &["--data", "xfs:2G"]));
        lab.as_ref().map_err(|why| skipped(why)).ok()
    }

    /// Makes a lab of its own for one test; `of` is a letter or two that no other test uses. It lives as long as the
    /// process. `None`, with the reason printed, where there can be none.
    pub(crate) fn up(of: &str, hosts: usize, more: &[&str]) -> Option<Self> {
        let lab = Self::made(of, hosts, more);
        lab.map_err(|why| skipped(&why)).ok()
    }

    /// Makes a lab, or says what the machine lacks for one.
    fn made(of: &str, hosts: usize, more: &[&str]) -> Result<Self, String> {
        let name = unique_name(of);
        let folder = tempfile::tempdir().unwrap();
        // It is there before the lab is, so that a lab that is being made when this process dies goes as well.
        let mut watch = watch(&name);
        let output = assay()
            .args(["lab", "up", "--json", "--name", &name])
            .args(["--hosts", &hosts.to_string(), "--inventory"])
            .arg(folder.path().join("lab.yaml"))
            .args(more)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let lacks = said
            .lines()
            .find_map(|line| Some(line.split_once("a lab needs what this machine lacks: ")?.1));
        if let Some(lacks) = lacks {
            drop(watch.stdin.take());
            watch.wait().unwrap();
            return Err(format!("a lab needs {lacks}"));
        }
        assert!(output.status.success(), "{said}");
        Ok(Self {
            name,
            folder,
            up: serde_json::from_slice(&output.stdout).unwrap(),
            free: Mutex::new((0..hosts).collect()),
            freed: Condvar::new(),
            _watch: watch,
        })
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its inventory.
    pub(crate) fn inventory(&self) -> PathBuf {
        self.folder.path().join("lab.yaml")
    }

    /// The private key that opens all hosts.
    pub(crate) fn identity_file(&self) -> &Path {
        Path::new(self.up["identity_file"].as_str().unwrap())
    }

    /// A host by its place, from 0, whoever has it.
    pub(crate) fn host(&self, index: usize) -> LabHost {
        let host = &self.up["hosts"][index];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        LabHost {
            name: text(&host["name"]),
            address: text(&host["address"]),
            lab: self.name.clone(),
            identity: self.identity_file().to_owned(),
            known_hosts: text(&self.up["known_hosts"]).into(),
        }
    }

    /// A host for one test alone; waits until one is free. Whoever needs several takes them at once, with
    /// [`Lab::take_hosts`].
    pub(crate) fn take_host(&self) -> Taken<'_> {
        self.take_hosts(1).swap_remove(0)
    }

    /// So many hosts for one test alone; waits until so many are free.
    pub(crate) fn take_hosts(&self, count: usize) -> Vec<Taken<'_>> {
        let mut free = self.free.lock().unwrap();
        while free.len() < count {
            free = self.freed.wait(free).unwrap();
        }
        let indices: Vec<usize> = free.drain(..count).collect();
        let taken = |index| Taken {
            lab: self,
            index,
            host: self.host(index),
        };
        indices.into_iter().map(taken).collect()
    }
}

impl LabHost {
    /// The SHA-256 fingerprint of the key that the lab gave it.
    pub(crate) fn fingerprint(&self) -> String {
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-l", "-F", &self.address, "-f"]);
        let print = text(
            &keygen.arg(&self.known_hosts).output().unwrap(),
            "ssh-keygen",
        );
        let mut words = print.split_whitespace();
        words
            .find(|word| word.starts_with("SHA256:"))
            .unwrap()
            .to_owned()
    }

    /// A command on the host, as root, over SSH with the pinned host key and nothing else that this machine knows.
    pub(crate) fn ssh(&self, words: &str) -> Command {
        self.ssh_as("root", words)
    }

    /// The same as `root`, `assay` (all rights with sudo) or `guest` (none).
    pub(crate) fn ssh_as(&self, user: &str, words: &str) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.args(["-F", "none", "-i"]).arg(&self.identity);
        for option in [
            "BatchMode=yes",
            "IdentitiesOnly=yes",
            "StrictHostKeyChecking=yes",
            "GlobalKnownHostsFile=/dev/null",
            "ConnectTimeout=3",
            "LogLevel=ERROR",
        ] {
            ssh.args(["-o", option]);
        }
        let known = format!("UserKnownHostsFile={}", self.known_hosts.display());
        ssh.args(["-o", &known, &format!("{user}@{}", self.address), words]);
        ssh.stdin(Stdio::null());
        ssh
    }

    /// The output of a command that must succeed.
    pub(crate) fn run(&self, words: &str) -> String {
        text(&self.ssh(words).output().unwrap(), words)
    }

    /// Whether the host answers over SSH.
    pub(crate) fn answers(&self) -> bool {
        self.ssh("true").status().unwrap().success()
    }

    /// Drops all its packets, in both directions.
    pub(crate) fn cut(&self) {
        self.fault(&["cut"], "cut");
    }

    /// Stops all its processes.
    pub(crate) fn pause(&self) {
        self.fault(&["pause"], "paused");
    }

    /// Takes its power.
    pub(crate) fn kill(&self) {
        self.fault(&["kill"], "killed");
    }

    /// Limits its network to so many kilobits a second. Delay and loss need a kernel with netem.
    pub(crate) fn slow(&self, kbit: u32) {
        self.fault(&["slow", "--rate", &format!("{kbit}kbit")], "slow");
    }

    /// Undoes all of these; a killed host is up again afterwards.
    pub(crate) fn heal(&self) {
        self.fault(&["heal"], "running");
    }

    fn fault(&self, words: &[&str], state: &str) {
        let host = format!("{}/{}", self.lab, self.name);
        let mut command = assay();
        command
            .args(["lab", words[0], &host, "--json"])
            .args(&words[1..]);
        let said: Value =
            serde_json::from_str(&text(&command.output().unwrap(), words[0])).unwrap();
        assert_eq!(said["state"], state, "{said}");
    }
}

/// The output of a command that must have succeeded.
pub(crate) fn text(output: &Output, what: &str) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl std::ops::Deref for Taken<'_> {
    type Target = LabHost;

    fn deref(&self) -> &LabHost {
        &self.host
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let host = format!("{}/{}", self.lab.name, self.host.name);
        let healed = assay().args(["lab", "heal", "--quiet", &host]).status();
        let _ = self
            .host
            .ssh("find /data/assay -mindepth 1 -delete")
            .status();
        if healed.is_ok_and(|status| status.success()) {
            self.lab.free.lock().unwrap().push(self.index);
            self.lab.freed.notify_all();
        }
    }
}
