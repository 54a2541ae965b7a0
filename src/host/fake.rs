//! A host for tests: it answers as scripted, notes what it was asked, and takes time only on tokio's clock.

use std::collections::{BTreeMap, HashMap};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::local::describe;
use super::transfer::{self, Sent, Source, TransferError};
use super::{
    Claim, Command, Hold, Host, HostError, Lease, MARKER_FILE, Output, Pending, Program, Reply,
    Watch,
};

/// What an agent answers: it sees the request, may report progress, and returns its outcome or its error's causes.
type Answer =
    Arc<Mutex<dyn FnMut(&Value, &mut dyn FnMut(Value)) -> Result<Value, Vec<String>> + Send>>;

/// A host that exists only in a test.
///
/// Agents are scripted by name with [`FakeHost::on`], programs other than assay by their path; what has no script
/// fails and says so.
pub struct FakeHost {
    name: String,
    directory: PathBuf,
    files: Files,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    answers: HashMap<String, Answer>,
    takes: HashMap<String, Duration>,
    logs: HashMap<String, String>,
    faults: Vec<(String, usize, Fault)>,
    calls: Vec<Call>,
    holder: Option<Holder>,
    leases: usize,
    checks: usize,
    start: Option<Instant>,
}

/// Who holds the host.
struct Holder {
    owner: String,
    /// The number of the lease, unless it is another run's.
    lease: Option<usize>,
}

/// Something that was asked of the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The agent's name, a program's path, or `fetch`, `send`, `lease`, `release`.
    pub name: String,
    /// The request; `fetch`: the folder; `send`: `source`, `remote` and `replace`; `lease`: the owner; `null` if it is no JSON.
    pub request: Value,
    /// The time since the first call, by tokio's clock.
    pub at: Duration,
}

/// How a call goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The agent reports these causes.
    Fails(Vec<String>),
    /// Nothing happens until the stop or the limit.
    Hangs,
    /// It ends without an outcome: with this status, or by a signal.
    Dies(Option<i32>),
    /// The host cannot be asked.
    Unreachable,
}

/// The files of a fake host, by absolute path. Clones share them, so that a script can write some.
#[derive(Clone, Debug, Default)]
pub struct Files(Arc<Mutex<BTreeMap<PathBuf, Vec<u8>>>>);

impl Files {
    /// Writes a file.
    pub fn put(&self, path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) {
        lock(&self.0).insert(path.into(), content.into());
    }

    /// Reads a file.
    #[must_use]
    pub fn get(&self, path: &Path) -> Option<Vec<u8>> {
        lock(&self.0).get(path).cloned()
    }

    /// Takes the files that are sent to `remote`; returns the bytes that were not there yet.
    fn take(
        &self,
        contents: Vec<(PathBuf, Vec<u8>)>,
        remote: &Path,
        replace: bool,
    ) -> Result<u64, transfer::Fault> {
        let mut files = lock(&self.0);
        let wanted = contents.into_iter().map(|(path, content)| {
            let is_file = path.as_os_str().is_empty();
            let path = if is_file {
                remote.to_owned()
            } else {
                remote.join(path)
            };
            (path, content)
        });
        let wanted: BTreeMap<PathBuf, Vec<u8>> = wanted.collect();
        let there = files.iter().filter(|(path, _)| path.starts_with(remote));
        let there: BTreeMap<_, _> = there.map(|(p, c)| (p.clone(), c.clone())).collect();
        if there == wanted {
            return Ok(0);
        }
        let is_file = |files: &BTreeMap<PathBuf, _>| files.len() == 1 && files.contains_key(remote);
        let may_go = there.is_empty() || (replace && is_file(&there) && is_file(&wanted));
        if !may_go {
            let path = remote.to_owned();
            return Err(transfer::Fault::Exists { path });
        }
        let bytes = wanted.values().map(|content| content.len() as u64).sum();
        files.extend(wanted);
        Ok(bytes)
    }

    /// Copies the files below `remote` into the new local folder `local`, but for the marker.
    fn copy(&self, remote: &Path, local: &Path) -> std::io::Result<()> {
        let files: Vec<_> = lock(&self.0)
            .iter()
            .filter_map(|(path, content)| {
                let path = path.strip_prefix(remote).ok()?;
                Some((local.join(path), content.clone()))
            })
            .collect();
        if files.is_empty() {
            return Err(ErrorKind::NotFound.into());
        }
        std::fs::create_dir_all(local.parent().unwrap_or(local))?;
        std::fs::create_dir(local)?;
        let marker = local.join(MARKER_FILE);
        for (path, content) in files.into_iter().filter(|(path, _)| *path != marker) {
            std::fs::create_dir_all(path.parent().unwrap_or(local))?;
            std::fs::write(path, content)?;
        }
        Ok(())
    }
}

