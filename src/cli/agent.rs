//! `assay agent NAME`: work on this host for another assay process. One line of JSON in, lines of JSON out.
//! It ends when its caller does: its standard input then reaches its end.

use std::fs::File;
use std::io::{BufRead as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::args::Agent;
use super::error::Code;
use super::output;
use super::session::now;
use crate::host::transfer::Served;
use crate::host::{self, Reply, preflight};
use crate::{database, load, probe, service, snapshot};

/// Bytes that a pipe of a transfer holds; what any user may set (`/proc/sys/fs/pipe-max-size`).
const PIPE: usize = 1 << 20;

/// What the work came to: a value, or the message of the error and of its causes.
type Outcome = Result<Value, Vec<String>>;

#[derive(Deserialize)]
struct Folder {
    directory: PathBuf,
}

pub(super) fn agent(args: &Agent) -> Code {
    match (args.name.as_str(), &args.folder) {
        ("serve", _) => return code_of(serve()),
        ("self", _) => return code_of(say_self()),
        ("supervise", Some(folder)) => {
            return code_of(
                std::env::current_exe().and_then(|assay| host::supervise(folder, &assay)),
            );
        }
        (name, _) if host::transfer::is_ours(name) => return transfer(name),
        _ => {}
    }
    let mut line = String::new();
    let request = match std::io::stdin().lock().read_line(&mut line) {
        Ok(_) => serde_json::from_str::<Value>(&line)
            .map_err(|e| vec!["the request is no JSON".into(), e.to_string()]),
        Err(e) => Err(vec!["cannot read the request".into(), e.to_string()]),
    };
    let stop = CancellationToken::new();
    // The programs of a load tool are in groups of their own: they are ended first.
    let orphaned = (args.name == "tool").then(|| stop.clone());
    host::when_orphaned(|| match orphaned {
        Some(stop) => stop.cancel(),
        None => std::process::exit(Code::Cancelled as i32),
    });
    let outcome = request.and_then(|request| work(&args.name, request, &stop));
    let code = if outcome.is_ok() {
        Code::Fine
    } else {
        Code::Internal
    };
    say(&outcome.map_or_else(Reply::<Value, _>::Failed, Reply::Done));
    code
}

/// Serves this host over standard input and output.
fn serve() -> std::io::Result<()> {
    let home = std::env::home_dir();
    let assay = std::env::current_exe()?;
    host::serve(std::io::stdin().lock(), std::io::stdout(), assay, home)
}

/// The SHA-256 of this program, so that whoever sent it sees that it arrived.
fn say_self() -> std::io::Result<()> {
    let own = host::Binary::read(std::env::current_exe()?, false)?;
    writeln!(std::io::stdout(), "{}", own.sha256)
}

fn code_of(result: std::io::Result<()>) -> Code {
    match result {
        Ok(()) => Code::Fine,
        Err(error) => {
            output::say(format_args!("assay agent: {error}"));
            Code::Internal
        }
    }
}

/// The agents of transfers have standard input and output for themselves, without the buffers for lines.
fn transfer(name: &str) -> Code {
    let input = std::io::stdin().as_fd().try_clone_to_owned();
    let output = std::io::stdout().as_fd().try_clone_to_owned();
    let (Ok(input), Ok(output)) = (input, output) else {
        return Code::Internal;
    };
    // Larger pipes save most of the switches between this process and sshd. What is no pipe stays as it is.
    let _ = rustix::pipe::fcntl_setpipe_size(&input, PIPE);
    let _ = rustix::pipe::fcntl_setpipe_size(&output, PIPE);
    match host::transfer::serve(name, File::from(input), File::from(output)) {
        Some(Served::Done) => Code::Fine,
        Some(Served::Abandoned) => Code::Cancelled,
        Some(Served::Failed) | None => Code::Internal,
    }
}

fn work(name: &str, request: Value, stop: &CancellationToken) -> Outcome {
    match name {
        "facts" => facts(&read::<Folder>(request)?),
        "disk-usage" => disk_usage(&read::<Folder>(request)?),
        "calibrate" => outcome(host::calibrate(&read(request)?)),
        "preflight-look" => leftovers(&read::<Folder>(request)?),
        "preflight-apply" => outcome(preflight::apply(root(), &read(request)?, now())),
        "preflight-revert" => {
            let folder = read::<Folder>(request)?;
            outcome(preflight::revert(root(), &folder.directory))
        }
        "load" => outcome(load::run(&read(request)?, &mut |p| progress(&p))),
        "tool" => outcome(load::tool::run(&read(request)?, stop, &mut |p| {
            progress(&p);
        })),
        "sqlite-start" => outcome(database::agent_start(&read(request)?)),
        "sqlite-stop" => outcome(database::agent_stop(&read(request)?)),
        _ if name.starts_with("service-") => {
            let here = service::Here {
                home: std::env::home_dir(),
                now: now().as_microsecond(),
            };
            named(name, service::agent(name, request, &here))
        }
        _ if name.starts_with("probe-") => {
            named(name, probe::agent(name, request, &mut |p| progress(&p)))
        }
        _ => named(name, snapshot::agent(name, request, &mut |p| progress(&p))),
    }
}

/// What came of a request to a family of agents; `None` where none has that name.
fn named<E: std::error::Error>(name: &str, found: Option<Result<Value, E>>) -> Outcome {
    found.map_or_else(|| Err(vec![format!("there is no agent `{name}`")]), outcome)
}

/// The host's directory need not be there yet, and is not made: looking changes nothing.
fn facts(folder: &Folder) -> Outcome {
    let mut facts = host::gather(&folder.directory);
    let there = folder.directory.ancestors().find(|f| f.is_dir());
    if let (Some(file_system), Some(there)) = (&mut facts.file_system, there) {
        let probed = snapshot::directory::probe(there);
        file_system.reflink = probed.ok().map(|found| found.reflink);
    }
    Ok(serde_json::to_value(facts).expect("facts are plain data"))
}

fn leftovers(folder: &Folder) -> Outcome {
    let found = preflight::look(root(), &folder.directory);
    Ok(serde_json::to_value(found).expect("leftovers are plain data"))
}

/// The root of the machine whose settings are looked at and changed.
fn root() -> &'static Path {
    Path::new("/")
}

