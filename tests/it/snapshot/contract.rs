//! The contract of every snapshot method, through the trait and a host, down to real files.

use std::fs;
use std::path::Path;
use std::time::Duration;

use assay::host::{AgentError, FakeHost};
use assay::snapshot::directory::{Done, verify};
use assay::snapshot::{Attention, Copy, Order, Reflink, SnapshotMethod, agent};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::disk::Disk;
use super::trees::{account, allocated, damage, fill_oddly};
use super::{Bench, marker, other_marker, quiet, skipped};

/// A host whose agents do their work in this process.
fn host() -> FakeHost {
    let host = FakeHost::new("here", "/srv/bench/assay");
    for name in ["snapshot-take", "snapshot-restore"] {
        host.on(name, move |request, progress| {
            let outcome = agent(name, request.clone(), progress).unwrap();
            outcome.map_err(|error| {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                [error.to_string()].into_iter().chain(cause).collect()
            })
        });
    }
    host
}

/// One of the trait's two functions, with an hour's time and nobody listening.
async fn take(method: &dyn SnapshotMethod, order: &Order) -> Result<Done, AgentError> {
    let attention = Attention {
        limit: Duration::from_secs(3600),
        stop: CancellationToken::new(),
        progress: &mut |_| {},
    };
    method.take(&host(), order, attention).await
}

async fn restore(method: &dyn SnapshotMethod, order: &Order) -> Result<Done, AgentError> {
    let attention = Attention {
        limit: Duration::from_secs(3600),
        stop: CancellationToken::new(),
        progress: &mut |_| {},
    };
    method.restore(&host(), order, attention).await
}

/// What every method promises, shown in `folder`.
async fn contract(method: &dyn SnapshotMethod, folder: &Path) {
    everything_comes_back_as_it_was(method, &folder.join("a")).await;
    a_snapshot_is_apart_from_the_data(method, &folder.join("b")).await;
    a_missing_data_directory_is_made(method, &folder.join("c")).await;
    a_new_snapshot_takes_the_place_of_an_old_one(method, &folder.join("d")).await;
    what_cannot_be_kept_is_refused_by_name(method, &folder.join("e")).await;
    only_the_own_data_and_the_own_snapshot_are_touched(method, &folder.join("f")).await;
    an_empty_directory_can_be_kept(method, &folder.join("g")).await;
}

async fn everything_comes_back_as_it_was(method: &dyn SnapshotMethod, folder: &Path) {
    let bench = Bench::within(folder);
    let outside = folder.join("outside");
    fs::write(&outside, "outside").unwrap();
    fill_oddly(bench.data(), &outside);
    let before = account(bench.data());
    let taken = take(method, &bench.order).await.unwrap();
    assert_eq!(account(bench.data()), before, "taking changes nothing");
    assert_eq!(account(bench.snapshot()), before, "a snapshot is the same");
    damage(bench.data());
    let restored = restore(method, &bench.order).await.unwrap();
    assert_eq!(account(bench.data()), before, "everything is back");
    assert_eq!(restored, taken);
    let sparse = bench.data().join("sparse");
    assert!(allocated(&sparse) < 1 << 20, "holes take no room");
    let outside = fs::symlink_metadata(&outside).unwrap();
    assert!(
        outside.is_file() && outside.len() == 7,
        "links are not followed"
    );
    assert_eq!(
        bench.names(),
        ["data", "snapshots", "t0", "t0.manifest.json"]
    );
    let (files, bytes) = verify(bench.snapshot(), &marker(), &mut quiet).unwrap();
    assert_eq!((files, bytes), (taken.files, taken.bytes));
}

async fn a_snapshot_is_apart_from_the_data(method: &dyn SnapshotMethod, folder: &Path) {
    let bench = Bench::within(folder);
    bench.write("table", &"old".repeat(100_000));
    take(method, &bench.order).await.unwrap();
    for _ in 0..2 {
        let file = fs::File::options()
            .write(true)
            .open(bench.data().join("table"));
        std::os::unix::fs::FileExt::write_all_at(&file.unwrap(), b"NEW", 150_000).unwrap();
        restore(method, &bench.order).await.unwrap();
        assert!(bench.read("table") == "old".repeat(100_000));
    }
    verify(bench.snapshot(), &marker(), &mut quiet).unwrap();
}

async fn a_missing_data_directory_is_made(method: &dyn SnapshotMethod, folder: &Path) {
    let bench = Bench::within(folder);
    bench.write("table", "1");
    take(method, &bench.order).await.unwrap();
    fs::remove_dir_all(bench.data()).unwrap();
    restore(method, &bench.order).await.unwrap();
    assert_eq!(bench.read("table"), "1");
}

async fn a_new_snapshot_takes_the_place_of_an_old_one(method: &dyn SnapshotMethod, folder: &Path) {
    let bench = Bench::within(folder);
    for content in ["first", "second"] {
        bench.write("table", content);
        take(method, &bench.order).await.unwrap();
    }
    bench.write("table", "third");
    restore(method, &bench.order).await.unwrap();
    assert_eq!(bench.read("table"), "second");
}

async fn what_cannot_be_kept_is_refused_by_name(method: &dyn SnapshotMethod, folder: &Path) {
    let bench = Bench::within(folder);
    let fifo = bench.data().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let error = take(method, &bench.order).await.unwrap_err().to_string();
    let fifo = fifo.display();
    assert_eq!(
        error,
        format!("`{fifo}` is a fifo, which a snapshot cannot hold")
    );
    assert_eq!(bench.names(), ["data", "snapshots"]);
}

