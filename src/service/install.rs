//! Installing: directories, files and units as asked. All is looked at before anything is changed.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::{ServiceError, Tried};
use super::folder::Folder;
use super::owner::Owner;
use super::record::{Before, Record};
use super::{Systemd, units};
use crate::snapshot::Marker;
use crate::snapshot::directory::{self, MARKER_FILE, Standing};

/// The mode of a deployment's directory, if none is asked for.
const OPEN: u32 = 0o755;

/// The request of `service-install`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Install {
    /// Whose all of it is.
    pub marker: Marker,
    /// The host's directory.
    pub host_directory: PathBuf,
    /// The deployment's directory, which carries the marker.
    pub base: PathBuf,
    /// Directories, each before what is in it.
    pub directories: Vec<Directory>,
    /// Files in these, or in `base`.
    pub files: Vec<File>,
    /// Units.
    pub units: Vec<UnitFile>,
}

/// A directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directory {
    /// Its absolute path: in `base`, `base` itself, or elsewhere.
    pub path: PathBuf,
    /// The user whom it belongs to; `None` for the one who installs.
    #[serde(default)]
    pub owner: Option<String>,
    /// Its permissions.
    pub mode: u32,
    /// Whether it carries the marker itself, as data does that snapshots are taken of. One that is not in `base` does anyway.
    #[serde(default)]
    pub marked: bool,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Its absolute path.
    pub path: PathBuf,
    /// What is in it.
    pub content: String,
    /// Its permissions.
    pub mode: u32,
    /// The user whom it belongs to; `None` for the one who installs.
    #[serde(default)]
    pub owner: Option<String>,
}

/// A unit, without the header that says whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitFile {
    /// Its name, as [`super::unit_name`] gives it.
    pub name: String,
    /// Its text, as [`super::Unit::text`] gives it.
    pub content: String,
}

/// What an installation changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    /// Directories and files that were made or changed.
    pub paths: Vec<PathBuf>,
    /// Units that were made or changed.
    pub units: Vec<String>,
    /// Whether systemd read its units anew.
    pub reloaded: bool,
}

/// Installs what is asked for and leaves alone what is there as it should be. `systemd` is asked for only if there are units.
///
/// # Errors
/// A place is refused or not ours, a unit by one of the names is not ours, a user is not there, the system refuses.
pub fn install(
    request: &Install,
    systemd: impl FnOnce() -> Result<Systemd, ServiceError>,
) -> Result<Installed, ServiceError> {
    let systemd = match request.units.is_empty() {
        true => None,
        false => Some(systemd()?),
    };
    let work = Work::check(request, systemd.as_ref())?;
    let mut installed = Installed::default();
    work.record()?;
    work.base(&mut installed)?;
    for (directory, owner) in &work.directories {
        work.directory(directory, owner.as_ref(), &mut installed)?;
    }
    for (file, owner) in &work.files {
        work.file(file, owner.as_ref(), &mut installed)?;
    }
    if let Some(systemd) = &systemd {
        let written = units::write(&request.units, &request.marker, systemd)?;
        (installed.units, installed.reloaded) = written;
    }
    Ok(installed)
}

