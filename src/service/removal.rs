//! Removing a deployment's programs from a host: what carries its marker, and what was made for it. What will go is told
//! beforehand by the same code.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::{ServiceError, Tried};
use super::record::{self, Before, Record};
use super::stop::{Stop, Stopped, stop};
use super::units::Own;
use super::{Systemd, name};
use crate::snapshot::directory::{self, Standing};
use crate::snapshot::{Marker, SnapshotError};

/// The request of `service-removal`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removal {
    /// Whose it is.
    pub marker: Marker,
    /// The host's directory.
    pub host_directory: PathBuf,
    /// The deployment's directory.
    pub base: PathBuf,
    /// Directories with markers of their own, besides those that the installation wrote down.
    #[serde(default)]
    pub directories: Vec<PathBuf>,
    /// What the names of the deployment's units begin with, as [`super::unit_prefix`] gives it.
    pub unit_prefix: String,
}

/// The request of `service-remove`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remove {
    /// What is removed.
    pub removal: Removal,
    /// Marked directories that stay, such as those of data; with them stays what leads to them.
    #[serde(default)]
    pub keep: Vec<PathBuf>,
    /// How long the units may take to stop before they are killed.
    pub limit: Duration,
}

/// What a removal removes, or removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// Units, which are stopped first.
    pub units: Vec<String>,
    /// Files and directories, the latter with all that is in them, in this order.
    pub paths: Vec<PathBuf>,
    /// What is there and is left alone.
    pub left: Vec<Left>,
    /// How the units stopped; nothing before they did.
    #[serde(default)]
    pub stopped: Vec<Stopped>,
}

/// Something that is left alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// Its path.
    pub path: PathBuf,
    /// Why.
    pub why: String,
    /// Whether it is the deployment's own, so that the next removal tries again.
    #[serde(default)]
    pub ours: bool,
}

/// Tells what [`remove`] would remove if nothing were to stay, and changes nothing. Without a systemd there are no units.
///
/// # Errors
/// Something cannot be looked at.
pub fn removal(request: &Removal, systemd: Option<Systemd>) -> Result<Removed, ServiceError> {
    Ok(Work::look(request, systemd, &[])?.removed)
}

/// Stops and removes a deployment's units, its directories and the empty folders above that assay made; what is not there is
/// fine. One that was interrupted is finished by the next.
///
/// # Errors
/// A unit's process cannot be killed, or something cannot be removed.
pub fn remove(request: &Remove, systemd: Option<Systemd>) -> Result<Removed, ServiceError> {
    let mut work = Work::look(&request.removal, systemd, &request.keep)?;
    work.stop_and_remove_units(request.limit)?;
    work.directories()?;
    Ok(work.removed)
}

struct Work<'a> {
    request: &'a Removal,
    systemd: Option<Systemd>,
    record: Record,
    has_record: bool,
    /// Without links.
    base: PathBuf,
    /// What is there, if it may be worked on.
    standing: Option<Standing>,
    units: Own,
    /// Marked directories that go, and those that stay, without links.
    directories: BTreeSet<PathBuf>,
    keep: Vec<PathBuf>,
    removed: Removed,
}

impl<'a> Work<'a> {
    fn look(
        request: &'a Removal,
        systemd: Option<Systemd>,
        keep: &[PathBuf],
    ) -> Result<Self, ServiceError> {
        name::check(&format!("{}x{}", request.unit_prefix, name::SUFFIX))?;
        let mut work = Self {
            request,
            systemd,
            record: Record::new(&request.marker),
            has_record: false,
            base: request.base.clone(),
            standing: None,
            units: Own::default(),
            directories: BTreeSet::new(),
            keep: Vec::new(),
            removed: Removed::default(),
        };
        work.look_at_units()?;
        if let Some((base, standing)) = work.standing(&request.base)? {
            work.base = base;
            work.standing = Some(standing);
            if let Some(record) = Record::read(&work.base, &request.marker)? {
                (work.record, work.has_record) = (record, true);
            }
        }
        work.look_at_directories(keep)?;
        Ok(work)
    }

    fn look_at_units(&mut self) -> Result<(), ServiceError> {
        if let Some(systemd) = &self.systemd {
            let (marker, prefix) = (&self.request.marker, &self.request.unit_prefix);
            self.units = Own::find(systemd, marker, prefix)?;
        }
        self.removed.units.clone_from(&self.units.units);
        self.removed.paths = self.units.paths();
        self.removed.left.clone_from(&self.units.left);
        Ok(())
    }

