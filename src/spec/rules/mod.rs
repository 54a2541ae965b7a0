//! What a schema cannot say: names that must exist, keys that fit together, sizes that make sense.
//! A rule runs when all that it reads is sound, so that one mistake is not reported in two forms.

mod hosts;
mod sweep;
mod variants;
mod workloads;

use std::collections::{BTreeSet, HashMap};

use super::{Experiment, Inventory, Problem};

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

    fn push(&mut self, path: String, message: String, help: Option<String>, key: bool) {
        self.0.push(Problem {
            path,
            message,
            help,
            key,
        });
    }
}

struct Rule {
    /// The paths that it reads.
    reads: &'static [&'static str],
    check: fn(&Experiment, &Inventory, &mut Findings),
}

/// What further checks may read.
const CHECKED: &[&str] = &["cluster", "variants", "hosts", "groups"];

const RULES: &[Rule] = &[
    Rule {
        reads: &["hosts", "groups"],
        check: hosts::inventory,
    },
    Rule {
        reads: &["cluster.system", "cluster.topology", "hosts", "groups"],
        check: hosts::topology,
    },
    Rule {
        reads: &["cluster", "clients", "hosts", "groups"],
        check: hosts::clients,
    },
    Rule {
        reads: &["variants"],
        check: variants::names,
    },
    Rule {
        reads: &["variants", "compare.baseline"],
        check: variants::baseline,
    },
    Rule {
        reads: &["compare.metrics"],
        check: variants::metrics,
    },
    Rule {
        reads: &["dataset"],
        check: workloads::datasets,
    },
    Rule {
        reads: &["dataset", "workloads"],
        check: workloads::loaded,
    },
    Rule {
        reads: &["workloads"],
        check: workloads::workloads,
    },
    Rule {
        reads: &["sweep"],
        check: sweep::axes,
    },
    Rule {
        reads: &["rounds"],
        check: sweep::times,
    },
    Rule {
        reads: &["variants", "workloads", "sweep", "rounds"],
        check: sweep::rounds,
    },
];

/// Runs every rule that reads none of the paths in `bad`.
pub(super) fn run(experiment: &Experiment, inventory: &Inventory, bad: &[String]) -> Findings {
    let mut findings = Findings::default();
    for rule in RULES.iter().filter(|rule| are_sound(rule.reads, bad)) {
        (rule.check)(experiment, inventory, &mut findings);
    }
    findings
}

/// Whether the further checks can be run.
pub(super) fn can_check(bad: &[String]) -> bool {
    are_sound(CHECKED, bad)
}

fn are_sound(reads: &[&str], bad: &[String]) -> bool {
    !bad.iter().any(|bad| {
        reads
            .iter()
            .any(|read| within(bad, read) || within(read, bad))
    })
}

/// Whether one path is another or lies below it.
fn within(path: &str, above: &str) -> bool {
    let rest = path.strip_prefix(above);
    rest.is_some_and(|rest| rest.is_empty() || above.is_empty() || rest.starts_with(['.', '[']))
}

/// The index of the first item that is there before.
fn repeated<T: Ord>(items: impl IntoIterator<Item = T>) -> Option<usize> {
    let mut seen = BTreeSet::new();
    items.into_iter().position(|item| !seen.insert(item))
}

/// Names that are another one but for case, each with the index of that one. Some file systems take them for one name.
fn clashes<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<(usize, usize)> {
    let mut seen = HashMap::new();
    let mut clashes = Vec::new();
    for (i, name) in names.into_iter().enumerate() {
        let first = *seen.entry(name.to_ascii_lowercase()).or_insert(i);
        if first != i {
            clashes.push((i, first));
        }
    }
    clashes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_needs_what_it_reads_and_all_around_it() {
        let bad = |path: &str| vec![path.to_owned()];
        assert!(are_sound(&["rounds"], &bad("sweep.threads[0]")));
        assert!(are_sound(&["rounds"], &bad("rounds_2")));
        assert!(!are_sound(&["rounds"], &bad("rounds.limits.load")));
        assert!(!are_sound(&["cluster.topology"], &bad("cluster")));
        assert!(!are_sound(&["cluster.topology"], &bad("")));
    }
}
