//! `assay run`: a new run of an experiment, from the first step to the report.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;

use super::args::{Experiment, Global, Run};
use super::error::{Code, Failure};
use super::inputs;
use super::session::{Session, block_on, facts, now};
use crate::artifacts::{FORMAT, Manifest, SpecTexts, create_run, sha256_of};
use crate::host::{Claim, Facts};
use crate::plan::{Plan, estimate};
use crate::runner;
use crate::spec::Spec;
use crate::units::Bytes;

pub(super) fn run(global: &Global, run: &Run) -> Result<Code, Failure> {
    let args = &run.experiment;
    let spec = inputs::load(&args.experiment, &args.changes)?;
    let plan = inputs::plan_of(&spec);
    let hosts = inputs::hosts(&spec.inventory)?;
    block_on(async {
        let facts = facts(&hosts).await?;
        warn_of_space(&plan, &facts);
        let manifest = manifest(args, &spec, &plan, facts)?;
        let folder = global
            .artifacts
            .join(&manifest.experiment)
            .join(&manifest.run);
        // The hosts come first: a run that is refused leaves nothing behind.
        let claim = Claim {
            owner: &format!("run {}", folder.display()),
            break_dead: run.claim.break_lease,
        };
        let leases = runner::hold(&plan, &hosts, claim).await?;
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
            leases,
            layout: &layout,
        };
        session.execute(log, &[]).await
    })
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
    spec: &Spec,
    plan: &Plan,
    facts: BTreeMap<String, Facts>,
) -> Result<Manifest, Failure> {
    let created = now();
    let run = run_id(created);
    Ok(Manifest {
        format: FORMAT,
        assay: env!("CARGO_PKG_VERSION").to_owned(),
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
        programs: programs()?,
        versions: BTreeMap::from([
            ("assay".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            (
                "sqlite".to_owned(),
                crate::database::sqlite_version().to_owned(),
            ),
        ]),
        secrets: inputs::secret_checks(spec, &run),
        run,
    })
}

/// The sha256 of every program used, by name.
pub(super) fn programs() -> Result<BTreeMap<String, String>, Failure> {
    let assay = std::env::current_exe().map_err(|e| Failure::from_error(Code::Internal, &e))?;
    Ok(BTreeMap::from([("assay".to_owned(), sha256_of(&assay)?)]))
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
