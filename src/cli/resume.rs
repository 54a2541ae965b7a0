//! `assay resume`: finishes what is missing of a run, on the same hosts, with the same program and spec, unless the user
//! accepts a change; then it is recorded.

use std::collections::BTreeMap;
use std::path::Path;

use super::args::{Changes, Global, Resume};
use super::difference::difference;
use super::error::{Code, Failure};
use super::examine::{self, Examined, Wants};
use super::reach::{Hosts, Purpose, Reach, with_hosts};
use super::run::programs;
use super::session::{Session, conclude, now};
use super::status::Counts;
use super::{inputs, output, runs};
use crate::artifacts::{End, Event, EventLog, Layout, Run, SpecTexts, read_events, write_revision};
use crate::host::Claim;
use crate::pack::Packs;
use crate::plan::Plan;
use crate::runner::{self, Outcome};
use crate::spec::Spec;

pub(super) fn resume(global: &Global, args: &Resume) -> Result<Code, Failure> {
    let folder = runs::find(global, args.run.as_deref())?;
    let layout = Layout::new(folder);
    if let Some(outcome) = finished(&Run::open(layout.folder())?).filter(|_| layout.sums().exists())
    {
        output::say("nothing is missing");
        return conclude(global, &layout, &outcome);
    }
    let mut log = EventLog::open(&layout.events())?;
    // What is read after the lock cannot change any more.
    let run = Run::open(layout.folder())?;
    if let Some(outcome) = finished(&run) {
        return conclude(global, &layout, &outcome);
    }
    let archived = archived(&run)?;
    let spec = spec_of(&run, &archived)?;
    check_secrets(&run, &spec)?;
    let packs = inputs::packs_beside(Path::new(&run.manifest.source));
    let plan = inputs::plan_of(&spec, &packs)?;
    let changes = difference_of(&archived, &spec);
    if spec.hash != run.plan.spec && !args.accept_changed_spec {
        return Err(changed_spec(&run, &changes));
    }
    let owner = format!("run {}", layout.folder().display());
    let reach = Reach::of(&spec.inventory)?;
    let purpose = Purpose::run(&owner, args.claim.patience);
    with_hosts(&reach, plan.hosts(), purpose, async |hosts| {
        let claim = Claim {
            owner: &owner,
            break_dead: args.claim.break_lease,
        };
        let leases = runner::hold(&plan, hosts, claim).await?;
        let examined = examined(hosts).await?;
        let moved = moved(&run, &examined)?;
        if !moved.is_empty() && !args.accept_changed_host {
            return Err(changed_host(&moved));
        }
        admit(&plan, &packs, &examined, args.ignore_preflight)?;
        if !moved.is_empty() {
            log.append(now(), Event::HostChanged { difference: moved })?;
        }
        if spec.hash != run.plan.spec {
            accept(&run, &spec, &plan, changes, &mut log)?;
        }
        let events = read_events(&layout.events())?;
        let session = Session {
            global,
            spec: &spec,
            plan: &plan,
            packs: &packs,
            hosts,
            leases,
            layout: &layout,
        };
        session.execute(log, &events).await
    })
}

/// The outcome of a run that has all its rounds.
fn finished(run: &Run) -> Option<Outcome> {
    let counts = Counts::of(run);
    let done = run.state.end == Some(End::Finished);
    done.then_some(Outcome::Finished {
        ok: counts.ok,
        failed: counts.failed,
        invalid: counts.invalid,
    })
}

/// The spec as the run has it.
fn archived(run: &Run) -> Result<Spec, Failure> {
    let revision = run.state.revision;
    let changes = Changes {
        inventory: Some(run.layout.inventory(revision)),
        overrides: Vec::new(),
    };
    let packs = inputs::packs_beside(Path::new(&run.manifest.source));
    inputs::load_with(&run.layout.experiment(revision), &changes, &packs)
}

/// The spec as its file stands now, or as it is archived when that file is gone. Hosts keep the directories
/// that the run began with, wherever it is taken up again: its data lies there.
fn spec_of(run: &Run, archived: &Spec) -> Result<Spec, Failure> {
    let source = Path::new(&run.manifest.source);
    if !source.exists() {
        tracing::warn!("`{}` is gone; the archived copy is used", source.display());
        return self::archived(run);
    }
    let inventory = run.manifest.inventory.clone().map(Into::into);
    let changes = Changes {
        inventory,
        overrides: run.manifest.overrides.clone(),
    };
    let mut spec = inputs::load(source, &changes)?.0;
    for (name, host) in &mut spec.inventory.hosts {
        if let Some(before) = archived.inventory.hosts.get(name) {
            host.directory.clone_from(&before.directory);
        }
    }
    Ok(spec)
}

