//! What a new run and a resumed one have in common: hosts, signals, progress, results.

use serde_json::json;

use super::args::Global;
use super::error::{Code, Failure};
use super::progress::{Console, Watcher};
use super::reach::Hosts;
use super::{output, reach, report, signals, text};
use crate::artifacts::{Entry, EventLog, Layout, Run, write_sums};
use crate::host::Lease;
use crate::pack::Packs;
use crate::plan::Plan;
use crate::runner::{self, Context, Control, Outcome};
use crate::spec::Spec;

/// Runs a future to its end on this thread.
pub(super) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime
        .map_err(|e| Failure::from_error(Code::Internal, &e))?
        .block_on(future)
}

/// Now, UTC, to the millisecond.
pub(super) fn now() -> jiff::Timestamp {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}

/// A run that is about to begin or to go on.
pub(super) struct Session<'a> {
    pub(super) global: &'a Global,
    pub(super) spec: &'a Spec,
    pub(super) plan: &'a Plan,
    pub(super) packs: &'a Packs,
    pub(super) hosts: &'a Hosts,
    pub(super) leases: Vec<Lease>,
    pub(super) layout: &'a Layout,
}

impl Session<'_> {
    /// Carries the plan out, then writes and prints the results.
    pub(super) async fn execute(&self, log: EventLog, events: &[Entry]) -> Result<Code, Failure> {
        let control = Control::new();
        // Log lines and a bar would write over each other.
        let console = Console::new(self.global.quiet, self.global.verbose > 0);
        signals::listen(control.clone(), console.clone())
            .map_err(|e| Failure::from_error(Code::Internal, &e))?;
        let packages = reach::packages()?;
        let context = Context {
            plan: self.plan,
            packs: self.packs,
            packages: &packages,
            layout: self.layout,
            hosts: self.hosts,
            reveal: &|text| self.spec.secrets.reveal(text),
            hide: &|text| self.spec.secrets.hide(text),
            clock: &now,
            control: &control,
        };
        let mut watcher = Watcher::new(console.clone(), self.plan, self.layout, events);
        let outcome = runner::run(&context, &self.leases, log, events, &mut |notice| {
            watcher.see(&notice);
        })
        .await;
        console.clear();
        conclude(self.global, self.layout, &outcome?)
    }
}

/// Prints the table, writes the reports of a run that is finished, and finds the exit code.
pub(super) fn conclude(
    global: &Global,
    layout: &Layout,
    outcome: &Outcome,
) -> Result<Code, Failure> {
    let run = Run::open(layout.folder())?;
    let rows = crate::report::rows(&run)?;
    let finished = matches!(outcome, Outcome::Finished { .. });
    if !global.json {
        output::line(crate::report::table(&rows, text::width()))?;
    }
    if finished && !layout.sums().exists() {
        report::write_all(&rows, layout.folder())?;
        write_sums(layout)?;
    }
    let code = code_of(outcome);
    let page = layout.folder().join("report.html");
    if global.json {
        let page = finished.then_some(page);
        output::json(
            &json!({ "run": layout.folder(), "report": page, "exit": code as i32, "results": rows }),
        )?;
    } else if finished {
        output::line(format_args!("report: {}", page.display()))?;
    }
    if let Some(note) = note_of(outcome, layout) {
        output::say(output::clean(&note));
    }
    Ok(code)
}

fn code_of(outcome: &Outcome) -> Code {
    match outcome {
        Outcome::Finished {
            failed: 0,
            invalid: 0,
            ..
        } => Code::Fine,
        Outcome::Finished { .. } | Outcome::Stopped { .. } => Code::Rounds,
        Outcome::Unprepared { .. } => Code::Host,
        Outcome::Cancelled => Code::Cancelled,
    }
}

fn note_of(outcome: &Outcome, layout: &Layout) -> Option<String> {
    let resume = format!("`assay resume {}`", layout.folder().display());
    let rounds = |n: usize| {
        if n == 1 {
            "1 round".to_owned()
        } else {
            format!("{n} rounds")
        }
    };
    match outcome {
        Outcome::Finished {
            failed, invalid, ..
        } => {
            let is = if *invalid == 1 { "is" } else { "are" };
            let bad = [
                (*failed > 0).then(|| format!("{} failed", rounds(*failed))),
                (*invalid > 0).then(|| format!("{} {is} invalid", rounds(*invalid))),
            ];
            let bad: Vec<String> = bad.into_iter().flatten().collect();
            let bad = bad.join(", ");
            (!bad.is_empty()).then(|| format!("{bad}; the report names the reasons"))
        }
        Outcome::Unprepared { skipped } => Some(format!(
            "{} skipped; mend what their deployment lacks, then {resume}",
            rounds(*skipped)
        )),
        Outcome::Stopped { reason } => Some(format!("stopped: {reason}; go on with {resume}")),
        Outcome::Cancelled => Some(format!("stopped; go on with {resume}")),
    }
}
