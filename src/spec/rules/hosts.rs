//! Rules about the hosts that the experiment names.

use super::super::{Inventory, Name, System};
use super::{Findings, View, repeated};

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
                let help = findings.suggest(name, || known.clone(), "the inventory has");
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
