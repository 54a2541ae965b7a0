//! Limits of processes.

use super::{Finding, HostView, Known, Wanted};
use crate::host::facts::Limit;
use crate::host::preflight::Fix;

/// A database may open enough files.
pub(super) fn open_files(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "nofile";
    let Some(least) = wanted.nofile else {
        return Vec::new();
    };
    let limits = host.facts.limits.as_ref();
    let both = limits.and_then(|l| Some((l.nofile_soft?, l.nofile_hard?)));
    let known = Known {
        item: ITEM,
        found: both.map(|(soft, hard)| match soft == hard {
            true => soft.to_string(),
            false => format!("{soft}, up to {hard}"),
        }),
        wanted: format!("{least} or more"),
        why: "a database opens a file for each table file and connection",
        fix: Some(Fix::Limits {
            name: ITEM.to_owned(),
            value: least.to_string(),
        }),
    };
    let is_enough = both.is_some_and(|(soft, hard)| soft.allows(least) && hard.allows(least));
    known.is(is_enough, wanted.otherwise(ITEM))
}

/// Threads have enough stack.
pub(super) fn stack(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "stack";
    let Some(least) = wanted.stack else {
        return Vec::new();
    };
    let found: Option<Limit> = host.facts.limits.as_ref().and_then(|l| l.stack_soft);
    let known = Known {
        item: ITEM,
        found: found.map(|limit| match limit {
            Limit::Number(bytes) => crate::units::Bytes(bytes).to_string(),
            limit @ Limit::Word(_) => limit.to_string(),
        }),
        wanted: format!("{least} or more"),
        why: "deep recursion in a query's expressions ends the process without it",
        fix: Some(Fix::Limits {
            name: ITEM.to_owned(),
            value: (least.0 / 1024).to_string(),
        }),
    };
    let is_enough = found.is_some_and(|limit| limit.allows(least.0));
    known.is(is_enough, wanted.otherwise(ITEM))
}
