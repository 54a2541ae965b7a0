//! How the CPUs lie: NUMA nodes, sockets, cores.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{count, text};

/// NUMA nodes that have CPUs.
pub(super) fn numa_nodes(root: &Path) -> Option<u32> {
    let folder = root.join("sys/devices/system/node");
    text(&folder.join("has_cpu"))
        .or_else(|| text(&folder.join("online")))
        .and_then(|list| count(&list))
}

/// CPU sockets with a CPU that is online.
pub(super) fn sockets(root: &Path) -> Option<u32> {
    distinct(root, |topology| text(&topology.join("physical_package_id")))
}

/// Cores with a CPU that is online; the number of a core is unique in its socket only.
pub(super) fn cores(root: &Path) -> Option<u32> {
    distinct(root, |topology| {
        let socket = text(&topology.join("physical_package_id"))?;
        Some(format!("{socket}/{}", text(&topology.join("core_id"))?))
    })
}

/// How many values the CPUs have; `None` unless every CPU tells one.
fn distinct(root: &Path, value: impl Fn(&Path) -> Option<String>) -> Option<u32> {
    let topologies = topologies(&root.join("sys/devices/system/cpu"))?;
    let values: Option<BTreeSet<String>> = topologies.iter().map(|t| value(t)).collect();
    let values = values.filter(|values| !values.is_empty())?;
    u32::try_from(values.len()).ok()
}

/// The folders `cpu<n>/topology`, which only CPUs online have.
fn topologies(folder: &Path) -> Option<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let is_cpu = |name: &str| {
        let number = name.strip_prefix("cpu");
        number.is_some_and(|n| n.parse::<u32>().is_ok())
    };
    let cpus = entries.filter(|e| is_cpu(&e.file_name().to_string_lossy()));
    let topologies = cpus.map(|e| e.path().join("topology"));
    Some(topologies.filter(|t| t.is_dir()).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn cores_are_counted_in_each_socket_and_threads_share_one() {
        let root = tempfile::tempdir().unwrap();
        let cpus = root.path().join("sys/devices/system/cpu");
        for (cpu, (socket, core)) in [(0, 0), (0, 1), (1, 0), (1, 0)].into_iter().enumerate() {
            let topology = cpus.join(format!("cpu{cpu}/topology"));
            fs::create_dir_all(&topology).unwrap();
            fs::write(topology.join("physical_package_id"), format!("{socket}\n")).unwrap();
            fs::write(topology.join("core_id"), format!("{core}\n")).unwrap();
        }
        fs::create_dir_all(cpus.join("cpu4")).unwrap();
        fs::create_dir_all(cpus.join("cpufreq/topology")).unwrap();
        assert_eq!(
            (sockets(root.path()), cores(root.path())),
            (Some(2), Some(3))
        );
    }
}
