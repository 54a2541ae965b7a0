//! From the spec to the plan.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use super::instance::instances;
use super::order::{Slot, arrange};
use super::{Action, Balancer, Cell, Deployment, Instance, Login, Measure, Plan, Round, Step};
use crate::pack::settings::flatten;
use crate::pack::{self, PackError, Packs, Programs};
use crate::spec::{
    Config, Dataset, Deploy, Engine, Experiment, Inventory, Name, Placement, Restore, Variant,
    Workload,
};
use crate::units::Duration;

/// The format of a plan.
const FORMAT: u32 = 1;

/// Builds the plan of a checked experiment. `hash` is that of the resolved spec; the seed follows from it
/// when the experiment names none, so that the same experiment always has the same plan.
///
/// # Errors
/// A system that the experiment names has no sound pack.
pub fn build(
    experiment: &Experiment,
    inventory: &Inventory,
    packs: &Packs,
    hash: &str,
) -> Result<Plan, PackError> {
    let seed = experiment
        .seed
        .unwrap_or_else(|| number_of(&["seed", hash]));
    let deployments: Vec<Deployment> = experiment
        .variants
        .iter()
        .map(|(name, variant)| deployment(experiment, inventory, packs, (name, variant), seed))
        .collect::<Result<_, _>>()?;
    let mut deployments = deployments;
    load_once(&mut deployments);
    let rounds = rounds(experiment, &deployments, seed);
    Ok(Plan {
        format: FORMAT,
        experiment: experiment.name.to_string(),
        spec: hash.to_owned(),
        seed,
        order: experiment.rounds.order,
        restore: experiment.snapshot.restore,
        snapshot: experiment.snapshot.method,
        on_failure: experiment.rounds.on_failure,
        baseline: experiment
            .compare
            .baseline
            .as_ref()
            .map_or_else(|| deployments[0].id.clone(), ToString::to_string),
        metrics: experiment.compare.metrics.clone(),
        deployments,
        rounds,
    })
}

/// The system of a balancer that names none.
pub const BALANCER: &str = "haproxy";
/// The most that the connections of two servers may differ unless the experiment says otherwise.
const UNEVEN: f64 = 0.2;

fn deployment(
    experiment: &Experiment,
    inventory: &Inventory,
    packs: &Packs,
    (name, variant): (&Name, &Variant),
    seed: u64,
) -> Result<Deployment, PackError> {
    let cluster = &experiment.cluster;
    let system = experiment.system_of(variant);
    let pack = packs.get(system.as_str())?;
    let plain = |placements: &[Placement]| -> Vec<Name> {
        placements.iter().map(|p| p.name().clone()).collect()
    };
    let topology: BTreeMap<String, Vec<String>> = experiment
        .topology_of(variant)
        .iter()
        .map(|(role, placed)| (role.to_string(), hosts(inventory, &plain(placed))))
        .collect();
    let balancer = experiment.load_balancer.as_ref();
    let balancing = balancer.filter(|b| b.host.is_some()).map(|b| {
        let system = b.system.as_ref().map_or(BALANCER, Name::as_str);
        packs.get(system).map(|pack| (b, pack))
    });
    let balancing = balancing.transpose()?;
    let deployed = match experiment.deploy.engine {
        // What is built into assay runs in the driver's own process.
        _ if pack.form.programs == Programs::Builtin => Vec::new(),
        Engine::Assay | Engine::Tiup => instances(
            experiment,
            inventory,
            (name, variant),
            &pack,
            balancing.as_ref().map(|(b, pack)| (*b, &**pack)),
        ),
        Engine::External => Vec::new(),
    };
    let clients = if experiment.clients.is_empty() {
        topology
            .values()
            .flatten()
            .cloned()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    } else {
        hosts(inventory, &experiment.clients)
    };
    let mut made = Deployment {
        id: name.to_string(),
        system: system.to_string(),
        version: variant.version.clone().or_else(|| cluster.version.clone()),
        topology,
        clients,
        config: merged(&cluster.config, &variant.config),
        variables: cluster
            .variables
            .iter()
            .chain(&variant.variables)
            .map(|(name, value)| (name.to_string(), value.0.clone()))
            .collect(),
        users: cluster.users.clone(),
        database: cluster.database.as_ref().map(ToString::to_string),
        packages: variant
            .packages
            .clone()
            .unwrap_or_else(|| cluster.packages.clone()),
        run_as: cluster
            .user
            .as_ref()
            .or(pack.form.user.as_ref())
            .map(ToString::to_string),
        tls: cluster.tls,
        deploy: Deploy {
            addresses: experiment.addresses_of(variant).to_vec(),
            ..experiment.deploy.clone()
        },
        logins: match experiment.deploy.engine {
            Engine::Tiup => logins(inventory, &deployed),
            Engine::Assay | Engine::External => BTreeMap::new(),
        },
        instances: deployed,
        balancer: balancer.map(|b| Balancer {
            system: balancing.as_ref().map(|(_, pack)| pack.name.clone()),
            address: b.address.clone(),
            uneven: b.uneven.unwrap_or(UNEVEN),
        }),
        fingerprint: String::new(),
        prepare: prepare(experiment),
    };
    let shape = serde_json::to_string(&(
        (&made.system, &made.version, &made.topology, &made.config),
        (&made.instances, &made.variables, &made.users, made.tls),
        &experiment.dataset,
        experiment.snapshot.method,
        seed,
    ));
    let shape = shape.expect("a deployment is plain data");
    let there = made.deploy.addresses.iter().map(String::as_str);
    let parts: Vec<&str> = std::iter::once(&*shape).chain(there).collect();
    made.fingerprint = digest(&parts);
    Ok(made)
}

