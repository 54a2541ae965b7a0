//! Disks in files: XFS images, which share blocks and take space only where they are written.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use super::tool::{command, run};
use super::{Lab, LabError, io};

/// `mkfs.xfs` makes no smaller ones.
pub(super) const LEAST: u64 = 300 << 20;
/// How large a host's own disk is where it is an image; only what is written takes space.
pub(super) const DISK: u64 = 16 << 30;
/// How long the kernel may take to let a file go whose file system has just gone.
const PATIENCE: Duration = Duration::from_secs(20);

/// Makes an image of so many bytes.
pub(super) fn make(lab: &Lab, path: &Path, bytes: u64) -> Result<(), LabError> {
    let file = File::create_new(path).map_err(io("make", path))?;
    file.set_len(bytes).map_err(io("extend", path))?;
    let mut mkfs = command("mkfs.xfs", &lab.id);
    mkfs.args(["-q", "-m", "reflink=1"]).arg(path);
    run(&mut mkfs, "make an XFS").map(drop)
}

/// Mounts an image, in this process's mount namespace. The kernel frees the loop device with the mount.
pub(super) fn mount(mark: &str, image: &Path, at: &Path) -> Result<(), LabError> {
    let mut mount = command("mount", mark);
    mount
        .args(["-t", "xfs", "-o", "loop,noatime"])
        .arg(image)
        .arg(at);
    run(&mut mount, &format!("mount `{}`", image.display())).map(drop)
}

/// Waits until no loop device holds a file below `folder`. Their file systems went with the hosts' processes; what the
/// kernel does not free by itself is detached.
pub(super) fn wait_until_free(lab: &Lab, folder: &Path) -> Result<(), LabError> {
    let end = Instant::now() + PATIENCE;
    let half = Instant::now() + PATIENCE / 2;
    loop {
        let held = loops_below(folder);
        let Some(device) = held.first() else {
            return Ok(());
        };
        if Instant::now() > end {
            let why = format!("`{device}` holds a file in it");
            let path = folder.to_owned();
            return Err(LabError::Foreign { path, why });
        }
        if Instant::now() > half {
            let mut detach = command("losetup", &lab.id);
            // It may have gone by itself.
            let _ = run(detach.args(["-d", device]), "detach a loop device");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The loop devices whose file is below `folder`.
pub(super) fn loops_below(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir("/sys/block")
        .into_iter()
        .flatten()
        .flatten();
    let holds = |entry: std::fs::DirEntry| {
        let file = std::fs::read_to_string(entry.path().join("loop/backing_file")).ok()?;
        let device = format!("/dev/{}", entry.file_name().to_string_lossy());
        Path::new(file.trim_end())
            .starts_with(folder)
            .then_some(device)
    };
    entries.filter_map(holds).collect()
}
