//! One process on one host, with all that is decided of it: ports, folders, tunables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::build::hosts;
use crate::pack::{Pack, Role, layered};
use crate::spec::{
    Cluster, Experiment, Inventory, LoadBalancer, Name, Placement, ResourceControl, Setting,
    Variant,
};

/// One process on one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    /// Its name within the deployment: `tikv-20160@kv1`.
    pub id: String,
    /// The system whose pack has its role: the deployment's, or that of a balancer.
    pub system: String,
    /// Its role.
    pub role: String,
    /// The host that it runs on.
    pub host: String,
    /// How other hosts reach that host, an IPv6 address without brackets.
    pub address: String,
    /// Its main port.
    pub port: u16,
    /// All its ports by name.
    pub ports: BTreeMap<String, u16>,
    /// The folder of its program, configuration and scripts. Relative folders are below the host's own for assay.
    pub deploy: PathBuf,
    /// The folder of its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<PathBuf>,
    /// The folder of its snapshot, on the file system of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<PathBuf>,
    /// The folder of its logs.
    pub log: PathBuf,
    /// What its pack and the experiment say of it beside that, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, Value>,
    /// Its tunables, nested: those of the pack, the cluster, the variant and the instance, the later over the earlier.
    pub config: Value,
    /// Limits of its process.
    #[serde(default)]
    pub resource_control: ResourceControl,
}

/// The keys of an instance that every system has.
pub const COMMON: [&str; 7] = [
    "config",
    "deploy_dir",
    "data_dir",
    "log_dir",
    "numa_node",
    "numa_cores",
    "resource_control",
];

/// What the instances of a deployment have in common.
struct Shape<'a> {
    experiment: &'a Experiment,
    inventory: &'a Inventory,
    variant: &'a Variant,
    /// Experiment and deployment, as folders.
    own: PathBuf,
}

/// The instances of a variant's roles, those of its balancer last.
pub(super) fn instances(
    experiment: &Experiment,
    inventory: &Inventory,
    (name, variant): (&Name, &Variant),
    pack: &Pack,
    balancer: Option<(&LoadBalancer, &Pack)>,
) -> Vec<Instance> {
    let shape = Shape {
        experiment,
        inventory,
        variant,
        own: Path::new(experiment.name.as_str()).join(name.as_str()),
    };
    let mut made = Vec::new();
    for (role, placements) in experiment.topology_of(variant) {
        let Some(form) = pack.role(role.as_str()) else {
            continue;
        };
        for (host, own) in placed(placements, inventory) {
            made.push(shape.instance(pack, (role.as_str(), form), &host, own));
        }
    }
    if let Some((balancer, pack)) = balancer
        && let Some(host) = &balancer.host
        && let Some((role, form)) = pack.form.roles.first()
    {
        let settings = balancer_settings(balancer, form);
        for host in hosts(inventory, std::slice::from_ref(host)) {
            let of_role = (role.as_str(), form);
            made.push(shape.instance(pack, of_role, &host, Some(&settings)));
        }
    }
    made
}

/// A balancer's own keys as those of an instance.
fn balancer_settings(balancer: &LoadBalancer, role: &Role) -> indexmap::IndexMap<Name, Setting> {
    let mut settings = indexmap::IndexMap::new();
    if let (Some(port), Some((name, _))) = (balancer.port, role.ports.first()) {
        settings.insert(name.clone(), Setting(port.into()));
    }
    let config: Map<String, Value> = balancer
        .config
        .iter()
        .map(|(key, value)| (key.to_string(), value.0.clone()))
        .collect();
    settings.insert(Name::of("config"), Setting(Value::Object(config)));
    settings
}

type Own<'a> = Option<&'a indexmap::IndexMap<Name, Setting>>;

/// The hosts of placements, each with the settings of an instance's own.
fn placed<'a>(placements: &'a [Placement], inventory: &Inventory) -> Vec<(String, Own<'a>)> {
    let placed = placements.iter().flat_map(|placement| {
        let names = std::slice::from_ref(placement.name());
        let own = placement.settings();
        hosts(inventory, names).into_iter().map(move |h| (h, own))
    });
    placed.collect()
}

