//! Databases: how a deployment is made, started, asked for its configuration, stopped, and reached by a driver.
//! Its processes may lie on many hosts; whoever calls these holds all of them.

mod check;
mod cluster;
mod error;
mod external;
mod needs;
mod sqlite;
mod tiup;
mod tunables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use check::check;
pub use cluster::{Cluster, Connections, InstanceStatus, Rendered, Spread};
pub use error::DatabaseError;
pub use needs::{planned, purposes};
pub use sqlite::{
    Pragma, Sqlite, SqliteError, SqliteFile, agent_start, agent_stop, sqlite_version,
};
pub use tunables::{Judged, Machine, tunables};

use crate::host::{Bounds, Host, Pending};
use crate::pack::{Packs, Programs};
use crate::plan::{Deployment, Target};
use crate::service::Removed;
use crate::snapshot::Marker;
use crate::spec::{Engine, Settle};
use external::External;
use tiup::Tiup;

/// The folder of results in a deployment's on a client.
const RESULTS: &str = "out";

/// The hosts of a plan by their names.
pub type Hosts = BTreeMap<String, Arc<dyn Host>>;

/// What a started database says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Effective {
    /// Its version.
    pub version: String,
    /// Its tunables as read back, by component: the same after every start.
    pub config: BTreeMap<String, BTreeMap<String, String>>,
    /// All that its processes say of their configuration, by component or instance; kept whole, compared by nobody.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub whole: BTreeMap<String, serde_json::Value>,
    /// What it was not asked, or did not tell; only of a cluster that somebody else made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unasked: Vec<String>,
}

/// A folder of data and its snapshot, on one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The host.
    pub host: String,
    /// The data, an absolute path.
    pub data: PathBuf,
    /// The snapshot of it.
    pub snapshot: PathBuf,
}

/// A process of a database, so that one that was started again in between is noticed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The instance.
    pub instance: String,
    /// Its host.
    pub host: String,
    /// Its id there.
    pub pid: u32,
    /// When it was started, µs of Unix time on its host.
    pub started_us: i64,
}

/// How something is done to a database.
pub struct Work<'a> {
    /// The hosts.
    pub hosts: &'a Hosts,
    /// How long it may take, and what ends it before that.
    pub bounds: Bounds<'a>,
    /// Hears what is being done or waited for.
    pub say: &'a mut (dyn FnMut(&str) + Send),
}

type Done<'a, T> = Pending<'a, Result<T, DatabaseError>>;

/// A deployment's database.
pub trait Database: Send + Sync {
    /// Its folders of data.
    fn places(&self) -> Vec<Place>;

    /// Puts it on its hosts: folders, programs, configuration. What a deploy that was cut short left is replaced; data that
    /// is there is, too, if it is to be `fresh`. Returns what is to be recorded.
    fn deploy<'a>(&'a self, fresh: bool, work: Work<'a>) -> Done<'a, serde_json::Value>;

    /// Starts it, waits until it answers, applies its tunables and reads them back.
    fn start<'a>(&'a self, work: Work<'a>) -> Done<'a, Effective>;

    /// Does what is done once, after the first start and before anything is loaded: users, settings that are kept with the data.
    fn equip<'a>(&'a self, work: Work<'a>) -> Done<'a, ()> {
        let _ = work;
        Box::pin(async { Ok(()) })
    }

    /// Gathers the statistics of all tables of the drivers' database.
    fn analyze<'a>(&'a self, work: Work<'a>) -> Done<'a, ()> {
        let _ = work;
        Box::pin(async { Ok(()) })
    }

    /// Waits until it is quiet. Returns what was not at the limit, when that is only worth a warning.
    fn settle<'a>(&'a self, settle: &'a Settle, work: Work<'a>) -> Done<'a, Option<String>> {
        let _ = (settle, work);
        Box::pin(async { Ok(None) })
    }

    /// Its processes. None where it runs in the driver's own.
    fn processes<'a>(&'a self, work: Work<'a>) -> Done<'a, Vec<Process>> {
        let _ = work;
        Box::pin(async { Ok(Vec::new()) })
    }

    /// How its connections are spread over the servers behind its balancer; nothing without one that tells.
    fn spread<'a>(&'a self, work: Work<'a>) -> Done<'a, Option<Spread>> {
        let _ = work;
        Box::pin(async { Ok(None) })
    }

    /// How every instance is, in the order in which they are started.
    fn status<'a>(&'a self, work: Work<'a>) -> Done<'a, Vec<InstanceStatus>> {
        let _ = work;
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Removes it from its hosts, or only says what would be removed. By host.
    fn remove<'a>(
        &'a self,
        dry_run: bool,
        keep_data: bool,
        work: Work<'a>,
    ) -> Done<'a, BTreeMap<String, Removed>> {
        let _ = (dry_run, keep_data, work);
        Box::pin(async { Ok(BTreeMap::new()) })
    }

    /// Stops it cleanly; no process of it is left and its files are complete. Stopping a stopped one is no error.
    fn stop<'a>(&'a self, work: Work<'a>) -> Done<'a, ()>;

    /// How a driver reaches it, secrets revealed; with TLS that is known once it was started.
    fn target(&self) -> Target;
}

/// What a database is made from.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    /// The experiment's name.
    pub experiment: &'a str,
    /// The deployment.
    pub deployment: &'a Deployment,
    /// The packs.
    pub packs: &'a Packs,
    /// The hosts.
    pub hosts: &'a Hosts,
    /// The folder of packages on this machine.
    pub packages: &'a Path,
    /// Replaces `${env:NAME}` by its value.
    pub reveal: &'a (dyn Fn(&str) -> String + Sync),
}

impl Parts<'_> {
    /// What marks the folders of the deployment as its own.
    #[must_use]
    pub fn marker(&self) -> Marker {
        Marker {
            experiment: self.experiment.to_owned(),
            deployment: self.deployment.id.clone(),
        }
    }

    /// The folder on a client that a driver leaves results in.
    #[must_use]
    pub fn results(&self, client: &str) -> PathBuf {
        self.base(client).join(RESULTS)
    }

    /// The deployment's folder on a host.
    #[must_use]
    pub fn base(&self, host: &str) -> PathBuf {
        let directory = self.hosts[host].directory();
        directory.join(self.experiment).join(&self.deployment.id)
    }
}

/// The database of a deployment.
///
/// # Errors
/// Its system has no sound pack.
pub fn of(parts: Parts<'_>) -> Result<Box<dyn Database>, DatabaseError> {
    let pack = parts.packs.get(&parts.deployment.system)?;
    match pack.form.programs {
        Programs::Builtin => Ok(Box::new(Sqlite::new(parts))),
        Programs::Packages | Programs::Installed => match parts.deployment.deploy.engine {
            Engine::Assay => Ok(Box::new(Cluster::new(parts)?)),
            Engine::Tiup => Ok(Box::new(Tiup::new(parts)?)),
            Engine::External => Ok(Box::new(External::new(parts)?)),
        },
    }
}
