//! Kernel settings that bear on databases and their clients.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::text;

/// The settings that are read.
pub const SYSCTLS: [&str; 22] = [
    "fs.aio-max-nr",
    "fs.file-max",
    "fs.nr_open",
    "kernel.numa_balancing",
    "kernel.pid_max",
    "kernel.threads-max",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_max",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_tw_recycle",
    "net.ipv4.tcp_tw_reuse",
    "vm.dirty_background_ratio",
    "vm.dirty_ratio",
    "vm.max_map_count",
    "vm.min_free_kbytes",
    "vm.overcommit_memory",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
];

/// The settings that this kernel has, with one space between the numbers of a list.
pub(super) fn read(root: &Path) -> BTreeMap<String, String> {
    let known = SYSCTLS.iter().filter_map(|key| {
        let value = text(&root.join(path(key)))?;
        Some(((*key).to_owned(), words(&value)))
    });
    known.collect()
}

/// Where a setting lies below the root: `vm.swappiness` in `proc/sys/vm/swappiness`.
pub(in crate::host) fn path(key: &str) -> PathBuf {
    Path::new("proc/sys").join(key.replace('.', "/"))
}

/// A text with one space where there was white space.
pub(in crate::host) fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
