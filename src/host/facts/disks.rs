//! Disks as the kernel lists them, and the file systems that keep data.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{FileSystem, described, selected, text};
use crate::host::mounts::Mount;

/// A disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockDevice {
    /// Its name, such as `nvme0n1`.
    pub name: String,
    /// Its model.
    pub model: Option<String>,
    /// Whether it turns.
    pub rotational: Option<bool>,
    /// Bytes in all.
    pub size_bytes: Option<u64>,
    /// The scheduler in use, such as `none`.
    pub scheduler: Option<String>,
}

/// The kernel counts in sectors of so many bytes, whatever the disk's are.
const SECTOR: u64 = 512;
/// What is no disk: files and memory that are used as one, and drives without a medium.
const NONE: [&str; 6] = ["loop", "ram", "zram", "sr", "fd", "nbd"];

/// The disks, by name; of those without a size there is no medium.
pub(super) fn devices(root: &Path) -> Vec<BlockDevice> {
    let folder = root.join("sys/block");
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let names = entries.map(|e| e.file_name().to_string_lossy().into_owned());
    let is_disk = |name: &String| {
        let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
        !NONE.contains(&kind)
    };
    let devices = names
        .filter(is_disk)
        .map(|name| device(&folder.join(&name), name));
    let mut found: Vec<_> = devices.filter(|d| d.size_bytes != Some(0)).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn device(folder: &Path, name: String) -> BlockDevice {
    let text = |file: &str| text(&folder.join(file));
    BlockDevice {
        name,
        model: text("device/model"),
        rotational: text("queue/rotational").map(|value| value != "0"),
        size_bytes: text("size").and_then(|n| n.parse::<u64>().ok()?.checked_mul(SECTOR)),
        scheduler: text("queue/scheduler").map(|list| selected(&list).unwrap_or(list)),
    }
}

/// The mounted file systems that keep data on a disk, each point once. Those over a network are left out: one whose
/// server is gone would not answer.
pub(super) fn file_systems(mounts: &[Mount]) -> Vec<FileSystem> {
    let mut found: Vec<FileSystem> = Vec::new();
    let keeps =
        |m: &&Mount| m.device.starts_with("/dev/") || m.kind == "zfs" || m.kind == "overlay";
    for mount in mounts.iter().filter(keeps) {
        // A file can be a mount point as well, as containers have them.
        let stat = rustix::fs::statvfs(&mount.point).ok();
        if let Some(stat) = stat.filter(|_| mount.point.is_dir()) {
            let point = mount.point.display().to_string();
            found.retain(|known| known.mount != point);
            found.push(described(mount, &stat));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn disks_are_told_with_model_scheduler_and_size_and_loops_are_none() {
        let root = tempfile::tempdir().unwrap();
        let block = root.path().join("sys/block");
        for name in ["sdb", "loop0", "nvme0n1", "sda", "sr0"] {
            fs::create_dir_all(block.join(name).join("queue")).unwrap();
        }
        let put = |path: &str, text: &str| fs::write(block.join(path), text).unwrap();
        fs::create_dir_all(block.join("sda/device")).unwrap();
        put("sda/device/model", "ST4000NM0035    \n");
        put("sda/queue/rotational", "1\n");
        put("sda/queue/scheduler", "none [mq-deadline] kyber\n");
        put("sda/size", "7814037168\n");
        put("sdb/size", "0\n");
        put("nvme0n1/queue/scheduler", "[none] mq-deadline\n");
        let found = devices(root.path());
        let expected = BlockDevice {
            name: "sda".into(),
            model: Some("ST4000NM0035".into()),
            rotational: Some(true),
            size_bytes: Some(4_000_787_030_016),
            scheduler: Some("mq-deadline".into()),
        };
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].scheduler.as_deref(), Some("none"));
        assert_eq!(found[1], expected);
    }
}
