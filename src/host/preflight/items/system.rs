//! The operating system.

use std::collections::BTreeMap;

use super::{Finding, HostView, Known, Status, Wanted, by_hand};
use crate::host::preflight::{Releases, Rule};

/// The release is one that the system is made for; on one that is merely known to work there is a warning.
pub(super) fn release(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "os";
    let Some(releases) = &wanted.os else {
        return Vec::new();
    };
    let id = host.facts.os_id.as_deref();
    let version = host.facts.os_version.as_deref().unwrap_or_default();
    let is_in = |list: &BTreeMap<String, Rule>| {
        let rule = id.and_then(|id| list.get(id));
        rule.is_some_and(|rule| rule.allows(version))
    };
    let otherwise = match is_in(&releases.tolerated) {
        true => Status::Warn,
        false => wanted.otherwise(ITEM),
    };
    let known = Known {
        item: ITEM,
        found: id.map(|id| format!("{id} {version}").trim().to_owned()),
        wanted: names(releases),
        why: "the system's makers test it there; elsewhere a fault may be the platform's",
        fix: by_hand("install one of these, or take the numbers for what they are"),
    };
    known.is(is_in(&releases.supported), otherwise)
}

fn names(releases: &Releases) -> String {
    let all = releases.supported.iter();
    let names = all.map(|(id, rule)| match rule.to_string().as_str() {
        "*" => id.clone(),
        rule => format!("{id} {rule}"),
    });
    names.collect::<Vec<_>>().join("; ")
}

/// SELinux does not stand in the way.
pub(super) fn selinux(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "selinux";
    let Some(may_enforce) = wanted.selinux else {
        return Vec::new();
    };
    let found = host.facts.selinux.clone();
    let is_fine = may_enforce || found.as_deref().is_some_and(|word| word != "enforcing");
    let known = Known {
        item: ITEM,
        found,
        wanted: "not enforcing".to_owned(),
        why: "units that start programs from their own folders are refused",
        fix: by_hand("`setenforce 0`, and `SELINUX=permissive` in /etc/selinux/config"),
    };
    known.is(is_fine, wanted.otherwise(ITEM))
}

/// The kernel wakes one waiting thread for a connection, not all.
pub(super) fn epoll_exclusive(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "epoll_exclusive";
    if !wanted.epoll_exclusive {
        return Vec::new();
    }
    let has = host.facts.kernel_at_least(4, 5);
    let known = Known {
        item: ITEM,
        found: has.and_then(|_| host.facts.kernel.clone()),
        wanted: "kernel 4.5 or later".to_owned(),
        why: "without EPOLLEXCLUSIVE every thread wakes for each connection",
        fix: by_hand("install a newer kernel"),
    };
    known.is(has == Some(true), wanted.otherwise(ITEM))
}
