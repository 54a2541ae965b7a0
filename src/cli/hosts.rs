//! `assay hosts`: which hosts are meant, and how they are reached.

use std::collections::BTreeMap;
use std::path::Path;

use super::args::{Global, HostsCommand, Which};
use super::error::{Code, Failure};
use super::reach::{Hosts, Purpose, Reach};
use super::{hosts_check, hosts_exec, hosts_facts, hosts_trust, inputs};
use crate::pack::Packs;
use crate::plan::Plan;
use crate::spec::{self, Inventory, Name};

pub(super) fn hosts(global: &Global, command: &HostsCommand) -> Result<Code, Failure> {
    match command {
        HostsCommand::Check(args) => hosts_check::check(global, args),
        HostsCommand::Facts(args) => hosts_facts::facts(global, args),
        HostsCommand::Exec(args) => hosts_exec::exec(global, args),
        HostsCommand::Trust(args) => hosts_trust::trust(global, args),
    }
}

/// The hosts that a command line means.
pub(super) struct Meant {
    pub(super) inventory: Inventory,
    /// Their names, in the order of the inventory.
    pub(super) names: Vec<String>,
    /// The plan of the experiment, if one is named, and the packs that it can use.
    pub(super) planned: Option<(Plan, Packs)>,
}

/// Finds the hosts of an inventory or of an experiment's plan, or this machine; of them those that are named, or all.
pub(super) fn meant(which: &Which) -> Result<Meant, Failure> {
    let is_file = |target: &&String| {
        let extension = Path::new(target).extension();
        extension.is_some_and(|e| e == "yaml" || e == "yml")
    };
    let (files, names): (Vec<&String>, Vec<&String>) = which.targets.iter().partition(is_file);
    let (inventory, planned) = match files[..] {
        [] => (inventory(which)?, None),
        [file] => {
            let (spec, packs) = inputs::load(Path::new(file), &which.changes)?;
            let plan = inputs::plan_of(&spec, &packs)?;
            (spec.inventory, Some((plan, packs)))
        }
        [_, second, ..] => {
            let message = format!("one experiment is enough, `{second}` is another");
            return Err(Failure::new(Code::Usage, message)
                .hint("name them one after the other; an inventory follows `-i`"));
        }
    };
    let names = match (&names[..], &planned) {
        ([], Some((plan, _))) => plan.hosts().into_iter().collect(),
        (names, _) => chosen(&inventory, names)?,
    };
    Ok(Meant {
        inventory,
        names,
        planned,
    })
}

/// The inventory that is named, or this machine.
fn inventory(which: &Which) -> Result<Inventory, Failure> {
    let Some(path) = &which.changes.inventory else {
        return Ok(Inventory::this_machine());
    };
    if !which.changes.overrides.is_empty() {
        let message = "`--set` changes an experiment, and none is named";
        return Err(Failure::new(Code::Usage, message).hint("change the inventory itself"));
    }
    let here = inputs::working_directory()?;
    let environment = |name: &str| std::env::var(name).ok();
    let loaded = spec::load_inventory(path, &environment, &here);
    let loaded = loaded.map_err(|problems| Failure::refused(&problems))?;
    Ok(loaded.inventory)
}

/// The hosts of these names and groups; all where there are none.
fn chosen(inventory: &Inventory, wanted: &[&String]) -> Result<Vec<String>, Failure> {
    let mut meant = Vec::new();
    for word in wanted {
        let word = word.as_str();
        match inventory.groups.get(word) {
            Some(group) => meant.extend(group.iter().map(ToString::to_string)),
            None if inventory.hosts.contains_key(word) => meant.push(word.to_owned()),
            None => return Err(unknown(inventory, word)),
        }
    }
    let hosts = inventory.hosts.keys().map(ToString::to_string);
    let is_meant = |name: &String| wanted.is_empty() || meant.contains(name);
    Ok(hosts.filter(is_meant).collect())
}

fn unknown(inventory: &Inventory, word: &str) -> Failure {
    let known = inventory.hosts.keys().chain(inventory.groups.keys());
    let known: Vec<&str> = known.map(Name::as_str).collect();
    let close = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(name, word), name))
        .filter(|(distance, _)| *distance <= 2)
        .min();
    let hint = match close {
        Some((_, name)) => format!("did you mean `{name}`?"),
        None => format!("known: {}", known.join(", ")),
    };
    Failure::new(Code::Usage, format!("there is no host or group `{word}`")).hint(hint)
}

/// Hosts that were reached, and why the others were not.
pub(super) struct Reached {
    pub(super) hosts: Hosts,
    /// Where others can connect to each.
    pub(super) addresses: BTreeMap<String, String>,
    pub(super) unreachable: BTreeMap<String, String>,
}

impl Meant {
    /// Reaches the hosts.
    pub(super) async fn reach(&self) -> Result<Reached, Failure> {
        let reach = Reach::of(&self.inventory)?;
        let found = reach.each(&self.names, Purpose::command(), |_, _| {}).await;
        let mut reached = Reached {
            hosts: Hosts::new(),
            addresses: inputs::addresses(&self.inventory),
            unreachable: BTreeMap::new(),
        };
        for (name, found) in self.names.iter().zip(found) {
            let name = name.clone();
            match found {
                Ok(host) => _ = reached.hosts.insert(name, host),
                Err(error) => {
                    let why = Failure::from(error).message();
                    reached.unreachable.insert(name, why);
                }
            }
        }
        reached
            .addresses
            .retain(|name, _| reached.hosts.contains_key(name));
        Ok(reached)
    }
}
