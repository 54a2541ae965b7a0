//! What of an experiment SQLite cannot do: unknown tunables, values it does not take, versions that are not there.

use indexmap::{IndexMap, IndexSet};

use super::COMPONENT;
use super::file::{is_built_in, sqlite_version};
use super::tunables::{TUNABLES, tunable};
use crate::pack;
use crate::spec::{
    Config, Deploy, Driver, Experiment, Inventory, Name, Packages, Placement, Problem,
    ResourceControl, Setting, Settle,
};

/// Checks the topology, the drivers, the tunables of the cluster and of all variants, and their versions.
pub(in crate::database) fn check(experiment: &Experiment, inventory: &Inventory) -> Vec<Problem> {
    let cluster = &experiment.cluster;
    let mut problems = config("cluster.config", &cluster.config);
    problems.extend(version("cluster", cluster.version.as_deref()));
    problems.extend(topology(
        "cluster.topology",
        &cluster.topology,
        experiment,
        inventory,
    ));
    for (name, variant) in &experiment.variants {
        let path = format!("variants.{name}");
        problems.extend(config(&format!("{path}.config"), &variant.config));
        problems.extend(version(&path, variant.version.as_deref()));
        problems.extend(topology(
            &format!("{path}.topology"),
            &variant.topology,
            experiment,
            inventory,
        ));
    }
    problems.extend(without_server(experiment));
    problems.extend(drivers(experiment));
    problems.extend(exclusive(experiment));
    problems
}

fn problem(path: String, message: String, help: Option<&str>, key: bool) -> Problem {
    Problem {
        path,
        message,
        help: help.map(str::to_owned),
        key,
    }
}

/// The only role on one host, which is the only client as well.
fn topology(
    path: &str,
    topology: &IndexMap<Name, Vec<Placement>>,
    experiment: &Experiment,
    inventory: &Inventory,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (role, placements) in topology {
        let path = format!("{path}.{role}");
        if role.as_str() != COMPONENT {
            let message = format!("SQLite has no role `{role}`");
            problems.push(problem(
                path,
                message,
                Some("its only role is `sqlite`"),
                true,
            ));
            continue;
        }
        for (i, placement) in placements.iter().enumerate() {
            for key in placement.settings().into_iter().flat_map(IndexMap::keys) {
                problems.push(no_server(format!("{path}[{i}].{key}")));
            }
        }
        let Some(hosts) = hosts(placements.iter().map(Placement::name), inventory) else {
            continue;
        };
        if hosts.len() != 1 {
            let message = format!("SQLite runs on exactly one host, found {}", hosts.len());
            problems.push(problem(path, message, None, false));
            continue;
        }
        let clients = self::hosts(experiment.clients.iter(), inventory);
        if clients.is_some_and(|clients| !clients.is_empty() && clients != hosts) {
            let host = &hosts[0];
            let message =
                format!("SQLite is used on its own host: the only client can be `{host}`");
            let help = Some("leave `clients` away");
            problems.push(problem("clients".to_owned(), message, help, false));
        }
    }
    problems
}

fn no_server(path: String) -> Problem {
    let message = "SQLite has no server that could use it".to_owned();
    problem(path, message, None, true)
}

/// Keys that have an effect on servers only.
fn without_server(experiment: &Experiment) -> impl Iterator<Item = Problem> {
    let cluster = &experiment.cluster;
    let mut named = vec![
        (
            "load_balancer".to_owned(),
            experiment.load_balancer.is_some(),
        ),
        ("deploy".to_owned(), experiment.deploy != Deploy::default()),
        (
            "rounds.settle".to_owned(),
            experiment.rounds.settle != Settle::default(),
        ),
    ];
    let of_cluster = [
        ("variables", !cluster.variables.is_empty()),
        ("users", !cluster.users.is_empty()),
        ("database", cluster.database.is_some()),
        ("packages", cluster.packages != Packages::default()),
        ("user", cluster.user.is_some()),
        ("deploy_dir", cluster.deploy_dir.is_some()),
        ("data_dir", cluster.data_dir.is_some()),
        ("log_dir", cluster.log_dir.is_some()),
        (
            "resource_control",
            cluster.resource_control != ResourceControl::default(),
        ),
        ("tls", cluster.tls),
    ];
    named.extend(of_cluster.map(|(key, set)| (format!("cluster.{key}"), set)));
    for (name, variant) in &experiment.variants {
        let path = |key: &str| format!("variants.{name}.{key}");
        named.push((path("variables"), !variant.variables.is_empty()));
        named.push((path("packages"), variant.packages.is_some()));
    }
    let set = named.into_iter().filter(|(_, set)| *set);
    set.map(|(path, _)| no_server(path))
}

