//! Rules about hosts: those of the inventory, and those that the experiment names.

use std::collections::{HashMap, HashSet};

use super::super::{Connection, Inventory, Name, System};
use super::{Findings, View, clashes, repeated};

/// Hosts and groups of the inventory.
pub(super) fn inventory(view: View<'_>, findings: &mut Findings) {
    let inventory = view.inventory;
    let hosts: Vec<&Name> = inventory.hosts.keys().collect();
    for (i, first) in clashes(hosts.iter().map(|host| host.as_str()).enumerate()) {
        let message = format!("`{}` and `{}` differ only in case", hosts[first], hosts[i]);
        findings.key(format!("hosts.{}", hosts[i]), message, None);
    }
    directories(view, findings);
    for (group, members) in &inventory.groups {
        let path = format!("groups.{group}");
        if inventory.hosts.contains_key(group) {
            let message = format!("`{group}` is also a host; a name stands for one of them");
            findings.key(path.clone(), message, None);
        }
        if members.is_empty() {
            let message = "the group has no hosts".to_owned();
            findings.value(path.clone(), message, None);
        }
        self::members(view, &path, members, findings);
    }
}

/// The members of a group: hosts, each once.
fn members(view: View<'_>, path: &str, members: &[Name], findings: &mut Findings) {
    let inventory = view.inventory;
    let hosts: Vec<&str> = inventory.hosts.keys().map(Name::as_str).collect();
    let members = view.items(path, members);
    let again: HashSet<usize> = repeated(members.iter().copied()).into_iter().collect();
    for (i, member) in members {
        let path = format!("{path}[{i}]");
        if again.contains(&i) {
            findings.value(path, format!("`{member}` is in the group already"), None);
        } else if inventory.hosts.contains_key(member) {
            continue;
        } else if inventory.groups.contains_key(member) {
            let message = format!("`{member}` is a group; groups hold hosts only");
            findings.value(path, message, "list its hosts".to_owned());
        } else if view.has_keys_of("hosts") {
            let help = findings.suggest(member, &hosts, "the hosts are");
            findings.value(path, format!("unknown host `{member}`"), help);
        }
    }
}

/// Two names of this machine must not mean one folder.
fn directories(view: View<'_>, findings: &mut Findings) {
    let mut seen: HashMap<Option<&str>, &Name> = HashMap::new();
    let known = |name: &Name| view.has_all_of(&format!("hosts.{name}"));
    for (name, host) in view.inventory.hosts.iter().filter(|(name, _)| known(name)) {
        match host.connection {
            Connection::Local => {}
        }
        if let Some(other) = seen.insert(host.directory.as_deref(), name) {
            let message = format!("`{other}` is this machine too, with the same directory");
            let help = "give each its own `directory`, or leave one away".to_owned();
            findings.key(format!("hosts.{name}"), message, help);
        }
    }
}

/// The roles of the cluster and their hosts.
pub(super) fn topology(view: View<'_>, findings: &mut Findings) {
    let cluster = &view.experiment.cluster;
    for (role, names) in &cluster.topology {
        let path = format!("cluster.topology.{role}");
        let hosts = references(&path, names, view, findings);
        if !view.has("cluster.system") {
            continue;
        }
        match cluster.system {
            System::Sqlite if role.as_str() != "sqlite" => {
                let message = format!("SQLite has no role `{role}`");
                findings.key(path, message, "its only role is `sqlite`".to_owned());
            }
            System::Sqlite => {
                if let Some(hosts) = hosts.filter(|hosts| hosts.len() != 1) {
                    let found = hosts.len();
                    let message = format!("SQLite runs on exactly one host, found {found}");
                    findings.value(path, message, None);
                }
            }
        }
    }
}

/// The hosts that run the driver.
pub(super) fn clients(view: View<'_>, findings: &mut Findings) {
    let experiment = view.experiment;
    let path = "clients".to_owned();
    let Some(clients) = references(&path, &experiment.clients, view, findings) else {
        return;
    };
    if !view.has("cluster.system") || !view.has_all_of("cluster.topology") {
        return;
    }
    match experiment.cluster.system {
        System::Sqlite => {
            let hosts = experiment.cluster.topology.get("sqlite");
            let hosts = hosts.map(|names| expand(names, view.inventory));
            let [Some(host)] = hosts.as_deref().unwrap_or(&[]) else {
                return;
            };
            if !clients.is_empty() && clients[..] != [*host] {
                let message =
                    format!("SQLite is used on its own host: the only client can be `{host}`");
                findings.value(path, message, "leave `clients` away".to_owned());
            }
        }
    }
}

/// The hosts that names of hosts and groups stand for; nothing when some are not known. Unknown ones are reported.
fn references<'a>(
    path: &str,
    names: &[Name],
    view: View<'a>,
    findings: &mut Findings,
) -> Option<Vec<&'a Name>> {
    let inventory = view.inventory;
    let known: Vec<&str> = inventory
        .hosts
        .keys()
        .chain(inventory.groups.keys())
        .map(Name::as_str)
        .collect();
    let all_known = view.has_keys_of("hosts") && view.has_keys_of("groups");
    let mut sound = all_known && view.has_all_of("groups") && view.has_all_of(path);
    for (i, name) in view.items(path, names) {
        if !inventory.hosts.contains_key(name) && !inventory.groups.contains_key(name) {
            sound = false;
            if all_known {
                let help = findings.suggest(name, &known, "the inventory has");
                let message = format!("unknown host or group `{name}`");
                findings.value(format!("{path}[{i}]"), message, help);
            }
        }
    }
    let hosts = expand(names, inventory);
    // An unknown member of a group is reported there.
    sound &= hosts.iter().all(Option::is_some);
    let hosts: Vec<&Name> = hosts.into_iter().flatten().collect();
    let again = repeated(hosts.iter().enumerate());
    if let Some(again) = again.first().filter(|_| sound) {
        let host = hosts[*again];
        let message = format!("the host `{host}` is there more than once");
        findings.value(path.to_owned(), message, None);
        sound = false;
    }
    sound.then_some(hosts)
}

/// The hosts that names stand for, in order; an unknown name stands for nothing.
fn expand<'a>(names: &[Name], inventory: &'a Inventory) -> Vec<Option<&'a Name>> {
    let host = |name: &Name| inventory.hosts.get_key_value(name).map(|(name, _)| name);
    names
        .iter()
        .flat_map(|name| match inventory.groups.get(name) {
            Some(members) if host(name).is_none() => members.iter().map(host).collect(),
            _ => vec![host(name)],
        })
        .collect()
}
