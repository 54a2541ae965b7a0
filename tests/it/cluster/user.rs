//! Somebody who uses assay from a home of its own, with hosts of the lab in the inventory.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use assay::host::{Folders, OnLoss, Program, Settings, SshHost, Target, Watch};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::support::lab::{LabHost, assay, until};
use crate::support::sshd::{self, binary};

/// The most that anything is waited for.
pub(super) const MINUTE: Duration = Duration::from_secs(60);

/// A user of assay.
pub(super) struct User {
    home: TempDir,
}

impl User {
    pub(super) fn new() -> Self {
        let home = tempfile::Builder::new()
            .prefix("user-")
            .tempdir_in("/tmp")
            .unwrap();
        std::fs::create_dir(home.path().join("run")).unwrap();
        std::fs::write(home.path().join("ssh_config"), "").unwrap();
        Self { home }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// An inventory of hosts by these names; each has further keys, `, become: true`.
    pub(super) fn inventory(&self, hosts: &[(&str, &LabHost, &str)]) {
        let mut text = "ssh_config: ssh_config\nhosts:\n".to_owned();
        for (name, host, more) in hosts {
            let user = if more.contains("user:") {
                ""
            } else {
                ", user: root"
            };
            text.push_str(&format!(
                "  {name}: {{address: {}, identity_file: {}, directory: {}{user}{more}}}\n",
                host.address,
                host.identity.display(),
                self.directory()
            ));
        }
        std::fs::write(self.path("hosts.yaml"), text).unwrap();
    }

    /// One host under the name that the quickstart has for its own, with its key pinned.
    pub(super) fn has(&self, host: &LabHost) {
        let pin = format!(", host_key: \"{}\"", host.fingerprint());
        self.inventory(&[("local", host, &pin)]);
    }

    /// Where assay works on hosts.
    pub(super) fn directory(&self) -> String {
        let own = self.home.path().file_name().unwrap().to_string_lossy();
        format!("/data/assay/{own}")
    }

    /// The program, where the user is.
    pub(super) fn assay(&self, args: &[&str]) -> Command {
        let mut command = assay();
        command
            .args(args)
            .current_dir(self.home.path())
            .env("HOME", self.home.path())
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("NO_COLOR", "1");
        command
    }

    /// What the program says, and its exit code.
    pub(super) fn runs(&self, args: &[&str]) -> Said {
        Said::of(&self.assay(args).output().unwrap())
    }

    /// The quickstart's experiment, shortened by `settings`, on the hosts of the inventory.
    pub(super) fn quickstart(&self, command: &str, settings: &[&str]) -> Command {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/quickstart.yaml");
        let mut command = self.assay(&[command, file, "-i", "hosts.yaml"]);
        for setting in settings {
            command.args(["--set", setting]);
        }
        command
    }

    /// An experiment of one round with little load, on the host `local` of the inventory.
    pub(super) fn one_round(&self, command: &str, duration: &str, more: &str) -> Command {
        let text = format!(
            "name: quickstart\ncluster: {{system: sqlite, topology: {{sqlite: [local]}}, config: {{sqlite: {{synchronous: off{more}}}}}}}\n\
             variants: {{wal: {{config: {{sqlite: {{journal_mode: wal}}}}}}}}\n\
             dataset: {{driver: native, schema: ycsb, records: 500}}\n\
             workloads: [{{driver: native, workload: ycsb_a}}]\nsweep: {{threads: [1], rate: [100]}}\n\
             rounds: {{warmup: 100ms, duration: {duration}, repetitions: 1}}\n"
        );
        std::fs::write(self.path("one.yaml"), text).unwrap();
        self.assay(&[command, "one.yaml", "-i", "hosts.yaml"])
    }

    /// How the rounds of the only run ended: `(attempt, status, reason)`.
    pub(super) fn ended(&self) -> Vec<(u64, String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let events = self.events();
        let ended = events.iter().filter(|e| e["event"] == "round_finished");
        ended
            .map(|e| {
                (
                    e["attempt"].as_u64().unwrap(),
                    text(&e["status"]),
                    text(&e["reason"]),
                )
            })
            .collect()
    }

    /// The folder of the only run.
    pub(super) fn run_folder(&self) -> PathBuf {
        let mut runs: Vec<PathBuf> = std::fs::read_dir(self.path("artifacts/quickstart"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.swap_remove(0)
    }

    /// The events of the only run so far.
    pub(super) fn events(&self) -> Vec<Value> {
        let runs = std::fs::read_dir(self.path("artifacts/quickstart"));
        let logs = runs.into_iter().flatten().flatten();
        let texts = logs.filter_map(|run| {
            let log = run.path().join("events.jsonl");
            std::fs::read_to_string(log).ok()
        });
        let text: String = texts.collect();
        let lines = text.lines();
        lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Waits until a run measures: its `n`th round, counted from one, whatever attempt.
    pub(super) fn until_measuring(&self, n: usize, run: &mut Running) {
        let is_measuring = |events: &[Value]| {
            let measured = events
                .iter()
                .filter(|e| e["event"] == "step_started" && e["name"] == "measure");
            measured.count() >= n
        };
        let deadline = Instant::now() + MINUTE;
        while !is_measuring(&self.events()) {
            assert!(run.lives(), "the run ended: {}", run.errors());
            assert!(Instant::now() < deadline, "{}", run.errors());
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    /// A host as the library reaches it; a lost one is waited for.
    pub(super) async fn connect(&self, host: &LabHost) -> SshHost {
        self.as_user(host, "root", &self.directory()).await
    }

    /// The same as another user there, with a directory of its own.
    pub(super) async fn as_user(&self, host: &LabHost, user: &str, directory: &str) -> SshHost {
        let target = Target {
            name: host.name.clone(),
            address: host.address.clone(),
            user: Some(user.into()),
            identity_file: Some(host.identity.display().to_string()),
            host_keys: vec![host.fingerprint()],
            directory: directory.to_owned(),
            ssh_config: Some(self.path("ssh_config")),
            ..Target::default()
        };
        let settings = Settings {
            folders: Folders {
                runtime: self.path("run"),
                cache: self.path("cache"),
                home: None,
            },
            owner: "a test of clusters".into(),
            patience: MINUTE,
        };
        SshHost::connect(target, binary(), settings).await.unwrap()
    }

    /// Processes of this machine that have the user's home in their arguments: programs, and masters of connections.
    pub(super) fn processes(&self) -> Vec<String> {
        let home = self.home.path().display().to_string();
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = entries.filter_map(|e| std::fs::read(e.path().join("cmdline")).ok());
        lines
            .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
            .filter(|line| line.contains(&home))
            .collect()
    }
}

/// What a program said.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) errors: String,
}

impl Said {
    pub(super) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            code: output.status.code(),
            out: text(&output.stdout),
            errors: text(&output.stderr),
        }
    }

    /// What it printed, as JSON.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Both texts hold each of these.
    #[track_caller]
    pub(super) fn names(&self, words: &[&str]) {
        for word in words {
            assert!(
                self.errors.contains(word) || self.out.contains(word),
                "no `{word}` in {self:?}"
            );
        }
    }
}

type Heard = Arc<(Mutex<String>, Condvar)>;

/// A program at work; ended with the test.
pub(super) struct Running {
    child: Child,
    heard: Heard,
    readers: Vec<JoinHandle<String>>,
}

impl Running {
    pub(super) fn start(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (out, errors) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let heard = Heard::default();
        let hear = Arc::clone(&heard);
        let out = std::thread::spawn(move || {
            let mut text = String::new();
            let mut out = out;
            out.read_to_string(&mut text).unwrap();
            text
        });
        let errors = std::thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                let mut text = hear.0.lock().unwrap();
                text.push_str(&line);
                text.push('\n');
                hear.1.notify_all();
            }
            String::new()
        });
        Self {
            child,
            heard,
            readers: vec![out, errors],
        }
    }

