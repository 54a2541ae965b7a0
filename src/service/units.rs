//! The unit files of a deployment: written with headers, found by names and headers, removed.

use std::ffi::OsStr;
use std::path::PathBuf;

use super::folder::{Folder, unfinished};
use super::install::UnitFile;
use super::removal::Left;
use super::{ServiceError, Systemd, header, name};
use crate::snapshot::Marker;

/// The mode of a unit file.
const READABLE: u32 = 0o644;

/// Refuses units that a deployment cannot have: by their names, or since others are there by these.
pub(super) fn check(
    units: &[UnitFile],
    marker: &Marker,
    systemd: &Systemd,
) -> Result<(), ServiceError> {
    let prefix = name::unit_prefix(marker);
    let folder = systemd.folder()?;
    for unit in units {
        name::check(&unit.name)?;
        if !unit.name.starts_with(&prefix) {
            let why = format!("the units of this deployment begin with `{prefix}`");
            return Err(ServiceError::refused(&unit.name, why));
        }
        if let Some(folder) = &folder {
            claim(folder, &unit.name, marker)?;
        }
    }
    Ok(())
}

/// Refuses a unit file that is there and not ours.
fn claim(folder: &Folder, unit: &str, marker: &Marker) -> Result<(), ServiceError> {
    let Some((text, _)) = folder.read(OsStr::new(unit))? else {
        return Ok(());
    };
    let found = header::of(&text);
    if found.as_ref() == Some(marker) {
        return Ok(());
    }
    Err(ServiceError::NotOurs {
        path: folder.path().join(unit),
        found,
        wanted: Box::new(marker.clone()),
    })
}

/// Writes unit files; returns the names of those that changed, and whether systemd read its units anew.
pub(super) fn write(
    units: &[UnitFile],
    marker: &Marker,
    systemd: &Systemd,
) -> Result<(Vec<String>, bool), ServiceError> {
    let folder = systemd.make_folder()?;
    let mut changed = Vec::new();
    for unit in units {
        claim(&folder, &unit.name, marker)?;
        let text = header::with(marker, &unit.content);
        if folder.put(OsStr::new(&unit.name), text.as_bytes(), None, READABLE)? {
            changed.push(unit.name.clone());
        }
    }
    // One that died before it could ask for it left this to do.
    let names: Vec<&str> = units.iter().map(|unit| unit.name.as_str()).collect();
    let is_behind = !changed.is_empty() || systemd.is_behind(&names)?;
    if is_behind {
        systemd.reload()?;
    }
    Ok((changed, is_behind))
}

/// The unit files of a deployment.
#[derive(Default)]
pub(super) struct Own {
    folder: PathBuf,
    /// Their names.
    pub(super) units: Vec<String>,
    /// The names of those that an installation was writing when it died.
    unfinished: Vec<String>,
    /// What has such a name and is not ours.
    pub(super) left: Vec<Left>,
}

impl Own {
    /// Looks for the units whose names begin with `prefix`.
    pub(super) fn find(
        systemd: &Systemd,
        marker: &Marker,
        prefix: &str,
    ) -> Result<Self, ServiceError> {
        let mut own = Self::default();
        let Some(folder) = systemd.folder()? else {
            return Ok(own);
        };
        own.folder = folder.path().to_owned();
        for name in folder.names()? {
            let Some(name) = name.to_str() else { continue };
            if is_unfinished(name, prefix) {
                let text = folder.read(OsStr::new(name)).ok().flatten();
                let found = text.and_then(|(text, _)| header::of(&text));
                if found.is_none_or(|found| found == *marker) {
                    own.unfinished.push(name.to_owned());
                }
            } else if name.starts_with(prefix) && name::check(name).is_ok() {
                own.sort(&folder, name, marker);
            }
        }
        Ok(own)
    }

    fn sort(&mut self, folder: &Folder, name: &str, marker: &Marker) {
        let path = folder.path().join(name);
        let why = match folder.read(OsStr::new(name)) {
            Ok(Some((text, _))) => match header::of(&text) {
                Some(found) if found == *marker => return self.units.push(name.to_owned()),
                // Of a deployment whose name begins as this one's does.
                Some(_) => return,
                None => "it was not made by assay",
            },
            // A link or fifo is none of ours.
            Ok(None) | Err(_) => "it is no file",
        };
        let why = why.to_owned();
        let ours = false;
        self.left.push(Left { path, why, ours });
    }

    /// The paths of the files.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let names = self.units.iter().chain(&self.unfinished);
        names.map(|name| self.folder.join(name)).collect()
    }

    /// Removes the files; their units are stopped.
    pub(super) fn remove(&self, systemd: &Systemd) -> Result<(), ServiceError> {
        let Some(folder) = systemd.folder()? else {
            return Ok(());
        };
        for name in self.units.iter().chain(&self.unfinished) {
            folder.remove(OsStr::new(name))?;
        }
        if !self.units.is_empty() {
            let units: Vec<&str> = self.units.iter().map(String::as_str).collect();
            systemd.reload()?;
            systemd.forget_failures(&units);
        }
        Ok(())
    }
}

/// Whether a name is that under which a unit file of the deployment is written.
fn is_unfinished(name: &str, prefix: &str) -> bool {
    let hidden = name.strip_prefix('.').unwrap_or_default();
    let unit = hidden.rsplit_once(name::SUFFIX).map(|(start, _)| start);
    let unit = unit.map(|start| format!("{start}{}", name::SUFFIX));
    unit.is_some_and(|unit| unit.starts_with(prefix) && unfinished(OsStr::new(&unit)) == name)
}
