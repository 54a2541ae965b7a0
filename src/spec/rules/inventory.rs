//! Rules about the inventory: names, groups, ways to hosts, and that no machine is there twice.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::super::bad::Bad;
use super::super::inventory::DIRECTORY;
use super::super::source::clean;
use super::super::{Connection, Host, Inventory, Name};
use super::{Findings, clashes, items, repeated};

/// Hosts and groups.
pub(super) fn check(inventory: &Inventory, bad: &Bad, findings: &mut Findings) {
    let hosts: Vec<&Name> = inventory.hosts.keys().collect();
    for (i, first) in clashes(hosts.iter().map(|host| host.as_str()).enumerate()) {
        let message = format!("`{}` and `{}` differ only in case", hosts[first], hosts[i]);
        findings.key(format!("hosts.{}", hosts[i]), message, None);
    }
    directories(inventory, bad, findings);
    same_machines(inventory, bad, findings);
    jumps(inventory, bad, findings);
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
        self::members(inventory, bad, (group, members), findings);
    }
}

/// The members of a group: hosts, each once.
fn members(
    inventory: &Inventory,
    bad: &Bad,
    (group, members): (&Name, &[Name]),
    findings: &mut Findings,
) {
    let names = || {
        let others = inventory.groups.keys().filter(|other| *other != group);
        let names = inventory.hosts.keys().chain(others).map(Name::as_str);
        names.collect::<Vec<_>>()
    };
    let path = format!("groups.{group}");
    let members = items(bad, &path, members);
    let again: HashSet<usize> = repeated(members.iter().copied()).into_iter().collect();
    for (i, member) in members {
        let path = format!("{path}[{i}]");
        if again.contains(&i) {
            findings.value(path, format!("`{member}` is in the group already"), None);
        } else if !inventory.hosts.contains_key(member) && !bad.lacks_keys("hosts") {
            let help = findings.suggest(member, names, "the inventory has");
            findings.value(path, format!("unknown host `{member}`"), help);
        }
    }
}

/// A directory says what it is from: the root, or over SSH the home of the user there.
fn directories(inventory: &Inventory, bad: &Bad, findings: &mut Findings) {
    for (name, host) in &inventory.hosts {
        let path = format!("hosts.{name}.directory");
        let known = !bad.covers(&format!("hosts.{name}.connection"));
        let Some(directory) = host.directory.as_deref().filter(|_| known) else {
            continue;
        };
        match host.connection {
            Connection::Local if directory.starts_with('~') => {
                let message = "`~` has no meaning here".to_owned();
                findings.value(path, message, "write the whole path".to_owned());
            }
            Connection::Local => {}
            Connection::Ssh => directory_over_ssh(path, directory, findings),
        }
    }
}

fn directory_over_ssh(path: String, directory: &str, findings: &mut Findings) {
    let of_home = directory.strip_prefix("~/");
    // The home itself is no place for what is emptied and removed.
    let is_home = of_home.is_some_and(|below| clean(Path::new(below)).as_os_str().is_empty());
    let below = directory.strip_prefix('/').or(of_home);
    let Some(below) = below.filter(|_| !is_home) else {
        let message = format!(
            "the directory on a host over SSH is absolute or below `~/`, found `{}`",
            super::super::suggest::shown(directory)
        );
        let help = match directory {
            _ if is_home || directory == "~" => "write `~/.assay`".to_owned(),
            _ if directory.starts_with('~') => "write the whole path".to_owned(),
            _ => format!(
                "write `~/{}`, or the whole path",
                directory.trim_start_matches("./")
            ),
        };
        return findings.value(path, message, help);
    };
    if below.split('/').any(|part| part == "..") {
        let message = "`..` has no place in the directory of a host over SSH".to_owned();
        findings.value(path, message, "write the path without it".to_owned());
    }
}

