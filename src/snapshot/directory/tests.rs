//! What shows only from within: file systems on which two directories cannot exchange their names at once.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use rustix::io::Errno;
use tempfile::TempDir;

use super::*;

fn cannot_exchange(_: &Path, _: &Path) -> Result<(), Errno> {
    Err(Errno::INVAL)
}

/// An order whose snapshot holds `new` and whose data directory holds `old`.
fn old_and_new(folder: &Path) -> Order {
    let order = Order {
        data: folder.join("data"),
        snapshot: folder.join("t0"),
        marker: Marker {
            experiment: "quick".into(),
            deployment: "wal".into(),
        },
    };
    deploy(&order.data, &order.marker, &mut |_| {}).unwrap();
    fs::write(order.data.join("table"), "new").unwrap();
    take(&order, Cloning::Copy, &mut |_| {}).unwrap();
    fs::write(order.data.join("table"), "old").unwrap();
    order
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn without_an_exchange_the_new_data_takes_its_place_by_two_renames() {
    let folder = TempDir::new().unwrap();
    let order = old_and_new(folder.path());
    restore_with(&order, Cloning::Copy, cannot_exchange, &mut |_| {}).unwrap();
    assert_eq!(fs::read(order.data.join("table")).unwrap(), b"new");
    assert_eq!(names(folder.path()), ["data", "t0", "t0.manifest.json"]);
}

#[test]
fn without_an_exchange_a_restore_that_dies_at_any_step_leaves_the_old_or_the_new_data() {
    let mut between = 0;
    for step in 1.. {
        let folder = TempDir::new().unwrap();
        let order = old_and_new(folder.path());
        let mut steps = 0;
        let mut watch = |_: &Progress| {
            steps += 1;
            if steps == step {
                resume_unwind(Box::new("dead"));
            }
        };
        let ended = catch_unwind(AssertUnwindSafe(|| {
            restore_with(&order, Cloning::Copy, cannot_exchange, &mut watch)
        }));
        between += usize::from(!order.data.exists());
        // Whatever comes next finds it.
        let place = Place::at(&order.data).unwrap();
        let quiet: Listener<'_> = &mut |_| {};
        switch::tidy(&place, &order.marker, &mut Telling::new(quiet)).unwrap();
        let table = fs::read_to_string(order.data.join("table")).unwrap();
        assert!(table == "old" || table == "new");
        assert_eq!(names(folder.path()), ["data", "t0", "t0.manifest.json"]);
        if ended.is_ok() {
            break;
        }
    }
    assert_eq!(between, 1, "it also died between the two renames");
}
