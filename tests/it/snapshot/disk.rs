//! Small disks: file systems that share blocks, and disks that fill up.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use assay::snapshot::SnapshotError;
use assay::snapshot::directory::{Progress, Stage, probe, restore, take};
use tempfile::TempDir;

use super::trees::account;
use super::{Bench, COPY, is_root, quiet, skipped};

/// A mounted file system of its own, unmounted when dropped.
pub(super) struct Disk(TempDir);

impl Disk {
    /// An XFS in a file. The error says why there is none.
    pub(super) fn xfs() -> Result<Self, String> {
        let disk = Self::new()?;
        let image = disk.0.path().join("image");
        let file = fs::File::create(&image).unwrap();
        file.set_len(512 << 20).unwrap();
        run(Command::new("mkfs.xfs")
            .args(["-q", "-m", "reflink=1"])
            .arg(&image))?;
        disk.mount_image()?;
        Ok(disk)
    }

    /// So many bytes of memory.
    fn memory(bytes: u64) -> Result<Self, String> {
        let disk = Self::new()?;
        let size = format!("size={bytes}");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]);
        run(mount.arg(disk.folder()))?;
        Ok(disk)
    }

    fn new() -> Result<Self, String> {
        if !is_root() {
            return Err("only root may mount a file system".to_owned());
        }
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("mounted")).unwrap();
        Ok(Self(folder))
    }

    pub(super) fn folder(&self) -> PathBuf {
        self.0.path().join("mounted")
    }

    /// Bytes that are free on an XFS when nothing is left to be done in the background: it is mounted again.
    pub(super) fn settled_free(&self) -> u64 {
        run(Command::new("umount").arg(self.folder())).unwrap();
        self.mount_image().unwrap();
        let stat = rustix::fs::statvfs(self.folder()).unwrap();
        stat.f_bavail * stat.f_frsize
    }

    fn mount_image(&self) -> Result<(), String> {
        let image = self.0.path().join("image");
        run(Command::new("mount")
            .args(["-o", "loop"])
            .arg(image)
            .arg(self.folder()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.folder()).output();
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        )),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

/// A bench whose data is on one disk and whose snapshot is on another of so many bytes.
fn with_small_disk(test: &str, bytes: u64) -> Option<(Bench, Disk)> {
    match Disk::memory(bytes) {
        Ok(disk) => {
            let mut bench = Bench::new();
            bench.order.snapshot = disk.folder().join("snapshots/t0");
            Some((bench, disk))
        }
        Err(why) => {
            skipped(test, &why);
            None
        }
    }
}

#[test]
fn a_disk_that_is_too_small_is_refused_before_anything_is_written() {
    let test = "a_disk_that_is_too_small_is_refused_before_anything_is_written";
    let Some((bench, disk)) = with_small_disk(test, 2 << 20) else {
        return;
    };
    bench.write("table", &"x".repeat(4 << 20));
    let mut copied = false;
    let mut watch = |progress: &Progress| copied |= progress.stage == Stage::Copying;
    let error = take(&bench.order, COPY, &mut watch).unwrap_err();
    let place = disk.folder().join("snapshots");
    assert_eq!(
        error.to_string(),
        format!(
            "no space left on device (4.0 MiB wanted, 2.0 MiB free at `{}`)",
            place.display()
        )
    );
    assert!(!copied);
}

/// Takes all the room that is left on a disk.
fn fill_up(folder: &Path) {
    let mut file = fs::File::create(folder.join("ballast")).unwrap();
    while std::io::Write::write_all(&mut file, &[b'x'; 4096]).is_ok() {}
}