impl FakeHost {
    /// A host whose agents have no scripts yet.
    #[must_use]
    pub fn new(name: impl Into<String>, directory: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            directory: directory.into(),
            files: Files::default(),
            state: Arc::default(),
        }
    }

    /// Scripts the agent `name`: every call of it is answered so.
    pub fn on<F>(&self, name: &str, answer: F)
    where
        F: FnMut(&Value, &mut dyn FnMut(Value)) -> Result<Value, Vec<String>> + Send + 'static,
    {
        let answer = Arc::new(Mutex::new(answer));
        lock(&self.state).answers.insert(name.to_owned(), answer);
    }

    /// Every call of the agent `name` takes so long, its progress spread evenly over it.
    pub fn takes(&self, name: &str, duration: Duration) {
        lock(&self.state).takes.insert(name.to_owned(), duration);
    }

    /// Every call of the agent `name` leaves this on its standard error.
    pub fn logs(&self, name: &str, text: &str) {
        lock(&self.state)
            .logs
            .insert(name.to_owned(), text.to_owned());
    }

    /// The `nth` call of the agent `name` goes wrong, the first is 1; its script is not asked.
    /// Likewise `fetch`, `send`, `lease`, and `check`: the `nth` check of a lease finds it lost. Checks are not noted as calls.
    pub fn fail(&self, name: &str, nth: usize, fault: Fault) {
        lock(&self.state).faults.push((name.to_owned(), nth, fault));
    }

    /// Another run holds the host from now on, or nobody does; a lease that is held is lost by that.
    pub fn hold(&self, owner: Option<&str>) {
        let owner = owner.map(str::to_owned);
        lock(&self.state).holder = owner.map(|owner| Holder { owner, lease: None });
    }

    /// Its files.
    #[must_use]
    pub fn files(&self) -> Files {
        self.files.clone()
    }

    /// What was asked of it, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.state).calls.clone()
    }

    /// The names of [`FakeHost::calls`].
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.calls().into_iter().map(|call| call.name).collect()
    }

    async fn execute(&self, command: &Command, watch: Watch<'_>) -> Result<Output, HostError> {
        let (name, request) = question(command);
        let fault = lock(&self.state).note(&name, request.clone());
        let Watch { stop, line, log } = watch;
        if let Some(text) = lock(&self.state).logs.get(&name) {
            log(text);
        }
        let work = async {
            match fault {
                Some(fault) => self.go_wrong(fault, line).await,
                None => self.answer(&name, &request, line).await,
            }
        };
        let (host, what) = (self.name.clone(), describe(command));
        let limit = command.limit;
        tokio::select! {
            biased;
            () = stop.cancelled() => Err(HostError::Stopped { host, what }),
            output = work => output,
            () = sleep(limit) => Err(HostError::Limit { host, what, limit }),
        }
    }

    async fn go_wrong(
        &self,
        fault: Fault,
        line: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Output, HostError> {
        let output = |status| Output {
            status,
            stderr: String::new(),
        };
        match fault {
            Fault::Fails(causes) => {
                line(&text(&Reply::Failed(causes)));
                Ok(output(Some(1)))
            }
            Fault::Hangs => std::future::pending().await,
            Fault::Dies(status) => Ok(output(status)),
            Fault::Unreachable => Err(self.io("connect", ErrorKind::ConnectionRefused.into())),
        }
    }

    async fn answer(
        &self,
        name: &str,
        request: &Value,
        line: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Output, HostError> {
        let (script, takes) = lock(&self.state).script(name);
        let mut lines = Vec::new();
        let outcome = match script {
            Some(script) => lock(&*script)(request, &mut |p| lines.push(Reply::Progress(p))),
            None => Err(vec![format!("the fake host has no script for `{name}`")]),
        };
        let status = i32::from(outcome.is_err());
        lines.push(outcome.map_or_else(Reply::Failed, Reply::Done));
        let pause = takes / u32::try_from(lines.len()).unwrap_or(u32::MAX);
        for reply in &lines {
            if !pause.is_zero() {
                sleep(pause).await;
            }
            line(&text(reply));
        }
        Ok(Output {
            status: Some(status),
            stderr: String::new(),
        })
    }

    fn io(&self, what: &str, source: Error) -> HostError {
        HostError::Io {
            host: self.name.clone(),
            what: what.to_owned(),
            source,
        }
    }
}

impl State {
    /// Notes a call and finds the fault that was ordered for it.
    fn note(&mut self, name: &str, request: Value) -> Option<Fault> {
        let now = Instant::now();
        let at = now - *self.start.get_or_insert(now);
        let name = name.to_owned();
        let nth = 1 + self.calls.iter().filter(|call| call.name == name).count();
        let fault = self.fault(&name, nth);
        self.calls.push(Call { name, request, at });
        fault
    }

    fn fault(&self, name: &str, nth: usize) -> Option<Fault> {
        let fault = self.faults.iter().find(|(n, i, _)| *n == name && *i == nth);
        fault.map(|(_, _, fault)| fault.clone())
    }

    /// Whether a lease is the one that holds the host.
    fn is_held_by(&self, lease: usize) -> bool {
        self.holder.as_ref().and_then(|holder| holder.lease) == Some(lease)
    }

    fn script(&self, name: &str) -> (Option<Answer>, Duration) {
        let takes = self.takes.get(name).copied().unwrap_or_default();
        (self.answers.get(name).cloned(), takes)
    }
}

impl Host for FakeHost {
    fn name(&self) -> &str {
        &self.name
    }

    fn directory(&self) -> &Path {
        &self.directory
    }

    fn run<'a>(
        &'a self,
        command: &'a Command,
        watch: Watch<'a>,
    ) -> Pending<'a, Result<Output, HostError>> {
        Box::pin(self.execute(command, watch))
    }

    fn fetch<'a>(
        &'a self,
        remote: &'a Path,
        local: &'a Path,
    ) -> Pending<'a, Result<(), HostError>> {
        Box::pin(async move {
            let request = Value::from(remote.to_string_lossy());
            let copied = match lock(&self.state).note("fetch", request) {
                Some(_) => Err(ErrorKind::ConnectionReset.into()),
                None => self.files.copy(remote, local),
            };
            copied.map_err(|error| self.io(&format!("copy `{}`", remote.display()), error))
        })
    }

    fn send<'a>(
        &'a self,
        source: &'a Source,
        remote: &'a Path,
        replace: bool,
        progress: transfer::Progress,
    ) -> Pending<'a, Result<Sent, TransferError>> {
        Box::pin(async move {
            let request = json!({
                "source": source.root().to_string_lossy(),
                "remote": remote.to_string_lossy(),
                "replace": replace,
            });
            if lock(&self.state).note("send", request).is_some() {
                let lost = ErrorKind::ConnectionReset.into();
                return Err(self
                    .io(&format!("send `{}`", remote.display()), lost)
                    .into());
            }
            let contents = source.contents().map_err(TransferError::Here)?;
            let sent = self.files.take(contents, remote, replace);
            let bytes = sent.map_err(|source| TransferError::OnHost {
                host: self.name.clone(),
                source,
            })?;
            progress(bytes);
            Ok(Sent {
                bytes: source.bytes(),
                sent: bytes,
                files: source.files(),
            })
        })
    }

    fn lease<'a>(&'a self, claim: Claim<'a>) -> Pending<'a, Result<Lease, HostError>> {
        Box::pin(async move {
            let mut state = lock(&self.state);
            if state.note("lease", Value::from(claim.owner)).is_some() {
                return Err(self.io("take the lease", ErrorKind::PermissionDenied.into()));
            }
            if let Some(holder) = &state.holder {
                return Err(HostError::Held {
                    host: self.name.clone(),
                    owner: holder.owner.clone(),
                    seems_dead: false,
                });
            }
            state.leases += 1;
            let number = state.leases;
            state.holder = Some(Holder {
                owner: claim.owner.to_owned(),
                lease: Some(number),
            });
            Ok(Lease::new(Held {
                host: self.name.clone(),
                state: Arc::clone(&self.state),
                number,
            }))
        })
    }
}

/// The lease of a fake host.
struct Held {
    host: String,
    state: Arc<Mutex<State>>,
    number: usize,
}

impl Hold for Held {
    fn check(&self) -> Result<(), HostError> {
        let mut state = lock(&self.state);
        state.checks += 1;
        if state.fault("check", state.checks).is_some() {
            state.holder = None;
        }
        if state.is_held_by(self.number) {
            return Ok(());
        }
        Err(HostError::Io {
            host: self.host.clone(),
            what: "keep the lease".to_owned(),
            source: Error::other("it was removed"),
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        if state.is_held_by(self.number) {
            state.holder = None;
        }
        state.note("release", Value::Null);
    }
}

/// What a command asks, and of whom.
fn question(command: &Command) -> (String, Value) {
    let name = match &command.program {
        Program::Assay => command.args.get(1).cloned().unwrap_or_default(),
        Program::Path(path) => path.to_string_lossy().into_owned(),
    };
    let request = serde_json::from_slice(&command.stdin).unwrap_or_default();
    (name, request)
}

/// The line that a reply is printed as.
fn text(reply: &Reply<Value, Value>) -> String {
    serde_json::to_string(reply).expect("replies are plain data")
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
