//! The work on a data directory, done on its own host.
//!
//! Whatever moment a call dies at, the directory it works on is there as it was or as it will be, never in between;
//! what the call left beside it carries the marker, and the next call removes it.
//!
//! A restore compares what it puts back with the snapshot's manifest: kinds, sizes, modes, owners and times of everything,
//! and the sha256 of every file that it copies. A file whose blocks it shares is hashed only if the system says that it was
//! changed by any means since the snapshot was taken (`ctime`, which no program can set); what rots on the disk without a
//! write is found there by [`verify`] alone, which reads everything.

mod content;
mod manifest;
mod marker;
mod own;
mod place;
mod probe;
mod progress;
mod survey;
mod switch;
mod tree;

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub use manifest::{Entry, Kind, Manifest, Name};
pub use marker::{MARKER_FILE, Marker};
pub use own::{Standing, clear, hold, remains, standing};
pub use probe::{Capabilities, probe};
pub use progress::{Listener, Progress, Stage};
use serde::{Deserialize, Serialize};
pub use tree::Cloning;

use self::manifest::Changes;
use self::place::Place;
use self::progress::Telling;
use self::survey::Survey;
use self::switch::{INCOMING, PARTIAL};
use self::tree::Copying;
use super::SnapshotError;
use super::error::Tried;

/// The end of a manifest's name; it lies beside its snapshot.
const MANIFEST: &str = ".manifest.json";

/// A data directory and its snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The data directory.
    pub data: PathBuf,
    /// The snapshot, a directory beside which its manifest is.
    pub snapshot: PathBuf,
    /// Whose both are.
    pub marker: Marker,
}

/// What a snapshot took or a restore put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Files, each of its names counted.
    pub files: u64,
    /// Bytes of all files; one with several names counts once.
    pub bytes: u64,
    /// How they got there.
    pub cloning: Cloning,
}

/// Makes an empty marked directory; one that carries the same marker is replaced.
///
/// # Errors
/// The place is refused, or what is there is not ours.
pub fn deploy(directory: &Path, marker: &Marker, watch: Listener<'_>) -> Result<(), SnapshotError> {
    let telling = &mut Telling::new(watch);
    let place = Place::at(directory)?;
    if place.is_taken()? {
        marker.claim(place.path())?;
    }
    fs::create_dir_all(place.parent()).tried("make", place.parent())?;
    switch::tidy(&place, marker, telling)?;
    marker.make(&place.sibling(INCOMING))?;
    switch::flush(&place.sibling(INCOMING))?;
    switch::switch(&place, marker, switch::exchange, telling)
}

/// Removes a marked directory, and the manifest beside it if it is a snapshot. One that is not there is fine.
///
/// # Errors
/// The place is refused, or what is there is not ours.
pub fn remove(directory: &Path, marker: &Marker, watch: Listener<'_>) -> Result<(), SnapshotError> {
    let telling = &mut Telling::new(watch);
    let place = Place::at(directory)?;
    remove_at(&place, marker, telling)
}

fn remove_at(
    place: &Place,
    marker: &Marker,
    telling: &mut Telling<'_>,
) -> Result<(), SnapshotError> {
    switch::tidy(place, marker, telling)?;
    // Discarding it claims it: what lies beside a snapshot of ours is its manifest, also when it can no longer be read.
    let is_ours = place.is_taken()?;
    if is_ours {
        switch::discard(place, marker, telling)?;
    }
    let path = place.sibling(MANIFEST);
    manifest::remove_unfinished(&path, marker)?;
    let is_there = match own_manifest(&path, marker) {
        Err(SnapshotError::Malformed { .. }) if is_ours => true,
        found => found?.is_some(),
    };
    if is_there {
        fs::remove_file(&path).tried("remove", &path)
    } else {
        Ok(())
    }
}