/// Bytes that a folder takes on its disk; blocks that files share count for each.
fn disk_usage(folder: &Folder) -> Outcome {
    let mut bytes = 0;
    for entry in walkdir::WalkDir::new(&folder.directory) {
        let found = entry
            .and_then(|e| e.metadata())
            .map_err(|e| vec!["cannot look at every file".into(), e.to_string()])?;
        bytes += found.blocks() * 512;
    }
    Ok(bytes.into())
}

fn read<T: DeserializeOwned>(request: Value) -> Result<T, Vec<String>> {
    serde_json::from_value(request).map_err(|e| {
        vec![
            "the request is not what this agent takes".into(),
            e.to_string(),
        ]
    })
}

fn outcome<T: Serialize, E: std::error::Error>(result: Result<T, E>) -> Outcome {
    match result {
        Ok(value) => Ok(serde_json::to_value(value).expect("outcomes are plain data")),
        Err(error) => {
            let mut causes = vec![error.to_string()];
            let mut next = error.source();
            while let Some(cause) = next {
                causes.push(cause.to_string());
                next = cause.source();
            }
            Err(causes)
        }
    }
}

fn progress(progress: &impl Serialize) {
    say(&Reply::<_, Value>::Progress(progress));
}

fn say<P: Serialize, T: Serialize>(reply: &Reply<P, T>) {
    let lines = reply.lines();
    let mut out = std::io::stdout().lock();
    // A caller that no longer listens is gone; standard input ends then, and so does this process.
    let _ = out.write_all(lines.as_bytes()).and_then(|()| out.flush());
}
