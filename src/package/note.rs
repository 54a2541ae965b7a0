//! What the store notes: the sha256 of what was obtained, so that it need not be read or downloaded to be found again.
//! Notes only save work: without them, everything is obtained anew.

use std::fs::{self, Metadata};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::hex_of;
use super::partial::Validator;

/// The folder in the store's.
const FOLDER: &str = ".notes";

/// What is known of something that was obtained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) sha256: String,
    pub(super) version: String,
    pub(super) platform: String,
    pub(super) origin: String,
    pub(super) verified: bool,
    #[serde(default)]
    pub(super) validator: Validator,
}

/// The notes of a store.
pub(super) struct Notes<'a>(pub(super) &'a Path);

impl Notes<'_> {
    fn path(&self, key: &str) -> PathBuf {
        let name = format!("{}.json", hex_of(key));
        self.0.join(FOLDER).join(name)
    }

    /// The note of `key`; one that cannot be read is none.
    pub(super) fn read(&self, key: &str) -> Option<Note> {
        let text = fs::read_to_string(self.path(key)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Notes it. That this failed costs only time.
    pub(super) fn write(&self, key: &str, note: &Note) {
        if let Err(error) = self.try_write(key, note) {
            tracing::debug!(%error, "cannot note what was obtained");
        }
    }

    fn try_write(&self, key: &str, note: &Note) -> std::io::Result<()> {
        let folder = self.0.join(FOLDER);
        fs::create_dir_all(&folder)?;
        let mut file = tempfile::NamedTempFile::new_in(&folder)?;
        file.write_all(&serde_json::to_vec(note)?)?;
        file.persist(self.path(key))?;
        Ok(())
    }
}

/// Names a file as it is now: another content has another size, time or number.
pub(super) fn key_of_file(path: &Path, meta: &Metadata) -> String {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (size, seconds, nanos) = (meta.size(), meta.mtime(), meta.mtime_nsec());
    let (change, change_nanos) = (meta.ctime(), meta.ctime_nsec());
    let (device, number) = (meta.dev(), meta.ino());
    format!(
        "file {} {size} {seconds}.{nanos} {change}.{change_nanos} {device}:{number}",
        path.display()
    )
}