    /// A directory without links, and what is there, if it may be worked on; else it is noted as left alone.
    fn standing(&mut self, path: &Path) -> Result<Option<(PathBuf, Standing)>, ServiceError> {
        match directory::standing(path, &self.request.marker) {
            Ok(found) => Ok(Some(found)),
            Err(error @ (SnapshotError::NotOurs { .. } | SnapshotError::Place { .. })) => {
                let (path, why) = (path.to_owned(), error.to_string());
                let ours = self.record.directories.contains(&path);
                self.removed.left.push(Left { path, why, ours });
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn look_at_directories(&mut self, keep: &[PathBuf]) -> Result<(), ServiceError> {
        for path in keep {
            let found = self.standing(path)?;
            self.keep.extend(found.map(|(path, _)| path));
        }
        let asked = self.request.directories.iter().cloned();
        let all: BTreeSet<PathBuf> = asked.chain(self.record.directories.clone()).collect();
        for path in all {
            let Some((path, standing)) = self.standing(&path)? else {
                continue;
            };
            let stays = standing == Standing::Empty || self.keep.contains(&path);
            if !stays && path != self.base {
                self.directories.insert(path);
            }
        }
        let marker = &self.request.marker;
        let mut paths = Vec::new();
        for path in self
            .directories
            .iter()
            .filter(|path| !path.starts_with(&self.base))
        {
            paths.extend(directory::remains(path, marker)?);
        }
        if self.has_base() {
            paths.extend(directory::remains(&self.base, marker)?);
        }
        // The record lies in one of the folders above, and tells which others were made: those go before it, the rest after.
        paths.extend(self.emptied(&paths));
        if self.has_record {
            paths.push(record::path(&self.base));
        }
        paths.extend(self.emptied(&paths));
        self.removed.paths.extend(paths);
        Ok(())
    }

    /// The further folders that assay made and that are empty when these paths are gone; the inner ones first.
    fn emptied(&self, paths: &[PathBuf]) -> Vec<PathBuf> {
        let mut gone: BTreeSet<PathBuf> = paths.iter().cloned().collect();
        let mut emptied = Vec::new();
        for above in self.above() {
            let Ok(entries) = fs::read_dir(&above) else {
                continue;
            };
            let mut entries = entries.map(|entry| entry.map(|entry| entry.path()));
            let is_empty = entries.all(|path| path.is_ok_and(|path| gone.contains(&path)));
            if is_empty && gone.insert(above.clone()) {
                emptied.push(above);
            }
        }
        emptied
    }

    /// The folders above the directories that assay made, the inner ones first. In the host's directory nobody else makes any.
    fn above(&self) -> Vec<PathBuf> {
        let host = &self.request.host_directory;
        let host = host.canonicalize().unwrap_or_else(|_| host.clone());
        let is_below_host = |path: &&Path| path.starts_with(&host) && *path != host;
        let base = self.standing.map(|_| &self.base);
        let all = self.directories.iter().chain(base);
        let in_host = all
            .flat_map(|path| path.ancestors().skip(1).take_while(is_below_host))
            .filter(|path| !path.starts_with(&self.base))
            .map(Path::to_owned);
        let mut above: Vec<PathBuf> = in_host.chain(self.record.made.clone()).collect();
        above.sort();
        above.dedup();
        above.sort_by_key(|path| std::cmp::Reverse(path.components().count()));
        above
    }

    fn stop_and_remove_units(&mut self, limit: Duration) -> Result<(), ServiceError> {
        let Some(systemd) = &self.systemd else {
            return Ok(());
        };
        let units = self.units.units.clone();
        self.removed.stopped = stop(&Stop { units, limit }, systemd)?;
        self.units.remove(systemd)
    }

    fn directories(&mut self) -> Result<(), ServiceError> {
        let marker = &self.request.marker;
        for path in &self.directories {
            directory::remove(path, marker, &mut |_| {})?;
        }
        if self.keep.is_empty() {
            if self.has_base() {
                directory::remove(&self.base, marker, &mut |_| {})?;
            }
        } else if self.has_base() {
            directory::clear(&self.base, marker, &self.keep)?;
        }
        for (path, before) in &self.record.before {
            put_back(path, *before)?;
        }
        if self.keep.is_empty() {
            return self.above_and_record();
        }
        let is_gone = |path: &PathBuf| path.symlink_metadata().is_err();
        self.removed.paths.retain(is_gone);
        Ok(())
    }

    /// In the order that was told.
    fn above_and_record(&self) -> Result<(), ServiceError> {
        let above = self.above();
        remove_empty(&above)?;
        // What stays for now is known to the next removal.
        if self.has_record && !self.removed.left.iter().any(|left| left.ours) {
            Record::remove(&self.base)?;
        }
        remove_empty(&above)
    }

    /// Whether there may be something of the deployment's directory that is ours.
    fn has_base(&self) -> bool {
        matches!(self.standing, Some(Standing::Ours | Standing::Absent))
    }
}

/// Makes the empty directory again that was there before.
fn put_back(path: &Path, before: Before) -> Result<(), ServiceError> {
    match fs::create_dir(path) {
        Ok(()) => {}
        Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {
            return Ok(());
        }
        Err(error) => return Err(error).tried("make", path),
    }
    lchown(path, Some(before.uid), Some(before.gid)).tried("set the owner of", path)?;
    let mode = fs::Permissions::from_mode(before.mode);
    fs::set_permissions(path, mode).tried("set the mode of", path)
}

/// Removes those folders that are empty.
fn remove_empty(folders: &[PathBuf]) -> Result<(), ServiceError> {
    for folder in folders {
        match fs::remove_dir(folder) {
            Err(error)
                if !matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty
                ) =>
            {
                return Err(error).tried("remove", folder);
            }
            _ => {}
        }
    }
    Ok(())
}
