//! Tarballs that are damaged, or written to do harm.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use assay::package::{Origin, Package, PackageError, Store};
use tar::EntryType::{self, Block, Char, Directory, Fifo, Link, Regular, Symlink};

use super::made::{Shelf, archive, network, noise, program, wanted, whole};
use crate::support::skipped;

type Entry<'a> = (&'a str, EntryType, &'a [u8], u32);

async fn unpack(shelf: &Shelf, tarball: &[u8]) -> Result<Package, PackageError> {
    let path = shelf.path("x.tar.gz");
    fs::write(&path, tarball).unwrap();
    shelf
        .tikv(&Origin::Tarball(path.display().to_string()))
        .await
}

#[tokio::test]
async fn files_folders_links_and_modes_come_out_as_they_went_in() {
    let shelf = Shelf::new();
    let tarball = archive(&[
        ("./", Directory, b"", 0o755),
        ("./bin/", Directory, b"", 0o500),
        ("./bin/server", Regular, b"one", 0o755),
        ("./bin/other", Link, b"bin/server", 0o755),
        ("conf/a.toml", Regular, b"old", 0o600),
        ("conf/a.toml", Regular, b"new", 0o640),
        ("lib/x.so", Symlink, b"x.so.1", 0o777),
        ("lib/x.so.1", Regular, b"lib", 0o644),
        ("lib/up", Symlink, b"../bin/server", 0o777),
        ("suid", Regular, b"s", 0o4755),
    ]);
    let folder = unpack(&shelf, &tarball).await.unwrap().folder;
    let mode = |path: &str| {
        fs::metadata(folder.join(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    };
    let text = |path: &str| fs::read_to_string(folder.join(path)).unwrap();
    assert_eq!(
        (
            mode("bin"),
            mode("bin/server"),
            mode("conf/a.toml"),
            mode("suid")
        ),
        (0o700, 0o755, 0o640, 0o755)
    );
    assert_eq!(
        [text("bin/server"), text("bin/other"), text("conf/a.toml")],
        ["one", "one", "new"]
    );
    assert_eq!([text("lib/x.so"), text("lib/up")], ["lib", "one"]);
    let link = fs::read_link(folder.join("lib/x.so")).unwrap();
    assert_eq!(link.to_str(), Some("x.so.1"));
    let meta = fs::metadata(folder.join("bin/server")).unwrap();
    assert_eq!(meta.mtime(), 1_600_000_000);
    assert_eq!(meta.uid(), fs::metadata(shelf.folder.path()).unwrap().uid());
}

/// What is below a folder: paths, kinds, modes, and contents or targets.
fn listed(folder: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let entries = walkdir::WalkDir::new(folder).min_depth(1).into_iter();
    let entry = |entry: walkdir::DirEntry| {
        let meta = entry.metadata().unwrap();
        let content = if meta.is_file() {
            fs::read(entry.path()).unwrap()
        } else if meta.is_symlink() {
            fs::read_link(entry.path())
                .unwrap()
                .into_os_string()
                .into_vec()
        } else {
            Vec::new()
        };
        let path = entry.path().strip_prefix(folder).unwrap();
        (path.display().to_string(), (meta.mode(), content))
    };
    entries.map(|found| entry(found.unwrap())).collect()
}

#[tokio::test]
async fn what_tar_packs_comes_out_the_same() {
    let shelf = Shelf::new();
    let from = shelf.path("from");
    let deep = from
        .join("d".repeat(90))
        .join("e".repeat(90))
        .join("f".repeat(90));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("\u{fc}ml"), noise(6, 3000)).unwrap();
    std::os::unix::fs::symlink("f".repeat(90), deep.with_file_name("link")).unwrap();
    fs::hard_link(deep.join("\u{fc}ml"), from.join("again")).unwrap();
    let sparse = fs::File::create(from.join("sparse")).unwrap();
    sparse.set_len(3 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"middle", 1 << 20).unwrap();
    for format in ["gnu", "pax", "gnu --sparse", "pax --sparse"] {
        let packed = shelf.path("x.tar.gz");
        let mut tar = Command::new("tar");
        tar.arg("-czf").arg(&packed).arg("-C").arg(&from);
        tar.args(format!("--format={format}").split(' ')).arg(".");
        if !tar.output().is_ok_and(|output| output.status.success()) {
            return skipped("there is no GNU tar here");
        }
        let unpacked = unpack(&shelf, &fs::read(&packed).unwrap()).await;
        if format == "pax --sparse" {
            // Their entries hold a map beside the data.
            let error = whole(&unpacked.unwrap_err());
            assert!(
                error.ends_with(" is a sparse file of the pax format"),
                "{error}"
            );
        } else {
            assert!(
                listed(&unpacked.unwrap().folder) == listed(&from),
                "{format}"
            );
        }
    }
}

#[tokio::test]
async fn nothing_is_written_outside_and_nothing_odd_is_made() {
    let outside =
        "its entry `ENTRY` would be written outside of the folder that it is unpacked into";
    let cases: &[(&[Entry<'_>], &str)] = &[
        (&[("../x", Regular, b"x", 0o644)], outside),
        (&[("a/../../x", Regular, b"x", 0o644)], outside),
        (&[("/tmp/assay-x", Regular, b"x", 0o644)], outside),
        (&[("../x/", Directory, b"", 0o755)], outside),
        (&[("../x", Symlink, b"y", 0o777)], outside),
        (
            &[("x", Symlink, b"/etc/passwd", 0o777)],
            "its link `x` leads outside: to `/etc/passwd`",
        ),
        (
            &[("x", Symlink, b"../y", 0o777)],
            "its link `x` leads outside: to `../y`",
        ),
        (
            &[("x", Symlink, b"a/../../y", 0o777)],
            "its link `x` leads outside: to `a/../../y`",
        ),
        (
            &[("x", Symlink, b"", 0o777)],
            "its link `x` leads outside: to ``",
        ),
        (
            &[("x", Link, b"../y", 0o644)],
            "its hard link `x` is to `../y`, which is no file before it",
        ),
        (
            &[("x", Link, b"/etc/passwd", 0o644)],
            "its hard link `x` is to `/etc/passwd`, which is no file before it",
        ),
        (
            &[("l", Symlink, b"a", 0o777), ("x", Link, b"l", 0o644)],
            "its hard link `x` is to `l`, which is no file before it",
        ),
        (
            &[("l", Symlink, b".x", 0o777), ("l/y", Regular, b"x", 0o644)],
            "its entry `l` is in the place of another one",
        ),
        (
            &[("f", Regular, b"x", 0o644), ("f/y", Regular, b"x", 0o644)],
            "its entry `f` is in the place of another one",
        ),
        (
            &[("d/y", Regular, b"x", 0o644), ("d", Regular, b"x", 0o644)],
            "its entry `d` is in the place of another one",
        ),
        (&[("x", Char, b"", 0o644)], "its entry `x` is a device"),
        (&[("x", Block, b"", 0o644)], "its entry `x` is a device"),
        (&[("x", Fifo, b"", 0o644)], "its entry `x` is a fifo"),
        (&[("x/", Directory, b"", 0o755)], "it is empty"),
        (&[], "it is empty"),
    ];
    for (entries, message) in cases {
        let shelf = Shelf::new();
        let error = unpack(&shelf, &archive(entries)).await.unwrap_err();
        let path = shelf.path("x.tar.gz");
        let entry = entries.first().map_or("", |entry| entry.0);
        let message = message.replace("ENTRY", entry);
        assert_eq!(
            whole(&error),
            format!("cannot unpack `{}`: {message}", path.display())
        );
        assert_eq!(shelf.names(), [""; 0]);
        let beside: Vec<_> = fs::read_dir(shelf.folder.path()).unwrap().collect();
        assert_eq!(beside.len(), 2, "{beside:?}");
    }
}

#[tokio::test]
async fn a_tarball_that_is_cut_short_anywhere_is_named_and_leaves_nothing() {
    let shelf = Shelf::new();
    let whole = archive(&[
        ("a", Regular, &noise(3, 9_000), 0o755),
        ("b/c", Regular, &noise(4, 5_000), 0o644),
        ("d", Symlink, b"a", 0o777),
    ]);
    let named = format!(
        "cannot unpack `{}`: it is cut short, damaged or no `.tar.gz`",
        shelf.path("x.tar.gz").display()
    );
    let mut cuts: Vec<usize> = (0..whole.len()).step_by(997).collect();
    cuts.extend([1, whole.len() - 8, whole.len() - 1]);
    for cut in cuts {
        let error = unpack(&shelf, &whole[..cut]).await.unwrap_err();
        assert_eq!(error.to_string(), named, "after {cut} bytes");
        assert_eq!(shelf.names(), [""; 0]);
    }
    for at in (10..whole.len()).step_by(997) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        let error = unpack(&shelf, &damaged).await.unwrap_err();
        assert_eq!(error.to_string(), named, "byte {at}");
        assert_eq!(shelf.names(), [""; 0]);
    }
    assert!(unpack(&shelf, &whole).await.is_ok());
}

#[tokio::test]
async fn what_is_no_archive_is_named() {
    let shelf = Shelf::new();
    let error = unpack(&shelf, b"<html>Sign in</html>").await.unwrap_err();
    assert!(matches!(error, PackageError::Damaged { .. }), "{error}");
    assert_eq!(shelf.names(), [""; 0]);
}

#[tokio::test]
async fn a_tarball_of_several_gzip_members_is_read_to_its_end() {
    let shelf = Shelf::new();
    let plain = {
        let mut plain = Vec::new();
        let packed = program("server", &noise(5, 50_000));
        let mut reader = flate2::read::GzDecoder::new(packed.as_slice());
        std::io::copy(&mut reader, &mut plain).unwrap();
        plain
    };
    let packed = plain.chunks(20_000).flat_map(|chunk| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, chunk).unwrap();
        gzip.finish().unwrap()
    });
    let package = unpack(&shelf, &packed.collect::<Vec<u8>>()).await.unwrap();
    assert_eq!(
        fs::read(package.folder.join("server")).unwrap(),
        noise(5, 50_000)
    );
}

/// A small disk in memory, unmounted when dropped.
struct Disk(tempfile::TempDir);

impl Disk {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"])
            .arg(folder.path());
        match mount.output() {
            Ok(output) if output.status.success() => Some(Self(folder)),
            _ => {
                skipped("no file system can be mounted here");
                None
            }
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

#[tokio::test]
async fn a_full_disk_is_named_and_nothing_half_is_left() {
    let Some(disk) = Disk::new() else { return };
    let shelf = Shelf::new();
    let path = shelf.path("x.tar.gz");
    fs::write(&path, program("server", &vec![0; 4 << 20])).unwrap();
    let store = Store::new(disk.0.path()).with_network(network(0));
    let origin = Origin::Tarball(path.display().to_string());
    let wanted = wanted("tikv", "v6.1.2");
    let obtained = store.obtain(&origin, &wanted, &shelf.watch);
    let error = obtained.await.unwrap_err();
    assert!(matches!(error, PackageError::Space { .. }), "{error}");
    assert!(error.hint().unwrap().starts_with("free space at `"));
    let trees: Vec<_> = fs::read_dir(disk.0.path().join(".partial"))
        .unwrap()
        .collect();
    assert_eq!(trees.len(), 1, "{trees:?}");
}