async fn only_the_own_data_and_the_own_snapshot_are_touched(
    method: &dyn SnapshotMethod,
    folder: &Path,
) {
    let bench = Bench::within(folder);
    bench.write("table", "1");
    take(method, &bench.order).await.unwrap();
    let before = account(folder);
    let order = Order {
        marker: other_marker(),
        ..bench.order.clone()
    };
    let whose = "it carries the marker of deployment `wal` of experiment `quick`, \
                 wanted is the marker of deployment `delete` of experiment `quick`";
    let error = take(method, &order).await.unwrap_err().to_string();
    assert!(error.ends_with(whose), "{error}");
    let error = restore(method, &order).await.unwrap_err().to_string();
    assert!(error.ends_with(whose), "{error}");
    assert_eq!(account(folder), before);
}

async fn an_empty_directory_can_be_kept(method: &dyn SnapshotMethod, folder: &Path) {
    let bench = Bench::within(folder);
    let taken = take(method, &bench.order).await.unwrap();
    assert_eq!((taken.files, taken.bytes), (0, 0));
    bench.write("table", "1");
    restore(method, &bench.order).await.unwrap();
    assert_eq!(account(bench.data()).len(), 1);
}

#[tokio::test]
async fn copy_keeps_the_contract() {
    let folder = TempDir::new().unwrap();
    contract(&Copy, folder.path()).await;
}

#[tokio::test]
async fn reflink_and_copy_keep_the_contract_where_blocks_can_be_shared() {
    match Disk::xfs() {
        Ok(disk) => {
            contract(&Reflink, &disk.folder().join("reflink")).await;
            contract(&Copy, &disk.folder().join("copy")).await;
        }
        Err(why) => skipped("reflink_and_copy_keep_the_contract", &why),
    }
}

#[tokio::test]
async fn reflink_shares_blocks_and_copy_does_not() {
    let disk = match Disk::xfs() {
        Ok(disk) => disk,
        Err(why) => return skipped("reflink_shares_blocks", &why),
    };
    let bench = Bench::within(&disk.folder().join("bench"));
    let size = 16 << 20;
    fs::write(bench.data().join("large"), vec![b'x'; size]).unwrap();
    let alone = disk.settled_free();
    take(&Reflink, &bench.order).await.unwrap();
    restore(&Reflink, &bench.order).await.unwrap();
    let shared = alone - disk.settled_free();
    assert!(shared < size as u64 / 8, "{shared} bytes");
    take(&Copy, &bench.order).await.unwrap();
    let copied = alone - disk.settled_free();
    assert!(copied >= size as u64, "{copied} bytes");
}

/// Does something to a file that leaves its size and its time of modification.
fn secretly(path: &Path, change: impl Fn(&fs::File)) {
    let file = fs::File::options().write(true).open(path).unwrap();
    let time = file.metadata().unwrap().modified().unwrap();
    change(&file);
    file.set_modified(time).unwrap();
}

#[tokio::test]
async fn reflink_notices_a_change_without_reading_what_did_not_change() {
    let disk = match Disk::xfs() {
        Ok(disk) => disk,
        Err(why) => return skipped("reflink_notices_a_change", &why),
    };
    let bench = Bench::within(&disk.folder().join("bench"));
    bench.write("table", "kept");
    bench.write("other", "kept");
    take(&Reflink, &bench.order).await.unwrap();
    for _ in 0..2 {
        bench.write("table", "data");
        restore(&Reflink, &bench.order).await.unwrap();
        assert_eq!(bench.read("table"), "kept");
    }
    // Touched, but not changed.
    let table = bench.snapshot().join("table");
    secretly(&table, |_| {});
    restore(&Reflink, &bench.order).await.unwrap();
    let expected = format!(
        "`{}` differs from its snapshot's manifest: its content is another",
        table.display()
    );
    // With a false checksum in the manifest, what is read is refused and what is not read is put back.
    let manifest = fs::read_to_string(bench.manifest()).unwrap();
    let false_one = |name: &str| {
        let mut manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        let entries = manifest["entries"].as_array_mut().unwrap();
        let entry = entries.iter_mut().find(|e| e["path"] == name).unwrap();
        entry["sha256"] = "0".repeat(64).into();
        fs::write(bench.manifest(), manifest.to_string()).unwrap();
    };
    false_one("other");
    restore(&Reflink, &bench.order).await.unwrap();
    false_one("table");
    let error = restore(&Reflink, &bench.order).await.unwrap_err();
    assert_eq!(error.to_string(), expected);
    fs::write(bench.manifest(), manifest).unwrap();
    secretly(&table, |file| {
        std::os::unix::fs::FileExt::write_all_at(file, b"K", 0).unwrap();
    });
    let error = restore(&Reflink, &bench.order).await.unwrap_err();
    assert_eq!(error.to_string(), expected);
    assert_eq!(bench.read("table"), "kept");
}

#[tokio::test]
async fn reflink_fails_where_blocks_cannot_be_shared_and_never_copies_instead() {
    let folder = TempDir::new().unwrap();
    let bench = Bench::within(folder.path());
    bench.write("table", "1");
    let can = assay::snapshot::directory::probe(folder.path()).unwrap();
    if can.reflink {
        return skipped(
            "reflink_fails_where_blocks_cannot_be_shared",
            "they can, here",
        );
    }
    let error = take(&Reflink, &bench.order).await.unwrap_err().to_string();
    let table = bench.data().join("table");
    let start = format!(
        "cannot share the blocks of `{}` with its copy",
        table.display()
    );
    assert!(error.starts_with(&start), "{error}");
    assert_eq!(bench.names(), ["data", "snapshots"]);
}
