//! What of an experiment SQLite cannot do: unknown tunables, values it does not take, versions that are not there.

use indexmap::IndexMap;

use super::COMPONENT;
use super::file::{is_built_in, sqlite_version};
use super::tunables::{TUNABLES, tunable};
use crate::spec::{Config, Experiment, Name, Problem, Scalar, Variant};

/// Checks the tunables of the cluster and of all variants, and the variants' versions.
pub(in crate::database) fn check(experiment: &Experiment) -> Vec<Problem> {
    let mut problems = config("cluster.config", &experiment.cluster.config);
    for (name, variant) in &experiment.variants {
        problems.extend(config(&format!("variants.{name}.config"), &variant.config));
        problems.extend(version(name, variant));
    }
    problems.extend(exclusive(experiment));
    problems
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
    tunables: &'a IndexMap<Name, Scalar>,
) -> impl Iterator<Item = Problem> + 'a {
    let tunables = tunables.iter();
    tunables.filter_map(move |(name, value)| check_tunable(path, name.as_str(), &value.0))
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
        let mode = &config.get(COMPONENT)?.get(NAME)?.0;
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
