//! What a schema cannot say: names that must exist, keys that fit together, sizes that make sense.
//! Rules run on what is sound: a finding about a placeholder is dropped after them, and one that follows from another
//! value is only made when that value is no placeholder.

mod hosts;
mod inventory;
mod sweep;
mod variants;
mod workloads;

use std::collections::{BTreeSet, HashMap};

use super::bad::Bad;
use super::problem::SHOWN;
use super::{Experiment, Inventory, Name, Problem, suggest};

/// What the rules found.
#[derive(Default)]
pub(super) struct Findings(pub(super) Vec<Problem>);

impl Findings {
    /// A problem with a value.
    fn value(&mut self, path: String, message: String, help: impl Into<Option<String>>) {
        self.push(path, message, help.into(), false);
    }

    /// A problem with a key: its name, or that it is there.
    fn key(&mut self, path: String, message: String, help: impl Into<Option<String>>) {
        self.push(path, message, help.into(), true);
    }

    /// What could have been meant by an unknown name, for the first findings only: looking for it takes time.
    fn suggest<'a>(
        &self,
        name: &Name,
        known: impl FnOnce() -> Vec<&'a str>,
        what: &str,
    ) -> Option<String> {
        let few = self.0.len() <= SHOWN;
        few.then(|| suggest::help(name.as_str(), &known(), what))?
    }

    /// The known name that could have been meant by an unknown one, for the first findings only.
    fn closest<'a>(&self, name: &str, known: &[&'a str]) -> Option<&'a str> {
        let few = self.0.len() <= SHOWN;
        few.then(|| suggest::closest(name, known.iter().copied()))?
    }

    fn push(&mut self, path: String, message: String, help: Option<String>, key: bool) {
        self.0.push(Problem {
            path,
            message,
            help,
            key,
        });
    }
}

/// What a rule looks at: the spec, and which of its values are placeholders.
#[derive(Clone, Copy)]
struct View<'a> {
    experiment: &'a Experiment,
    inventory: &'a Inventory,
    bad: &'a Bad,
}

impl View<'_> {
    /// Whether the value at a path is there as it was written; parts of it may be placeholders.
    fn has(&self, path: &str) -> bool {
        !self.bad.covers(path)
    }

    /// Whether the value at a path is there with all its parts.
    fn has_all_of(&self, path: &str) -> bool {
        !self.bad.touches(path)
    }

    /// Whether all keys of the mapping at a path are there.
    fn has_keys_of(&self, path: &str) -> bool {
        !self.bad.lacks_keys(path)
    }

    /// The items of a list that are there, with their places in it.
    fn items<'t, T>(&self, path: &str, list: &'t [T]) -> Vec<(usize, &'t T)> {
        items(self.bad, path, list)
    }
}

/// The items of a list that are no placeholders, with their places in it.
fn items<'t, T>(bad: &Bad, path: &str, list: &'t [T]) -> Vec<(usize, &'t T)> {
    let items = list.iter().enumerate();
    items
        .filter(|(i, _)| !bad.covers(&format!("{path}[{i}]")))
        .collect()
}

type Rule = fn(View<'_>, &mut Findings);

const RULES: &[Rule] = &[
    hosts::topology,
    hosts::clients,
    hosts::balancer,
    variants::names,
    variants::baseline,
    variants::metrics,
    workloads::datasets,
    workloads::kinds,
    workloads::loaded,
    workloads::workloads,
    sweep::axes,
    sweep::times,
    sweep::rounds,
];

/// Runs every rule. Findings about paths that `bad` covers are the caller's to drop.
pub(super) fn run(experiment: &Experiment, inventory: &Inventory, bad: &Bad) -> Findings {
    let mut findings = Findings::default();
    inventory::check(inventory, bad, &mut findings);
    let view = View {
        experiment,
        inventory,
        bad,
    };
    for rule in RULES {
        rule(view, &mut findings);
    }
    findings
}

/// Runs the rules of an inventory by itself; what `bad` covers is left out.
pub(super) fn run_on_inventory(inventory: &Inventory, bad: &Bad) -> Findings {
    let mut findings = Findings::default();
    inventory::check(inventory, bad, &mut findings);
    findings.0.retain(|problem| !bad.covers(&problem.path));
    findings
}

/// The places of the items that are there before.
fn repeated<T: Ord>(items: impl IntoIterator<Item = (usize, T)>) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    let again = items
        .into_iter()
        .filter_map(|(i, item)| (!seen.insert(item)).then_some(i));
    again.collect()
}

/// Names that are another one but for case, each with the place of that one. Some file systems take them for one name.
fn clashes<'a>(names: impl IntoIterator<Item = (usize, &'a str)>) -> Vec<(usize, usize)> {
    let mut seen = HashMap::new();
    let mut clashes = Vec::new();
    for (i, name) in names {
        let first = *seen.entry(name.to_ascii_lowercase()).or_insert(i);
        if first != i {
            clashes.push((i, first));
        }
    }
    clashes
}
