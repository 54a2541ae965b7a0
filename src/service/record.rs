//! What an installation made on a host, beside the deployment's directory: written before anything is made, so that a removal
//! leaves the host as it was whatever moment the installation ended at.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::ServiceError;
use super::error::Tried;
use super::folder::Folder;
use crate::snapshot::{Marker, SnapshotError};

/// The end of the record's name; it lies beside the deployment's directory.
const SUFFIX: &str = ".installed.json";

/// What an installation made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) marker: Marker,
    /// Directories that carry markers of their own.
    pub(super) directories: BTreeSet<PathBuf>,
    /// Those of them that were there before, empty.
    pub(super) before: BTreeMap<PathBuf, Before>,
    /// Folders above them, outside the host's directory, that were not there before.
    pub(super) made: BTreeSet<PathBuf>,
}

/// An empty directory as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Before {
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl Before {
    pub(super) fn of(directory: &Path) -> Result<Self, ServiceError> {
        let meta = std::fs::symlink_metadata(directory).tried("look at", directory)?;
        Ok(Self {
            mode: meta.mode() & 0o7777,
            uid: meta.uid(),
            gid: meta.gid(),
        })
    }
}

impl Record {
    pub(super) fn new(marker: &Marker) -> Self {
        Self {
            marker: marker.clone(),
            directories: BTreeSet::new(),
            before: BTreeMap::new(),
            made: BTreeSet::new(),
        }
    }

    /// Reads the record of a deployment; `None` if there is none.
    pub(super) fn read(base: &Path, marker: &Marker) -> Result<Option<Self>, ServiceError> {
        let path = path(base);
        let above = match Folder::open(above(base)) {
            Ok(folder) => folder,
            Err(ServiceError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let Some((text, meta)) = above.read(&name(base))? else {
            return Ok(None);
        };
        let own = rustix::process::geteuid().as_raw();
        if meta.uid() != own || meta.mode() & 0o022 != 0 {
            let why = "others can write to it";
            return Err(ServiceError::refused(path.display().to_string(), why));
        }
        let record: Self = match serde_json::from_slice(&text) {
            Ok(record) => record,
            Err(source) => return Err(ServiceError::Malformed { path, source }),
        };
        if record.marker != *marker {
            return Err(SnapshotError::NotOurs {
                path,
                found: Some(record.marker),
                wanted: marker.clone(),
            }
            .into());
        }
        Ok(Some(record))
    }

    /// Writes it; the folder above the deployment's directory is there.
    pub(super) fn write(&self, base: &Path) -> Result<(), ServiceError> {
        let text = serde_json::to_vec(self).expect("a record is plain data");
        let above = Folder::open(above(base))?;
        above.put(&name(base), &text, None, 0o600).map(drop)
    }

    pub(super) fn remove(base: &Path) -> Result<(), ServiceError> {
        if above(base).is_dir() {
            Folder::open(above(base))?.remove(&name(base))?;
        }
        Ok(())
    }
}

/// Where the record of a deployment is.
pub(super) fn path(base: &Path) -> PathBuf {
    above(base).join(name(base))
}

fn name(base: &Path) -> OsString {
    let mut name = base.file_name().unwrap_or_default().to_owned();
    name.push(SUFFIX);
    name
}

fn above(base: &Path) -> &Path {
    base.parent().unwrap_or(Path::new("/"))
}
