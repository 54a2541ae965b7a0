//! `assay hosts`: which hosts are meant.

use super::args::{Global, HostsCommand, Which};
use super::error::{Code, Failure};
use super::inputs::working_directory;
use super::{hosts_exec, hosts_trust};
use crate::spec::{self, Inventory};

pub(super) fn hosts(global: &Global, command: &HostsCommand) -> Result<Code, Failure> {
    match command {
        HostsCommand::Exec(args) => hosts_exec::exec(global, args),
        HostsCommand::Trust(args) => hosts_trust::trust(global, args),
    }
}

/// The inventory that is named, and the names of the hosts that are meant, in its order.
pub(super) fn meant(which: &Which) -> Result<(Inventory, Vec<String>), Failure> {
    let here = working_directory()?;
    let environment = |name: &str| std::env::var(name).ok();
    let loaded = spec::load_inventory(&which.inventory, &environment, &here)
        .map_err(|problems| Failure::refused(&problems))?;
    let names = chosen(&loaded.inventory, &which.on)?;
    Ok((loaded.inventory, names))
}

/// The hosts of these names and groups; all where there are none.
pub(super) fn chosen(inventory: &Inventory, wanted: &[String]) -> Result<Vec<String>, Failure> {
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
    Ok(hosts
        .filter(|name| wanted.is_empty() || meant.contains(name))
        .collect())
}

fn unknown(inventory: &Inventory, word: &str) -> Failure {
    let known = inventory.hosts.keys().chain(inventory.groups.keys());
    let known: Vec<&str> = known.map(crate::spec::Name::as_str).collect();
    let close = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(name, word), name))
        .filter(|(distance, _)| *distance <= 2)
        .min();
    let hint = match close {
        Some((_, name)) => format!("did you mean `{name}`?"),
        None => format!("the inventory has {}", known.join(", ")),
    };
    Failure::new(Code::Usage, format!("there is no host or group `{word}`")).hint(hint)
}