/// The hosts that names stand for: a group is its hosts.
pub(super) fn hosts(inventory: &Inventory, names: &[Name]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in names {
        let members = inventory
            .groups
            .get(name.as_str())
            .map_or(std::slice::from_ref(name), Vec::as_slice);
        for member in members {
            if !found.iter().any(|f| f == member.as_str()) {
                found.push(member.to_string());
            }
        }
    }
    found
}

fn merged(cluster: &Config, variant: &Config) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut all: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (component, tunables) in cluster.iter().chain(variant) {
        let known = all.entry(component.to_string()).or_default();
        for (name, value) in tunables {
            let layer = serde_json::json!({ name.as_str(): value.0 });
            let flat = flatten(&layer).unwrap_or_default();
            known.extend(
                flat.into_iter()
                    .map(|(key, value)| (key, pack::text(&value))),
            );
        }
    }
    all
}

/// How TiUP reaches the hosts of instances.
fn logins(inventory: &Inventory, instances: &[Instance]) -> BTreeMap<String, Login> {
    let login = |instance: &Instance| {
        let host = inventory.hosts.get(instance.host.as_str())?;
        let address = host.address.clone();
        let login = Login {
            address: address.unwrap_or_else(|| instance.address.clone()),
            port: host.port,
            user: host.user.clone(),
            identity_file: host.identity_file.clone(),
        };
        Some((instance.host.clone(), login))
    };
    instances.iter().filter_map(login).collect()
}

/// Variants of one cluster that is there already share its data: it is loaded for the first of them.
fn load_once(deployments: &mut [Deployment]) {
    let mut loaded: BTreeSet<Vec<String>> = BTreeSet::new();
    for deployment in deployments {
        let is_external = deployment.deploy.engine == Engine::External;
        if is_external && !loaded.insert(deployment.deploy.places()) {
            let is_load = |step: &Step| matches!(step.action, Action::Load(_));
            deployment.prepare.retain(|step| !is_load(step));
        }
    }
}

fn prepare(experiment: &Experiment) -> Vec<Step> {
    let limits = &experiment.rounds.limits;
    let datasets: &[Dataset] = &experiment.dataset.0;
    let loads = datasets
        .iter()
        .map(|d| step(Action::Load(d.clone()), limits.load));
    let start = step(Action::Start, limits.start);
    match experiment.deploy.engine {
        Engine::External => [start].into_iter().chain(loads).collect(),
        Engine::Assay | Engine::Tiup => [step(Action::Deploy, limits.start), start]
            .into_iter()
            .chain(loads)
            .chain([
                step(Action::Stop, limits.start),
                step(Action::Snapshot, limits.snapshot),
            ])
            .collect(),
    }
}

fn step(action: Action, limit: Duration) -> Step {
    Step { action, limit }
}

