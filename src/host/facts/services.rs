//! Daemons that bear on measurements, found by the names of running processes, and SELinux.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::text;

/// A daemon, and the names that the kernel gives its process: at most 15 characters.
const DAEMONS: [(&str, &[&str]); 5] = [
    ("chronyd", &["chronyd"]),
    ("firewalld", &["firewalld"]),
    ("irqbalance", &["irqbalance"]),
    ("ntpd", &["ntpd"]),
    ("systemd-timesyncd", &["systemd-timesyn"]),
];

/// The daemons among these that keep the clock.
pub const CLOCK_DAEMONS: [&str; 3] = ["chronyd", "ntpd", "systemd-timesyncd"];

/// Whether each daemon is running; empty where no process can be seen.
pub(super) fn read(root: &Path) -> BTreeMap<String, bool> {
    let running = processes(root);
    if running.is_empty() {
        return BTreeMap::new();
    }
    let runs = |names: &[&str]| names.iter().any(|name| running.contains(*name));
    DAEMONS
        .iter()
        .map(|(daemon, names)| ((*daemon).to_owned(), runs(names)))
        .collect()
}

/// The names of all processes. firewalld is a script, whose process bears its name all the same.
fn processes(root: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(root.join("proc")).into_iter().flatten();
    let numbers = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        name.to_string_lossy().bytes().all(|b| b.is_ascii_digit())
    });
    numbers
        .filter_map(|entry| text(&entry.path().join("comm")))
        .collect()
}

/// `enforcing`, `permissive`, or `absent` where the kernel has no SELinux or it is off.
pub(super) fn selinux(root: &Path) -> Option<String> {
    let file_systems = text(&root.join("proc/filesystems"))?;
    let word = match text(&root.join("sys/fs/selinux/enforce")).as_deref() {
        Some("1") => "enforcing",
        Some(_) => "permissive",
        None if !file_systems.contains("selinuxfs") => "absent",
        None if !root.join("sys/fs/selinux/enforce").exists() => "absent",
        None => return None,
    };
    Some(word.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_daemon_runs_if_a_process_bears_its_name() {
        let root = tempfile::tempdir().unwrap();
        for (pid, name) in [("1", "systemd"), ("77", "systemd-timesyn")] {
            fs::create_dir_all(root.path().join("proc").join(pid)).unwrap();
            fs::write(root.path().join("proc").join(pid).join("comm"), name).unwrap();
        }
        let found = read(root.path());
        assert_eq!(found.get("systemd-timesyncd"), Some(&true));
        assert_eq!(found.get("chronyd"), Some(&false));
        for daemon in CLOCK_DAEMONS {
            assert!(found.contains_key(daemon), "{daemon}");
        }
    }

    #[test]
    fn selinux_enforces_only_where_the_kernel_says_so() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert_eq!(selinux(root), None);
        fs::create_dir_all(root.join("proc")).unwrap();
        fs::write(
            root.join("proc/filesystems"),
            "nodev\tproc\nnodev\tselinuxfs\n",
        )
        .unwrap();
        assert_eq!(selinux(root).as_deref(), Some("absent"));
        fs::create_dir_all(root.join("sys/fs/selinux")).unwrap();
        for (value, word) in [("1", "enforcing"), ("0", "permissive")] {
            fs::write(root.join("sys/fs/selinux/enforce"), value).unwrap();
            assert_eq!(selinux(root).as_deref(), Some(word));
        }
    }
}
