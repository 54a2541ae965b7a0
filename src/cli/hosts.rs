//! `assay hosts`: which hosts are meant, and what every one of its commands needs.

use std::collections::BTreeMap;
use std::path::Path;

use super::args::{Changes, Global, HostsCommand};
use super::error::{Code, Failure};
use super::session::Hosts;
use super::{hosts_check, hosts_facts, inputs};
use crate::plan::Plan;
use crate::spec::Inventory;

pub(super) fn hosts(global: &Global, command: &HostsCommand) -> Result<Code, Failure> {
    match command {
        HostsCommand::Check(args) => hosts_check::check(global, args),
        HostsCommand::Facts(args) => hosts_facts::facts(global, args),
    }
}

/// The hosts that a command line means.
pub(super) struct Meant {
    pub(super) hosts: Hosts,
    /// Where others can connect to each.
    pub(super) addresses: BTreeMap<String, String>,
    /// The plan of the experiment, if one is named.
    pub(super) plan: Option<Plan>,
}

/// Finds the hosts of an experiment, or this machine; of them those that are named, or all.
pub(super) fn meant(targets: &[String], changes: &Changes) -> Result<Meant, Failure> {
    let is_file = |target: &&String| {
        let extension = Path::new(target).extension();
        extension.is_some_and(|e| e == "yaml" || e == "yml")
    };
    let (files, names): (Vec<&String>, Vec<&String>) = targets.iter().partition(is_file);
    let (inventory, plan) = match files[..] {
        [] if changes.inventory.is_some() => {
            return Err(Failure::new(
                Code::Usage,
                "an inventory is read together with an experiment only",
            )
            .hint("name an experiment as well: `assay hosts check -i INVENTORY EXPERIMENT`"));
        }
        [] => (Inventory::this_machine(), None),
        [file] => {
            let spec = inputs::load(Path::new(file), changes)?;
            let plan = inputs::plan_of(&spec);
            (spec.inventory, Some(plan))
        }
        [_, second, ..] => {
            let message = format!("one experiment is enough, `{second}` is another");
            return Err(Failure::new(Code::Usage, message).hint("check one after the other"));
        }
    };
    Ok(Meant {
        hosts: named(inputs::hosts(&inventory)?, &names)?,
        addresses: inputs::addresses(&inventory),
        plan,
    })
}

/// Of the hosts those that are named; all where none is.
fn named(mut hosts: Hosts, names: &[&String]) -> Result<Hosts, Failure> {
    if let Some(unknown) = names.iter().find(|name| !hosts.contains_key(**name)) {
        let known: Vec<&str> = hosts.keys().map(String::as_str).collect();
        let message = format!("there is no host `{unknown}`");
        return Err(Failure::new(Code::Usage, message).hint(format!("known: {}", known.join(", "))));
    }
    hosts.retain(|host, _| names.is_empty() || names.contains(&host));
    Ok(hosts)
}
