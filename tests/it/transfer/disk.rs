//! Full disks and missing rights, on the host and here.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use assay::host::transfer::{Fault, Options, Source, TransferError, download, upload};
use tempfile::TempDir;

use super::bench::{FolderHost, names, noise, receive, retrying, send};

/// A small disk in memory, unmounted when dropped.
struct Disk(TempDir);

impl Disk {
    /// One of so many bytes; says why not, if there cannot be one.
    fn new(test: &str, bytes: u64) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skipped(test, "only root may mount a file system");
            return None;
        }
        let folder = TempDir::new().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"]);
        let output = mount.arg(folder.path()).output().unwrap();
        if !output.status.success() {
            skipped(test, &String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Some(Self(folder))
    }

    fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    /// Takes what is left of it.
    fn filling(&self) -> Options {
        let filler = self.path().join("filler");
        let mut options = retrying(0);
        options.progress = Arc::new(move |_| {
            // It ends with the disk.
            let _ = fs::write(&filler, vec![1; 64 << 20]);
        });
        options
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

/// A test that cannot run here says so and why.
fn skipped(test: &str, why: &str) {
    use std::io::Write;
    let text = format!("skipped: {test}: {why}\n");
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}

fn on_host<T: std::fmt::Debug>(result: Result<T, TransferError>) -> Fault {
    match result.unwrap_err() {
        TransferError::OnHost { source, .. } => source,
        other => panic!("{other:?}"),
    }
}

fn here<T: std::fmt::Debug>(result: Result<T, TransferError>) -> Fault {
    match result.unwrap_err() {
        TransferError::Here(fault) => fault,
        other => panic!("{other:?}"),
    }
}

fn file(folder: &TempDir, size: usize) -> PathBuf {
    let file = folder.path().join("x");
    fs::write(&file, noise(1, size)).unwrap();
    file
}

#[tokio::test]
async fn a_host_without_room_is_told_before_anything_is_sent() {
    let Some(disk) = Disk::new(
        "a_host_without_room_is_told_before_anything_is_sent",
        2 << 20,
    ) else {
        return;
    };
    let mut host = FolderHost::new();
    host.root = disk.path();
    let local = TempDir::new().unwrap();
    let result = send(&host, &file(&local, 4 << 20), "x").await;
    let Fault::Space { path, wanted, free } = on_host(result) else {
        panic!("another fault");
    };
    assert_eq!((path, wanted), (disk.path().join(".assay-cache"), 4 << 20));
    assert!(free > 1 << 20 && free <= 2 << 20, "{free}");
    assert!(host.cached().is_empty());
}

#[tokio::test]
async fn a_disk_that_fills_up_meanwhile_gets_back_what_was_received() {
    let test = "a_disk_that_fills_up_meanwhile_gets_back_what_was_received";
    let Some(disk) = Disk::new(test, 16 << 20) else {
        return;
    };
    let mut host = FolderHost::new();
    host.root = disk.path();
    let local = TempDir::new().unwrap();
    let source = Source::read(&file(&local, 12 << 20)).await.unwrap();
    let remote = host.path("x");
    let result = upload(host.target(), &source, &remote, false, &disk.filling()).await;
    let Fault::Space { wanted, .. } = on_host(result) else {
        panic!("another fault");
    };
    assert!(wanted > 0 && wanted <= 12 << 20, "{wanted}");
    assert_eq!(host.names(), ["filler"]);
    assert!(host.cached().is_empty(), "{:?}", host.cached());
}

#[tokio::test]
async fn a_place_without_room_is_told_apart_from_the_cache() {
    let Some(disk) = Disk::new("a_place_without_room_is_told_apart_from_the_cache", 1 << 20) else {
        return;
    };
    let (host, local) = (FolderHost::new(), TempDir::new().unwrap());
    let source = Source::read(&file(&local, 3 << 20)).await.unwrap();
    let remote = disk.path().join("x");
    let result = upload(host.target(), &source, &remote, false, &retrying(0)).await;
    let Fault::Space { path, wanted, .. } = on_host(result) else {
        panic!("another fault");
    };
    assert!(path.starts_with(disk.path()), "{path:?}");
    assert_eq!(wanted, 3 << 20);
    assert!(names(&disk.path()).is_empty());
}

#[tokio::test]
async fn a_full_disk_here_is_another_error_and_leaves_nothing() {
    let test = "a_full_disk_here_is_another_error_and_leaves_nothing";
    let Some(disk) = Disk::new(test, 8 << 20) else {
        return;
    };
    let host = FolderHost::new();
    fs::create_dir_all(&host.root).unwrap();
    fs::write(host.path("large"), noise(1, 9 << 20)).unwrap();
    fs::write(host.path("fits"), noise(1, 7 << 20)).unwrap();
    let local = disk.path().join("x");
    let Fault::Space { wanted, path, .. } = here(receive(&host, "large", &local).await) else {
        panic!("another fault");
    };
    assert_eq!((wanted, path.as_path()), (9 << 20, local.as_path()));
    assert!(names(&disk.path()).is_empty());
    let result = download(host.target(), &host.path("fits"), &local, &disk.filling()).await;
    let Fault::Space { wanted, .. } = here(result) else {
        panic!("another fault");
    };
    assert!(wanted > 0 && wanted <= 7 << 20, "{wanted}");
    assert_eq!(names(&disk.path()), ["filler"]);
}

/// A folder that nobody may write to but root.
fn closed(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    fs::set_permissions(folder, Permissions::from_mode(0o555)).unwrap();
}

#[tokio::test]
async fn a_host_that_forbids_it_is_told_with_the_path() {
    let (mut host, local) = (FolderHost::new(), TempDir::new().unwrap());
    if rustix::process::geteuid().is_root() {
        host.uid = Some(65_534);
        let above = host.root.parent().unwrap();
        fs::set_permissions(above, Permissions::from_mode(0o755)).unwrap();
    }
    closed(&host.root);
    let result = send(&host, &file(&local, 1000), "x").await;
    let Fault::Denied { path, what } = on_host(result) else {
        panic!("another fault");
    };
    assert_eq!((path, what.as_str()), (host.path(".assay-cache"), "make"));
}

#[tokio::test]
async fn a_file_here_that_may_not_be_read_is_told_with_the_path() {
    let test = "a_file_here_that_may_not_be_read_is_told_with_the_path";
    if rustix::process::geteuid().is_root() {
        return skipped(test, "root may read everything");
    }
    let local = TempDir::new().unwrap();
    let file = file(&local, 10);
    fs::set_permissions(&file, Permissions::from_mode(0o000)).unwrap();
    let read = Source::read(&file).await.map(|source| source.files());
    assert!(matches!(here(read), Fault::Denied { path, .. } if path == file));
}
