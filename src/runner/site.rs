//! Where a deployment lies: its hosts, its folders there, its database and the driver that loads it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::try_join_all;
use sha2::{Digest as _, Sha256};

use super::{Context, StepError};
use crate::artifacts::Tunables;
use crate::database::{self, Database, Parts};
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
    /// Its folders of data.
    pub(super) places: Vec<DataPlace>,
    /// The hosts that it lies on, each with the folder of all that is its own there.
    pub(super) bases: Vec<(Arc<dyn Host>, PathBuf)>,
    /// The host of its driver.
    pub(super) client: Arc<dyn Host>,
    /// Where its driver leaves results.
    pub(super) output: PathBuf,
    /// What marks its folders as its own.
    pub(super) marker: Marker,
    /// How it is started and stopped.
    pub(super) database: Box<dyn Database>,
}

/// A folder of data and its snapshot on their host.
pub(super) struct DataPlace {
    /// The host.
    pub(super) host: Arc<dyn Host>,
    /// The folders.
    pub(super) order: Order,
}

/// What a snapshot of all places came to.
pub(super) struct Kept {
    /// The methods, each once.
    pub(super) method: String,
    /// Why these, a line for each host if they differ.
    pub(super) why: String,
    /// Bytes of all places.
    pub(super) bytes: u64,
    /// What each place says.
    pub(super) done: BTreeMap<String, snapshot::Done>,
}

impl Site {
    /// The site of `deployment`, whose hosts are known to be there.
    pub(super) fn of(context: &Context<'_>, deployment: &Deployment) -> Self {
        let parts = Parts {
            experiment: &context.plan.experiment,
            deployment,
            packs: context.packs,
            hosts: context.hosts,
            packages: context.packages,
            reveal: context.reveal,
        };
        let host_of = |name: &String| Arc::clone(&context.hosts[name]);
        let marker = parts.marker();
        let database = database::of(parts).expect("the plan was built with these packs");
        let place = |place: database::Place| DataPlace {
            host: host_of(&place.host),
            order: Order {
                data: place.data,
                snapshot: place.snapshot,
                marker: marker.clone(),
            },
        };
        let instances = deployment.instances.iter().map(|i| &i.host);
        let hosts: BTreeSet<&String> = deployment
            .topology
            .values()
            .flatten()
            .chain(instances)
            .collect();
        let client = deployment.clients.first();
        let client = client.expect("a deployment has a client");
        Self {
            id: deployment.id.clone(),
            places: database.places().into_iter().map(place).collect(),
            bases: hosts
                .into_iter()
                .map(|host| (host_of(host), parts.base(host)))
                .collect(),
            client: host_of(client),
            output: parts.results(client),
            marker,
            database,
        }
    }
}

impl Site {
    /// Takes a snapshot of every place at once.
    pub(super) async fn take(&self, wanted: Method, bounds: Bounds<'_>) -> Result<Kept, StepError> {
        let each = self.places.iter().map(async |place| {
            let choice = place.choose(wanted, bounds).await?;
            let (host, order) = (&*place.host, &place.order);
            let mut unseen = |_| {};
            let attention = attention(bounds, &mut unseen);
            let done = choice.method.take(host, order, attention).await?;
            Ok::<_, StepError>((place, choice, done))
        });
        let taken = try_join_all(each).await?;
        let names: BTreeSet<&str> = taken.iter().map(|(_, c, _)| c.method.name()).collect();
        let whys: BTreeSet<&str> = taken.iter().map(|(_, choice, _)| &*choice.why).collect();
        Ok(Kept {
            method: names.into_iter().collect::<Vec<_>>().join(", "),
            why: whys.into_iter().collect::<Vec<_>>().join("; "),
            bytes: taken.iter().map(|(_, _, done)| done.bytes).sum(),
            done: taken
                .iter()
                .map(|(place, _, done)| (place.name(), done.clone()))
                .collect(),
        })
    }

    /// Puts the snapshot of every place back at once.
    pub(super) async fn restore(
        &self,
        wanted: Method,
        bounds: Bounds<'_>,
    ) -> Result<(), StepError> {
        let each = self.places.iter().map(async |place| {
            let choice = place.choose(wanted, bounds).await?;
            let (host, order) = (&*place.host, &place.order);
            let mut unseen = |_| {};
            let attention = attention(bounds, &mut unseen);
            choice.method.restore(host, order, attention).await?;
            Ok::<_, StepError>(())
        });
        try_join_all(each).await.map(|_| ())
    }

    /// The sha256 of its snapshot's manifest, or of all of them where there are several places. Nothing of a cluster that is
    /// there already, whose data is never put back.
    pub(super) async fn digest(&self, bounds: Bounds<'_>) -> Result<String, AgentError> {
        if self.places.is_empty() {
            return Ok(String::new());
        }
        let each = self.places.iter().map(async |place| {
            let request = place.snapshot();
            let digest: String = ask(&*place.host, "snapshot-digest", &request, bounds).await?;
            Ok::<_, AgentError>((place.name(), digest))
        });
        let mut digests = try_join_all(each).await?;
        if let [(_, only)] = &digests[..] {
            return Ok(only.clone());
        }
        digests.sort();
        let mut all = Sha256::new();
        for (name, digest) in digests {
            all.update(format!("{name} {digest}\n"));
        }
        let digest = all.finalize();
        Ok(digest.iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("a string takes all that is written");
            hex
        }))
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
        let each = self.places.iter().map(async |place| {
            let request = place.snapshot();
            let _: serde_json::Value =
                ask(&*place.host, "snapshot-verify", &request, bounds).await?;
            Ok::<_, AgentError>(())
        });
        try_join_all(each).await.map(|_| ())
    }
}

impl DataPlace {
    /// The place as records name it.
    fn name(&self) -> String {
        format!("{}:{}", self.host.name(), self.order.data.display())
    }

    fn snapshot(&self) -> MarkedDirectory {
        MarkedDirectory {
            directory: self.order.snapshot.clone(),
            marker: self.order.marker.clone(),
        }
    }

    /// How its snapshot is taken and put back.
    async fn choose(&self, wanted: Method, bounds: Bounds<'_>) -> Result<Choice, ChoiceError> {
        let mut unseen = |_| {};
        let attention = attention(bounds, &mut unseen);
        snapshot::choose(&*self.host, wanted, &self.order.data, attention).await
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
fn attention<'a>(
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
