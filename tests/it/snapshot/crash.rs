//! A process that dies at any step of its work, and data that is written to meanwhile. The listener is called
//! between any two changes on disk; to die there, it unwinds, which runs no clean-up of the work's own.

use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::SystemTime;

use assay::snapshot::SnapshotError;
use assay::snapshot::directory::{
    Cloning, Listener, Progress, deploy, remove, restore, take, verify,
};

use super::disk::Disk;
use super::trees::account;
use super::{Bench, COPY, marker, quiet, skipped};

/// Runs `work` on ever new benches; it dies at its first step, then at its second, until it ends alive.
/// `check` sees each bench afterwards.
fn dying_at_every_step(
    prepare: impl Fn() -> Bench,
    work: impl Fn(&Bench, Listener<'_>) -> Result<(), SnapshotError>,
    check: impl Fn(&Bench),
) {
    for step in 1.. {
        let bench = prepare();
        let mut steps = 0;
        let mut watch = |_: &Progress| {
            steps += 1;
            if steps == step {
                resume_unwind(Box::new("dead"));
            }
        };
        let ended = catch_unwind(AssertUnwindSafe(|| work(&bench, &mut watch)));
        check(&bench);
        if let Ok(outcome) = ended {
            outcome.unwrap();
            assert!(step > 4, "it has steps to die at");
            return;
        }
    }
}

/// A bench with data; with three bytes more than one chunk, so that it may die within a file.
fn filled(content: &str) -> Bench {
    let bench = Bench::new();
    fill(&bench, content);
    bench
}

fn fill(bench: &Bench, content: &str) {
    bench.write("a", content);
    bench.write("large", &content.repeat((1 << 20) / content.len() + 1));
    fs::create_dir_all(bench.data().join("folder")).unwrap();
    bench.write("folder/z", content);
    bench.write("last", content);
}

/// A bench with the data `new` in its snapshot and `old` in its data directory.
fn with_old_and_new() -> Bench {
    let bench = filled("new");
    take(&bench.order, COPY, &mut quiet).unwrap();
    fill(&bench, "old");
    bench.write("only old", "old");
    bench
}

const NAMES: [&str; 4] = ["data", "snapshots", "t0", "t0.manifest.json"];

#[test]
fn a_restore_that_dies_leaves_the_old_or_the_new_data_whole() {
    let work = |bench: &Bench, watch: Listener<'_>| restore(&bench.order, COPY, watch).map(drop);
    dying_at_every_step(with_old_and_new, work, |bench| {
        let new = account(bench.snapshot());
        let whole = match bench.read("a").as_str() {
            "new" => account(bench.data()) == new,
            _ => bench.read("only old") == "old" && bench.read("large").starts_with("oldold"),
        };
        assert!(whole);
        restore(&bench.order, COPY, &mut quiet).unwrap();
        assert_eq!(account(bench.data()), new);
        assert_eq!(bench.names(), NAMES);
        verify(bench.snapshot(), &marker(), &mut quiet).unwrap();
    });
}

#[test]
fn a_restore_to_a_missing_directory_that_dies_leaves_all_of_it_or_none() {
    let prepare = || {
        let bench = with_old_and_new();
        remove(bench.data(), &marker(), &mut quiet).unwrap();
        bench
    };
    let work = |bench: &Bench, watch: Listener<'_>| restore(&bench.order, COPY, watch).map(drop);
    dying_at_every_step(prepare, work, |bench| {
        let new = account(bench.snapshot());
        assert!(!bench.data().exists() || account(bench.data()) == new);
        restore(&bench.order, COPY, &mut quiet).unwrap();
        assert_eq!(account(bench.data()), new);
        assert_eq!(bench.names(), NAMES);
    });
}

/// Dies in taking a snapshot; what is there afterwards is whole, and the next one succeeds.
fn taking(prepare: impl Fn() -> Bench, cloning: Cloning) {
    let work = |bench: &Bench, watch: Listener<'_>| take(&bench.order, cloning, watch).map(drop);
    dying_at_every_step(prepare, work, |bench| {
        if bench.snapshot().exists() {
            verify(bench.snapshot(), &marker(), &mut quiet).unwrap();
        }
        take(&bench.order, cloning, &mut quiet).unwrap();
        verify(bench.snapshot(), &marker(), &mut quiet).unwrap();
        assert_eq!(account(bench.snapshot()), account(bench.data()));
        assert_eq!(bench.names(), NAMES);
    });
}

#[test]
fn a_snapshot_that_dies_while_it_is_written_is_never_there_in_part() {
    taking(|| filled("data"), COPY);
}

#[test]
fn a_snapshot_that_dies_while_it_replaces_an_older_one_is_never_there_in_part() {
    taking(with_old_and_new, COPY);
}

#[test]
fn a_snapshot_that_dies_while_it_shares_blocks_is_never_there_in_part() {
    let disk = match Disk::xfs() {
        Ok(disk) => disk,
        Err(why) => return skipped("a_snapshot_that_dies_while_it_shares_blocks", &why),
    };
    let count = std::cell::Cell::new(0);
    let prepare = || {
        count.set(count.get() + 1);
        let bench = Bench::within(&disk.folder().join(count.get().to_string()));
        fill(&bench, "data");
        bench
    };
    taking(prepare, Cloning::Reflink);
}

#[test]
fn a_removal_that_dies_leaves_the_data_whole_or_gone() {
    let work = |bench: &Bench, watch: Listener<'_>| remove(bench.data(), &marker(), watch);
    dying_at_every_step(with_old_and_new, work, |bench| {
        if bench.data().exists() {
            assert_eq!(bench.read("only old"), "old");
            assert_eq!(bench.read("folder/z"), "old");
        }
        remove(bench.data(), &marker(), &mut quiet).unwrap();
        assert_eq!(bench.names(), ["snapshots", "t0", "t0.manifest.json"]);
    });
}

#[test]
fn a_removal_that_dies_can_be_finished_in_whatever_order_a_folder_lists_its_names() {
    // On disk the order is that of hashes, in memory the marker would always be last.
    let folder = tempfile::TempDir::new().unwrap();
    let count = std::cell::Cell::new(0);
    let prepare = || {
        count.set(count.get() + 1);
        let bench = Bench::within(&folder.path().join(count.get().to_string()));
        for name in 'a'..='l' {
            bench.write(&name.to_string(), "");
        }
        bench
    };
    let work = |bench: &Bench, watch: Listener<'_>| remove(bench.data(), &marker(), watch);
    dying_at_every_step(prepare, work, |bench| {
        remove(bench.data(), &marker(), &mut quiet).unwrap();
        assert_eq!(bench.names(), [""; 0]);
    });
}

#[test]
fn a_removal_of_a_snapshot_that_dies_leaves_it_whole_or_gone() {
    let work = |bench: &Bench, watch: Listener<'_>| remove(bench.snapshot(), &marker(), watch);
    dying_at_every_step(with_old_and_new, work, |bench| {
        if bench.snapshot().exists() {
            verify(bench.snapshot(), &marker(), &mut quiet).unwrap();
        }
        remove(bench.snapshot(), &marker(), &mut quiet).unwrap();
        assert_eq!(bench.names(), ["data", "snapshots"]);
    });
}

#[test]
fn a_deployment_that_dies_leaves_the_old_data_or_an_empty_directory() {
    let work = |bench: &Bench, watch: Listener<'_>| deploy(bench.data(), &marker(), watch);
    dying_at_every_step(with_old_and_new, work, |bench| {
        let empty = account(bench.data()).len() == 1;
        assert!(empty || bench.read("only old") == "old" && bench.read("folder/z") == "old");
        deploy(bench.data(), &marker(), &mut quiet).unwrap();
        assert_eq!(account(bench.data()).len(), 1);
        assert_eq!(bench.names(), NAMES);
    });
}

/// Takes a snapshot while `write` writes to the data, after the first file and in the midst of the second.
fn written_to(write: impl Fn(&Path)) -> (Bench, Option<String>) {
    let bench = filled("data");
    // The clock of file times is coarse: what is written now must not look as old as what was there.
    for name in ["a", "large", "last", "folder/z", "folder", ""] {
        let file = File::open(bench.data().join(name)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }
    let mut written = false;
    let mut watch = |progress: &Progress| {
        if progress.bytes >= 1 << 20 && !written {
            write(bench.data());
            written = true;
        }
    };
    let error = take(&bench.order, COPY, &mut watch).err();
    assert!(written);
    (bench, error.map(|error| error.to_string()))
}

/// The refusal of data that was written to at `name`, after which nothing is left.
fn refused_at(name: &str, write: impl Fn(&Path)) {
    let (bench, error) = written_to(write);
    let path = bench.data().join(name).display().to_string();
    let expected = format!(
        "`{}` changed while it was copied: its database has to be stopped",
        path.trim_end_matches('/')
    );
    assert_eq!(error, Some(expected));
    assert_eq!(bench.names(), ["data", "snapshots"]);
}

#[test]
fn data_that_nobody_writes_to_is_taken() {
    assert_eq!(written_to(|_| {}).1, None);
}

#[test]
fn a_file_that_grows_while_it_is_copied_is_refused() {
    refused_at("large", |data| {
        let file = File::options().append(true).open(data.join("large"));
        std::io::Write::write_all(&mut file.unwrap(), b"more").unwrap();
    });
}

#[test]
fn a_file_that_shrinks_while_it_is_copied_is_refused() {
    refused_at("large", |data| {
        let file = File::options().write(true).open(data.join("large"));
        file.unwrap().set_len(1 << 20).unwrap();
    });
}

#[test]
fn a_file_that_is_overwritten_after_it_was_copied_is_refused() {
    refused_at("a", |data| fs::write(data.join("a"), "DATA").unwrap());
}

#[test]
fn a_file_that_is_replaced_before_it_is_copied_is_refused() {
    refused_at("last", |data| {
        fs::write(data.join("new"), "data").unwrap();
        fs::rename(data.join("new"), data.join("last")).unwrap();
    });
}

#[test]
fn a_file_that_vanishes_before_it_is_copied_is_refused() {
    refused_at("last", |data| fs::remove_file(data.join("last")).unwrap());
}

#[test]
fn a_file_that_appears_meanwhile_is_refused() {
    refused_at("", |data| fs::write(data.join("b"), "").unwrap());
}

#[test]
fn a_file_that_vanishes_after_it_was_copied_is_refused() {
    refused_at("", |data| fs::remove_file(data.join("a")).unwrap());
}
