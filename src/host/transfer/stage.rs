//! A file or tree in the making, beside the place where it will be.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use tempfile::{TempDir, TempPath};

use super::error::{Fault, Tried};
use super::list::{Entry, Kind, below, walk};

/// The most bytes of a name that its staging place repeats: names end at 255.
const NAME: usize = 200;

/// A file or tree in the making; removed when dropped before it is finished. Only its maker can reach it.
pub(super) struct Stage {
    target: PathBuf,
    root: Root,
}

enum Root {
    Folder(TempDir),
    File(TempPath),
}

impl Stage {
    /// Begins what will be at `target`, in `<target>.part-…`; folders above are made.
    pub(super) fn beside(target: &Path, is_file: bool) -> Result<Self, Fault> {
        let above = match target.parent() {
            Some(above) if !above.as_os_str().is_empty() => above,
            _ => Path::new("."),
        };
        fs::create_dir_all(above).tried("make", above)?;
        let mut name = target.file_name().unwrap_or_default().as_bytes().to_vec();
        name.truncate(NAME);
        name.extend_from_slice(b".part-");
        let name = OsString::from_vec(name);
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix(&name);
        let root = if is_file {
            let file = builder.tempfile_in(above).tried("make a file in", above)?;
            Root::File(file.into_temp_path())
        } else {
            let folder = builder.tempdir_in(above).tried("make a folder in", above)?;
            Root::Folder(folder)
        };
        Ok(Self {
            target: target.to_owned(),
            root,
        })
    }

    fn path(&self) -> &Path {
        match &self.root {
            Root::Folder(folder) => folder.path(),
            Root::File(file) => file,
        }
    }

    /// Where an entry of a checked list is made.
    pub(super) fn of(&self, entry: &Entry) -> PathBuf {
        below(self.path(), &entry.path)
    }

    /// Makes a folder or link of the list; a file is opened by [`Stage::file`].
    pub(super) fn make(&self, entry: &Entry) -> Result<(), Fault> {
        let path = self.of(entry);
        match &entry.kind {
            Kind::Folder if entry.path.as_os_str().is_empty() => Ok(()),
            // Open to its owner until everything is in it.
            Kind::Folder => fs::create_dir(&path).tried("make", &path),
            Kind::Link { to } => symlink(to, &path).tried("make", &path),
            Kind::File { .. } => Ok(()),
        }
    }

    /// Makes a file of the list, empty.
    pub(super) fn file(&self, entry: &Entry) -> Result<File, Fault> {
        let path = self.of(entry);
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).mode(0o600);
        if entry.path.as_os_str().is_empty() {
            return options.open(&path).tried("open", &path);
        }
        options.create_new(true).open(&path).tried("make", &path)
    }

    /// Gives folders their permissions, the inner ones first, and `least` beside them.
    pub(super) fn dress<'a>(
        &self,
        entries: impl DoubleEndedIterator<Item = &'a Entry>,
        least: u32,
    ) -> Result<(), Fault> {
        for entry in entries.rev().filter(|entry| entry.kind == Kind::Folder) {
            let path = self.of(entry);
            fs::set_permissions(&path, Permissions::from_mode(entry.mode | least))
                .tried("set the mode of", &path)?;
        }
        Ok(())
    }

    /// Flushes the folders of a list to disk.
    pub(super) fn sync<'a>(&self, entries: impl Iterator<Item = &'a Entry>) -> Result<(), Fault> {
        for entry in entries.filter(|entry| entry.kind == Kind::Folder) {
            sync(&self.of(entry))?;
        }
        Ok(())
    }

    /// Moves it to its place, where nothing may be; with `replace`, another file may.
    pub(super) fn finish(self, replace: bool) -> Result<(), Fault> {
        rename(self.path(), &self.target, replace)?;
        match self.root {
            Root::Folder(folder) => drop(folder.keep()),
            Root::File(file) => drop(file.keep().ok()),
        }
        Ok(())
    }
}

/// Whether the wanted entries are at `path` already; something else there is refused, unless `replace` lets a file take the
/// place of another. `same` compares what stands at the same path with the same mode.
pub(super) fn is_there<E: From<Fault>>(
    path: &Path,
    entries: &[Entry],
    replace: bool,
    mut same: impl FnMut(&Entry, &Entry) -> Result<bool, E>,
) -> Result<bool, E> {
    let exists = || Fault::Exists {
        path: path.to_owned(),
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        found => found.tried("look at", path)?,
    };
    let found = match walk(path) {
        Ok(found) => found,
        Err(Fault::Kind { .. }) => return Err(exists().into()),
        Err(fault) => return Err(fault.into()),
    };
    let mut is_same = found.len() == entries.len();
    for (found, wanted) in found.iter().zip(entries) {
        let found = &found.entry;
        is_same = is_same && found.path == wanted.path && found.mode == wanted.mode;
        is_same = is_same && same(found, wanted)?;
    }
    let is_file = |entries: &[Entry]| entries.len() == 1 && entries[0].is_file();
    match is_same {
        true => Ok(true),
        false if replace && is_file(entries) && found[0].entry.is_file() => Ok(false),
        false => Err(exists().into()),
    }
}

/// Flushes a file or folder to disk.
pub(super) fn sync(path: &Path) -> Result<(), Fault> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    let flushed = File::open(path).and_then(|file| file.sync_all());
    flushed.tried("write", path)
}

fn rename(from: &Path, to: &Path, replace: bool) -> Result<(), Fault> {
    let exists = || Fault::Exists {
        path: to.to_owned(),
    };
    if replace && fs::symlink_metadata(to).is_ok_and(|found| found.is_file()) {
        return match fs::rename(from, to) {
            Err(error) if error.kind() == std::io::ErrorKind::IsADirectory => Err(exists()),
            renamed => renamed.tried("make", to),
        };
    }
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => Err(exists()),
        // Some file systems cannot refuse to replace.
        Err(Errno::INVAL | Errno::NOSYS) => match fs::symlink_metadata(to) {
            Ok(_) => Err(exists()),
            Err(_) => fs::rename(from, to).tried("make", to),
        },
        renamed => renamed.tried("make", to),
    }
}
