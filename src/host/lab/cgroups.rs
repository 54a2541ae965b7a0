//! The cgroups of hosts. Each host has one of its own, in which nspawn makes what the host's systemd needs; without it the
//! hosts would share one, and each other's units with it.

use std::path::{Path, PathBuf};

use super::{LabError, io};

/// Where the hierarchies are: all in one (v2), or beside each other (v1 and hybrid).
const ROOT: &str = "/sys/fs/cgroup";

/// The hierarchies that systemd keeps its units in.
fn hierarchies(root: &Path) -> Vec<PathBuf> {
    if root.join("cgroup.procs").exists() {
        return vec![root.to_owned()];
    }
    let both = ["systemd", "unified"].map(|name| root.join(name));
    let are_there = |folder: &PathBuf| folder.join("cgroup.procs").exists();
    both.into_iter().filter(are_there).collect()
}

/// Puts this process into the cgroup by that name, which is made when it is missing.
pub(super) fn join(name: &str) -> Result<(), LabError> {
    for hierarchy in hierarchies(Path::new(ROOT)) {
        let group = hierarchy.join(name);
        std::fs::create_dir_all(&group).map_err(io("make", &group))?;
        let members = group.join("cgroup.procs");
        std::fs::write(&members, "0").map_err(io("write", &members))?;
    }
    Ok(())
}

/// The processes in the cgroup by that name and in those below it.
pub(super) fn members(name: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for group in groups(Path::new(ROOT), name) {
        let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        // A process of another PID namespace stands there as 0.
        let pids = text.lines().filter_map(|line| line.parse::<i32>().ok());
        found.extend(pids.filter(|pid| *pid > 1));
    }
    found
}

/// Removes the cgroup by that name with those below it; none of them has a process any more.
pub(super) fn remove(name: &str) -> Result<(), LabError> {
    for group in groups(Path::new(ROOT), name) {
        match std::fs::remove_dir(&group) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(io("remove", &group)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The cgroups of that name, those below before those above.
fn groups(root: &Path, name: &str) -> Vec<PathBuf> {
    let tops = hierarchies(root).into_iter().map(|h| h.join(name));
    let walk = |top: PathBuf| {
        walkdir::WalkDir::new(top)
            .contents_first(true)
            .into_iter()
            .flatten()
    };
    let folders = tops.flat_map(walk).filter(|e| e.file_type().is_dir());
    folders.map(walkdir::DirEntry::into_path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_found_in_each_of_the_three_layouts() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let make = |name: &str| {
            std::fs::create_dir_all(root.join(name)).unwrap();
            std::fs::write(root.join(name).join("cgroup.procs"), "").unwrap();
        };
        assert!(hierarchies(root).is_empty());
        make("memory");
        make("systemd");
        assert_eq!(hierarchies(root), [root.join("systemd")]);
        make("unified");
        assert_eq!(
            hierarchies(root),
            [root.join("systemd"), root.join("unified")]
        );
        make("");
        assert_eq!(hierarchies(root), [root]);
    }
}