    pub(super) fn lives(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(super) fn errors(&self) -> String {
        self.heard.0.lock().unwrap().clone()
    }

    /// Waits until it has said `word` on its standard error so many times.
    #[track_caller]
    pub(super) fn until_it_says(&self, word: &str, times: usize) {
        let (text, changed) = &*self.heard;
        let text = text.lock().unwrap();
        let not_yet = |text: &mut String| text.matches(word).count() < times;
        let (text, waited) = changed.wait_timeout_while(text, MINUTE, not_yet).unwrap();
        assert!(!waited.timed_out(), "no `{word}` in {text}");
    }

    /// Sends a signal.
    pub(super) fn signal(&self, signal: &str) {
        sshd::kill(signal, self.child.id());
    }

    fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + MINUTE * 2;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "it does not end: {}",
                self.errors()
            );
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// Waits for its end.
    pub(super) fn end(mut self) -> Said {
        let code = self.wait().code();
        let texts: Vec<String> = self.readers.drain(..).map(|r| r.join().unwrap()).collect();
        Said {
            code,
            out: texts.concat(),
            errors: self.errors(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A shell's script as a command.
pub(super) fn shell(script: &str, on_loss: OnLoss) -> assay::host::Command {
    let args = vec!["-c".into(), script.into()];
    assay::host::Command {
        on_loss,
        ..assay::host::Command::new(Program::Path("/bin/sh".into()), args, MINUTE * 2)
    }
}

/// What a command came to: its outcome, its lines, its errors.
pub(super) type Ran = (
    Result<assay::host::Output, assay::host::HostError>,
    Vec<String>,
    String,
);

/// Starts a command in the background and waits for its first line.
pub(super) async fn begin(
    host: &Arc<SshHost>,
    command: assay::host::Command,
) -> tokio::task::JoinHandle<Ran> {
    let (first, mut heard) = mpsc::unbounded_channel();
    let host = Arc::clone(host);
    let task = tokio::spawn(async move {
        let (mut lines, mut errors) = (Vec::new(), String::new());
        let mut line = |text: &str| {
            lines.push(text.to_owned());
            let _ = first.send(());
        };
        let mut log = |text: &str| errors.push_str(text);
        let watch = Watch {
            stop: CancellationToken::new(),
            line: &mut line,
            log: &mut log,
        };
        let output = assay::host::Host::run(&*host, &command, watch).await;
        (output, lines, errors)
    });
    let spoke = tokio::time::timeout(MINUTE, heard.recv()).await.unwrap();
    if spoke.is_none() {
        panic!("{:?}", task.await.unwrap());
    }
    task
}

/// Runs a command to its end.
pub(super) async fn run(host: &SshHost, script: &str, on_loss: OnLoss) -> Ran {
    let (mut lines, mut errors) = (Vec::new(), String::new());
    let watch = Watch {
        stop: CancellationToken::new(),
        line: &mut |text| lines.push(text.to_owned()),
        log: &mut |text| errors.push_str(text),
    };
    let output = assay::host::Host::run(host, &shell(script, on_loss), watch).await;
    (output, lines, errors)
}

/// The units of jobs on a host.
pub(super) fn units(host: &LabHost) -> Vec<String> {
    let listed = host.run("systemctl list-units --all --plain --no-legend 'assay-*'");
    let names = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// Waits until a run's driver is at work on a host; the name of its unit.
pub(super) fn until_driving(host: &LabHost) -> String {
    let mut found = None;
    until("the driver is at work", || {
        found = units(host)
            .into_iter()
            .find(|unit| unit.starts_with("assay-load-"));
        found.is_some()
    });
    found.unwrap()
}

/// A new file of `bytes` random bytes.
pub(super) fn random_file(path: &Path, bytes: u64) {
    let source = std::fs::File::open("/dev/urandom").unwrap();
    let mut file = std::fs::File::create_new(path).unwrap();
    std::io::copy(&mut source.take(bytes), &mut file).unwrap();
}