/// A request that was looked at.
struct Work<'a> {
    request: &'a Install,
    /// Without links.
    base: PathBuf,
    directories: Vec<(&'a Directory, Option<Owner>)>,
    files: Vec<(&'a File, Option<Owner>)>,
    record: Record,
}

impl<'a> Work<'a> {
    fn check(request: &'a Install, systemd: Option<&Systemd>) -> Result<Self, ServiceError> {
        let marker = &request.marker;
        plain(&request.base)?;
        let (base, standing) = directory::standing(&request.base, marker)?;
        let record = Record::read(&base, marker)?;
        let mut record = record.unwrap_or_else(|| Record::new(marker));
        if standing == Standing::Empty {
            let before = Before::of(&base)?;
            record.before.entry(base.clone()).or_insert(before);
        }
        let mut work = Self {
            request,
            base,
            directories: Vec::new(),
            files: Vec::new(),
            record,
        };
        for directory in &request.directories {
            work.check_directory(directory)?;
        }
        for file in &request.files {
            work.check_file(file)?;
        }
        work.note_missing(&work.base.clone())?;
        if let Some(systemd) = systemd {
            units::check(&request.units, marker, systemd)?;
        }
        Ok(work)
    }

    fn check_directory(&mut self, directory: &'a Directory) -> Result<(), ServiceError> {
        plain(&directory.path)?;
        permissions(&directory.path, directory.mode)?;
        let owner = directory.owner.as_deref().map(Owner::of).transpose()?;
        self.directories.push((directory, owner));
        if !self.has_marker(directory) {
            return Ok(());
        }
        let (path, standing) = directory::standing(&directory.path, &self.request.marker)?;
        if self.is_inside(directory) != path.starts_with(&self.base) {
            let why = "a link leads it to another place";
            return Err(ServiceError::refused(shown(&directory.path), why));
        }
        if !self.is_inside(directory) && standing == Standing::Empty {
            let before = Before::of(&path)?;
            self.record.before.entry(path.clone()).or_insert(before);
        }
        self.note_missing(&path)?;
        self.record.directories.insert(path);
        Ok(())
    }

    /// Notes the folders above a directory that are not there yet; in the host's directory nobody but assay makes any.
    fn note_missing(&mut self, directory: &Path) -> Result<(), ServiceError> {
        let host = &self.request.host_directory;
        let host = host.canonicalize().unwrap_or_else(|_| host.clone());
        for above in directory.ancestors().skip(1) {
            if above.symlink_metadata().is_ok() {
                break;
            }
            if !above.starts_with(&host) && !host.starts_with(above) {
                self.record.made.insert(above.to_owned());
            }
        }
        Ok(())
    }

    fn check_file(&mut self, file: &'a File) -> Result<(), ServiceError> {
        plain(&file.path)?;
        permissions(&file.path, file.mode)?;
        self.root_of(&file.path)?;
        if file.path.file_name() == Some(OsStr::new(MARKER_FILE)) {
            return Err(ServiceError::refused(
                shown(&file.path),
                "it is assay's own",
            ));
        }
        let owner = file.owner.as_deref().map(Owner::of).transpose()?;
        self.files.push((file, owner));
        Ok(())
    }

    fn is_inside(&self, directory: &Directory) -> bool {
        directory.path.starts_with(&self.request.base)
    }

    fn has_marker(&self, directory: &Directory) -> bool {
        directory.path != self.request.base && (directory.marked || !self.is_inside(directory))
    }

    /// The directory of ours that a path lies in.
    fn root_of(&self, path: &Path) -> Result<&Path, ServiceError> {
        let others = self.request.directories.iter();
        let others = others.filter(|directory| self.has_marker(directory));
        let roots = others.map(|directory| directory.path.as_path());
        let roots = roots.chain([self.request.base.as_path()]);
        let holding = roots.filter(|root| path.starts_with(root) && path != *root);
        holding
            .max_by_key(|root| root.components().count())
            .ok_or_else(|| {
                let why = "it lies in no directory of the deployment";
                ServiceError::refused(shown(path), why)
            })
    }

    /// Writes down what will be made, before it is.
    fn record(&self) -> Result<(), ServiceError> {
        let above = self.base.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(above).tried("make", above)?;
        self.record.write(&self.base)
    }

    fn base(&self, installed: &mut Installed) -> Result<(), ServiceError> {
        let (path, standing) = directory::hold(&self.base, &self.request.marker)?;
        let is_asked_for = |directory: &&(&Directory, _)| directory.0.path == self.request.base;
        let dressed = match self.directories.iter().find(is_asked_for) {
            Some(_) => false,
            None => Folder::open(&path)?.dress(None, OPEN)?,
        };
        if standing != Standing::Ours || dressed {
            installed.paths.push(path);
        }
        Ok(())
    }

    fn directory(
        &self,
        directory: &Directory,
        owner: Option<&Owner>,
        installed: &mut Installed,
    ) -> Result<(), ServiceError> {
        let mut is_new = false;
        let folder = if self.has_marker(directory) {
            let (path, standing) = directory::hold(&directory.path, &self.request.marker)?;
            is_new = standing != Standing::Ours;
            Folder::open(&path)?
        } else {
            let (folder, made) = enter(&self.request.base, &directory.path)?;
            is_new |= made;
            folder
        };
        if folder.dress(owner, directory.mode)? || is_new {
            installed.paths.push(folder.path().to_owned());
        }
        Ok(())
    }

    fn file(
        &self,
        file: &File,
        owner: Option<&Owner>,
        installed: &mut Installed,
    ) -> Result<(), ServiceError> {
        let root = self.root_of(&file.path)?;
        let above = file.path.parent().unwrap_or(root);
        let (folder, _) = enter(root, above)?;
        let name = file.path.file_name().unwrap_or_default();
        if folder.put(name, file.content.as_bytes(), owner, file.mode)? {
            installed.paths.push(file.path.clone());
        }
        Ok(())
    }
}

/// Opens a folder in a directory of ours, step by step, and makes what is missing; says whether the last part was.
fn enter(root: &Path, path: &Path) -> Result<(Folder, bool), ServiceError> {
    // Links above the directory are the host's own; it was looked at where they lead to.
    let real = root.canonicalize().tried("find", root)?;
    let mut at = (Folder::open(&real)?, false);
    for part in path.strip_prefix(root).unwrap_or(Path::new("")).iter() {
        at = at.0.enter_or_make(part)?;
    }
    Ok(at)
}

/// Refuses a path that is not written from `/` on in the one way.
fn plain(path: &Path) -> Result<(), ServiceError> {
    let is_plain = |part: Component| matches!(part, Component::RootDir | Component::Normal(_));
    let written: PathBuf = path.components().collect();
    let as_written = written.as_os_str() == path.as_os_str();
    if path.is_absolute() && as_written && path.components().all(is_plain) {
        return Ok(());
    }
    let why = "a path from `/` without `..` is wanted";
    Err(ServiceError::refused(shown(path), why))
}

fn permissions(path: &Path, mode: u32) -> Result<(), ServiceError> {
    if mode & !0o1777 == 0 {
        return Ok(());
    }
    let why = format!("{mode:o} is no mode without set-id bits");
    Err(ServiceError::refused(shown(path), why))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
