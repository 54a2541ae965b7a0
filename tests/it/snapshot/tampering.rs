//! A snapshot that was tampered with: what its verification says, and that it is not put back.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;

use assay::snapshot::directory::{digest, remove, restore, verify};

use super::{Bench, COPY, marker, other_marker, quiet, said, taken};

/// What a restore and a verification say of a snapshot that was tampered with; the data stays.
fn tampered(tamper: impl Fn(&Bench)) -> (Option<String>, String) {
    let bench = taken();
    bench.write("table", "data");
    tamper(&bench);
    let verified = said(verify(bench.snapshot(), &marker(), &mut quiet));
    let restored = restore(&bench.order, COPY, &mut quiet).err();
    if restored.is_some() {
        assert_eq!(bench.read("table"), "data");
        assert_eq!(
            bench.names(),
            ["data", "snapshots", "t0", "t0.manifest.json"]
        );
    }
    let root = format!("{}/", bench.snapshot().display());
    let short = |text: String| text.replace(&root, "");
    (
        restored.map(|error| short(error.to_string())),
        short(verified),
    )
}

#[test]
fn a_snapshot_that_lost_bytes_is_not_restored() {
    let (restored, verified) = tampered(|bench| {
        let file = File::options()
            .write(true)
            .open(bench.snapshot().join("table"));
        file.unwrap().set_len(3).unwrap();
    });
    let expected = "`table` differs from its snapshot's manifest: it has 3 bytes, not 4";
    assert_eq!(restored.unwrap(), expected);
    assert_eq!(verified, expected);
}

#[test]
fn a_snapshot_that_lost_or_gained_a_file_is_not_restored() {
    let (restored, verified) =
        tampered(|bench| fs::remove_file(bench.snapshot().join("table")).unwrap());
    // The folder's own time tells first.
    let expected = "differs from its snapshot's manifest: it was modified at another time";
    assert!(restored.unwrap().ends_with(expected));
    assert!(verified.ends_with(expected));
    let with_time_set_back = |change: fn(&Bench)| {
        tampered(move |bench| {
            let root = File::open(bench.snapshot()).unwrap();
            let time = root.metadata().unwrap().modified().unwrap();
            change(bench);
            root.set_modified(time).unwrap();
        })
    };
    let lost = |bench: &Bench| fs::remove_file(bench.snapshot().join("table")).unwrap();
    let (restored, _) = with_time_set_back(lost);
    assert_eq!(
        restored.unwrap(),
        "`table` differs from its snapshot's manifest: it is missing"
    );
    let gained = |bench: &Bench| fs::write(bench.snapshot().join("more"), "").unwrap();
    let (restored, _) = with_time_set_back(gained);
    assert_eq!(
        restored.unwrap(),
        "`more` differs from its snapshot's manifest: the manifest does not know it"
    );
}

/// Changes a file of the snapshot without a trace in its size and times.
fn rot(bench: &Bench) {
    let path = bench.snapshot().join("table");
    let file = File::options().write(true).open(path).unwrap();
    let time = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(b"K", 0).unwrap();
    file.set_modified(time).unwrap();
}

#[test]
fn content_that_changed_without_a_trace_is_neither_verified_nor_copied_back() {
    let (restored, verified) = tampered(rot);
    let expected = "`table` differs from its snapshot's manifest: its content is another";
    assert_eq!(restored.unwrap(), expected);
    assert_eq!(verified, expected);
}

#[test]
fn the_digest_of_the_manifest_does_not_see_what_happened_to_the_files() {
    let bench = taken();
    let before = digest(bench.snapshot(), &marker()).unwrap();
    rot(&bench);
    assert_eq!(digest(bench.snapshot(), &marker()).unwrap(), before);
    assert!(verify(bench.snapshot(), &marker(), &mut quiet).is_err());
}

#[test]
fn a_verification_says_what_is_missing() {
    let bench = taken();
    fs::remove_file(bench.manifest()).unwrap();
    let without = said(verify(bench.snapshot(), &marker(), &mut quiet));
    let manifest = bench.manifest();
    let expected = format!("there is no manifest at `{}`", manifest.display());
    assert_eq!(without, expected);
    let bench = taken();
    fs::write(bench.manifest(), "{\"format\": 1").unwrap();
    let said_now = said(verify(bench.snapshot(), &marker(), &mut quiet));
    let expected = format!("cannot understand `{}`", bench.manifest().display());
    assert_eq!(said_now, expected);
    let other = said(verify(bench.snapshot(), &other_marker(), &mut quiet));
    assert!(other.contains("is left alone"), "{other}");
    remove(bench.data(), &marker(), &mut quiet).unwrap();
    fs::remove_dir_all(bench.snapshot()).unwrap();
    let said_then = said(verify(bench.snapshot(), &marker(), &mut quiet));
    assert!(
        said_then.starts_with("there is no snapshot at"),
        "{said_then}"
    );
}

#[test]
fn a_manifest_that_tells_nothing_of_a_file_or_is_of_another_format_is_refused() {
    let refused = |change: fn(&mut serde_json::Value)| {
        let bench = taken();
        let text = fs::read_to_string(bench.manifest()).unwrap();
        let mut manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
        change(&mut manifest);
        fs::write(bench.manifest(), manifest.to_string()).unwrap();
        let error = verify(bench.snapshot(), &marker(), &mut quiet).unwrap_err();
        let start = format!("cannot understand `{}`", bench.manifest().display());
        assert_eq!(error.to_string(), start);
        assert_eq!(said(restore(&bench.order, COPY, &mut quiet)), start);
        std::error::Error::source(&error).unwrap().to_string()
    };
    let empty = refused(|manifest| manifest["entries"][1]["sha256"] = "".into());
    assert_eq!(empty, "it has no checksum of `table`");
    let missing = refused(|manifest| {
        let table = manifest["entries"][1].as_object_mut().unwrap();
        table.remove("sha256");
    });
    assert_eq!(missing, empty);
    let format = refused(|manifest| manifest["format"] = 2.into());
    assert_eq!(format, "its format is 2, not 1");
}

#[test]
fn a_verification_finds_a_file_that_became_a_link_a_folder_or_a_fifo() {
    let replaced = |make: fn(&Path)| {
        let (_, verified) = tampered(move |bench| {
            let root = File::open(bench.snapshot()).unwrap();
            let time = root.metadata().unwrap().modified().unwrap();
            let path = bench.snapshot().join("table");
            fs::rename(&path, bench.data().join("moved")).unwrap();
            make(&path);
            root.set_modified(time).unwrap();
        });
        verified
    };
    let another = "`table` differs from its snapshot's manifest: it is of another kind";
    assert_eq!(
        replaced(|path| symlink("/etc/passwd", path).unwrap()),
        another
    );
    assert_eq!(replaced(|path| fs::create_dir(path).unwrap()), another);
    let fifo = replaced(|path| {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    });
    assert_eq!(fifo, "`table` is a fifo, which a snapshot cannot hold");
}

#[test]
fn the_manifest_holds_the_sha256_of_every_file() {
    let bench = taken();
    let text = fs::read_to_string(bench.manifest()).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    // printf kept | sha256sum
    let sum = "79f076abdd19a752db7267bfff2f9022161d120dea919fdaca2ffdfc24ca8c96";
    let table = &manifest["entries"][1];
    assert_eq!(table["path"], "table");
    assert_eq!(table["size"], 4);
    assert_eq!(table["sha256"], sum);
}
