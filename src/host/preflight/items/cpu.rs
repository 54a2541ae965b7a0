//! The CPUs.

use super::{Finding, HostView, Known, Wanted, by_hand};
use crate::host::preflight::Fix;

/// There are enough of them.
pub(super) fn threads(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "cpu_threads";
    let Some(least) = wanted.cpu_threads else {
        return Vec::new();
    };
    let found = host.facts.cpus;
    let known = Known {
        item: ITEM,
        found: found.map(|n| n.to_string()),
        wanted: format!("{least} or more"),
        why: "the system is sized for so many; with fewer its own threads wait for each other",
        fix: by_hand("take a larger host"),
    };
    known.is(found.is_some_and(|n| n >= least), wanted.otherwise(ITEM))
}

/// Their frequency does not follow the load.
pub(super) fn governor(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "governor";
    let Some(word) = &wanted.governor else {
        return Vec::new();
    };
    let found = host.facts.governor.clone();
    let is_same = found.as_ref() == Some(word);
    let known = Known {
        item: ITEM,
        found,
        wanted: word.clone(),
        why: "a frequency that follows the load makes light load slow and rounds unlike",
        fix: Some(Fix::WriteFile {
            path: "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor".into(),
            value: word.clone(),
        }),
    };
    known.is(is_same, wanted.otherwise(ITEM))
}
