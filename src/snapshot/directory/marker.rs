//! The file that says whose a directory is. Only marked directories are ever emptied, replaced or removed.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{Error, ErrorKind, Read, Write};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

pub use crate::host::MARKER_FILE;
use crate::snapshot::SnapshotError;
use crate::snapshot::error::Tried;

/// A marker that is being written; it becomes the marker by a rename.
const UNFINISHED: &str = ".assay-marker.new";
/// No marker is larger.
const LIMIT: u64 = 64 << 10;

/// Whose a directory is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// The experiment's name.
    pub experiment: String,
    /// The deployment's id.
    pub deployment: String,
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "deployment `{}` of experiment `{}`",
            self.deployment, self.experiment
        )
    }
}

impl Marker {
    /// The marker that a directory carries, if it does.
    ///
    /// # Errors
    /// It cannot be read, or there is something else by its name.
    pub fn of(directory: &Path) -> Result<Option<Self>, SnapshotError> {
        let path = directory.join(MARKER_FILE);
        let Some(file) = open_plain(&path)? else {
            return Ok(None);
        };
        let mut text = Vec::new();
        file.take(LIMIT)
            .read_to_end(&mut text)
            .tried("read", &path)?;
        let marker = serde_json::from_slice(&text);
        marker
            .map(Some)
            .map_err(|source| SnapshotError::Malformed { path, source })
    }

    /// Refuses a directory that does not carry this marker.
    pub(super) fn claim(&self, directory: &Path) -> Result<(), SnapshotError> {
        let found = Self::of(directory)?;
        if found.as_ref() == Some(self) {
            return Ok(());
        }
        Err(SnapshotError::NotOurs {
            path: directory.to_owned(),
            found,
            wanted: self.clone(),
        })
    }

    /// Makes a new directory that carries this marker.
    pub(super) fn make(&self, directory: &Path) -> Result<(), SnapshotError> {
        fs::create_dir(directory).tried("make", directory)?;
        self.mark(directory)
    }

    /// Puts this marker into a directory that has none.
    pub(super) fn mark(&self, directory: &Path) -> Result<(), SnapshotError> {
        let (unfinished, path) = (directory.join(UNFINISHED), directory.join(MARKER_FILE));
        let mut text = serde_json::to_vec(self).expect("a marker is plain data");
        text.push(b'\n');
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).tried("remove", &unfinished);
            }
            _ => {}
        }
        let mut file = File::create_new(&unfinished).tried("make", &unfinished)?;
        file.write_all(&text).tried("write", &unfinished)?;
        file.sync_all().tried("write", &unfinished)?;
        fs::rename(&unfinished, &path).tried("make", &path)
    }
}

/// Opens a file of assay's own, if it is there. A link by its name is not followed, a fifo not waited for: both are errors.
pub(super) fn open_plain(path: &Path) -> Result<Option<File>, SnapshotError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file: File = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => file.into(),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(Error::other("it is a symbolic link")).tried("read", path),
        Err(error) => return Err(error).tried("read", path),
    };
    if !file.metadata().tried("look at", path)?.is_file() {
        return Err(Error::other("it is no file")).tried("read", path);
    }
    Ok(Some(file))
}

/// Whether a file's name is one of assay's own, which are no data.
pub(super) fn is_own(name: &OsStr) -> bool {
    name == MARKER_FILE || name == UNFINISHED
}

/// Whether a directory was being made when its maker died: nothing is in it but an unfinished marker.
pub(super) fn is_unborn(directory: &Path) -> Result<bool, SnapshotError> {
    for entry in fs::read_dir(directory).tried("read", directory)? {
        let entry = entry.tried("read", directory)?;
        let kind = entry.file_type().tried("look at", &entry.path())?;
        if entry.file_name() != UNFINISHED || !kind.is_file() {
            return Ok(false);
        }
    }
    Ok(true)
}
