//! Settings of the kernel.

use super::{Finding, HostView, Known, Wanted, by_hand};
use crate::host::preflight::{Fix, Rule};

/// Transparent huge pages are as the system wants them.
pub(super) fn huge_pages(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "thp";
    let Some(word) = &wanted.thp else {
        return Vec::new();
    };
    let found = host.facts.thp.clone();
    let is_same = found.as_ref() == Some(word);
    let known = Known {
        item: ITEM,
        found,
        wanted: word.clone(),
        why: "where a system is not made for huge pages, making them stalls it; where it is, small ones cost it time",
        fix: Some(Fix::WriteFile {
            path: "/sys/kernel/mm/transparent_hugepage/enabled".into(),
            value: word.clone(),
        }),
    };
    known.is(is_same, wanted.otherwise(ITEM))
}

/// Every setting that is wanted.
pub(super) fn settings(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    let each = wanted.sysctl.iter();
    each.flat_map(|(key, rule)| setting(host, wanted, key, rule))
        .collect()
}

/// Settings that newer kernels no longer have, since the thing that they set is gone: the first kernel without.
const GONE: [(&str, (u32, u32)); 1] = [("net.ipv4.tcp_tw_recycle", (4, 12))];

fn setting(host: &HostView<'_>, wanted: &Wanted, key: &str, rule: &Rule) -> Vec<Finding> {
    let found = host.facts.sysctls.get(key).cloned();
    let mut gone = GONE
        .iter()
        .filter(|(name, _)| found.is_none() && *name == key);
    let is_gone =
        gone.any(|(_, (major, minor))| host.facts.kernel_at_least(*major, *minor) == Some(true));
    let is_fine = is_gone || found.as_ref().is_some_and(|value| rule.allows(value));
    let fix = rule.value().map(|value| Fix::WriteSysctl {
        key: key.to_owned(),
        value: value.to_owned(),
    });
    let known = Known {
        item: key,
        found: found.or_else(|| is_gone.then(|| "gone from this kernel".to_owned())),
        wanted: rule.to_string(),
        why: why(key),
        fix: fix.or_else(|| by_hand(format!("set {key} to {rule}"))),
    };
    known.is(is_fine, wanted.otherwise(key))
}

fn why(key: &str) -> &'static str {
    match key {
        "fs.file-max" | "fs.nr_open" => {
            "a database opens a file for each table file and connection"
        }
        "fs.aio-max-nr" => "asynchronous reads and writes fail above it",
        "kernel.pid_max" | "kernel.threads-max" => "every connection may be a thread",
        "net.core.somaxconn" | "net.ipv4.tcp_max_syn_backlog" => {
            "connections that come in a burst are refused above it"
        }
        "net.ipv4.tcp_syncookies" => "under a burst of connections cookies drop their options",
        "net.ipv4.tcp_tw_recycle" => "it drops connections of clients behind one address",
        "net.ipv4.tcp_tw_reuse" | "net.ipv4.tcp_fin_timeout" => {
            "closed connections keep their ports for a while"
        }
        "vm.max_map_count" => "a database maps its files into memory, each piece counts",
        "vm.min_free_kbytes" => "a burst of packets needs memory at once",
        "vm.overcommit_memory" => "strict accounting refuses memory that nobody uses",
        "vm.swappiness" => "pages that are swapped out come back in the middle of a request",
        "vm.zone_reclaim_mode" | "kernel.numa_balancing" => "moving memory between nodes stalls it",
        _ => "the system's makers ask for it",
    }
}