/// Takes a snapshot of a data directory whose database is stopped; an older snapshot of it goes first.
///
/// # Errors
/// A place is refused, something is not ours, the data cannot be copied whole or changes meanwhile, the disk is
/// too small. Nothing is left of the snapshot then.
pub fn take(order: &Order, cloning: Cloning, watch: Listener<'_>) -> Result<Done, SnapshotError> {
    let telling = &mut Telling::new(watch);
    let (data, snapshot) = places(order)?;
    switch::tidy(&data, &order.marker, telling)?;
    present(&data, "data directory")?;
    order.marker.claim(data.path())?;
    fs::create_dir_all(snapshot.parent()).tried("make", snapshot.parent())?;
    remove_at(&snapshot, &order.marker, telling)?;
    let write = Write {
        from: &data,
        into: snapshot.sibling(PARTIAL),
        marker: &order.marker,
        cloning,
        known: &Changes::new(),
    };
    let manifest = snapshot.sibling(MANIFEST);
    write.run(telling, |entries, telling| {
        telling.stage(Stage::Comparing);
        let mut contents = Manifest::new(&order.marker, entries);
        contents.note_changes(&Survey::of(&snapshot.sibling(PARTIAL))?);
        contents.write(&manifest)?;
        telling.stage(Stage::Switching);
        switch::rename(&snapshot.sibling(PARTIAL), snapshot.path())?;
        switch::flush(snapshot.parent())
    })
}

/// Puts the data of a snapshot in the place of a data directory, which carries the same marker or is not there.
///
/// # Errors
/// A place is refused, something is not ours, the snapshot is not whole or differs from its manifest, the disk is too
/// small. The data directory stays as it was then.
pub fn restore(
    order: &Order,
    cloning: Cloning,
    watch: Listener<'_>,
) -> Result<Done, SnapshotError> {
    restore_with(order, cloning, switch::exchange, watch)
}

fn restore_with(
    order: &Order,
    cloning: Cloning,
    exchange: switch::Exchange,
    watch: Listener<'_>,
) -> Result<Done, SnapshotError> {
    let telling = &mut Telling::new(watch);
    let (data, snapshot) = places(order)?;
    let manifest = whole(&snapshot, &order.marker)?;
    if data.is_taken()? {
        order.marker.claim(data.path())?;
    }
    fs::create_dir_all(data.parent()).tried("make", data.parent())?;
    switch::tidy(&data, &order.marker, telling)?;
    // A copy reads every byte anyway; to hash them takes 0.7 s of a CPU with SHA instructions for each GiB. Sharing blocks reads none, and need not where nothing can have changed.
    let known = match cloning {
        Cloning::Copy => Changes::new(),
        Cloning::Reflink => manifest.changes(),
    };
    let write = Write {
        from: &snapshot,
        into: data.sibling(INCOMING),
        marker: &order.marker,
        cloning,
        known: &known,
    };
    write.run(telling, |entries, telling| {
        telling.stage(Stage::Comparing);
        manifest.compare(snapshot.path(), &entries)?;
        switch::switch(&data, &order.marker, exchange, telling)
    })
}

/// Reads a whole snapshot and compares it with its manifest. Returns its files and bytes.
///
/// # Errors
/// It is not ours, not whole, or differs from its manifest.
pub fn verify(
    snapshot: &Path,
    marker: &Marker,
    watch: Listener<'_>,
) -> Result<(u64, u64), SnapshotError> {
    let telling = &mut Telling::new(watch);
    let place = Place::at(snapshot)?;
    let manifest = whole(&place, marker)?;
    telling.stage(Stage::Counting);
    let survey = Survey::of(place.path())?;
    telling.expect(survey.files, survey.bytes);
    telling.stage(Stage::Reading);
    let entries = tree::read(place.path(), &survey, telling)?;
    telling.stage(Stage::Comparing);
    manifest.compare(place.path(), &entries)?;
    Ok((survey.files, survey.bytes))
}

/// The sha256, in hex, of a whole snapshot's manifest: two snapshots with the same one hold the same files with the same
/// times, so they are the same snapshot.
///
/// # Errors
/// It is not there, not ours, or not whole.
pub fn digest(snapshot: &Path, marker: &Marker) -> Result<String, SnapshotError> {
    Ok(whole(&Place::at(snapshot)?, marker)?.digest())
}

