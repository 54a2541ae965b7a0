//! `assay run`: a new run of an experiment, from the first step to the report.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;

use super::args::{Experiment, Global, Run};
use super::error::{Code, Failure};
use super::reach::{Purpose, Reach, with_hosts};
use super::session::{Session, now};
use super::{examine, inputs};
use crate::artifacts::{FORMAT, HostRecord, Manifest, SpecTexts, create_run, sha256_of};
use crate::host::Claim;
use crate::plan::Plan;
use crate::runner;
use crate::spec::Spec;

pub(super) fn run(global: &Global, args: &Run) -> Result<Code, Failure> {
    let Run {
        experiment: args,
        ignore_preflight,
        claim,
    } = args;
    let (spec, packs) = inputs::load(&args.experiment, &args.changes)?;
    let plan = inputs::plan_of(&spec, &packs)?;
    let created = now();
    let folder = global.artifacts.join(&plan.experiment);
    let folder = folder.join(run_id(created));
    let owner = format!("run {}", folder.display());
    let reach = Reach::of(&spec.inventory)?;
    let purpose = Purpose::run(&owner, claim.patience);
    with_hosts(&reach, plan.hosts(), purpose, async |hosts| {
        // The hosts come first: a run that is refused leaves nothing behind. They are held before they are measured, so
        // that no other run is disturbed.
        let claim = Claim {
            owner: &owner,
            break_dead: claim.break_lease,
        };
        let leases = runner::hold(&plan, hosts, claim).await?;
        let addresses = inputs::addresses(&spec.inventory);
        let records = examine::records(&plan, &packs, hosts, &addresses).await?;
        inputs::judge(&spec, &plan, &packs, &|host| {
            let facts = records.get(host).map(|record| &record.facts);
            (
                facts.and_then(|facts| facts.cpus),
                facts.and_then(|facts| facts.memory_bytes),
            )
        })?;
        let findings = records
            .iter()
            .map(|(name, r)| (name.clone(), r.preflight.clone()));
        examine::admit(&findings.collect(), *ignore_preflight)?;
        let run = folder.file_name().unwrap_or_default().to_string_lossy();
        let manifest = manifest(args, &spec, &plan, (created, &run), records)?;
        let texts = SpecTexts {
            experiment: &spec.experiment_text,
            inventory: &spec.inventory_text,
        };
        let (layout, log) = create_run(&global.artifacts, &manifest, &texts, &plan)?;
        let session = Session {
            global,
            spec: &spec,
            plan: &plan,
            packs: &packs,
            hosts,
            leases,
            layout: &layout,
        };
        session.execute(log, &[]).await
    })
}

fn manifest(
    args: &Experiment,
    spec: &Spec,
    plan: &Plan,
    (created, run): (jiff::Timestamp, &str),
    hosts: BTreeMap<String, HostRecord>,
) -> Result<Manifest, Failure> {
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
        hosts,
        programs: programs()?,
        versions: BTreeMap::from([
            ("assay".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            (
                "sqlite".to_owned(),
                crate::database::sqlite_version().to_owned(),
            ),
        ]),
        secrets: inputs::secret_checks(spec, run),
        run: run.to_owned(),
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