/// The driver that has SQLite in it, and what it does with tables.
fn drivers(experiment: &Experiment) -> Vec<Problem> {
    let mut problems = Vec::new();
    let datasets = experiment.dataset.0.iter().enumerate();
    for (i, _) in datasets.clone().filter(|(_, d)| !d.then.is_empty()) {
        let message = "assay gathers no statistics of SQLite".to_owned();
        problems.push(problem(format!("dataset[{i}].then"), message, None, true));
    }
    let datasets = datasets.map(|(i, d)| (format!("dataset[{i}].driver"), d.driver));
    let workloads = experiment.workloads.iter().enumerate();
    let workloads = workloads.map(|(i, w)| (format!("workloads[{i}].driver"), w.driver));
    let all = datasets.chain(workloads);
    for (path, _) in all.filter(|(_, driver)| *driver != Driver::Native) {
        let message = "SQLite is driven by the native driver only".to_owned();
        problems.push(problem(path, message, Some("write `native`"), false));
    }
    problems
}

/// The hosts that names stand for, each once; nothing when one is unknown, which the inventory's rules tell.
fn hosts<'a>(
    names: impl Iterator<Item = &'a Name>,
    inventory: &Inventory,
) -> Option<IndexSet<Name>> {
    let members = |name: &Name| match inventory.groups.get(name) {
        Some(members) if !inventory.hosts.contains_key(name) => members.clone(),
        _ => vec![name.clone()],
    };
    let hosts: IndexSet<Name> = names.flat_map(members).collect();
    let known = |host: &Name| inventory.hosts.contains_key(host);
    hosts.iter().all(known).then_some(hosts)
}

fn config(prefix: &str, config: &Config) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (component, tunables) in config {
        let path = format!("{prefix}.{component}");
        if component.as_str() == COMPONENT {
            problems.extend(of_component(&path, tunables));
        } else {
            problems.push(Problem {
                path,
                message: format!("unknown component `{component}`"),
                help: Some(format!("the only component of sqlite is `{COMPONENT}`")),
                key: true,
            });
        }
    }
    problems
}

fn of_component<'a>(
    path: &'a str,
    tunables: &'a IndexMap<Name, Setting>,
) -> impl Iterator<Item = Problem> + 'a {
    let tunables = tunables.iter();
    tunables
        .filter_map(move |(name, value)| check_tunable(path, name.as_str(), &pack::text(&value.0)))
}

fn check_tunable(prefix: &str, name: &str, value: &str) -> Option<Problem> {
    let path = format!("{prefix}.{name}");
    let Some(known) = tunable(name) else {
        return Some(Problem {
            path,
            message: format!("unknown tunable `{name}` of sqlite"),
            help: Some(closest(name)),
            key: true,
        });
    };
    // A secret's value is not known here; the database itself will refuse a wrong one.
    if value.contains("${env:") || known.values.allow(value) {
        return None;
    }
    let message = format!("expected {}, found `{value}`", known.values.expected());
    Some(Problem {
        path,
        message,
        help: None,
        key: false,
    })
}

fn closest(name: &str) -> String {
    let close = TUNABLES
        .iter()
        .map(|t| (strsim::jaro_winkler(t.name, name), t.name))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match close {
        Some((score, close)) if score > 0.8 => format!("did you mean `{close}`?"),
        _ => {
            let known: Vec<&str> = TUNABLES.iter().map(|t| t.name).collect();
            format!("known: {}", known.join(", "))
        }
    }
}

fn version(owner: &str, wanted: Option<&str>) -> Option<Problem> {
    let wanted = wanted.filter(|v| !is_built_in(v))?;
    let found = sqlite_version();
    Some(Problem {
        path: format!("{owner}.version"),
        message: format!("there is no SQLite `{wanted}` here: {found} is built in"),
        help: Some(format!("leave `version` away, or write `{found}`")),
        key: false,
    })
}

/// A database in exclusive mode is closed to all connections but the first, and each thread has its own.
fn exclusive(experiment: &Experiment) -> Vec<Problem> {
    const NAME: &str = "locking_mode";
    let Some(threads) = experiment.sweep.threads.iter().find(|n| **n > 1) else {
        return Vec::new();
    };
    let mode = |config: &Config| -> Option<bool> {
        let mode = pack::text(&config.get(COMPONENT)?.get(NAME)?.0);
        Some(mode.eq_ignore_ascii_case("exclusive"))
    };
    let mut owners: Vec<String> = Vec::new();
    for (name, variant) in &experiment.variants {
        let owner = match (mode(&variant.config), mode(&experiment.cluster.config)) {
            (Some(true), _) => format!("variants.{name}"),
            (None, Some(true)) => "cluster".to_owned(),
            (Some(false) | None, _) => continue,
        };
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    let problem = |owner: String| Problem {
        path: format!("{owner}.config.{COMPONENT}.{NAME}"),
        message: format!(
            "an exclusive database has one connection, and each of the {threads} threads of `sweep.threads` needs its own"
        ),
        help: Some("write `normal`, or `sweep: {threads: [1]}`".to_owned()),
        key: false,
    };
    owners.into_iter().map(problem).collect()
}
