//! Whose a directory is: nothing is emptied, replaced or removed that does not carry the marker.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use assay::snapshot::Order;
use assay::snapshot::directory::{deploy, remove, restore, take, verify};
use tempfile::TempDir;

use super::trees::account;
use super::{Bench, COPY, marker, other_marker, quiet, said, taken};

#[test]
fn a_directory_without_a_marker_is_never_replaced_or_removed() {
    let folder = TempDir::new().unwrap();
    let directory = folder.path().join("precious");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("thesis"), "years of work").unwrap();
    let expected = format!(
        "`{}` is left alone: it carries no marker of assay, \
         wanted is the marker of deployment `wal` of experiment `quick`",
        directory.display()
    );
    assert_eq!(said(deploy(&directory, &marker(), &mut quiet)), expected);
    assert_eq!(said(remove(&directory, &marker(), &mut quiet)), expected);
    assert!(directory.join("thesis").exists());
    fs::remove_file(directory.join("thesis")).unwrap();
    assert_eq!(said(deploy(&directory, &marker(), &mut quiet)), expected);
}

#[test]
fn a_directory_of_another_deployment_is_never_replaced_or_removed() {
    let bench = taken();
    let expected = format!(
        "`{}` is left alone: it carries the marker of deployment `wal` of experiment `quick`, \
         wanted is the marker of deployment `delete` of experiment `quick`",
        bench.data().display()
    );
    let other = other_marker();
    assert_eq!(said(deploy(bench.data(), &other, &mut quiet)), expected);
    assert_eq!(said(remove(bench.data(), &other, &mut quiet)), expected);
    assert_eq!(bench.read("table"), "kept");
}

#[test]
fn a_deployment_replaces_its_own_data() {
    let bench = taken();
    deploy(bench.data(), &marker(), &mut quiet).unwrap();
    assert_eq!(account(bench.data()).len(), 1);
}

#[test]
fn a_directory_that_is_not_there_is_removed_already() {
    let bench = taken();
    for _ in 0..2 {
        remove(bench.data(), &marker(), &mut quiet).unwrap();
        assert!(!bench.data().exists());
    }
}

#[test]
fn a_snapshot_is_removed_with_its_manifest() {
    let bench = taken();
    remove(bench.snapshot(), &marker(), &mut quiet).unwrap();
    assert_eq!(bench.names(), ["data", "snapshots"]);
}

#[test]
fn a_removal_does_not_follow_links() {
    let bench = taken();
    let outside = TempDir::new().unwrap();
    fs::write(outside.path().join("file"), "outside").unwrap();
    symlink(outside.path(), bench.data().join("link")).unwrap();
    remove(bench.data(), &marker(), &mut quiet).unwrap();
    assert!(outside.path().join("file").exists());
}

#[test]
fn a_link_in_the_place_of_data_is_refused() {
    let bench = taken();
    let link = bench.data().with_file_name("link");
    symlink(bench.data(), &link).unwrap();
    let message = said(remove(&link, &marker(), &mut quiet));
    assert!(message.ends_with("it is a symbolic link"), "{message}");
    assert_eq!(bench.read("table"), "kept");
}

#[test]
fn a_marker_that_is_a_link_counts_for_nothing() {
    let bench = taken();
    let precious = bench.data().with_file_name("precious");
    fs::create_dir(&precious).unwrap();
    symlink(
        bench.data().join(".assay-marker"),
        precious.join(".assay-marker"),
    )
    .unwrap();
    assert!(remove(&precious, &marker(), &mut quiet).is_err());
    assert!(precious.exists());
}

#[test]
fn a_marker_that_is_no_marker_is_an_error_with_its_path() {
    let bench = taken();
    let path = bench.data().join(".assay-marker");
    fs::write(&path, "{").unwrap();
    let message = said(remove(bench.data(), &marker(), &mut quiet));
    assert_eq!(message, format!("cannot understand `{}`", path.display()));
}

