//! Installed load tools: runs the steps of a [`Tool`] one after the other, keeps what they print, and says how far they are.

mod ear;
mod files;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use regex::Regex;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use self::ear::Ear;
use self::files::Files;
use crate::host::{Command, Host as _, HostError, LocalHost, Output, Program, Watch};
use crate::plan::{Probe, Progress, StepRecord, Tool, ToolRecord, ToolStep};
use crate::units;

/// How long a tool may take to say its version.
const PROBE: Duration = Duration::from_secs(30);
/// The limit of a step that has none of its own: who asked for the work limits it.
const LONG: Duration = Duration::from_secs(30 * 24 * 3600);
/// Runs a program in a folder: `$1` is the folder, `$2` the file for its standard error.
const SCRIPT: &str = r#"cd "$1" && exec 2>"$2" && shift 2 && exec env "$@""#;
/// What env(1) ends with when there is no such program.
const NO_PROGRAM: i32 = 127;

/// Why a tool did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// A file's name leads out of the folder.
    #[error("`{0}` is no name of a file in a tool's folder")]
    Name(String),
    /// A file cannot be used.
    #[error("cannot {what} `{}`", .path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// It gets no folder.
    #[error("cannot make a temporary folder")]
    Private(#[source] std::io::Error),
    /// A pattern is none.
    #[error("cannot look for lines like `{line}`")]
    Pattern {
        /// The pattern.
        line: String,
        /// What is wrong.
        source: Box<regex::Error>,
    },
    /// No program can be run here.
    #[error("cannot run programs")]
    Runtime(#[source] std::io::Error),
    /// The program is not there.
    #[error("there is no `{program}` on this host; the package `{package}` has it")]
    Missing {
        /// The program.
        program: String,
        /// The package that has it.
        package: String,
    },
    /// The program does not say its version.
    #[error("cannot tell the version of `{program}` from `{said}`")]
    Version {
        /// The program.
        program: String,
        /// What it said.
        said: String,
    },
    /// This version cannot do what is asked.
    #[error("{version} cannot do this: {why}")]
    Refused {
        /// The tool and its version.
        version: String,
        /// What it cannot do.
        why: String,
    },
    /// A step could not be run to its end.
    #[error("cannot run `{program}` to its end")]
    Run {
        /// The program.
        program: String,
        /// Why.
        source: HostError,
    },
    /// A step outlived its limit.
    #[error("{step} by `{program}` took longer than its limit of {limit} and was killed")]
    Limit {
        /// The step.
        step: String,
        /// The program.
        program: String,
        /// The limit.
        limit: units::Duration,
    },
    /// It was stopped on request, or nobody wants the work any more.
    #[error("{step} by `{program}` was stopped")]
    Stopped {
        /// The step.
        step: String,
        /// The program.
        program: String,
    },
    /// A step failed.
    #[error("{step} by `{program}` failed, it ended {how}{said}")]
    Failed {
        /// The step.
        step: String,
        /// The program.
        program: String,
        /// `with status 1`, `by a signal`.
        how: String,
        /// What it said, after a colon.
        said: String,
    },
    /// A step loaded less than it was to.
    #[error("{step} by `{program}` ended well, but tells of {rows} of {of} rows")]
    Short {
        /// The step.
        step: String,
        /// The program.
        program: String,
        /// Rows that it told of.
        rows: u64,
        /// Rows in all.
        of: u64,
    },
}

/// Carries out `tool`, says how far it is, and leaves a record in its folder. It ends when `stop` is cancelled or this process
/// is asked to terminate; no process of the tool is left then, and no secret file.
///
/// # Errors
/// The tool is missing or too old, or one of its steps failed; the steps behind it are not run.
pub fn run(
    tool: &Tool,
    stop: &CancellationToken,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<ToolRecord, ToolError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ToolError::Runtime)?;
    runtime.block_on(async {
        let mut term = signal(SignalKind::terminate()).map_err(ToolError::Runtime)?;
        let asked = stop.clone();
        tokio::spawn(async move {
            term.recv().await;
            asked.cancel();
        });
        let files = Files::lay(tool)?;
        carry_out(tool, files.folder(), stop, progress).await
    })
}

