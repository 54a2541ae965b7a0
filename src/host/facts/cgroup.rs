//! What the control group of this process may use, of both versions of control groups.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::text;

/// The tightest limits of a control group and of those above it; `None` is no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cgroup {
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// CPUs' worth of time.
    pub cpus: Option<f64>,
}

/// Version 1 writes a page-aligned number near 2^63 where there is no limit.
const UNLIMITED: u64 = 1 << 62;

/// The limits of this process, as `/proc/self/cgroup` places it below `sys/fs/cgroup`.
pub(super) fn read(root: &Path) -> Option<Cgroup> {
    let lines = text(&root.join("proc/self/cgroup"))?;
    let mut found = Cgroup::default();
    for line in lines.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        for folder in folders(root, controllers, path) {
            found.tighten(&folder);
        }
    }
    Some(found)
}

/// The group's folder and those above it.
fn folders(root: &Path, controllers: &str, path: &str) -> Vec<PathBuf> {
    let top = root.join("sys/fs/cgroup").join(controllers);
    let own = top.join(path.trim_start_matches('/'));
    let within = own
        .ancestors()
        .take_while(|folder| folder.starts_with(&top));
    within.map(Path::to_owned).collect()
}

impl Cgroup {
    fn tighten(&mut self, folder: &Path) {
        let number = |file: &str| text(&folder.join(file))?.parse::<u64>().ok();
        for bytes in ["memory.max", "memory.limit_in_bytes"]
            .into_iter()
            .filter_map(number)
        {
            let bytes = Some(bytes).filter(|bytes| *bytes < UNLIMITED);
            self.memory_bytes = least(self.memory_bytes, bytes);
        }
        let shares = number("cpu.cfs_quota_us").zip(number("cpu.cfs_period_us"));
        let cpus = text(&folder.join("cpu.max")).and_then(|text| cpu_max(&text));
        for cpus in [cpus, shares.map(ratio)] {
            self.cpus = least(self.cpus, cpus);
        }
    }
}

fn least<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b < a { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// `200000 100000`, or `max 100000` where there is no limit.
fn cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    Some(ratio((quota.parse().ok()?, period.parse().ok()?)))
}

fn ratio((quota, period): (u64, u64)) -> f64 {
    quota as f64 / period.max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_tightest_limit_of_a_group_and_those_above_it_counts() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        put(root, "proc/self/cgroup", "0::/a/b\n");
        put(root, "sys/fs/cgroup/a/memory.max", "1073741824\n");
        put(root, "sys/fs/cgroup/a/b/memory.max", "max\n");
        put(root, "sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
        let expected = Cgroup {
            memory_bytes: Some(1 << 30),
            cpus: Some(1.5),
        };
        assert_eq!(read(root), Some(expected));
    }

    #[test]
    fn the_first_version_says_no_limit_with_a_huge_number() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        put(root, "proc/self/cgroup", "3:memory:/x\n2:cpu,cpuacct:/x\n");
        put(
            root,
            "sys/fs/cgroup/memory/x/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        put(root, "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "-1\n");
        put(
            root,
            "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us",
            "100000\n",
        );
        assert_eq!(read(root), Some(Cgroup::default()));
    }
}
