//! SQLite: no process of its own, so that starting is applying its pragmas and stopping is emptying its log.

mod file;
mod tunables;

use std::path::{Path, PathBuf};

use indexmap::IndexMap;

use self::tunables::{TUNABLES, tunable};
use super::{Database, Effective};
use crate::host::{AgentError, Bounds, Host, Pending, ask};
use crate::plan::{Deployment, Target};
use crate::spec::{Experiment, Name, Problem, Scalar};

pub use file::{SqliteError, SqliteFile, agent_start, agent_stop, sqlite_version};

/// The component whose tunables are pragmas, and the only role.
const COMPONENT: &str = "sqlite";

/// The SQLite database of a deployment.
pub struct Sqlite {
    host: String,
    file: SqliteFile,
}

impl Sqlite {
    /// The database of `deployment` in the folder `data`.
    #[must_use]
    pub fn new(deployment: &Deployment, data: &Path, reveal: &dyn Fn(&str) -> String) -> Self {
        let host = deployment
            .topology
            .get(COMPONENT)
            .and_then(|hosts| hosts.first());
        let config = deployment.config.get(COMPONENT);
        let set = |name: &str| config.and_then(|c| c.get(name));
        let pragmas = TUNABLES
            .iter()
            .filter_map(|t| {
                set(t.name).map(|value| (t.name.to_owned(), t.values.normal(&reveal(value))))
            })
            .collect();
        Self {
            host: host.expect("a checked deployment has its host").clone(),
            file: SqliteFile {
                path: database(data),
                pragmas,
                version: deployment.version.clone(),
            },
        }
    }
}

/// The database file in the folder `data`.
fn database(data: &Path) -> PathBuf {
    data.join("database.sqlite")
}

impl Database for Sqlite {
    fn host(&self) -> &str {
        &self.host
    }

    fn start<'a>(
        &'a self,
        host: &'a dyn Host,
        bounds: Bounds<'a>,
    ) -> Pending<'a, Result<Effective, AgentError>> {
        Box::pin(ask(host, "sqlite-start", &self.file, bounds))
    }

    fn stop<'a>(
        &'a self,
        host: &'a dyn Host,
        bounds: Bounds<'a>,
    ) -> Pending<'a, Result<(), AgentError>> {
        Box::pin(ask(host, "sqlite-stop", &self.file, bounds))
    }

    fn target(&self) -> Target {
        Target::Sqlite {
            path: self.file.path.clone(),
            pragmas: self.file.pragmas.clone(),
        }
    }
}

/// Checks the tunables of the cluster and of all variants.
pub(super) fn check(experiment: &Experiment) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut at = |prefix: &str, config: &IndexMap<Name, IndexMap<Name, Scalar>>| {
        for (component, tunables) in config {
            let path = format!("{prefix}.{component}");
            if component.as_str() == COMPONENT {
                problems.extend(
                    tunables
                        .iter()
                        .filter_map(|(n, v)| check_tunable(&path, n.as_str(), &v.0)),
                );
            } else {
                let help = format!("the only component of sqlite is `{COMPONENT}`");
                problems.push(Problem {
                    path,
                    message: format!("unknown component `{component}`"),
                    help: Some(help),
                    key: true,
                });
            }
        }
    };
    at("cluster.config", &experiment.cluster.config);
    for (name, variant) in &experiment.variants {
        at(&format!("variants.{name}.config"), &variant.config);
    }
    problems
}

fn check_tunable(prefix: &str, name: &str, value: &str) -> Option<Problem> {
    let path = format!("{prefix}.{name}");
    let Some(known) = tunable(name) else {
        let close = TUNABLES
            .iter()
            .map(|t| (strsim::jaro_winkler(t.name, name), t.name))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let help = match close {
            Some((score, close)) if score > 0.8 => format!("did you mean `{close}`?"),
            _ => format!(
                "known: {}",
                TUNABLES
                    .iter()
                    .map(|t| t.name)
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        };
        return Some(Problem {
            path,
            message: format!("unknown tunable `{name}` of sqlite"),
            help: Some(help),
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
