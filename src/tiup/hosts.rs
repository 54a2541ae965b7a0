//! The hosts of a cluster: their names in an inventory, how they are reached, their labels.

use std::collections::HashSet;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::settings;
use super::{Cluster, Instance, LeftOut, Role};
use crate::spec::Name;

/// The hosts by their addresses.
pub(super) struct Hosts(IndexMap<String, Host>);

/// One host of an inventory.
struct Host {
    name: String,
    /// The address for SSH, where it is another one.
    manage: Option<String>,
    port: u16,
    arch: Option<String>,
    /// Nothing where the instances of the host disagree.
    labels: IndexMap<String, Option<String>>,
    /// Whether it runs a part of the database, not only of its monitoring.
    is_database: bool,
}

impl Hosts {
    /// The hosts of all instances, in their order. What instances of a host disagree about goes to `left_out`.
    pub(super) fn of(cluster: &Cluster, left_out: &mut Vec<LeftOut>) -> Self {
        let mut names = Names::new(cluster);
        let mut hosts: IndexMap<String, Host> = IndexMap::new();
        for instance in &cluster.instances {
            let host = hosts.entry(instance.host.clone());
            let host = host.or_insert_with(|| Host {
                name: names.name(&instance.host),
                manage: instance.manage_host.clone(),
                port: instance.ssh_port,
                arch: instance.arch.clone(),
                labels: IndexMap::new(),
                is_database: false,
            });
            host.is_database |= !instance.role.is_monitoring();
            host.label(instance);
            left_out.extend(host.disagreement(instance));
        }
        left_out.dedup();
        Self(hosts)
    }

    /// The name of the host with an address.
    pub(super) fn name(&self, address: &str) -> &str {
        self.0.get(address).map_or("", |host| &host.name)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// A host for the load: one without database, else the first with a TiDB.
    pub(super) fn client(&self, cluster: &Cluster) -> &str {
        let free = self.0.values().find(|host| !host.is_database);
        let tidb = || {
            let mut instances = cluster.instances.iter();
            let first = instances.find(|instance| instance.role == Role::Tidb);
            self.0.get(&first?.host)
        };
        let host = free.or_else(tidb).or_else(|| self.0.values().next());
        host.map_or("", |host| &host.name)
    }

    /// The `hosts` of an inventory.
    pub(super) fn inventory(&self) -> Value {
        let hosts = self.0.iter();
        let hosts = hosts.map(|(address, host)| (host.name.clone(), host.entry(address)));
        Value::Object(hosts.collect())
    }
}

impl Host {
    /// Takes over the labels of a TiKV, as far as those of the host agree.
    fn label(&mut self, instance: &Instance) {
        for (key, value) in settings::below(&instance.config, "server.labels") {
            if key.parse::<Name>().is_err() {
                continue;
            }
            let known = self
                .labels
                .entry(key)
                .or_insert_with(|| Some(value.clone()));
            if known.as_ref() != Some(&value) {
                *known = None;
            }
        }
    }

    fn disagreement(&self, instance: &Instance) -> Option<LeftOut> {
        let agrees = self.port == instance.ssh_port && self.manage == instance.manage_host;
        let say = || {
            let reason = "its instances name several ways to reach it by SSH; the first is kept";
            LeftOut::new(format!("host {}", instance.host), reason)
        };
        (!agrees).then(say)
    }

    fn entry(&self, address: &str) -> Value {
        let mut entry = Map::new();
        entry.insert(
            "address".to_owned(),
            json!(self.manage.as_deref().unwrap_or(address)),
        );
        if self.port != 22 {
            entry.insert("port".to_owned(), json!(self.port));
        }
        if self.manage.as_ref().is_some_and(|manage| manage != address) {
            entry.insert("data_address".to_owned(), json!(address));
        }
        let mut labels = Map::new();
        for (key, value) in &self.labels {
            labels.extend(value.as_ref().map(|value| (key.clone(), json!(value))));
        }
        if let Some(arch) = &self.arch {
            labels.entry("arch").or_insert(json!(arch));
        }
        if !labels.is_empty() {
            entry.insert("labels".to_owned(), Value::Object(labels));
        }
        Value::Object(entry)
    }
}

/// Gives out names: that of the host where it has one, else `h1`, `h2`, ...
struct Names<'a> {
    /// The names that hosts have of their own.
    own: HashSet<&'a str>,
    next: usize,
}

impl<'a> Names<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        let hosts = cluster.instances.iter().map(|instance| &*instance.host);
        Self {
            own: hosts.filter(|host| is_name(host)).collect(),
            next: 1,
        }
    }

    fn name(&mut self, host: &str) -> String {
        if is_name(host) {
            return host.to_owned();
        }
        loop {
            let name = format!("h{}", self.next);
            self.next += 1;
            if !self.own.contains(name.as_str()) {
                return name;
            }
        }
    }
}

/// Whether a host is written as a name, not as a number, and one that an inventory takes.
fn is_name(host: &str) -> bool {
    let is_number = host.contains(':') || host.chars().all(|c| c.is_ascii_digit() || c == '.');
    !is_number && host.parse::<Name>().is_ok()
}
