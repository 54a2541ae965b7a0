//! What the file system of a directory can do, found by trying.

use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::content;
use crate::host::{mount_of, mounts};
use crate::snapshot::SnapshotError;
use crate::snapshot::error::Tried;

/// What the file system of a directory can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Its type, such as `xfs`; empty if unknown.
    pub file_system: String,
    /// Whether files can share blocks.
    pub reflink: bool,
    /// Why not, in the system's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Tries to share the blocks of a file in `directory`; the files have no names, so that nothing can be left of them.
///
/// # Errors
/// The directory is not there or not writable.
pub fn probe(directory: &Path) -> Result<Capabilities, SnapshotError> {
    let found = directory.canonicalize().tried("find", directory)?;
    let tried = try_reflink(directory)?;
    let mounts = mounts().unwrap_or_default();
    let mount = mount_of(&mounts, &found);
    Ok(Capabilities {
        file_system: mount.map(|mount| mount.kind.clone()).unwrap_or_default(),
        reflink: tried.is_ok(),
        why: tried.err().map(|error| error.to_string()),
    })
}

fn try_reflink(directory: &Path) -> Result<std::io::Result<()>, SnapshotError> {
    let content = [b'x'; 64 << 10];
    let mut from = tempfile::tempfile_in(directory).tried("write a file in", directory)?;
    let to = tempfile::tempfile_in(directory).tried("write a file in", directory)?;
    from.write_all(&content)
        .tried("write a file in", directory)?;
    Ok(content::share(&from, &to).and_then(|()| {
        let mut read = [0; 64 << 10];
        to.read_exact_at(&mut read, 0)?;
        if read == content {
            return Ok(());
        }
        Err(std::io::Error::other("the shared blocks read differently"))
    }))
}
