//! Directories of a deployment that hold more than data: made once and kept, looked at, emptied but for what is to stay.

use std::fs;
use std::path::{Path, PathBuf};

use super::marker::{Marker, is_own, is_unborn};
use super::place::{Place, is_there};
use super::progress::Telling;
use super::switch::{self, INCOMING, OUTGOING, PARTIAL};
use super::{MANIFEST, own_manifest};
use crate::snapshot::SnapshotError;
use crate::snapshot::error::Tried;

/// What is at a place that a deployment may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing.
    Absent,
    /// An empty directory of nobody.
    Empty,
    /// A directory that carries the marker.
    Ours,
}

/// Looks at a place and changes nothing; returns its path without links.
///
/// # Errors
/// The place is refused, or what is there is not ours.
pub fn standing(directory: &Path, marker: &Marker) -> Result<(PathBuf, Standing), SnapshotError> {
    let place = Place::at(directory)?;
    let standing = of(&place, marker)?;
    Ok((place.path().to_owned(), standing))
}

fn of(place: &Place, marker: &Marker) -> Result<Standing, SnapshotError> {
    if !place.is_taken()? {
        return Ok(Standing::Absent);
    }
    if Marker::of(place.path())?.is_none() && is_unborn(place.path())? {
        return Ok(Standing::Empty);
    }
    marker.claim(place.path())?;
    Ok(Standing::Ours)
}

/// Makes a marked directory where nothing is, marks an empty one, and leaves one that carries the marker as it is. Returns
/// its path without links, and what was there.
///
/// # Errors
/// As [`standing`], or it cannot be made.
pub fn hold(directory: &Path, marker: &Marker) -> Result<(PathBuf, Standing), SnapshotError> {
    let place = Place::at(directory)?;
    let mut unheard = |_: &_| {};
    switch::tidy(&place, marker, &mut Telling::new(&mut unheard))?;
    let found = of(&place, marker)?;
    match found {
        Standing::Absent => {
            let incoming = place.sibling(INCOMING);
            fs::create_dir_all(place.parent()).tried("make", place.parent())?;
            marker.make(&incoming)?;
            switch::flush(&incoming)?;
            switch::rename(&incoming, place.path())?;
            switch::flush(place.parent())?;
        }
        Standing::Empty => {
            marker.mark(place.path())?;
            switch::flush(place.path())?;
        }
        Standing::Ours => {}
    }
    Ok((place.path().to_owned(), found))
}

/// What [`super::remove`] would remove: the directory if it is ours, and what lies beside it.
///
/// # Errors
/// As [`standing`].
pub fn remains(directory: &Path, marker: &Marker) -> Result<Vec<PathBuf>, SnapshotError> {
    let place = Place::at(directory)?;
    let mut found = Vec::new();
    if of(&place, marker)? == Standing::Ours {
        found.push(place.path().to_owned());
    }
    for suffix in [PARTIAL, INCOMING, OUTGOING] {
        let path = place.sibling(suffix);
        if is_there(&path)? {
            found.push(path);
        }
    }
    let manifest = place.sibling(MANIFEST);
    if own_manifest(&manifest, marker).is_ok_and(|found| found.is_some()) {
        found.push(manifest);
    }
    Ok(found)
}

/// Removes everything in a marked directory but its marker and the directories `keep`, which are paths without links in it.
/// One that is not there is fine.
///
/// # Errors
/// The place is refused, or what is there is not ours.
pub fn clear(directory: &Path, marker: &Marker, keep: &[PathBuf]) -> Result<(), SnapshotError> {
    let place = Place::at(directory)?;
    let mut unheard = |_: &_| {};
    switch::tidy(&place, marker, &mut Telling::new(&mut unheard))?;
    if !place.is_taken()? {
        return Ok(());
    }
    marker.claim(place.path())?;
    empty(place.path(), keep)
}

fn empty(folder: &Path, keep: &[PathBuf]) -> Result<(), SnapshotError> {
    for entry in fs::read_dir(folder).tried("read", folder)? {
        let entry = entry.tried("read", folder)?;
        let path = entry.path();
        if is_own(&entry.file_name()) || keep.contains(&path) {
            continue;
        }
        if !entry.file_type().tried("look at", &path)?.is_dir() {
            fs::remove_file(&path).tried("remove", &path)?;
        } else if keep.iter().any(|kept| kept.starts_with(&path)) {
            empty(&path, keep)?;
        } else {
            switch::make_writable(&path)?;
            fs::remove_dir_all(&path).tried("remove", &path)?;
        }
    }
    Ok(())
}
