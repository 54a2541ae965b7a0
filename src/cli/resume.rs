//! `assay resume`: finishes what is missing of a run.

use super::args::{Changes, Global, Resume};
use super::error::{Code, Failure};
use super::run::{Session, block_on, conclude};
use super::status::Counts;
use super::{inputs, runs};
use crate::artifacts::{End, Event, EventLog, Layout, Run, SpecTexts, read_events, write_revision};
use crate::plan::Plan;
use crate::runner::Outcome;
use crate::spec::Spec;

pub(super) fn resume(global: &Global, args: &Resume) -> Result<Code, Failure> {
    let folder = runs::find(global, args.run.as_deref())?;
    // The lock comes first: what is read after it cannot change any more.
    Run::open(&folder)?;
    let layout = Layout::new(folder);
    let mut log = EventLog::open(&layout.events())?;
    let run = Run::open(layout.folder())?;
    if let Some(outcome) = finished(&run) {
        drop(log);
        eprintln!("nothing is missing");
        return conclude(global, &layout, &outcome);
    }
    let spec = spec_of(global, &run)?;
    let plan = inputs::plan_of(&spec);
    if spec.hash != run.plan.spec {
        if !args.accept_changed_spec {
            return Err(changed(&run, &spec));
        }
        accept(&run, &spec, &plan, &mut log)?;
    }
    let hosts = inputs::hosts(&spec.inventory)?;
    let events = read_events(&layout.events())?;
    let session = Session {
        global,
        spec: &spec,
        plan: &plan,
        hosts: &hosts,
        layout: &layout,
    };
    block_on(session.execute(log, &events))
}

/// The outcome of a run that has all its rounds.
fn finished(run: &Run) -> Option<Outcome> {
    let counts = Counts::of(run);
    let done = run.state.end == Some(End::Finished);
    done.then_some(Outcome::Finished {
        ok: counts.ok,
        failed: counts.failed,
    })
}

/// The spec as its file stands now, or as it is archived when that file is gone.
fn spec_of(global: &Global, run: &Run) -> Result<Spec, Failure> {
    let source = std::path::Path::new(&run.manifest.source);
    if source.exists() {
        let inventory = run.manifest.inventory.clone().map(Into::into);
        let changes = Changes {
            inventory,
            overrides: run.manifest.overrides.clone(),
        };
        return inputs::load(global, source, &changes);
    }
    tracing::warn!("`{}` is gone; the archived copy is used", source.display());
    let revision = run.state.revision;
    let changes = Changes {
        inventory: Some(run.layout.inventory(revision)),
        overrides: Vec::new(),
    };
    inputs::load(global, &run.layout.experiment(revision), &changes)
}

fn changed(run: &Run, spec: &Spec) -> Failure {
    let lines = difference(run, spec).join("\n  ");
    let message = format!(
        "the experiment has changed since this run began; nothing was changed\n  {}\n  {lines}",
        run.manifest.source
    );
    Failure::new(Code::Usage, message).hint(
        "undo the change, start a new run, or go on with `assay resume --accept-changed-spec`",
    )
}

fn accept(run: &Run, spec: &Spec, plan: &Plan, log: &mut EventLog) -> Result<(), Failure> {
    let revision = run.state.revision + 1;
    let texts = SpecTexts {
        experiment: &spec.experiment_text,
        inventory: &spec.inventory_text,
    };
    write_revision(&run.layout, revision, &texts, plan)?;
    let event = Event::SpecChanged {
        from: run.plan.spec.clone(),
        to: spec.hash.clone(),
        revision,
        difference: difference(run, spec),
    };
    log.append(jiff::Timestamp::now(), event)?;
    Ok(())
}

/// The lines of the resolved spec that only one side has.
fn difference(run: &Run, spec: &Spec) -> Vec<String> {
    let revision = run.state.revision;
    let before = [
        run.layout.experiment(revision),
        run.layout.inventory(revision),
    ]
    .map(|path| std::fs::read_to_string(path).unwrap_or_default())
    .concat();
    let after = format!("{}{}", spec.experiment_text, spec.inventory_text);
    let only = |of: &str, other: &str, sign: char| -> Vec<String> {
        let known: std::collections::BTreeSet<&str> = other.lines().collect();
        of.lines()
            .filter(|l| !known.contains(l))
            .map(|l| format!("{sign} {l}"))
            .collect()
    };
    let mut lines = only(&before, &after, '-');
    lines.extend(only(&after, &before, '+'));
    lines
}
