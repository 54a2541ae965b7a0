//! The processes of a unit, as the kernel knows them: its control group and those in it.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

/// Where control groups are.
const ROOT: &str = "/sys/fs/cgroup";

/// The folder of a control group that systemd gives as `/system.slice/x.service`.
pub(super) fn folder(group: &str) -> PathBuf {
    let root = Path::new(ROOT);
    let root = match root.join("cgroup.controllers").exists() {
        true => root.to_owned(),
        // The hierarchy of systemd itself, where each controller has one of its own.
        false => root.join("systemd"),
    };
    root.join(group.trim_start_matches('/'))
}

/// The processes in a control group and in those in it.
pub(super) fn processes(folder: &Path) -> Vec<u32> {
    let mut found: Vec<u32> = fs::read_to_string(folder.join("cgroup.procs"))
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        found.extend(processes(&entry.path()));
    }
    // A process of another namespace has no number here.
    found.retain(|pid| *pid != 0);
    found
}

/// Bytes of memory that the processes of a control group have; what they share counts for each.
pub(super) fn memory(folder: &Path) -> u64 {
    let pages = processes(folder).into_iter().filter_map(|pid| {
        let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        text.split(' ').nth(1)?.parse::<u64>().ok()
    });
    pages.sum::<u64>() * rustix::param::page_size() as u64
}

/// Sends a signal to every process in a control group.
pub(super) fn signal(folder: &Path, signal: Signal) {
    let kills_all = signal == Signal::KILL && fs::write(folder.join("cgroup.kill"), "1").is_ok();
    if kills_all {
        return;
    }
    for pid in processes(folder) {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            // It may have ended just now.
            let _ = kill_process(pid, signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processes_of_a_group_are_those_of_the_groups_in_it_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner/most");
        fs::create_dir_all(&inner).unwrap();
        fs::write(folder.path().join("cgroup.procs"), "1\n2\n").unwrap();
        fs::write(inner.join("cgroup.procs"), "30\n0\n").unwrap();
        assert_eq!(processes(folder.path()), [1, 2, 30]);
        assert_eq!(processes(&folder.path().join("gone")), [0; 0]);
    }
}