fn check_secrets(run: &Run, spec: &Spec) -> Result<(), Failure> {
    let now = inputs::secret_checks(spec, &run.manifest.run);
    let other = run
        .manifest
        .secrets
        .iter()
        .find(|(name, check)| now.get(*name).is_some_and(|c| c != *check));
    match other {
        None => Ok(()),
        Some((name, _)) => {
            let message = format!(
                "`${{env:{name}}}` has another value than when the run began; nothing was changed"
            );
            Err(Failure::new(Code::Usage, message)
                .hint("set it to its former value, or start a new run"))
        }
    }
}

fn difference_of(archived: &Spec, spec: &Spec) -> Vec<String> {
    let mut found = difference(&archived.experiment, &spec.experiment);
    found.extend(difference(&archived.inventory, &spec.inventory));
    found
}

fn changed_spec(run: &Run, changes: &[String]) -> Failure {
    let lines = changes.join("\n  ");
    let source = &run.manifest.source;
    let message = format!(
        "the experiment has changed since this run began; nothing was changed\n  {source}\n  {lines}"
    );
    Failure::new(Code::Usage, message).hint(
        "undo the change, start a new run, or go on with `assay resume --accept-changed-spec`",
    )
}

/// The hosts as they are. What an interrupted step of this run left behind is its own to remove.
async fn examined(hosts: &Hosts) -> Result<BTreeMap<String, Examined>, Failure> {
    let mut examined = examine::all(examine::examine(hosts).await)?;
    for host in examined.values_mut() {
        host.leftovers.folders.clear();
    }
    Ok(examined)
}

/// Pre-flight of a run that goes on: the room that it needs it may have taken already.
fn admit(
    plan: &Plan,
    packs: &Packs,
    examined: &BTreeMap<String, Examined>,
    ignore: bool,
) -> Result<(), Failure> {
    let wants = Wants::of_plan(plan, packs)?;
    let findings = wants.findings(examined, |wanted| wanted.planned.bytes = None);
    examine::admit(&findings, ignore)
}

/// What is not as it was when the run began, of all that bears on speed: hosts and programs.
fn moved(run: &Run, examined: &BTreeMap<String, Examined>) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    for (name, now) in examined {
        if let Some(before) = run.manifest.hosts.get(name) {
            let lines = difference(&before.facts.lasting(), &now.facts.lasting());
            found.extend(lines.into_iter().map(|line| format!("{name}: {line}")));
        }
    }
    found.extend(
        difference(&run.manifest.programs, &programs()?)
            .into_iter()
            .map(|line| format!("program {line}")),
    );
    Ok(found)
}

fn changed_host(moved: &[String]) -> Failure {
    let message = format!(
        "this is not where, or not what, the run began with; nothing was changed\n  {}",
        moved.join("\n  ")
    );
    Failure::new(Code::Usage, message).hint(
        "resume it there and with that assay, start a new run, or go on with `assay resume --accept-changed-host`",
    )
}

fn accept(
    run: &Run,
    spec: &Spec,
    plan: &Plan,
    difference: Vec<String>,
    log: &mut EventLog,
) -> Result<(), Failure> {
    let texts = SpecTexts {
        experiment: &spec.experiment_text,
        inventory: &spec.inventory_text,
    };
    // A resume that was killed before it announced its revision may have left files of it.
    let revision = run.layout.next_revision(run.state.revision);
    write_revision(&run.layout, revision, &texts, plan)?;
    let (from, to) = (run.plan.spec.clone(), spec.hash.clone());
    let outdated = outdated(run, plan);
    log.append(
        now(),
        Event::SpecChanged {
            from,
            to,
            revision,
            difference,
            outdated,
        },
    )?;
    Ok(())
}

/// The rounds that are done on a deployment that the new plan sets up otherwise. Their results stay, as earlier attempts;
/// the numbers of the new set-up must not be mixed with them.
fn outdated(run: &Run, plan: &Plan) -> Vec<String> {
    let fingerprint = |of: &Plan, id: &str| {
        of.deployments
            .iter()
            .find(|d| d.id == id)
            .map(|d| d.fingerprint.clone())
    };
    let is_other = |id: &str| fingerprint(&run.plan, id) != fingerprint(plan, id);
    let rounds = run
        .plan
        .rounds
        .iter()
        .filter(|r| run.state.is_done(&r.id) && is_other(&r.deployment));
    rounds.map(|r| r.id.clone()).collect()
}
