//! From the command line to a checked spec, its plan and its hosts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::args::Changes;
use super::error::{Code, Failure};
use crate::database::Machine;
use crate::pack::Packs;
use crate::plan::{self, Plan};
use crate::spec::{Connection, Inventory, Request, Spec};
use crate::{database, spec};

/// Loads and checks an experiment with the packs that it can use; every problem is shown at once.
pub(super) fn load(experiment: &Path, changes: &Changes) -> Result<(Spec, Packs), Failure> {
    let packs = packs_beside(experiment);
    Ok((load_with(experiment, changes, &packs)?, packs))
}

/// The packs that an experiment can use.
pub(super) fn packs_beside(experiment: &Path) -> Packs {
    Packs::beside(experiment.parent().unwrap_or(Path::new("")))
}

/// Loads and checks an experiment that uses these packs.
pub(super) fn load_with(
    experiment: &Path,
    changes: &Changes,
    packs: &Packs,
) -> Result<Spec, Failure> {
    let working_directory = working_directory()?;
    let request = Request {
        path: experiment,
        inventory: changes.inventory.as_deref(),
        overrides: &changes.overrides,
        environment: &|name| std::env::var(name).ok(),
        working_directory: &working_directory,
    };
    let check = |experiment: &spec::Experiment, inventory: &Inventory| {
        database::check(experiment, inventory, packs)
    };
    let spec = spec::load(&request, &[&check]);
    let mut spec = spec.map_err(|problems| Failure::refused(&problems))?;
    let folder = working_directory.join(packs.beside_folder());
    let variants = spec.experiment.variants.values_mut();
    let packages = variants.filter_map(|variant| variant.packages.as_mut());
    for packages in packages.chain([&mut spec.experiment.cluster.packages]) {
        packages.be_below(&folder);
    }
    Ok(spec)
}

/// The plan of a spec.
pub(super) fn plan_of(spec: &Spec, packs: &Packs) -> Result<Plan, Failure> {
    Ok(plan::build(
        &spec.experiment,
        &spec.inventory,
        packs,
        &spec.hash,
    )?)
}

/// Tells what is doubtful about the tunables of a plan, and refuses what its systems would refuse; `machine` says what a host
/// has, as far as it is known.
pub(super) fn judge(
    spec: &Spec,
    plan: &Plan,
    packs: &Packs,
    machine: &dyn Fn(&str) -> Machine,
) -> Result<(), Failure> {
    let judged = database::tunables(&spec.experiment, plan, packs, machine);
    let (errors, doubts): (Vec<_>, Vec<_>) = judged.into_iter().partition(|j| j.is_error);
    for doubt in doubts {
        let problem = doubt.problem;
        let help = problem
            .help
            .map(|help| format!(" ({help})"))
            .unwrap_or_default();
        tracing::warn!("{}: {}{help}", problem.path, problem.message);
    }
    let Some(first) = errors.first() else {
        return Ok(());
    };
    let refused =
        |judged: &database::Judged| format!("{}: {}", judged.problem.path, judged.problem.message);
    let hint = first.problem.help.clone();
    let failure = Failure::new(Code::Usage, "the hosts cannot take a tunable")
        .because(errors.iter().map(refused).collect());
    Err(match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    })
}

/// Where the other hosts can connect to each host of an inventory, as `address:port`.
pub(super) fn addresses(inventory: &Inventory) -> BTreeMap<String, String> {
    let address = |host: &spec::Host| match host.connection {
        // Nothing is known to listen on this machine.
        Connection::Local => None,
        Connection::Ssh => Some(host.data_endpoint(host.port.unwrap_or(22))),
    };
    let hosts = inventory.hosts.iter();
    hosts
        .filter_map(|(name, host)| Some((name.to_string(), address(host)?)))
        .collect()
}

/// The folder in which assay was started.
pub(super) fn working_directory() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|e| {
        Failure::from_error(Code::Usage, &e)
            .hint("the working directory is gone; change to another")
    })
}

/// Four hex digits for each secret: enough to notice that a value changed, too few to find it out.
/// They are salted by the run, so that two runs cannot be compared.
pub(super) fn secret_checks(spec: &Spec, run: &str) -> BTreeMap<String, String> {
    let check = |name: &str| {
        let value = spec.secrets.reveal(&format!("${{env:{name}}}"));
        let digest = Sha256::digest(format!("{run}\n{name}\n{value}"));
        format!("{:02x}{:02x}", digest[0], digest[1])
    };
    spec.secrets
        .names()
        .map(|name| (name.to_owned(), check(name)))
        .collect()
}