impl Shape<'_> {
    fn instance(
        &self,
        pack: &Pack,
        (role, form): (&str, &Role),
        host: &str,
        own: Own<'_>,
    ) -> Instance {
        let key = |key: &str| own.and_then(|own| own.get(key)).map(|value| &value.0);
        let ports: BTreeMap<String, u16> = form
            .ports
            .iter()
            .map(|(name, default)| {
                let own = key(name.as_str()).and_then(Value::as_u64);
                let own = own.and_then(|port| u16::try_from(port).ok());
                (name.to_string(), own.unwrap_or(*default))
            })
            .collect();
        let main = form.ports.keys().next();
        let port = main.map_or(0, |name| ports[name.as_str()]);
        let folder = format!("{role}-{port}");
        let cluster = &self.experiment.cluster;
        let text = |name: &str| key(name).and_then(Value::as_str);
        let deploy = self.below(text("deploy_dir").or(cluster.deploy_dir.as_deref()));
        let data = self.below(text("data_dir").or(cluster.data_dir.as_deref()));
        let deploy = deploy.join("deploy").join(&folder);
        let log = match text("log_dir").or(cluster.log_dir.as_deref()) {
            Some(log) => self.below(Some(log)).join("log").join(&folder),
            None => deploy.join("log"),
        };
        Instance {
            id: format!("{folder}@{host}"),
            system: pack.name.clone(),
            role: role.to_owned(),
            host: host.to_owned(),
            address: self.address(host),
            port,
            data: form.data.then(|| data.join("data").join(&folder)),
            snapshot: (form.data && form.snapshot).then(|| data.join("snapshot").join(&folder)),
            deploy,
            log,
            settings: self.settings(form, own),
            config: self.config(pack, (role, form), key("config")),
            resource_control: limits(cluster, form, key("resource_control")),
            ports,
        }
    }

    /// The folder of the deployment's own: in the host's for assay, or in one that the experiment names.
    fn below(&self, folder: Option<&str>) -> PathBuf {
        folder.map_or_else(
            || self.own.clone(),
            |folder| Path::new(folder).join(&self.own),
        )
    }

    fn address(&self, host: &str) -> String {
        let host = self.inventory.hosts.get(host);
        let address = host.map_or("127.0.0.1", |host| match host.connection {
            crate::spec::Connection::Local => host.data_address.as_deref().unwrap_or("127.0.0.1"),
            crate::spec::Connection::Ssh => host.data_address_or_address(),
        });
        address.trim_matches(['[', ']']).to_owned()
    }

    fn settings(&self, form: &Role, own: Own<'_>) -> BTreeMap<String, Value> {
        let defaults = form.settings.iter();
        let mut all: BTreeMap<String, Value> = defaults
            .map(|(key, value)| (key.to_string(), value.0.clone()))
            .collect();
        let ours = |key: &str| {
            form.settings.contains_key(key) || key == "numa_node" || key == "numa_cores"
        };
        let own = own.into_iter().flatten();
        let own = own.filter(|(key, _)| ours(key.as_str()));
        all.extend(own.map(|(key, value)| (key.to_string(), value.0.clone())));
        all
    }

    /// The tunables, each layer over the one before. A balancer's are its own only.
    fn config(&self, pack: &Pack, (role, form): (&str, &Role), own: Option<&Value>) -> Value {
        let component = form.component.as_ref().map_or(role, Name::as_str);
        let mut layers: Vec<Value> = Vec::new();
        if let Some(file) = &form.config {
            layers.push(object(&file.defaults));
        }
        if pack.name == self.experiment.system_of(self.variant).as_str() {
            for config in [&self.experiment.cluster.config, &self.variant.config] {
                layers.extend(config.get(component).map(object));
            }
        }
        layers.extend(own.cloned());
        layers.extend(form.config.as_ref().map(|file| object(&file.forced)));
        layered(&layers)
    }
}

fn object(settings: &indexmap::IndexMap<Name, Setting>) -> Value {
    let entries = settings.iter();
    Value::Object(
        entries
            .map(|(key, value)| (key.to_string(), value.0.clone()))
            .collect(),
    )
}

/// The limits of the pack, the cluster and the instance, key by key.
fn limits(cluster: &Cluster, form: &Role, own: Option<&Value>) -> ResourceControl {
    let json = |limits: &ResourceControl| serde_json::to_value(limits).unwrap_or_default();
    let mut all = json(&form.unit.resource_control);
    for over in [Some(json(&cluster.resource_control)), own.cloned()] {
        if let (Some(all), Some(Value::Object(over))) = (all.as_object_mut(), over) {
            all.extend(over);
        }
    }
    serde_json::from_value(all).unwrap_or_default()
}
