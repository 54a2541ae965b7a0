//! Databases: how a deployment is started, stopped, asked for its configuration, and reached by a driver.

pub mod pack;
mod sqlite;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use sqlite::{
    Pragma, Sqlite, SqliteError, SqliteFile, agent_start, agent_stop, sqlite_version,
};

use crate::host::{AgentError, Bounds, Host, Pending};
use crate::plan::{Deployment, Target};
use crate::spec::{Experiment, Inventory, Problem, System};

/// What a started database says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effective {
    /// Its version.
    pub version: String,
    /// Its tunables as read back, by component.
    pub config: BTreeMap<String, BTreeMap<String, String>>,
}

/// A deployment's database.
pub trait Database: Send + Sync {
    /// The host that its data lies on.
    fn host(&self) -> &str;

    /// Starts it, applies its tunables and reads them back.
    fn start<'a>(
        &'a self,
        host: &'a dyn Host,
        bounds: Bounds<'a>,
    ) -> Pending<'a, Result<Effective, AgentError>>;

    /// Stops it cleanly; no process of it is left and its files are complete. Stopping a stopped one is no error.
    fn stop<'a>(
        &'a self,
        host: &'a dyn Host,
        bounds: Bounds<'a>,
    ) -> Pending<'a, Result<(), AgentError>>;

    /// How a driver reaches it, secrets revealed.
    fn target(&self) -> Target;
}

/// The database of a deployment, with its data in `data` on its host; `reveal` replaces `${env:NAME}` by its value.
#[must_use]
pub fn of(
    deployment: &Deployment,
    data: &Path,
    reveal: &dyn Fn(&str) -> String,
) -> Box<dyn Database> {
    match deployment.system {
        System::Sqlite => Box::new(Sqlite::new(deployment, data, reveal)),
    }
}

/// Checks the tunables of all variants against what the system knows.
#[must_use]
pub fn check(experiment: &Experiment, _: &Inventory) -> Vec<Problem> {
    match experiment.cluster.system {
        System::Sqlite => sqlite::check(experiment),
    }
}
