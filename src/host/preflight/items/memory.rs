//! Memory and swap.

use super::{Finding, HostView, Known, Wanted, by_hand, on_or_off};
use crate::host::preflight::Fix;
use crate::units::Bytes;

/// There is enough of it.
pub(super) fn size(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "memory";
    let Some(least) = wanted.memory else {
        return Vec::new();
    };
    let found = host.facts.memory_bytes.map(Bytes);
    let known = Known {
        item: ITEM,
        found: found.map(|bytes| bytes.to_string()),
        wanted: format!("{least} or more"),
        why: "caches are sized by it, and a host that runs out of it kills the database",
        fix: by_hand("take a larger host"),
    };
    known.is(found.is_some_and(|n| n >= least), wanted.otherwise(ITEM))
}

/// Swap is off, or on.
pub(super) fn swap(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "swap";
    let Some(on) = wanted.swap else {
        return Vec::new();
    };
    let found = host.facts.swap_bytes.map(|bytes| bytes > 0);
    let known = Known {
        item: ITEM,
        found: host.facts.swap_bytes.map(|bytes| match bytes {
            0 => on_or_off(false),
            bytes => format!("on, {}", Bytes(bytes)),
        }),
        wanted: on_or_off(on),
        why: "pages that are swapped out come back in the middle of a request",
        fix: if on {
            by_hand("add swap")
        } else {
            Some(Fix::SwapOff)
        },
    };
    known.is(found == Some(on), wanted.otherwise(ITEM))
}
