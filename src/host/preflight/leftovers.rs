//! What earlier runs left on a host: unfinished folders, units, processes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use walkdir::{DirEntry, WalkDir};

use super::holder::{self, HeldBy};
use crate::host::MARKER_FILE;
use crate::host::facts::text;

/// How deep below the host's directory deployments and their folders lie.
const DEPTH: usize = 5;
/// The endings of folders that a snapshot or a restore writes before it puts them in their place.
const UNFINISHED: [&str; 3] = [".partial", ".incoming", ".outgoing"];
/// How the names of units begin that assay starts.
const UNIT: &str = "assay-";

/// What earlier runs left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Leftovers {
    /// Folders of snapshots and restores that did not come to their end.
    pub folders: Vec<PathBuf>,
    /// Transient systemd units.
    pub units: Vec<String>,
    /// Processes that run from, or in, a deployment's folder.
    pub processes: Vec<Process>,
    /// Who holds the host at the moment. All of this is then that one's, and nothing is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<HeldBy>,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

/// Looks for what earlier runs left in the host's `directory` and on the machine below `root`.
pub(super) fn look(root: &Path, directory: &Path) -> Leftovers {
    let folders = Folders::below(directory);
    Leftovers {
        processes: processes(root, &folders.marked),
        folders: folders.unfinished,
        units: units(root),
        held_by: holder::look(directory),
    }
}

#[derive(Default)]
struct Folders {
    unfinished: Vec<PathBuf>,
    marked: Vec<PathBuf>,
}

impl Folders {
    /// The folders of deployments. What a marked one holds is a database's, and may be a great deal.
    fn below(directory: &Path) -> Self {
        let mut found = Self::default();
        let mut walk = WalkDir::new(directory).max_depth(DEPTH).into_iter();
        while let Some(entry) = walk.next() {
            let Some(entry) = entry.ok().filter(|e| e.file_type().is_dir()) else {
                continue;
            };
            let is_marked = entry.path().join(MARKER_FILE).is_file();
            if is_unfinished(&entry) {
                found.unfinished.push(entry.path().to_owned());
            }
            if is_marked {
                let real = entry.path().canonicalize();
                found.marked.push(real.unwrap_or(entry.into_path()));
                walk.skip_current_dir();
            }
        }
        found.unfinished.sort();
        found
    }
}

fn is_unfinished(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy();
    UNFINISHED.iter().any(|ending| name.ends_with(ending))
}

/// Transient units of the system's manager and of users' ones have files of their own.
fn units(root: &Path) -> Vec<String> {
    let entries = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let users = entries(root.join("run/user")).map(|user| user.path());
    let managers = std::iter::once(root.join("run")).chain(users);
    let files = managers.flat_map(|run| entries(run.join("systemd/transient")));
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    let ours = names.filter(|name| name.starts_with(UNIT) && !name.ends_with(".d"));
    BTreeSet::from_iter(ours).into_iter().collect()
}

fn processes(root: &Path, marked: &[PathBuf]) -> Vec<Process> {
    let entries = std::fs::read_dir(root.join("proc")).into_iter().flatten();
    let mut found: Vec<Process> = entries
        .flatten()
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let links = ["exe", "cwd"].map(|link| std::fs::read_link(entry.path().join(link)));
            let lies = |path: &PathBuf| marked.iter().any(|folder| path.starts_with(folder));
            let is_none = pid == std::process::id() || !links.iter().flatten().any(lies);
            (!is_none).then(|| Process {
                pid,
                name: text(&entry.path().join("comm")).unwrap_or_default(),
            })
        })
        .collect();
    found.sort_by_key(|process| process.pid);
    found
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn unfinished_folders_units_and_processes_of_deployments_are_found() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let directory = root.join("srv/assay");
        for name in ["data", "snapshot.partial", "data.incoming"] {
            let folder = directory.join("exp/wal").join(name);
            fs::create_dir_all(folder.join("inner.partial")).unwrap();
            fs::write(folder.join(MARKER_FILE), "{}").unwrap();
        }
        let transient = root.join("run/systemd/transient");
        fs::create_dir_all(&transient).unwrap();
        for unit in ["assay-load.service", "other.service"] {
            fs::write(transient.join(unit), "").unwrap();
        }
        let data = directory.join("exp/wal/data").canonicalize().unwrap();
        for (pid, name, cwd) in [("41", "tidb-server", data), ("42", "bash", root.to_owned())] {
            let process = root.join("proc").join(pid);
            fs::create_dir_all(&process).unwrap();
            fs::write(process.join("comm"), name).unwrap();
            symlink(cwd, process.join("cwd")).unwrap();
        }
        let found = look(root, &directory);
        let names = |paths: &[PathBuf]| -> Vec<String> {
            let names = paths
                .iter()
                .map(|p| p.file_name().unwrap().to_string_lossy());
            names.map(|name| name.into_owned()).collect()
        };
        assert_eq!(names(&found.folders), ["data.incoming", "snapshot.partial"]);
        assert_eq!(found.units, ["assay-load.service"]);
        let process = Process {
            pid: 41,
            name: "tidb-server".into(),
        };
        assert_eq!(found.processes, [process]);
    }

    #[test]
    fn a_directory_that_is_not_there_has_no_leftovers() {
        let root = tempfile::tempdir().unwrap();
        let found = look(root.path(), &root.path().join("nothing"));
        assert_eq!(found, Leftovers::default());
    }
}