#[test]
fn a_disk_that_fills_up_half_way_leaves_no_snapshot_and_no_rest() {
    let test = "a_disk_that_fills_up_half_way_leaves_no_snapshot_and_no_rest";
    let Some((bench, disk)) = with_small_disk(test, 16 << 20) else {
        return;
    };
    for i in 0..6 {
        bench.write(&i.to_string(), &"x".repeat(1 << 20));
    }
    let before = account(bench.data());
    let mut filled = false;
    let mut watch = |progress: &Progress| {
        if progress.files == 2 && !filled {
            fill_up(&disk.folder());
            filled = true;
        }
    };
    let error = take(&bench.order, COPY, &mut watch).unwrap_err();
    assert!(matches!(error, SnapshotError::Space { .. }), "{error:?}");
    assert!(filled);
    let left = fs::read_dir(disk.folder().join("snapshots")).unwrap();
    assert_eq!(left.count(), 0);
    assert_eq!(account(bench.data()), before);
}

#[test]
fn a_disk_that_fills_up_during_a_restore_leaves_the_old_data() {
    let disk = match Disk::memory(16 << 20) {
        Ok(disk) => disk,
        Err(why) => return skipped("a_disk_that_fills_up_during_a_restore", &why),
    };
    let bench = Bench::within(&disk.folder().join("bench"));
    for i in 0..4 {
        bench.write(&i.to_string(), &"x".repeat(1 << 20));
    }
    take(&bench.order, COPY, &mut quiet).unwrap();
    bench.write("0", "old");
    let before = account(bench.data());
    let mut watch = |progress: &Progress| {
        if progress.files == 2 && !disk.folder().join("ballast").exists() {
            fill_up(&disk.folder());
        }
    };
    let error = restore(&bench.order, COPY, &mut watch).unwrap_err();
    assert!(matches!(error, SnapshotError::Space { .. }), "{error:?}");
    assert_eq!(account(bench.data()), before);
    fs::remove_file(disk.folder().join("ballast")).unwrap();
    restore(&bench.order, COPY, &mut quiet).unwrap();
    assert_eq!(bench.read("0").len(), 1 << 20);
}

#[test]
fn a_file_system_that_shares_blocks_is_found_by_trying() {
    let disk = match Disk::xfs() {
        Ok(disk) => disk,
        Err(why) => return skipped("a_file_system_that_shares_blocks_is_found_by_trying", &why),
    };
    let can = probe(&disk.folder()).unwrap();
    assert_eq!((can.reflink, can.file_system.as_str()), (true, "xfs"));
    assert_eq!(
        fs::read_dir(disk.folder()).unwrap().count(),
        0,
        "nothing is left"
    );
}

#[test]
fn a_file_system_that_shares_no_blocks_is_found_by_trying() {
    let disk = match Disk::memory(1 << 20) {
        Ok(disk) => disk,
        Err(why) => {
            return skipped(
                "a_file_system_that_shares_no_blocks_is_found_by_trying",
                &why,
            );
        }
    };
    let can = probe(&disk.folder()).unwrap();
    assert_eq!((can.reflink, can.file_system.as_str()), (false, "tmpfs"));
    assert!(can.why.unwrap().starts_with("Operation not supported"));
    assert_eq!(
        fs::read_dir(disk.folder()).unwrap().count(),
        0,
        "nothing is left"
    );
}

#[test]
fn data_with_a_file_system_mounted_in_it_is_refused() {
    let disk = match Disk::memory(1 << 20) {
        Ok(disk) => disk,
        Err(why) => return skipped("data_with_a_file_system_mounted_in_it_is_refused", &why),
    };
    let bench = Bench::within(disk.0.path());
    let inner = bench.data().join("inner");
    fs::create_dir(&inner).unwrap();
    let bind = |from: &Path, to: &Path| run(Command::new("mount").arg("--bind").arg(from).arg(to));
    bind(&disk.folder(), &inner).unwrap();
    let errors = [
        take(&bench.order, COPY, &mut quiet).unwrap_err(),
        assay::snapshot::directory::remove(bench.data(), &super::marker(), &mut quiet).unwrap_err(),
    ];
    let unmounted = run(Command::new("umount").arg(&inner));
    for error in errors {
        let message = error.to_string();
        assert!(
            message.contains("another file system is mounted in it"),
            "{message}"
        );
    }
    unmounted.unwrap();
}
