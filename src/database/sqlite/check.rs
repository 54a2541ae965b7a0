//! What of an experiment SQLite cannot do: unknown tunables, values it does not take, versions that are not there.

use indexmap::IndexMap;

use super::COMPONENT;
use super::file::{is_built_in, sqlite_version};
use super::tunables::{TUNABLES, tunable};
use crate::pack;
use crate::spec::{
    Config, Driver, Experiment, Inventory, Name, Placement, Problem, Setting, Variant,
};

/// Checks the topology, the tunables of the cluster and of all variants, and the variants' versions.
pub(in crate::database) fn check(experiment: &Experiment, inventory: &Inventory) -> Vec<Problem> {
    let mut problems = config("cluster.config", &experiment.cluster.config);
    problems.extend(topology(experiment, inventory));
    for (name, variant) in &experiment.variants {
        problems.extend(config(&format!("variants.{name}.config"), &variant.config));
        problems.extend(version(name, variant));
    }
    problems.extend(exclusive(experiment));
    problems
}

/// The only role on one host, which is the only client as well.
fn topology(experiment: &Experiment, inventory: &Inventory) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut report = |path: String, message: String, help: Option<&str>, key: bool| {
        problems.push(Problem {
            path,
            message,
            help: help.map(str::to_owned),
            key,
        });
    };
    for (role, placements) in &experiment.cluster.topology {
        let path = format!("cluster.topology.{role}");
        if role.as_str() != COMPONENT {
            let message = format!("SQLite has no role `{role}`");
            report(path, message, Some("its only role is `sqlite`"), true);
            continue;
        }
        let hosts = hosts(placements.iter().map(Placement::name), inventory);
        if hosts.len() != 1 {
            let message = format!("SQLite runs on exactly one host, found {}", hosts.len());
            report(path, message, None, false);
            continue;
        }
        let clients = self::hosts(experiment.clients.iter(), inventory);
        if !clients.is_empty() && clients != hosts {
            let host = &hosts[0];
            let message =
                format!("SQLite is used on its own host: the only client can be `{host}`");
            report(
                "clients".to_owned(),
                message,
                Some("leave `clients` away"),
                false,
            );
        }
    }
    let named = [
        ("load_balancer", experiment.load_balancer.is_some()),
        (
            "cluster.variables",
            !experiment.cluster.variables.is_empty(),
        ),
        ("cluster.users", !experiment.cluster.users.is_empty()),
    ];
    for (path, _) in named.into_iter().filter(|(_, set)| *set) {
        let message = "SQLite has no server that could use it".to_owned();
        report(path.to_owned(), message, None, true);
    }
    let datasets = experiment.dataset.0.iter().enumerate();
    let datasets = datasets.map(|(i, d)| (format!("dataset[{i}].driver"), d.driver));
    let workloads = experiment.workloads.iter().enumerate();
    let workloads = workloads.map(|(i, w)| (format!("workloads[{i}].driver"), w.driver));
    for (path, _) in datasets
        .chain(workloads)
        .filter(|(_, d)| *d != Driver::Native)
    {
        let message = "SQLite is driven by the native driver only".to_owned();
        report(path, message, Some("write `native`"), false);
    }
    problems
}

/// The hosts that names stand for.
fn hosts<'a>(names: impl Iterator<Item = &'a Name>, inventory: &Inventory) -> Vec<Name> {
    let members = |name: &Name| match inventory.groups.get(name) {
        Some(members) if !inventory.hosts.contains_key(name) => members.clone(),
        _ => vec![name.clone()],
    };
    names.flat_map(members).collect()
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

fn version(name: &Name, variant: &Variant) -> Option<Problem> {
    let wanted = variant.version.as_deref().filter(|v| !is_built_in(v))?;
    let found = sqlite_version();
    Some(Problem {
        path: format!("variants.{name}.version"),
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
