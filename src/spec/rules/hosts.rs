//! Rules about the hosts that the experiment names.

use indexmap::IndexMap;

use super::super::{Engine, Inventory, Name, Placement};
use super::{Findings, View, repeated};

/// The roles of the cluster, and of variants with a topology of their own, and their hosts. What roles there are is the
/// pack's to say.
pub(super) fn topology(view: View<'_>, findings: &mut Findings) {
    let experiment = view.experiment;
    let path = "cluster.topology";
    let is_deployed = experiment.deploy.engine != Engine::External;
    if is_deployed && experiment.cluster.topology.is_empty() && view.has(path) {
        let message = "the key `topology` is missing".to_owned();
        let help = "`topology`: role -> hosts or groups of the inventory";
        findings.value("cluster".to_owned(), message, help.to_owned());
    }
    roles(path, &experiment.cluster.topology, view, findings);
    for (name, variant) in &experiment.variants {
        let path = format!("variants.{name}.topology");
        roles(&path, &variant.topology, view, findings);
    }
}

fn roles(
    path: &str,
    topology: &IndexMap<Name, Vec<Placement>>,
    view: View<'_>,
    findings: &mut Findings,
) {
    for (role, placements) in topology {
        let path = format!("{path}.{role}");
        let plain: Vec<&Name> = placements.iter().map(Placement::name).collect();
        let at = |i: usize| match &placements[i] {
            Placement::Name(_) => format!("{path}[{i}]"),
            Placement::Instance(_) => format!("{path}[{i}].host"),
        };
        let hosts = references(&path, &plain, at, view, findings);
        // One host may carry several instances of a role when each says how it differs.
        let all_plain = placements.iter().all(|p| matches!(p, Placement::Name(_)));
        if let Some(hosts) = hosts.filter(|_| all_plain) {
            once(&path, &hosts, findings);
        }
    }
}

/// The hosts that run the driver.
pub(super) fn clients(view: View<'_>, findings: &mut Findings) {
    let names: Vec<&Name> = view.experiment.clients.iter().collect();
    let at = |i: usize| format!("clients[{i}]");
    if let Some(hosts) = references("clients", &names, at, view, findings) {
        once("clients", &hosts, findings);
    }
}

/// The host of the balancer, or an address in its place.
pub(super) fn balancer(view: View<'_>, findings: &mut Findings) {
    let Some(balancer) = &view.experiment.load_balancer else {
        return;
    };
    let path = "load_balancer";
    match (&balancer.host, &balancer.address) {
        (Some(host), None) => {
            let at = |_| format!("{path}.host");
            references(path, &[host], at, view, findings);
        }
        (None, Some(_)) => {
            let deployed = [
                ("system", balancer.system.is_some()),
                ("port", balancer.port.is_some()),
                ("config", !balancer.config.is_empty()),
                ("uneven", balancer.uneven.is_some()),
            ];
            for (key, _) in deployed.into_iter().filter(|(_, set)| *set) {
                let message = format!("`{key}` has no effect on a balancer that is there already");
                findings.key(format!("{path}.{key}"), message, None);
            }
        }
        (Some(_), Some(_)) => {
            let message = "a balancer is deployed on a `host`, or is there at an `address`";
            findings.key(format!("{path}.address"), message.to_owned(), None);
        }
        (None, None) if view.has(path) => {
            let message = "the key `host` is missing".to_owned();
            let help = "`host`: the host that the balancer is deployed on; or `address`, if it is there already";
            findings.value(path.to_owned(), message, help.to_owned());
        }
        (None, None) => {}
    }
}

/// Reports a host that is there more than once.
fn once(path: &str, hosts: &[&Name], findings: &mut Findings) {
    if let Some(again) = repeated(hosts.iter().enumerate()).first() {
        let message = format!("the host `{}` is there more than once", hosts[*again]);
        findings.value(path.to_owned(), message, None);
    }
}

/// The hosts that names of hosts and groups stand for; nothing when some are not known. Unknown ones are reported, each
/// at the path that `at` gives for its place in the list.
fn references<'a>(
    path: &str,
    names: &[&Name],
    at: impl Fn(usize) -> String,
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
        if !inventory.hosts.contains_key(*name) && !inventory.groups.contains_key(*name) {
            sound = false;
            if all_known {
                let help = findings.suggest(name, || known.clone(), "the inventory has");
                let message = format!("unknown host or group `{name}`");
                findings.value(at(i), message, help);
            }
        }
    }
    let hosts = expand(names, inventory);
    // An unknown member of a group is reported there.
    sound &= hosts.iter().all(Option::is_some);
    sound.then(|| hosts.into_iter().flatten().collect())
}

/// The hosts that names stand for, in order; an unknown name stands for nothing.
fn expand<'a>(names: &[&Name], inventory: &'a Inventory) -> Vec<Option<&'a Name>> {
    let host = |name: &Name| inventory.hosts.get_key_value(name).map(|(name, _)| name);
    names
        .iter()
        .flat_map(|name| match inventory.groups.get(*name) {
            Some(members) if host(name).is_none() => members.iter().map(host).collect(),
            _ => vec![host(name)],
        })
        .collect()
}
