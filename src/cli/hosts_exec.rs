//! `assay hosts exec`: one command on many hosts. Hosts with equal outputs are printed together.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::args::{Global, HostsExec};
use super::error::{Code, Failure};
use super::reach::{Hosts, Purpose, Reach, close};
use super::session::{block_on, now};
use super::{hosts, output, signals, text};
use crate::host::{self, Command, Host, HostError, Program, Watch, fan_out};

/// How many hosts are connected to at once.
const CONNECTING: usize = 64;
/// How much of a host's output is kept in memory and printed; what is longer is written to a file as a whole.
const SHOWN: usize = 64 << 10;

pub(super) fn exec(global: &Global, args: &HostsExec) -> Result<Code, Failure> {
    let hosts::Meant {
        inventory, names, ..
    } = hosts::meant(&args.which)?;
    let reach = Reach::of(&inventory)?;
    let stop = CancellationToken::new();
    block_on(async {
        signals::cancel(stop.clone()).map_err(|e| Failure::from_error(Code::Internal, &e))?;
        let spill = Spill::new(global);
        let connecting = Arc::new(Semaphore::new(CONNECTING));
        let working = Arc::new(Semaphore::new(args.at_once.max(1)));
        let works: Vec<_> = names
            .iter()
            .map(|name| {
                let work = Work {
                    name: name.clone(),
                    connecting: reach.connect(name, Purpose::command()),
                    places: (Arc::clone(&connecting), Arc::clone(&working)),
                    command: command(args),
                    stop: stop.clone(),
                    capture: Capture::new(spill.file(name)),
                    prefix: args.stream.then(|| name.clone()),
                };
                work.done()
            })
            .collect();
        let say = |number: usize, done: &Done| {
            if let Err(failure) = &done.outcome
                && !global.json
            {
                output::say(format_args!("{}: {}", names[number], brief(failure)));
            }
        };
        let done = fan_out(works, names.len(), say).await;
        let hosts: Hosts = names
            .iter()
            .zip(&done)
            .filter_map(|(name, done)| Some((name.clone(), Arc::clone(done.host.as_ref()?))))
            .collect();
        close(&hosts).await;
        if !global.json {
            hint(&done);
        }
        print(global, args, &names, &done)?;
        Ok(code_of(&done, &stop))
    })
}

fn command(args: &HostsExec) -> Command {
    let (program, words) = args.command.split_first().expect("clap wants one");
    Command {
        silence: args.silence,
        ..Command::new(
            Program::Path(PathBuf::from(program)),
            words.to_vec(),
            args.timeout,
        )
    }
}

/// The command on one host.
struct Work<F> {
    name: String,
    connecting: F,
    /// Hosts are connected to apart from the work, so that a dead one is named while others are still at it.
    places: (Arc<Semaphore>, Arc<Semaphore>),
    command: Command,
    stop: CancellationToken,
    capture: Capture,
    /// Printed before each line, if lines are printed as they come.
    prefix: Option<String>,
}

/// What it came to.
struct Done {
    host: Option<Arc<dyn Host>>,
    outcome: Result<host::Output, Failure>,
    capture: Capture,
    seconds: f64,
}

impl<F: Future<Output = Result<Arc<dyn Host>, HostError>>> Work<F> {
    async fn done(mut self) -> Done {
        let begin = Instant::now();
        let place = self.places.0.acquire().await;
        let connected = tokio::select! {
            connected = self.connecting => connected,
            () = self.stop.cancelled() => Err(HostError::Stopped {
                host: self.name.clone(),
                what: "connect".to_owned(),
            }),
        };
        drop(place);
        let (host, outcome) = match connected {
            Ok(host) => {
                let _place = self.places.1.acquire().await;
                let capture = &mut self.capture;
                let prefix = self.prefix.as_deref();
                let mut line = |text: &str| {
                    if let Some(prefix) = prefix {
                        let _ = output::line(format_args!("{prefix}: {}", output::clean(text)));
                    }
                    capture.take(text);
                };
                let watch = Watch {
                    stop: self.stop,
                    line: &mut line,
                    log: &mut |_| {},
                };
                let outcome = host.run(&self.command, watch).await;
                (Some(host), outcome.map_err(Failure::from))
            }
            Err(error) => (None, Err(Failure::from(error))),
        };
        let outcome = match self.capture.finish() {
            Ok(()) => outcome,
            Err(error) => {
                let path = self.capture.path.display();
                let message = format!("cannot keep its output in `{path}`: {error}");
                Err(Failure::new(Code::Usage, message)
                    .hint("`--artifacts DIR` names another folder for it"))
            }
        };
        Done {
            host,
            outcome,
            capture: self.capture,
            seconds: begin.elapsed().as_secs_f64(),
        }
    }
}

/// Where outputs go that are too long to keep in memory.
struct Spill {
    folder: PathBuf,
}

impl Spill {
    fn new(global: &Global) -> Self {
        let when = now().strftime("%Y-%m-%dT%H-%M-%SZ");
        let folder = format!("{when}-{}", std::process::id());
        Self {
            folder: global.artifacts.join("hosts-exec").join(folder),
        }
    }

    fn file(&self, host: &str) -> PathBuf {
        self.folder.join(format!("{host}.out"))
    }
}

/// What a host printed: the beginning in memory, all of it in a file if it is long.
struct Capture {
    path: PathBuf,
    head: String,
    hash: Sha256,
    bytes: u64,
    file: Option<BufWriter<File>>,
    error: Option<std::io::Error>,
}