/// Two names of one machine must not mean one folder.
fn same_machines(inventory: &Inventory, bad: &Bad, findings: &mut Findings) {
    let mut seen: HashMap<_, &Name> = HashMap::new();
    let known = |name: &Name| !bad.touches(&format!("hosts.{name}"));
    for (name, host) in inventory.hosts.iter().filter(|(name, _)| known(name)) {
        let Some(other) = seen.insert(machine(name, host), name) else {
            continue;
        };
        let message = match host.connection {
            Connection::Local => format!("`{other}` is this machine too, with the same directory"),
            Connection::Ssh => {
                format!("`{other}` is the same machine: the same address, port, user and directory")
            }
        };
        let help = "give each its own `directory`, or leave one away".to_owned();
        findings.key(format!("hosts.{name}"), message, help);
    }
}

/// What tells one place for data from another: nothing on this machine, and the way to it over SSH; and the directory.
type Machine<'a> = (
    Option<(String, Option<u16>, Option<&'a str>)>,
    Option<String>,
);

fn machine<'a>(name: &Name, host: &'a Host) -> Machine<'a> {
    let directory = |path: &str| clean(Path::new(path)).display().to_string();
    let own = host.directory.as_deref().map(directory);
    match host.connection {
        Connection::Local => (None, own),
        Connection::Ssh => {
            let address = host.address.as_deref().unwrap_or(name.as_str());
            let way = (
                address.to_ascii_lowercase(),
                host.port,
                host.user.as_deref(),
            );
            (Some(way), own.or_else(|| Some(DIRECTORY.to_owned())))
        }
    }
}

/// A jump leads over SSH to another host, and not back.
fn jumps(inventory: &Inventory, bad: &Bad, findings: &mut Findings) {
    let known: Vec<&str> = inventory.hosts.keys().map(Name::as_str).collect();
    for (name, host) in &inventory.hosts {
        let path = format!("hosts.{name}.jump");
        let Some(jump) = host.jump.as_deref().filter(|_| !bad.covers(&path)) else {
            continue;
        };
        let Some(over) = inventory.hosts.get(jump) else {
            if is_bare(jump) && !bad.lacks_keys("hosts") {
                let outside = format!("for one outside the inventory write `USER@{jump}`");
                let close = findings.closest(jump, &known);
                let help = close.map(|close| format!("did you mean `{close}`? {outside}"));
                let message = format!("unknown host `{jump}`");
                findings.value(path, message, help.unwrap_or(outside));
            }
            continue;
        };
        if jump == name.as_str() {
            let message = "a host cannot be its own jump host".to_owned();
            findings.value(path, message, None);
        } else if over.connection == Connection::Local {
            let message = format!("`{jump}` is this machine, which is no jump host");
            findings.value(path, message, "leave `jump` away".to_owned());
        }
    }
    cycles(inventory, bad, findings);
}

/// Jumps that lead back, each circle once.
fn cycles(inventory: &Inventory, bad: &Bad, findings: &mut Findings) {
    let next = |name: &str| {
        let known = !bad.covers(&format!("hosts.{name}.jump"));
        let jump = inventory
            .hosts
            .get(name)
            .and_then(|host| host.jump.as_deref());
        jump.filter(|jump| known && *jump != name && inventory.hosts.contains_key(*jump))
    };
    let mut done = HashSet::new();
    for start in inventory.hosts.keys() {
        let mut way = Vec::new();
        let mut at = Some(start.as_str());
        while let Some(name) = at.filter(|name| done.insert(*name)) {
            way.push(name);
            at = next(name);
        }
        let Some(first) = at.and_then(|at| way.iter().position(|name| *name == at)) else {
            continue;
        };
        let circle = way[first..].iter().chain(&way[first..=first]);
        let circle: Vec<String> = circle.map(|name| format!("`{name}`")).collect();
        let message = format!("the jumps lead back: {}", circle.join(" -> "));
        let help = "`jump: none` goes straight to a host".to_owned();
        findings.value(format!("hosts.{}.jump", way[first]), message, help);
    }
}

/// Whether a jump is only a name, which must be in the inventory.
fn is_bare(jump: &str) -> bool {
    !jump.contains(['@', ':', '.'])
}
