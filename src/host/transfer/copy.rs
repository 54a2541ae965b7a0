//! What is sent to this machine itself: copied to its place without a cache, by the same checks.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::bridge::Progress;
use super::content;
use super::error::{Fault, TransferError, Tried, free};
use super::list::{Entry, Kind, below, open};
use super::source::{Files, Source};
use super::stage::{Stage, is_there};
use super::upload::Sent;

/// Brings a file or tree to `remote` on this machine: made beside `remote`, renamed. Folders above are made. If the same is
/// there already, nothing happens. With `replace`, another file may be there.
///
/// # Errors
/// It cannot be read or changed since it was, something else is at `remote`, the disk is full.
pub async fn copy(
    source: &Source,
    remote: &Path,
    replace: bool,
    progress: Progress,
) -> Result<Sent, TransferError> {
    let (files, remote) = (source.all(), remote.to_owned());
    let work = move || place(&files, &remote, replace, &|bytes| progress(bytes));
    let copied = match tokio::task::spawn_blocking(work).await {
        Ok(copied) => copied.map_err(TransferError::Here)?,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    };
    Ok(Sent {
        bytes: source.bytes(),
        sent: copied,
        files: source.files(),
    })
}

/// Returns the bytes that were copied.
fn place(
    files: &Files,
    remote: &Path,
    replace: bool,
    progress: &dyn Fn(u64),
) -> Result<u64, Fault> {
    if !remote.is_absolute() {
        return Err(Fault::Refused {
            path: remote.to_owned(),
            why: "it is not absolute".to_owned(),
        });
    }
    if is_there(remote, &files.entries, replace, |found, wanted| {
        is_same(remote, found, wanted)
    })? {
        return Ok(0);
    }
    let stage = Stage::beside(remote, files.entries[0].is_file())?;
    let mut left: u64 = files.entries.iter().map(Entry::size).sum();
    let all = left;
    for (number, entry) in files.entries.iter().enumerate() {
        stage.make(entry)?;
        if entry.is_file() {
            let mut target = stage.file(entry)?;
            let copied = files.copy(number, &mut target, &mut |bytes| progress(bytes));
            copied.map_err(|fault| lacking(fault, remote, left))?;
            let path = stage.of(entry);
            fs::set_permissions(&path, Permissions::from_mode(entry.mode))
                .tried("set the mode of", &path)?;
            left -= entry.size();
        }
    }
    stage.dress(files.entries.iter(), 0)?;
    stage.finish(replace)?;
    Ok(all)
}

/// A full disk is the one that is written to.
fn lacking(fault: Fault, remote: &Path, wanted: u64) -> Fault {
    match fault {
        Fault::Space { .. } => Fault::Space {
            path: remote.to_owned(),
            wanted,
            free: free(remote),
        },
        fault => fault,
    }
}

fn is_same(root: &Path, found: &Entry, wanted: &Entry) -> Result<bool, Fault> {
    let Kind::File { size, sha256 } = &wanted.kind else {
        return Ok(found.kind == wanted.kind);
    };
    if !found.is_file() || found.size() != *size {
        return Ok(false);
    }
    let path = below(root, &found.path);
    let (mut file, _) = open(&path)?;
    let mut digest = Sha256::new();
    let read = content::hash(&mut file, *size, &mut digest, &mut |_| {}).tried("read", &path)?;
    Ok(read == *size && content::hex(digest) == *sha256)
}
