//! A folder held open, so that neither links nor renames lead what is done in it to another place.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io::{Error, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, open, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::ServiceError;
use super::error::Tried;
use super::owner::Owner;

/// The end of the name of a file that is being written.
const UNFINISHED: &str = ".assay-new";

/// A folder held open.
pub(super) struct Folder {
    file: File,
    path: PathBuf,
}

impl Folder {
    /// Opens a folder; its last part is no link.
    pub(super) fn open(path: &Path) -> Result<Self, ServiceError> {
        let file = open(path, flags(), Mode::empty()).tried("open", path)?;
        Ok(Self {
            file: file.into(),
            path: path.to_owned(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a folder in it, if there is one by that name; anything else by it is refused.
    pub(super) fn enter(&self, name: &OsStr) -> Result<Option<Self>, ServiceError> {
        let path = self.path.join(name);
        match openat(&self.file, name, flags(), Mode::empty()) {
            Ok(file) => Ok(Some(Self {
                file: file.into(),
                path,
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                let why = "it is no directory, or a link to one";
                Err(ServiceError::refused(path.display().to_string(), why))
            }
            Err(error) => Err(error).tried("open", &path),
        }
    }

    /// Opens a folder in it, and makes it if it is not there.
    pub(super) fn enter_or_make(&self, name: &OsStr) -> Result<(Self, bool), ServiceError> {
        if let Some(folder) = self.enter(name)? {
            return Ok((folder, false));
        }
        let path = self.path.join(name);
        match mkdirat(&self.file, name, Mode::from_raw_mode(0o755)) {
            Err(Errno::EXIST) => {}
            made => made.tried("make", &path)?,
        }
        let folder = self.enter(name)?;
        let folder = folder.ok_or(Errno::NOENT).tried("open", &path)?;
        Ok((folder, true))
    }

    /// Gives it an owner and a mode; says whether it had others.
    pub(super) fn dress(&self, owner: Option<&Owner>, mode: u32) -> Result<bool, ServiceError> {
        let meta = self.file.metadata().tried("look at", &self.path)?;
        if fits(&meta, owner, mode) {
            return Ok(false);
        }
        dress(&self.file, owner, mode, &self.path)?;
        Ok(true)
    }

    /// The content of a file in it, and what the system says of it; `None` if it is not there. A link is not followed.
    pub(super) fn read(&self, name: &OsStr) -> Result<Option<(Vec<u8>, Metadata)>, ServiceError> {
        let path = self.path.join(name);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut file: File = match openat(&self.file, name, flags, Mode::empty()) {
            Ok(file) => file.into(),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => {
                return Err(Error::other("it is a symbolic link")).tried("read", &path);
            }
            Err(error) => return Err(error).tried("read", &path),
        };
        let meta = file.metadata().tried("look at", &path)?;
        if !meta.is_file() {
            return Err(Error::other("it is no file")).tried("read", &path);
        }
        let mut content = Vec::new();
        file.read_to_end(&mut content).tried("read", &path)?;
        Ok(Some((content, meta)))
    }

    /// Writes a file in it, whole or not at all, unless it is there as wanted; says whether it was not.
    pub(super) fn put(
        &self,
        name: &OsStr,
        content: &[u8],
        owner: Option<&Owner>,
        mode: u32,
    ) -> Result<bool, ServiceError> {
        let is_there = match self.read(name)? {
            Some((found, meta)) => found == content && fits(&meta, owner, mode),
            None => false,
        };
        if is_there {
            return Ok(false);
        }
        let (path, unfinished) = (self.path.join(name), unfinished(name));
        self.remove(&unfinished)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.file, &unfinished, flags, Mode::from_raw_mode(0o600));
        let mut file: File = file.tried("make", &path)?.into();
        let written = file
            .write_all(content)
            .tried("write", &path)
            .and_then(|()| dress(&file, owner, mode, &path))
            .and_then(|()| file.sync_all().tried("write", &path))
            .and_then(|()| {
                renameat(&self.file, &unfinished, &self.file, name).tried("make", &path)
            });
        if written.is_err() {
            let _ = self.remove(&unfinished);
        }
        written?;
        self.flush()?;
        Ok(true)
    }

    /// Removes a file or link in it; says whether it was there.
    pub(super) fn remove(&self, name: &OsStr) -> Result<bool, ServiceError> {
        match unlinkat(&self.file, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error).tried("remove", &self.path.join(name)),
        }
    }

    /// The names of what is in it, in order.
    pub(super) fn names(&self) -> Result<Vec<OsString>, ServiceError> {
        let path = &self.path;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.file).tried("read", path)? {
            let entry = entry.tried("read", path)?;
            let name: &OsStr =
                std::os::unix::ffi::OsStrExt::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    fn flush(&self) -> Result<(), ServiceError> {
        self.file.sync_all().tried("flush", &self.path)
    }
}

/// The name under which a file is written before it gets its own.
pub(super) fn unfinished(name: &OsStr) -> OsString {
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(UNFINISHED);
    hidden
}

fn flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn fits(meta: &Metadata, owner: Option<&Owner>, mode: u32) -> bool {
    let is_his = |owner: &Owner| (meta.uid(), meta.gid()) == (owner.uid, owner.gid);
    meta.mode() & 0o7777 == mode && owner.is_none_or(is_his)
}

fn dress(file: &File, owner: Option<&Owner>, mode: u32, path: &Path) -> Result<(), ServiceError> {
    if let Some(owner) = owner {
        fchown(file, Some(owner.uid), Some(owner.gid))
            .tried(&format!("give to `{}`", owner.name), path)?;
    }
    // After the owner: a change of owner clears the set-id bits.
    file.set_permissions(Permissions::from_mode(mode))
        .tried("set the mode of", path)
}