fn rounds(experiment: &Experiment, deployments: &[Deployment], seed: u64) -> Vec<Round> {
    let cells = cells(experiment);
    let together = experiment.snapshot.restore == Restore::EachWorkload;
    let slots = arrange(
        experiment.rounds.order,
        &cells
            .iter()
            .map(|(workload, _)| *workload)
            .collect::<Vec<_>>(),
        deployments.len(),
        experiment.rounds.repetitions,
        together,
        number_of(&["order", &seed.to_string()]),
    );
    let mut data: BTreeMap<&str, Data> = BTreeMap::new();
    slots
        .iter()
        .map(|slot| {
            let (workload, cell) = &cells[slot.cell];
            let deployment = &deployments[slot.variant];
            let workload = &experiment.workloads[*workload];
            let known = data.entry(deployment.id.as_str()).or_default();
            let restore = known.next(experiment.snapshot.restore, workload);
            round(experiment, slot, cell, deployment, workload, restore, seed)
        })
        .collect()
}

/// What the earlier rounds did to a deployment's data.
#[derive(Default)]
struct Data {
    written: bool,
    workload: Option<String>,
}

impl Data {
    /// Whether the next round begins with a restore.
    fn next(&mut self, policy: Restore, workload: &Workload) -> bool {
        let restore = match policy {
            Restore::EachRound => true,
            Restore::AfterWrites => self.written,
            Restore::EachWorkload => self.workload.as_deref() != Some(workload.label()),
            Restore::Never => false,
        };
        self.written = workload.kind().writes() || (self.written && !restore);
        self.workload = Some(workload.label().to_owned());
        restore
    }
}

/// Every workload at every point of the sweep, with the workload's index.
fn cells(experiment: &Experiment) -> Vec<(usize, Cell)> {
    let rates: Vec<Option<f64>> = match &experiment.sweep.rate {
        None => vec![None],
        Some(rates) => rates.iter().map(|r| Some(r.0)).collect(),
    };
    let mut cells = Vec::new();
    for (index, workload) in experiment.workloads.iter().enumerate() {
        for threads in &experiment.sweep.threads {
            for rate in &rates {
                let at = rate.map(|r| format!(".r{r}")).unwrap_or_default();
                let cell = Cell {
                    id: format!("{}.t{threads}{at}", workload.label()),
                    workload: workload.label().to_owned(),
                    threads: *threads,
                    rate: *rate,
                };
                cells.push((index, cell));
            }
        }
    }
    cells
}

fn round(
    experiment: &Experiment,
    slot: &Slot,
    cell: &Cell,
    deployment: &Deployment,
    workload: &Workload,
    restore: bool,
    seed: u64,
) -> Round {
    let rounds = &experiment.rounds;
    let dataset = experiment
        .dataset
        .0
        .iter()
        .find(|d| d.schema() == workload.kind().schema());
    let measure = Measure {
        workload: workload.clone(),
        dataset: dataset.expect("a checked workload has its dataset").clone(),
        threads: cell.threads,
        rate: cell.rate,
        warmup: rounds.warmup,
        duration: rounds.duration,
        seed: number_of(&[
            "keys",
            &seed.to_string(),
            &cell.id,
            &slot.repetition.to_string(),
        ]),
    };
    let limits = &rounds.limits;
    let longest = Duration(rounds.warmup.0 + rounds.duration.0 + limits.grace.0);
    let is_external = deployment.deploy.engine == Engine::External;
    let has_settle = is_external || !deployment.instances.is_empty();
    let deployment = deployment.id.as_str();
    let mut steps = Vec::new();
    if restore {
        steps.push(step(Action::Restore, limits.snapshot));
    }
    steps.push(step(Action::Start, limits.start));
    if has_settle {
        let settle = rounds.settle.clone();
        let limit = Duration(settle.timeout.0 + limits.grace.0);
        steps.push(step(Action::Settle(settle), limit));
    }
    steps.push(step(Action::Measure(measure), longest));
    if !is_external {
        steps.push(step(Action::Stop, limits.start));
    }
    steps.push(step(Action::Collect, limits.snapshot));
    Round {
        id: format!("{}.{deployment}.{}", cell.id, slot.repetition),
        deployment: deployment.to_owned(),
        cell: cell.clone(),
        repetition: slot.repetition,
        block: slot.block,
        steps,
    }
}

fn digest(parts: &[&str]) -> String {
    hash(parts).iter().map(|b| format!("{b:02x}")).collect()
}

/// A number of 53 bits, which any JSON reader keeps whole, that follows from `parts`.
fn number_of(parts: &[&str]) -> u64 {
    let bytes: [u8; 8] = hash(parts)[..8].try_into().expect("a digest has 32 bytes");
    u64::from_be_bytes(bytes) >> 11
}

fn hash(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
