//! Snapshots of real directories.

mod agents;
mod contract;
mod crash;
mod disk;
mod output;
mod ownership;
mod random;
mod tampering;
mod trees;

use std::path::{Path, PathBuf};

use assay::snapshot::directory::{Cloning, Progress, deploy, take};
use assay::snapshot::{Marker, Order, SnapshotError};
use tempfile::TempDir;

/// Whose the directories of the tests are.
fn marker() -> Marker {
    Marker {
        experiment: "quick".into(),
        deployment: "wal".into(),
    }
}

fn other_marker() -> Marker {
    Marker {
        experiment: "quick".into(),
        deployment: "delete".into(),
    }
}

/// Listens to nothing.
fn quiet(_: &Progress) {}

/// A data directory and a place for its snapshot.
struct Bench {
    /// Removed with the bench, unless the folder is somebody else's.
    _folder: Option<TempDir>,
    order: Order,
}

impl Bench {
    /// In a folder of its own, in memory if possible: every call flushes the whole file system to disk.
    fn new() -> Self {
        let folder = TempDir::new_in("/dev/shm")
            .or_else(|_| TempDir::new())
            .unwrap();
        let bench = Self::within(folder.path());
        Self {
            _folder: Some(folder),
            ..bench
        }
    }

    /// In a folder that is there.
    fn within(folder: &Path) -> Self {
        let order = Order {
            data: folder.join("wal/data"),
            snapshot: folder.join("wal/snapshots/t0"),
            marker: marker(),
        };
        deploy(&order.data, &order.marker, &mut quiet).unwrap();
        Self {
            _folder: None,
            order,
        }
    }

    fn data(&self) -> &Path {
        &self.order.data
    }

    fn snapshot(&self) -> &Path {
        &self.order.snapshot
    }

    fn manifest(&self) -> PathBuf {
        self.snapshot().with_file_name("t0.manifest.json")
    }

    /// The names beside the data and beside the snapshot.
    fn names(&self) -> Vec<String> {
        let beside = |path: &Path| std::fs::read_dir(path.parent().unwrap());
        let mut names: Vec<_> = [self.data(), self.snapshot()]
            .into_iter()
            .flat_map(|path| beside(path).into_iter().flatten())
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.data().join(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.data().join(name)).unwrap()
    }
}

/// A bench with a file in its data and one in its snapshot.
fn taken() -> Bench {
    let bench = Bench::new();
    bench.write("table", "kept");
    take(&bench.order, COPY, &mut quiet).unwrap();
    bench
}

fn said<T: std::fmt::Debug>(result: Result<T, SnapshotError>) -> String {
    result.unwrap_err().to_string()
}

/// What works on every file system.
const COPY: Cloning = Cloning::Copy;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A test that cannot run here says so and why.
fn skipped(test: &str, why: &str) {
    use std::io::Write;
    // Straight to the terminal: the harness swallows what a test that passes prints.
    let text = format!("skipped: {test}: {why}\n");
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}
