//! How one directory takes the place of another so that a crash at any moment leaves one of them there, whole,
//! and how what such a crash leaves beside them is removed.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::Marker;
use super::marker::{is_own, is_unborn};
use super::place::{Place, is_there};
use super::progress::{Stage, Telling};
use crate::snapshot::SnapshotError;
use crate::snapshot::error::Tried;

/// A snapshot that is being written.
pub(super) const PARTIAL: &str = ".partial";
/// A directory that will take the place of another, and then the other.
pub(super) const INCOMING: &str = ".incoming";
/// A directory that is being removed.
pub(super) const OUTGOING: &str = ".outgoing";

/// How two directories exchange their names at once.
pub(super) type Exchange = fn(&Path, &Path) -> Result<(), Errno>;

/// The system's own way, which some file systems lack.
pub(super) fn exchange(a: &Path, b: &Path) -> Result<(), Errno> {
    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)
}

/// Renames to a name that must be free.
pub(super) fn rename(from: &Path, to: &Path) -> Result<(), SnapshotError> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // A directory never replaces anything but an empty directory, so that the plain way is safe as well.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if !is_there(to)? => {
            fs::rename(from, to).tried("rename", from)
        }
        result => result.tried("rename", from),
    }
}

/// Puts the complete sibling [`INCOMING`] in its place and removes what was there.
pub(super) fn switch(
    place: &Place,
    marker: &Marker,
    exchange: Exchange,
    telling: &mut Telling<'_>,
) -> Result<(), SnapshotError> {
    let (target, incoming) = (place.path(), place.sibling(INCOMING));
    telling.stage(Stage::Switching);
    if !place.is_taken()? {
        rename(&incoming, target)?;
        return flush(place.parent());
    }
    marker.claim(target)?;
    match exchange(&incoming, target) {
        Ok(()) => {
            flush(place.parent())?;
            erase(&incoming, marker, telling)
        }
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            let outgoing = place.sibling(OUTGOING);
            rename(target, &outgoing)?;
            telling.stage(Stage::Switching);
            if let Err(error) = rename(&incoming, target) {
                let _ = rename(&outgoing, target);
                return Err(error);
            }
            flush(place.parent())?;
            erase(&outgoing, marker, telling)
        }
        Err(error) => Err(error).tried("exchange", target),
    }
}

/// Removes a directory that carries the marker: first from its place, at once, then from the disk.
pub(super) fn discard(
    place: &Place,
    marker: &Marker,
    telling: &mut Telling<'_>,
) -> Result<(), SnapshotError> {
    marker.claim(place.path())?;
    let outgoing = place.sibling(OUTGOING);
    telling.stage(Stage::Removing);
    rename(place.path(), &outgoing)?;
    flush(place.parent())?;
    erase(&outgoing, marker, telling)
}

/// Removes what an interrupted call left beside a place; if it was interrupted between the two renames of
/// [`switch`], puts the old directory back. What does not carry the marker is not touched but refused.
pub(super) fn tidy(
    place: &Place,
    marker: &Marker,
    telling: &mut Telling<'_>,
) -> Result<(), SnapshotError> {
    telling.stage(Stage::Tidying);
    let (incoming, outgoing) = (place.sibling(INCOMING), place.sibling(OUTGOING));
    // A removal that was interrupted leaves no incoming one, so that the outgoing one here is whole.
    if !place.is_taken()? && is_there(&outgoing)? && is_there(&incoming)? {
        marker.claim(&outgoing)?;
        rename(&outgoing, place.path())?;
        flush(place.parent())?;
    }
    for suffix in [PARTIAL, INCOMING, OUTGOING] {
        leftover(&place.sibling(suffix), marker, telling)?;
    }
    Ok(())
}

/// Removes a directory that a call made, whatever state it is in.
pub(super) fn leftover(
    directory: &Path,
    marker: &Marker,
    telling: &mut Telling<'_>,
) -> Result<(), SnapshotError> {
    if !is_there(directory)? {
        return Ok(());
    }
    Place::at(directory)?;
    if is_unborn(directory)? {
        return fs::remove_dir_all(directory).tried("remove", directory);
    }
    erase(directory, marker, telling)
}

/// Removes a directory that carries the marker, the marker last: an interrupted removal can be finished.
fn erase(
    directory: &Path,
    marker: &Marker,
    telling: &mut Telling<'_>,
) -> Result<(), SnapshotError> {
    Place::at(directory)?;
    marker.claim(directory)?;
    telling.stage(Stage::Removing);
    make_writable(directory)?;
    for entry in fs::read_dir(directory).tried("read", directory)? {
        let entry = entry.tried("read", directory)?;
        if is_own(&entry.file_name()) {
            continue;
        }
        let path = entry.path();
        if entry.file_type().tried("look at", &path)?.is_dir() {
            make_writable(&path)?;
            fs::remove_dir_all(&path).tried("remove", &path)?;
        } else {
            fs::remove_file(&path).tried("remove", &path)?;
        }
        telling.stage(Stage::Removing);
    }
    fs::remove_dir_all(directory).tried("remove", directory)
}

/// Lets the owner of a folder remove what is in it and in the folders below.
pub(super) fn make_writable(folder: &Path) -> Result<(), SnapshotError> {
    let mode = fs::symlink_metadata(folder)
        .tried("look at", folder)?
        .mode();
    if mode & 0o700 != 0o700 {
        let open = Permissions::from_mode(mode & 0o7777 | 0o700);
        fs::set_permissions(folder, open).tried("open", folder)?;
    }
    for entry in fs::read_dir(folder).tried("read", folder)? {
        let entry = entry.tried("read", folder)?;
        if entry.file_type().tried("look at", &entry.path())?.is_dir() {
            make_writable(&entry.path())?;
        }
    }
    Ok(())
}

/// Flushes a folder's own list of names to disk.
pub(super) fn flush(folder: &Path) -> Result<(), SnapshotError> {
    let file = File::open(folder).tried("open", folder)?;
    file.sync_all().tried("flush", folder)
}