async fn carry_out(
    tool: &Tool,
    folder: &Path,
    stop: &CancellationToken,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<ToolRecord, ToolError> {
    let (version, number) = probe(&tool.probe, folder, stop).await?;
    let refused = tool.refusals.iter().find(|r| r.versions.contains(number));
    if let Some(refusal) = refused {
        let why = refusal.why.clone();
        return Err(ToolError::Refused { version, why });
    }
    let mut record = ToolRecord {
        version,
        ..ToolRecord::default()
    };
    for step in tool.steps.iter().filter(|s| s.versions.contains(number)) {
        let (done, went) = take(step, folder, stop, progress).await?;
        record.steps.push(done);
        files::keep(&folder.join(Tool::RECORD), &record)?;
        went?;
    }
    Ok(record)
}

/// What the tool says its version is, and the first two numbers of that.
async fn probe(
    probe: &Probe,
    folder: &Path,
    stop: &CancellationToken,
) -> Result<(String, (u32, u32)), ToolError> {
    let step = ToolStep {
        name: "asking for the version".into(),
        versions: crate::plan::Versions::ALL,
        program: probe.program.clone(),
        args: probe.args.clone(),
        env: std::collections::BTreeMap::new(),
        limit: Some(units::Duration(PROBE)),
        stdout: String::new(),
        stderr: "/dev/null".into(),
        listen: crate::plan::Listen::default(),
    };
    let mut said = String::new();
    let mut line = |text: &str| {
        if said.is_empty() {
            text.trim().clone_into(&mut said);
        }
    };
    let output = start(&step, folder, stop, &mut line).await?;
    let program = probe.program.clone();
    if output.status == Some(NO_PROGRAM) {
        let package = probe.package.clone();
        return Err(ToolError::Missing { program, package });
    }
    match number(&said) {
        Some(number) => Ok((said, number)),
        None => Err(ToolError::Version { program, said }),
    }
}

/// The first two numbers of the first version in a text.
fn number(text: &str) -> Option<(u32, u32)> {
    let version = Regex::new(r"(\d+)\.(\d+)").expect("the pattern is valid");
    let found = version.captures(text)?;
    Some((found[1].parse().ok()?, found[2].parse().ok()?))
}

/// Runs a step: how it went, and whether that is good enough to go on.
async fn take(
    step: &ToolStep,
    folder: &Path,
    stop: &CancellationToken,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<(StepRecord, Result<(), ToolError>), ToolError> {
    let mut ear = Ear::new(&step.listen, &folder.join(&step.stdout), progress)?;
    let (began, cpu) = (Instant::now(), children_ticks());
    let output = start(step, folder, stop, &mut |text| ear.hear(text)).await?;
    let record = StepRecord {
        name: step.name.clone(),
        program: step.program.clone(),
        args: step.args.clone(),
        status: output.status,
        seconds: began.elapsed().as_secs_f64(),
        cpu_s: children_ticks()
            .zip(cpu)
            .map(|(after, before)| seconds(after - before)),
    };
    let went = ear.judge(step, output.status, &folder.join(&step.stderr));
    Ok((record, went))
}

/// Runs a step's program to its end.
async fn start(
    step: &ToolStep,
    folder: &Path,
    stop: &CancellationToken,
    line: &mut (dyn FnMut(&str) + Send),
) -> Result<Output, ToolError> {
    let mut args: Vec<String> = vec!["-c".into(), SCRIPT.into(), "sh".into()];
    args.push(folder.to_string_lossy().into_owned());
    args.push(step.stderr.clone());
    args.extend(
        step.env
            .iter()
            .map(|(name, value)| format!("{name}={value}")),
    );
    args.push(step.program.clone());
    args.extend(step.args.iter().cloned());
    let limit = step.limit.map_or(LONG, |limit| limit.0);
    let command = Command::new(Program::Path("/bin/sh".into()), args, limit);
    let watch = Watch {
        stop: stop.clone(),
        line,
        log: &mut |_| {},
    };
    let here = LocalHost::new("this host", folder, "/bin/false");
    let output = here.run(&command, watch).await;
    let (name, program) = (step.name.clone(), step.program.clone());
    output.map_err(|error| match error {
        HostError::Limit { limit, .. } => ToolError::Limit {
            step: name,
            program,
            limit: units::Duration(limit),
        },
        HostError::Stopped { .. } => ToolError::Stopped {
            step: name,
            program,
        },
        source => ToolError::Run { program, source },
    })
}

/// CPU time of all programs that this one ran and that have ended, in the kernel's ticks; fields 16 and 17 of proc(5)'s stat.
fn children_ticks() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut times = after_name.split_whitespace().skip(13);
    let (user, system): (u64, u64) = (times.next()?.parse().ok()?, times.next()?.parse().ok()?);
    Some(user + system)
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}