#[test]
fn data_without_a_marker_is_not_taken() {
    let bench = taken();
    fs::remove_file(bench.data().join(".assay-marker")).unwrap();
    let message = said(take(&bench.order, COPY, &mut quiet));
    assert!(message.contains("carries no marker"), "{message}");
}

#[test]
fn a_snapshot_never_replaces_what_is_not_the_same_deployments() {
    let bench = Bench::new();
    fs::create_dir_all(bench.snapshot()).unwrap();
    fs::write(bench.snapshot().join("thesis"), "years of work").unwrap();
    let message = said(take(&bench.order, COPY, &mut quiet));
    assert!(message.contains("carries no marker"), "{message}");
    assert!(bench.snapshot().join("thesis").exists());
}

#[test]
fn a_snapshot_in_the_data_or_the_data_in_the_snapshot_is_refused() {
    let bench = taken();
    let order = |data: &str, snapshot: &str| Order {
        data: bench.data().join(data),
        snapshot: bench.data().join(snapshot),
        marker: marker(),
    };
    for order in [order("", "t0"), order("data", ""), order("", "")] {
        let message = said(take(&order, COPY, &mut quiet));
        assert!(message.ends_with("overlap"), "{message}");
    }
}

#[test]
fn data_that_is_not_there_is_not_taken() {
    let bench = taken();
    remove(bench.data(), &marker(), &mut quiet).unwrap();
    let message = said(take(&bench.order, COPY, &mut quiet));
    let data = bench.data().display();
    assert_eq!(message, format!("there is no data directory at `{data}`"));
    verify(bench.snapshot(), &marker(), &mut quiet).unwrap();
}

#[test]
fn what_lies_in_the_way_without_a_marker_is_named_and_stays() {
    let bench = taken();
    let incoming = bench.data().with_file_name("data.incoming");
    fs::create_dir(&incoming).unwrap();
    fs::write(incoming.join("thesis"), "years of work").unwrap();
    let message = said(restore(&bench.order, COPY, &mut quiet));
    let start = format!("`{}` is left alone", incoming.display());
    assert!(message.starts_with(&start), "{message}");
    assert!(incoming.join("thesis").exists());
}

#[test]
fn what_a_dead_call_left_is_removed_in_whatever_state() {
    let bench = taken();
    let folder = bench.data().parent().unwrap();
    // Made, but not yet marked; marked by half; marked and filled.
    fs::create_dir(folder.join("data.incoming")).unwrap();
    fs::create_dir(folder.join("data.partial")).unwrap();
    fs::write(folder.join("data.partial/.assay-marker.new"), "{\"exp").unwrap();
    deploy(&folder.join("data.outgoing"), &marker(), &mut quiet).unwrap();
    fs::write(folder.join("data.outgoing/file"), "old").unwrap();
    restore(&bench.order, COPY, &mut quiet).unwrap();
    assert_eq!(
        bench.names(),
        ["data", "snapshots", "t0", "t0.manifest.json"]
    );
}

#[test]
fn a_snapshot_without_its_manifest_is_not_restored() {
    let bench = taken();
    fs::remove_file(bench.manifest()).unwrap();
    let message = said(restore(&bench.order, COPY, &mut quiet));
    let path = bench.manifest();
    assert_eq!(
        message,
        format!("there is no manifest at `{}`", path.display())
    );
}

#[test]
fn a_snapshot_that_is_not_there_is_not_restored_and_the_data_stays() {
    let bench = Bench::new();
    bench.write("table", "kept");
    let message = said(restore(&bench.order, COPY, &mut quiet));
    assert!(message.starts_with("there is no snapshot at"), "{message}");
    assert_eq!(bench.read("table"), "kept");
}

