//! The topology that TiUP is given: the instances of the plan, each with its ports, folders and settings.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde_json::Value;

use super::super::Cluster;
use super::super::cluster::Member;
use crate::pack;
use crate::spec::Setting;
use crate::tiup::{self, Role, topology};

/// The user that TiUP makes unless it is told another.
pub(super) const USER: &str = "tidb";
/// The role whose instances say which hosts have exporters.
const EXPORTER: &str = "node_exporter";
/// The components that take settings from a topology.
const CONFIGURED: [Role; 5] = [
    Role::Pd,
    Role::Tikv,
    Role::Tidb,
    Role::Tiflash,
    Role::Tiproxy,
];

type Settings = BTreeMap<String, Value>;

/// The topology of a cluster as text. TiUP asks the hosts for their architecture where it is not given.
pub(super) fn of(cluster: &Cluster, arch: Option<&str>) -> String {
    topology(&model(cluster, arch))
}

fn model(cluster: &Cluster, arch: Option<&str>) -> tiup::Cluster {
    let deployment = cluster.deployment();
    let user = deployment.run_as.as_deref().unwrap_or(USER);
    let mut model = tiup::Cluster::new(deployment.version.clone(), user);
    model.arch = arch.map(str::to_owned);
    let members = cluster.members();
    if let Some(exporter) = members.iter().find(|m| m.instance.role == EXPORTER) {
        model.monitored.node_exporter_port = exporter.instance.port;
        model.place_exporters();
        model.monitored.deploy_dir = text(&exporter.deploy);
        model.monitored.log_dir = text(&exporter.log);
    }
    for role in Role::ALL {
        let of_role: Vec<&Member> = members
            .iter()
            .filter(|m| m.instance.role == role.name())
            .collect();
        let asked: Vec<Settings> = of_role.iter().map(|m| cluster.asked(m)).collect();
        let common = common(&asked);
        for (member, asked) in of_role.iter().zip(asked) {
            let mut instance = instance(&model, role, member);
            if let Some(login) = deployment.logins.get(&member.instance.host) {
                instance.ssh_port = login.port.unwrap_or(model.ssh_port);
                let elsewhere = login.address != member.instance.address;
                instance.manage_host = elsewhere.then(|| login.address.clone());
            }
            let same_host = |m: &Member| m.instance.host == member.instance.host;
            let mut exporters = members.iter().filter(|m| m.instance.role == EXPORTER);
            instance.exporters = exporters.any(same_host);
            let own = asked
                .into_iter()
                .filter(|(key, _)| !common.contains_key(key));
            instance.config = settings(own.filter(|_| CONFIGURED.contains(&role)));
            model.instances.push(instance);
        }
        if let Some(member) = of_role.first().filter(|_| CONFIGURED.contains(&role)) {
            let component = member.component().to_owned();
            if !common.is_empty() {
                model.config.insert(component, settings(common.into_iter()));
            }
        }
    }
    model
}

fn instance(model: &tiup::Cluster, role: Role, member: &Member) -> tiup::Instance {
    let (plan, address) = (&member.instance, &*member.instance.address);
    let known = model.instance(role, address).ports;
    let own = plan.ports.iter();
    let own: IndexMap<String, u16> = own
        .filter(|(name, port)| known.contains_key(*name) && **port != 0)
        .map(|(name, port)| (name.clone(), *port))
        .collect();
    let mut instance = model.instance_at(role, address, &own);
    instance.deploy_dir = text(&member.deploy);
    if instance.data_dir.is_some() {
        instance.data_dir = member.data.as_deref().map(text);
    }
    if instance.log_dir.is_some() {
        instance.log_dir = Some(text(&member.log));
    }
    if let Some(name) = member.context["name"].as_str() {
        instance.name = instance.name.map(|_| name.to_owned());
    }
    for key in ["numa_node", "numa_cores"] {
        if let Some(value) = plan.settings.get(key) {
            instance.other.insert(key.to_owned(), pack::text(value));
        }
    }
    let limits = serde_json::to_value(&plan.resource_control).unwrap_or_default();
    let limits = limits.as_object().into_iter().flatten();
    instance.resource_control = limits
        .map(|(key, value)| (key.clone(), pack::text(value)))
        .collect();
    instance
}

/// What all instances of a role are asked alike; some keys TiUP takes there only.
fn common(asked: &[Settings]) -> Settings {
    let Some((first, rest)) = asked.split_first() else {
        return Settings::new();
    };
    let is_common =
        |(key, value): &(&String, &Value)| rest.iter().all(|other| other.get(*key) == Some(*value));
    let common = first.iter().filter(is_common);
    common.map(|(k, v)| (k.clone(), v.clone())).collect()
}

fn settings(all: impl Iterator<Item = (String, Value)>) -> IndexMap<String, Setting> {
    all.map(|(key, value)| (key, Setting(value))).collect()
}

fn text(path: &std::path::Path) -> String {
    path.to_string_lossy().into_owned()
}
