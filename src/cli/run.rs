//! `assay run`: a new run of an experiment, from the first step to the report.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::args::{Experiment, Global};
use super::error::{Code, Failure};
use super::progress::{Console, Watcher};
use super::{inputs, report, signals, text};
use crate::artifacts::{
    Entry, EventLog, FORMAT, Layout, Manifest, Run, SpecTexts, create_run, sha256_of, write_sums,
};
use crate::host::{Bounds, Facts, Host, ask};
use crate::plan::{Plan, estimate};
use crate::runner::{self, Context, Control, Outcome};
use crate::spec::Spec;
use crate::units::Bytes;

/// The longest that gathering a host's facts may take.
const FACTS: Duration = Duration::from_secs(60);

pub(super) fn run(global: &Global, args: &Experiment) -> Result<Code, Failure> {
    let spec = inputs::load(global, &args.experiment, &args.changes)?;
    let plan = inputs::plan_of(&spec);
    let hosts = inputs::hosts(&spec.inventory)?;
    block_on(async {
        let facts = gather(&hosts).await?;
        warn_of_space(&plan, &facts);
        let manifest = manifest(args, &plan, facts)?;
        let texts = SpecTexts {
            experiment: &spec.experiment_text,
            inventory: &spec.inventory_text,
        };
        let (layout, log) = create_run(&global.artifacts, &manifest, &texts, &plan)?;
        let session = Session {
            global,
            spec: &spec,
            plan: &plan,
            hosts: &hosts,
            layout: &layout,
        };
        session.execute(log, &[]).await
    })
}

/// Runs a future to its end on this thread.
pub(super) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime
        .map_err(|e| Failure::from_error(Code::Internal, &e))?
        .block_on(future)
}

/// A run that is about to begin or to go on.
pub(super) struct Session<'a> {
    pub(super) global: &'a Global,
    pub(super) spec: &'a Spec,
    pub(super) plan: &'a Plan,
    pub(super) hosts: &'a BTreeMap<String, Arc<dyn Host>>,
    pub(super) layout: &'a Layout,
}

impl Session<'_> {
    /// Carries the plan out, then writes and prints the results.
    pub(super) async fn execute(&self, log: EventLog, events: &[Entry]) -> Result<Code, Failure> {
        let control = Control::new();
        let console = Console::new(self.global.quiet);
        signals::listen(control.clone(), console.clone())
            .map_err(|e| Failure::from_error(Code::Internal, &e))?;
        let context = Context {
            plan: self.plan,
            layout: self.layout,
            hosts: self.hosts,
            reveal: &|text| self.spec.secrets.reveal(text),
            hide: &|text| self.spec.secrets.hide(text),
            clock: &now,
            control: &control,
        };
        let mut watcher = Watcher::new(console.clone(), self.plan, self.layout, events);
        let outcome = runner::run(&context, log, events, &mut |notice| watcher.see(&notice)).await;
        console.clear();
        conclude(self.global, self.layout, &outcome?)
    }
}

/// Now, UTC, to the millisecond.
fn now() -> jiff::Timestamp {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}

/// Writes what follows from a run's results, prints the table, and finds the exit code.
pub(super) fn conclude(
    global: &Global,
    layout: &Layout,
    outcome: &Outcome,
) -> Result<Code, Failure> {
    let run = Run::open(layout.folder())?;
    let rows = crate::report::rows(&run)?;
    let folder = layout.folder().display();
    let (code, note) = match outcome {
        Outcome::Finished { failed: 0, .. } => (Code::Fine, None),
        Outcome::Finished { failed, .. } => (
            Code::Rounds,
            Some(format!(
                "{failed} rounds failed; the report names the reasons"
            )),
        ),
        Outcome::Unprepared { skipped } => {
            let note = format!(
                "{skipped} rounds were skipped; mend their deployment, then `assay resume {folder}`"
            );
            (Code::Host, Some(note))
        }
        Outcome::Stopped { reason } => (
            Code::Rounds,
            Some(format!(
                "stopped: {reason}; go on with `assay resume {folder}`"
            )),
        ),
        Outcome::Cancelled => (
            Code::Cancelled,
            Some(format!("stopped; go on with `assay resume {folder}`")),
        ),
    };
    if matches!(outcome, Outcome::Finished { .. }) && !layout.sums().exists() {
        report::write_all(&rows, layout.folder())?;
        write_sums(layout)?;
    }
    if global.json {
        let report = layout.folder().join("report.html");
        text::print_json(
            &json!({ "run": layout.folder(), "report": report, "exit": code as i32, "results": rows }),
        );
    } else {
        println!("{}", crate::report::table(&rows, text::width()));
        if matches!(outcome, Outcome::Finished { .. }) {
            println!("report: {}", layout.folder().join("report.html").display());
        }
    }
    if let Some(note) = note {
        eprintln!("{note}");
    }
    Ok(code)
}

async fn gather(
    hosts: &BTreeMap<String, Arc<dyn Host>>,
) -> Result<BTreeMap<String, Facts>, Failure> {
    let mut facts = BTreeMap::new();
    for (name, host) in hosts {
        let request = json!({ "directory": host.directory() });
        let stop = CancellationToken::new();
        facts.insert(
            name.clone(),
            ask(
                &**host,
                "facts",
                &request,
                Bounds {
                    limit: FACTS,
                    stop: &stop,
                },
            )
            .await?,
        );
    }
    Ok(facts)
}

fn warn_of_space(plan: &Plan, facts: &BTreeMap<String, Facts>) {
    let wanted = estimate(plan).host_bytes;
    for (name, facts) in facts {
        if let Some(disk) = facts.file_system.as_ref().filter(|d| d.free_bytes < wanted) {
            let (wanted, free) = (Bytes(wanted), Bytes(disk.free_bytes));
            tracing::warn!(
                "about {wanted} are needed on `{name}`, {free} are free on {}",
                disk.mount
            );
        }
    }
}

fn manifest(
    args: &Experiment,
    plan: &Plan,
    facts: BTreeMap<String, Facts>,
) -> Result<Manifest, Failure> {
    let created = now();
    let assay = std::env::current_exe().map_err(|e| Failure::from_error(Code::Internal, &e))?;
    Ok(Manifest {
        format: FORMAT,
        assay: env!("CARGO_PKG_VERSION").to_owned(),
        run: run_id(created),
        experiment: plan.experiment.clone(),
        created,
        spec: plan.spec.clone(),
        seed: plan.seed,
        source: absolute(&args.experiment)?,
        inventory: args
            .changes
            .inventory
            .as_deref()
            .map(absolute)
            .transpose()?,
        overrides: args.changes.overrides.clone(),
        hosts: facts,
        programs: BTreeMap::from([("assay".to_owned(), sha256_of(&assay)?)]),
        versions: BTreeMap::from([
            ("assay".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            (
                "sqlite".to_owned(),
                crate::database::sqlite_version().to_owned(),
            ),
        ]),
    })
}

fn absolute(path: &Path) -> Result<String, Failure> {
    let path = std::path::absolute(path).map_err(|e| Failure::from_error(Code::Usage, &e))?;
    Ok(path.to_string_lossy().into_owned())
}

/// UTC time to the second and four hex digits, so that two runs of one second differ.
fn run_id(created: jiff::Timestamp) -> String {
    let noise = RandomState::new().hash_one(std::process::id()) & 0xffff;
    format!("{}-{noise:04x}", created.strftime("%Y-%m-%dT%H-%M-%SZ"))
}