/// A bench whose next snapshot is refused because of what `plant` put where its manifest is written; `said` begins the
/// refusal. Nothing else is there afterwards.
fn planted(plant: impl Fn(&Path), name: &str, said_start: &str) {
    let bench = Bench::new();
    bench.write("table", "kept");
    fs::create_dir_all(bench.snapshot().parent().unwrap()).unwrap();
    let path = bench.snapshot().with_file_name(name);
    plant(&path);
    let before = fs::symlink_metadata(&path).unwrap();
    let error = take(&bench.order, COPY, &mut quiet).unwrap_err();
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
    let said = format!("{error}{}", cause.unwrap_or_default());
    assert!(
        said.starts_with(&said_start.replace("PATH", &path.display().to_string())),
        "{said}"
    );
    let after = fs::symlink_metadata(&path).unwrap();
    let stamp = |m: &fs::Metadata| (m.ino(), m.len(), m.mtime(), m.mtime_nsec());
    assert_eq!(stamp(&before), stamp(&after), "it is left as it is");
    assert_eq!(bench.names(), ["data", "snapshots", name]);
}

#[test]
fn a_link_in_the_place_of_a_manifest_leads_to_no_other_file() {
    let outside = TempDir::new().unwrap();
    let thesis = outside.path().join("thesis");
    fs::write(&thesis, "years of work").unwrap();
    for name in ["t0.manifest.json.new", "t0.manifest.json"] {
        for target in ["thesis", "not-there"] {
            let plant = |path: &Path| symlink(outside.path().join(target), path);
            planted(
                |path| plant(path).unwrap(),
                name,
                "cannot read `PATH`: it is a symbolic link",
            );
        }
    }
    assert_eq!(fs::read_to_string(&thesis).unwrap(), "years of work");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn a_fifo_or_a_folder_in_the_place_of_a_manifest_is_refused_and_nothing_hangs() {
    for name in ["t0.manifest.json.new", "t0.manifest.json"] {
        let fifo = |path: &Path| {
            let made = std::process::Command::new("mkfifo").arg(path).status();
            assert!(made.unwrap().success());
        };
        let said = "cannot read `PATH`: it is no file";
        planted(fifo, name, said);
        planted(|path| fs::create_dir(path).unwrap(), name, said);
    }
}

#[test]
fn a_foreign_file_in_the_place_of_a_manifest_is_left_alone() {
    let write = |text: &'static str| move |path: &Path| fs::write(path, text).unwrap();
    let said = "`PATH` is left alone: it carries no marker of assay";
    for text in [
        "thesis",
        "{\"format\":1,\"marker\":{\"experiment\":\"other\",\"deployment\":\"wal\"}",
    ] {
        planted(write(text), "t0.manifest.json.new", said);
    }
    planted(
        write("thesis"),
        "t0.manifest.json",
        "cannot understand `PATH`",
    );
}

#[test]
fn what_a_dead_call_left_of_a_manifest_is_removed() {
    for length in [0, 1, 30, 80, usize::MAX] {
        let bench = taken();
        let text = fs::read(bench.manifest()).unwrap();
        let left = bench.snapshot().with_file_name("t0.manifest.json.new");
        fs::write(&left, &text[..length.min(text.len())]).unwrap();
        take(&bench.order, COPY, &mut quiet).unwrap();
        assert!(!left.exists());
        fs::write(&left, &text[..length.min(text.len())]).unwrap();
        remove(bench.snapshot(), &marker(), &mut quiet).unwrap();
        assert_eq!(bench.names(), ["data", "snapshots"]);
    }
}

#[test]
fn a_manifest_that_cannot_be_read_does_not_keep_a_snapshot_from_being_taken_anew() {
    for damaged in ["", "{}", "{\"format\":9}", "half a manif"] {
        let bench = Bench::new();
        fs::write(bench.data().join("a"), "1").unwrap();
        take(&bench.order, COPY, &mut quiet).unwrap();
        let mut manifest = bench.snapshot().as_os_str().to_owned();
        manifest.push(".manifest.json");
        fs::write(&manifest, damaged).unwrap();
        take(&bench.order, COPY, &mut quiet).unwrap();
        verify(bench.snapshot(), &marker(), &mut quiet).unwrap();
    }
}
