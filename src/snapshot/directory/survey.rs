//! A look over a tree before it is copied, and another after: how large it is, and whether anybody wrote to it.

use std::collections::HashSet;
use std::fs::{self, FileType, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use super::marker::is_own;
use crate::snapshot::SnapshotError;
use crate::snapshot::error::Tried;

/// The unit of `st_blocks`.
const BLOCK: u64 = 512;

/// What is in a tree, apart from assay's marker.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Files, folders and links by their path in the tree, each folder before what is in it.
    pub(super) items: Vec<Item>,
    /// Files, each of its names counted.
    pub(super) files: u64,
    /// Bytes of all files; one with several names counts once.
    pub(super) bytes: u64,
    /// Bytes that they take on disk.
    pub(super) allocated: u64,
}

/// Something in a tree.
#[derive(Debug)]
pub(super) struct Item {
    /// Its path in the tree; empty for the tree itself.
    pub(super) path: PathBuf,
    /// What the system says of it.
    pub(super) meta: Metadata,
}

impl Item {
    /// Its last change by any means: seconds since 1970, and nanoseconds.
    pub(super) fn changed(&self) -> (i64, i64) {
        (self.meta.ctime(), self.meta.ctime_nsec())
    }

    /// Its path below `root`, without a slash at the end.
    pub(super) fn below(&self, root: &Path) -> PathBuf {
        if self.path.as_os_str().is_empty() {
            root.to_owned()
        } else {
            root.join(&self.path)
        }
    }
}

impl Survey {
    /// Looks at everything below `root`; refuses what is neither a file, a folder nor a link.
    pub(super) fn of(root: &Path) -> Result<Self, SnapshotError> {
        let mut survey = Self::default();
        let mut seen = HashSet::new();
        for entry in walk(root) {
            let entry = entry.map_err(|error| lost(root, error))?;
            let meta = entry.metadata().map_err(|error| lost(root, error))?;
            supported(entry.path(), meta.file_type())?;
            if meta.is_file() {
                survey.files += 1;
                if meta.nlink() == 1 || seen.insert((meta.dev(), meta.ino())) {
                    survey.bytes += meta.len();
                    survey.allocated += meta.blocks() * BLOCK;
                }
            }
            let path = entry.path().strip_prefix(root);
            let path = path.expect("the walk stays below its root").to_owned();
            survey.items.push(Item { path, meta });
        }
        Ok(survey)
    }

    /// Refuses a tree that was written to since.
    pub(super) fn still_holds(&self, root: &Path) -> Result<(), SnapshotError> {
        for item in &self.items {
            let path = item.below(root);
            match fs::symlink_metadata(&path) {
                Ok(meta) if same(&item.meta, &meta) => {}
                Ok(_) => return Err(SnapshotError::Changed { path }),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Err(SnapshotError::Changed { path });
                }
                Err(error) => return Err(error).tried("look at", &path),
            }
        }
        Ok(())
    }
}

/// Whether a file is the same and nobody wrote to it between two looks.
pub(super) fn same(before: &Metadata, after: &Metadata) -> bool {
    let stamp = |m: &Metadata| {
        let changed = (m.ctime(), m.ctime_nsec());
        (
            m.dev(),
            m.ino(),
            m.len(),
            m.mtime(),
            m.mtime_nsec(),
            changed,
        )
    };
    stamp(before) == stamp(after)
}

/// Everything below `root`, sorted by name, without assay's marker.
fn walk(root: &Path) -> impl Iterator<Item = walkdir::Result<DirEntry>> {
    WalkDir::new(root)
        .follow_links(false)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| entry.depth() != 1 || !is_own(entry.file_name()))
}

fn lost(root: &Path, error: walkdir::Error) -> SnapshotError {
    let path = error.path().unwrap_or(root).to_owned();
    SnapshotError::Io {
        what: "read",
        path,
        source: error.into(),
    }
}

fn supported(path: &Path, kind: FileType) -> Result<(), SnapshotError> {
    let kind = if kind.is_file() || kind.is_dir() || kind.is_symlink() {
        return Ok(());
    } else if kind.is_fifo() {
        "fifo"
    } else if kind.is_socket() {
        "socket"
    } else {
        "device"
    };
    Err(SnapshotError::Kind {
        path: path.to_owned(),
        kind,
    })
}
