//! A cluster as a `topology.yaml` for `tiup cluster deploy`: every port and directory is written, so that no default of any
//! TiUP decides.

use serde_json::{Map, Value, json};

use super::cluster::default_ports;
use super::section::{Kind, NG_PORT, Section};
use super::settings;
use super::{Cluster, Instance, Monitored, Role};
use crate::spec::plain_yaml;

/// The text of a topology. [`super::read`] reads it back as the same cluster.
#[must_use]
pub fn topology(cluster: &Cluster) -> String {
    let mut keys = Map::new();
    keys.insert("global".to_owned(), global(cluster));
    keys.insert("monitored".to_owned(), monitored(&cluster.monitored));
    let configs = cluster.config.iter();
    let configs = configs.map(|(name, config)| (name.clone(), settings::value(config)));
    let configs: Map<String, Value> = configs.collect();
    if !configs.is_empty() {
        keys.insert("server_configs".to_owned(), Value::Object(configs));
    }
    if !cluster.versions.is_empty() {
        keys.insert("component_versions".to_owned(), json!(cluster.versions));
    }
    for role in Role::ALL {
        let instances = cluster.instances.iter().filter(|i| i.role == role);
        let servers: Vec<Value> = instances.map(|i| server(i, cluster)).collect();
        if !servers.is_empty() {
            keys.insert(Section::of(role).key.to_owned(), Value::Array(servers));
        }
    }
    plain_yaml(&Value::Object(keys))
}

fn global(cluster: &Cluster) -> Value {
    let mut global = Map::new();
    global.insert("user".to_owned(), json!(cluster.user));
    if let Some(group) = &cluster.group {
        global.insert("group".to_owned(), json!(group));
    }
    global.insert("ssh_port".to_owned(), json!(cluster.ssh_port));
    if cluster.tls {
        global.insert("enable_tls".to_owned(), json!(true));
    }
    global.insert("deploy_dir".to_owned(), json!(cluster.deploy_dir));
    global.insert("data_dir".to_owned(), json!(cluster.data_dir));
    if !cluster.log_dir.is_empty() {
        global.insert("log_dir".to_owned(), json!(cluster.log_dir));
    }
    if let Some(arch) = &cluster.arch {
        global.insert("arch".to_owned(), json!(arch));
    }
    Value::Object(global)
}

fn monitored(monitored: &Monitored) -> Value {
    let mut keys = Map::from_iter([
        (
            "node_exporter_port".to_owned(),
            json!(monitored.node_exporter_port),
        ),
        (
            "blackbox_exporter_port".to_owned(),
            json!(monitored.blackbox_exporter_port),
        ),
        ("deploy_dir".to_owned(), json!(monitored.deploy_dir)),
        ("data_dir".to_owned(), json!(monitored.data_dir)),
        ("log_dir".to_owned(), json!(monitored.log_dir)),
    ]);
    if let Some(numa) = &monitored.numa_node {
        keys.insert("numa_node".to_owned(), json!(numa));
    }
    if !monitored.resource_control.is_empty() {
        keys.insert(
            "resource_control".to_owned(),
            json!(monitored.resource_control),
        );
    }
    Value::Object(keys)
}

fn server(instance: &Instance, cluster: &Cluster) -> Value {
    let mut keys = Map::new();
    let mut add = |key: &str, value: Option<Value>| {
        keys.extend(value.map(|value| (key.to_owned(), value)));
    };
    add("host", Some(json!(instance.host)));
    add(
        "manage_host",
        instance.manage_host.as_ref().map(|h| json!(h)),
    );
    add("ssh_port", Some(json!(instance.ssh_port)));
    add("arch", instance.arch.as_ref().map(|arch| json!(arch)));
    add("name", instance.name.as_ref().map(|name| json!(name)));
    for (key, port) in &instance.ports {
        add(key, Some(json!(port)));
    }
    let default = default_ports(instance.role, cluster.version.as_deref());
    if default.contains_key(NG_PORT) && !instance.ports.contains_key(NG_PORT) {
        add(NG_PORT, Some(json!(-1)));
    }
    add("deploy_dir", Some(json!(instance.deploy_dir)));
    let storage = super::expand::storage(&instance.config).is_some();
    let data = instance.data_dir.as_ref().filter(|_| !storage);
    add("data_dir", data.map(|directory| json!(directory)));
    add(
        "log_dir",
        instance.log_dir.as_ref().map(|directory| json!(directory)),
    );
    for (key, value) in &instance.other {
        add(key, Some(typed(instance.role, key, value)));
    }
    if !instance.exporters {
        add("ignore_exporter", Some(json!(true)));
    }
    let filled =
        |map: Value| Some(map).filter(|map| map.as_object().is_some_and(|m| !m.is_empty()));
    add("config", filled(settings::value(&instance.config)));
    add(
        "learner_config",
        filled(settings::value(&instance.learner_config)),
    );
    add("resource_control", filled(json!(instance.resource_control)));
    Value::Object(keys)
}

/// A kept value as its key has it.
fn typed(role: Role, key: &str, value: &str) -> Value {
    let mut keys = Section::of(role).all_keys();
    let kind = keys.find(|known| known.name == key).map(|known| known.kind);
    match kind {
        Some(Kind::Boolean) => json!(value == "true"),
        _ => json!(value),
    }
}
