//! SQLite: no process of its own, so that starting is applying its pragmas and stopping is emptying its log.

mod check;
mod file;
mod tunables;

use std::path::{Path, PathBuf};

use self::tunables::TUNABLES;
use super::{Database, Effective};
use crate::host::{AgentError, Bounds, Host, Pending, ask};
use crate::plan::{Deployment, Target};

pub(super) use check::check;
pub use file::{Pragma, SqliteError, SqliteFile, agent_start, agent_stop, sqlite_version};

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
        let pragmas = TUNABLES.iter().filter_map(|tunable| {
            let written = set(tunable.name)?;
            Some(Pragma {
                name: tunable.name.to_owned(),
                value: tunable.values.normal(&reveal(written)),
                placeholder: written.contains("${env:").then(|| written.clone()),
            })
        });
        let pragmas = pragmas.collect();
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
            pragmas: self.file.pragmas.iter().map(Pragma::pair).collect(),
        }
    }
}
