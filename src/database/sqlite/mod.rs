//! SQLite: no process of its own, so that starting is applying its pragmas and stopping is emptying its log.

mod check;
mod file;
mod tunables;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::tunables::TUNABLES;
use super::{Database, Done, Effective, Parts, Place, Work};
use crate::host::{Host, ask};
use crate::plan::Target;
use crate::snapshot::{MarkedDirectory, Marker};

pub(super) use check::check;
pub use file::{Pragma, SqliteError, SqliteFile, agent_start, agent_stop, sqlite_version};

/// The component whose tunables are pragmas, and the only role.
const COMPONENT: &str = "sqlite";

/// The SQLite database of a deployment.
pub struct Sqlite {
    host: Arc<dyn Host>,
    base: PathBuf,
    marker: Marker,
    file: SqliteFile,
}

impl Sqlite {
    /// The database of a deployment.
    ///
    /// # Panics
    /// When the deployment was not checked.
    #[must_use]
    pub fn new(parts: Parts<'_>) -> Self {
        let Parts {
            deployment, reveal, ..
        } = parts;
        let host = deployment
            .topology
            .get(COMPONENT)
            .and_then(|hosts| hosts.first())
            .expect("a checked deployment has its host");
        let base = parts.base(host);
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
            host: Arc::clone(&parts.hosts[host]),
            marker: parts.marker(),
            file: SqliteFile {
                path: database(&data(&base)),
                pragmas,
                version: deployment.version.clone(),
            },
            base,
        }
    }
}

/// The folder of data of a deployment in `base`.
fn data(base: &Path) -> PathBuf {
    base.join("data")
}

/// The database file in the folder `data`.
fn database(data: &Path) -> PathBuf {
    data.join("database.sqlite")
}

impl Database for Sqlite {
    fn places(&self) -> Vec<Place> {
        vec![Place {
            host: self.host.name().to_owned(),
            data: data(&self.base),
            snapshot: self.base.join("snapshot"),
        }]
    }

    fn deploy<'a>(&'a self, fresh: bool, work: Work<'a>) -> Done<'a, serde_json::Value> {
        Box::pin(async move {
            let place = MarkedDirectory {
                directory: data(&self.base),
                marker: self.marker.clone(),
            };
            if fresh {
                let () = ask(&*self.host, "deploy", &place, work.bounds).await?;
            }
            Ok(serde_json::Value::Null)
        })
    }

    fn start<'a>(&'a self, work: Work<'a>) -> Done<'a, Effective> {
        Box::pin(
            async move { Ok(ask(&*self.host, "sqlite-start", &self.file, work.bounds).await?) },
        )
    }

    fn stop<'a>(&'a self, work: Work<'a>) -> Done<'a, ()> {
        Box::pin(async move { Ok(ask(&*self.host, "sqlite-stop", &self.file, work.bounds).await?) })
    }

    fn target(&self) -> Target {
        Target::Sqlite {
            path: self.file.path.clone(),
            pragmas: self.file.pragmas.iter().map(Pragma::pair).collect(),
        }
    }
}