impl Capture {
    fn new(path: PathBuf) -> Self {
        Self {
            path,
            head: String::new(),
            hash: Sha256::new(),
            bytes: 0,
            file: None,
            error: None,
        }
    }

    fn take(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.hash.update(&line);
        self.bytes += line.len() as u64;
        if self.file.is_none() && self.head.len() + line.len() <= SHOWN {
            self.head.push_str(&line);
        } else if self.error.is_none() {
            self.error = self.spill(&line).err();
        }
    }

    fn spill(&mut self, line: &str) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                std::fs::create_dir_all(self.path.parent().unwrap_or(Path::new(".")))?;
                let mut file = BufWriter::new(File::create_new(&self.path)?);
                file.write_all(self.head.as_bytes())?;
                self.file.insert(file)
            }
        };
        file.write_all(line.as_bytes())
    }

    fn finish(&mut self) -> std::io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.file.as_mut().map_or(Ok(()), |file| file.flush())
    }

    /// The file, if there is one.
    fn kept(&self) -> Option<&Path> {
        self.file.is_some().then_some(self.path.as_path())
    }
}

fn code_of(done: &[Done], stop: &CancellationToken) -> Code {
    let good = |done: &Done| matches!(&done.outcome, Ok(output) if output.status == Some(0));
    if stop.is_cancelled() {
        Code::Cancelled
    } else if done.iter().all(good) {
        Code::Fine
    } else {
        Code::Host
    }
}

/// Says what to do about the failures, once for each kind.
fn hint(done: &[Done]) {
    let failures = done.iter().filter_map(|done| done.outcome.as_ref().err());
    let hints: BTreeSet<&str> = failures.filter_map(Failure::hinted).collect();
    for hint in hints {
        output::say(format_args!("{}hint:{} {hint}", text::CYAN, text::PLAIN));
    }
}

/// A failure on one line.
fn brief(failure: &Failure) -> String {
    output::clean(&failure.message()).replace('\n', " ")
}

fn print(
    global: &Global,
    args: &HostsExec,
    names: &[String],
    done: &[Done],
) -> Result<(), Failure> {
    if global.json {
        let rows: Vec<Value> = names.iter().zip(done).map(|(n, d)| row(n, d)).collect();
        return output::json(&rows);
    }
    if args.stream {
        return said(names, done);
    }
    for (name, done) in names.iter().zip(done) {
        if done.outcome.is_err() && done.capture.bytes > 0 {
            output::line(format_args!(
                "{}{name}{} (1 host, until it failed)",
                text::CYAN,
                text::PLAIN
            ))?;
            output::print(&output::clean(&done.capture.head))?;
        }
    }
    for group in groups(done) {
        let first = &done[group[0]];
        let hosts: Vec<&str> = group.iter().map(|number| names[*number].as_str()).collect();
        let Ok(output) = &first.outcome else { continue };
        let status = match output.status {
            Some(0) => String::new(),
            Some(status) => format!(", exit status {status}"),
            None => ", ended by a signal".to_owned(),
        };
        output::line(format_args!(
            "{}{}{} ({}{status})",
            text::CYAN,
            hosts.join(", "),
            text::PLAIN,
            counted(hosts.len())
        ))?;
        output::print(&output::clean(&first.capture.head))?;
        for number in &group {
            if let Some(path) = done[*number].capture.kept() {
                let bytes = crate::units::Bytes(done[*number].capture.bytes);
                output::line(format_args!(
                    "[all {bytes} of `{}`: {}]",
                    names[*number],
                    path.display()
                ))?;
            }
        }
        if !output.stderr.is_empty() {
            output::say(output::clean(output.stderr.trim_end()));
        }
    }
    Ok(())
}

/// What hosts said on standard error, where their lines were printed already.
fn said(names: &[String], done: &[Done]) -> Result<(), Failure> {
    for (name, done) in names.iter().zip(done) {
        let Ok(output) = &done.outcome else { continue };
        for line in output.stderr.lines() {
            output::say(format_args!("{name}: {}", output::clean(line)));
        }
        match output.status {
            Some(0) => {}
            Some(status) => output::say(format_args!("{name}: exit status {status}")),
            None => output::say(format_args!("{name}: ended by a signal")),
        }
    }
    Ok(())
}

fn counted(hosts: usize) -> String {
    match hosts {
        1 => "1 host".to_owned(),
        n => format!("{n} hosts"),
    }
}

/// The numbers of those that came to the same, in the order of their first.
fn groups(done: &[Done]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (number, one) in done.iter().enumerate() {
        let Ok(output) = &one.outcome else { continue };
        let same = groups.iter_mut().find(|group| {
            let other = &done[group[0]];
            let equal = other.outcome.as_ref().is_ok_and(|o| o == output);
            equal && one.capture.hash.clone().finalize() == other.capture.hash.clone().finalize()
        });
        match same {
            Some(group) => group.push(number),
            None => groups.push(vec![number]),
        }
    }
    groups
}

fn row(name: &str, done: &Done) -> Value {
    let mut row = json!({
        "host": name,
        "seconds": (done.seconds * 1000.0).round() / 1000.0,
        "stdout": done.capture.head,
        "stdout_bytes": done.capture.bytes,
        "stdout_file": done.capture.kept(),
    });
    match &done.outcome {
        Ok(output) => {
            row["status"] = json!(output.status);
            row["stderr"] = json!(output.stderr);
        }
        Err(failure) => {
            let told = failure.to_json();
            row["error"] = json!(failure.message());
            row["hint"] = told["hint"].clone();
        }
    }
    row
}
