//! Where a deployment lies: its hosts, its folders there, its database and the driver that loads it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::Context;
use crate::artifacts::Tunables;
use crate::database::{self, Database};
use crate::driver::{LoadDriver, Native, Sysbench};
use crate::host::{AgentError, Bounds, Host, ask};
use crate::plan::Deployment;
use crate::snapshot::{
    self, Attention, Choice, ChoiceError, MarkedDirectory, Marker, Order, Progress,
};
use crate::spec::{Driver, Method};

/// A deployment on its hosts.
pub(super) struct Site {
    /// The deployment.
    pub(super) id: String,
    /// The host of its data.
    pub(super) host: Arc<dyn Host>,
    /// The host of its driver.
    pub(super) client: Arc<dyn Host>,
    /// The folder of all that is its own.
    pub(super) base: PathBuf,
    /// Its data.
    pub(super) data: PathBuf,
    /// The copy that rounds begin with.
    pub(super) snapshot: PathBuf,
    /// Where its driver leaves results.
    pub(super) output: PathBuf,
    /// What marks its folders as its own.
    pub(super) marker: Marker,
    /// How it is started and stopped.
    pub(super) database: Box<dyn Database>,
}

impl Site {
    /// The site of `deployment`, whose hosts are known to be there.
    pub(super) fn of(context: &Context<'_>, deployment: &Deployment) -> Self {
        let host_of = |name: &str| {
            Arc::clone(
                context
                    .hosts
                    .get(name)
                    .expect("every host of the plan is held"),
            )
        };
        let first = deployment
            .topology
            .values()
            .flatten()
            .next()
            .expect("a deployment has a host");
        let host = host_of(first);
        let client = host_of(
            deployment
                .clients
                .first()
                .expect("a deployment has a client"),
        );
        let base = host
            .directory()
            .join(&context.plan.experiment)
            .join(&deployment.id);
        let data = base.join("data");
        let database = database::of(deployment, &data, context.reveal);
        Self {
            id: deployment.id.clone(),
            host: Arc::clone(context.hosts.get(database.host()).unwrap_or(&host)),
            client,
            snapshot: base.join("snapshot"),
            output: base.join("out"),
            base,
            data,
            marker: Marker {
                experiment: context.plan.experiment.clone(),
                deployment: deployment.id.clone(),
            },
            database,
        }
    }
}

impl Site {
    /// Its data and snapshot.
    pub(super) fn order(&self) -> Order {
        Order {
            data: self.data.clone(),
            snapshot: self.snapshot.clone(),
            marker: self.marker.clone(),
        }
    }

    /// How its snapshot is taken and put back.
    pub(super) async fn choose(
        &self,
        wanted: Method,
        bounds: Bounds<'_>,
    ) -> Result<Choice, ChoiceError> {
        let mut unseen = |_| {};
        snapshot::choose(
            &*self.host,
            wanted,
            &self.data,
            attention(bounds, &mut unseen),
        )
        .await
    }

    /// The sha256 of its snapshot's manifest.
    pub(super) async fn digest(&self, bounds: Bounds<'_>) -> Result<String, AgentError> {
        let place = MarkedDirectory {
            directory: self.snapshot.clone(),
            marker: self.marker.clone(),
        };
        ask(&*self.host, "snapshot-digest", &place, bounds).await
    }

    /// The folder that its driver leaves results in.
    pub(super) fn results(&self) -> MarkedDirectory {
        MarkedDirectory {
            directory: self.output.clone(),
            marker: self.marker.clone(),
        }
    }

    /// Reads its whole snapshot and compares it with its manifest.
    pub(super) async fn verify(&self, bounds: Bounds<'_>) -> Result<(), AgentError> {
        let place = MarkedDirectory {
            directory: self.snapshot.clone(),
            marker: self.marker.clone(),
        };
        let _: serde_json::Value = ask(&*self.host, "snapshot-verify", &place, bounds).await?;
        Ok(())
    }
}

/// Tunables with the values of secrets replaced by their names.
pub(super) fn hidden(tunables: &Tunables, hide: &dyn Fn(&str) -> String) -> Tunables {
    let inner = |values: &BTreeMap<String, String>| {
        values.iter().map(|(n, v)| (n.clone(), hide(v))).collect()
    };
    tunables
        .iter()
        .map(|(component, values)| (component.clone(), inner(values)))
        .collect()
}

/// The bounds of a snapshot method's work.
pub(super) fn attention<'a>(
    bounds: Bounds<'_>,
    progress: &'a mut (dyn FnMut(Progress) + Send),
) -> Attention<'a> {
    Attention {
        limit: bounds.limit,
        stop: bounds.stop.clone(),
        progress,
    }
}

/// The load tool of a workload or dataset.
pub(super) fn driver(driver: Driver) -> &'static dyn LoadDriver {
    match driver {
        Driver::Native => &Native,
        Driver::Sysbench => &Sysbench,
    }
}