/// The data directory and the snapshot of an order.
fn places(order: &Order) -> Result<(Place, Place), SnapshotError> {
    let (data, snapshot) = (Place::at(&order.data)?, Place::at(&order.snapshot)?);
    data.apart_from(&snapshot)?;
    Ok((data, snapshot))
}

fn present(place: &Place, what: &'static str) -> Result<(), SnapshotError> {
    if place.is_taken()? {
        return Ok(());
    }
    Err(SnapshotError::Missing {
        what,
        path: place.path().to_owned(),
    })
}

/// The manifest of a snapshot that is there and ours.
fn whole(snapshot: &Place, marker: &Marker) -> Result<Manifest, SnapshotError> {
    present(snapshot, "snapshot")?;
    marker.claim(snapshot.path())?;
    let path = snapshot.sibling(MANIFEST);
    own_manifest(&path, marker)?.ok_or(SnapshotError::Missing {
        what: "manifest",
        path,
    })
}

fn own_manifest(path: &Path, marker: &Marker) -> Result<Option<Manifest>, SnapshotError> {
    match Manifest::read(path)? {
        Some(manifest) if manifest.marker != *marker => Err(SnapshotError::NotOurs {
            path: path.to_owned(),
            found: Some(manifest.marker),
            wanted: marker.clone(),
        }),
        manifest => Ok(manifest),
    }
}

/// One directory written from another.
struct Write<'a> {
    from: &'a Place,
    into: PathBuf,
    marker: &'a Marker,
    cloning: Cloning,
    known: &'a Changes<'a>,
}

impl Write<'_> {
    /// Writes it, flushes it, and lets `finish` put it into its place. On failure nothing is left of it.
    fn run(
        &self,
        telling: &mut Telling<'_>,
        finish: impl FnOnce(Vec<Entry>, &mut Telling<'_>) -> Result<(), SnapshotError>,
    ) -> Result<Done, SnapshotError> {
        telling.stage(Stage::Counting);
        let survey = Survey::of(self.from.path())?;
        let free = free(&self.into)?;
        let space = |wanted| SnapshotError::Space {
            path: above(&self.into).to_owned(),
            wanted,
            free,
        };
        if self.cloning == Cloning::Copy && survey.allocated > free {
            return Err(space(survey.allocated));
        }
        let written = self
            .fill(&survey, telling)
            .and_then(|entries| finish(entries, telling));
        written.map_err(|error| {
            // The cause matters more than what the cleaning meets; the next call cleans as well.
            let _ = switch::leftover(&self.into, self.marker, telling);
            if is_full(&error) {
                space(survey.allocated)
            } else {
                error
            }
        })?;
        Ok(Done {
            files: survey.files,
            bytes: survey.bytes,
            cloning: self.cloning,
        })
    }

    fn fill(
        &self,
        survey: &Survey,
        telling: &mut Telling<'_>,
    ) -> Result<Vec<Entry>, SnapshotError> {
        telling.expect(survey.files, survey.bytes);
        telling.stage(Stage::Copying);
        self.marker.make(&self.into)?;
        telling.stage(Stage::Copying);
        let mut copying = Copying {
            from: self.from.path(),
            to: &self.into,
            cloning: self.cloning,
            known: self.known,
            telling,
        };
        let entries = copying.run(survey)?;
        survey.still_holds(self.from.path())?;
        telling.stage(Stage::Flushing);
        let folder = File::open(&self.into).tried("open", &self.into)?;
        // Everything of the file system at once: thousands of small files take minutes one by one.
        rustix::fs::syncfs(&folder).tried("flush", &self.into)?;
        Ok(entries)
    }
}

/// Bytes that are free to this user beside a directory.
fn free(directory: &Path) -> Result<u64, SnapshotError> {
    let parent = above(directory);
    let stat = rustix::fs::statvfs(parent).tried("look at", parent)?;
    Ok(stat.f_bavail * stat.f_frsize)
}

fn above(directory: &Path) -> &Path {
    directory.parent().expect("a place has three parts or more")
}

fn is_full(error: &SnapshotError) -> bool {
    let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
    match error {
        SnapshotError::Io { source, .. } | SnapshotError::Reflink { source, .. } => {
            full.contains(&source.kind())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
