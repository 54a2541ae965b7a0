//! A host's cache: contents by their sha256, `<directory>/.assay-cache/sha256/<2 hex>/<hex>`, beside them what has come of
//! others (`<hex>.part`). It has no index but its names. A content is hashed again whenever it is used, so that neither a
//! crash nor a careless hand makes it another one; that is why nothing here waits for the disk.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, linkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::content;
use super::error::{Fault, Tried};

/// The cache's folder in the host's.
const FOLDER: &str = ".assay-cache";
/// Contents may hold secrets: nobody but their owner reads them.
const PRIVATE: u32 = 0o700;

/// A host's cache, held against [`tidy`] as long as it is open.
pub(super) struct Cache {
    folder: PathBuf,
    _shared: File,
}

/// A content in the making, locked: nobody else writes to it.
pub(super) struct Part {
    pub(super) file: File,
    pub(super) path: PathBuf,
    /// Bytes that it has.
    pub(super) length: u64,
    /// Of those.
    pub(super) digest: Sha256,
    whole: PathBuf,
}

impl Cache {
    /// Opens the cache in a host's folder; makes it if it is not there.
    pub(super) fn open(directory: &Path) -> Result<Self, Fault> {
        let folder = directory.join(FOLDER);
        // Others may have to enter the host's folder, but not this one.
        fs::create_dir_all(directory).tried("make", directory)?;
        make(&folder)?;
        let lock = lock_file(&folder)?;
        flock(&lock, FlockOperation::LockShared).tried("lock", &folder)?;
        Ok(Self {
            folder,
            _shared: lock,
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a content is or will be.
    pub(super) fn place(&self, sha256: &str) -> PathBuf {
        place(&self.folder, sha256)
    }

    /// Whether a content is there and right; one that is not is thrown away.
    pub(super) fn find(
        &self,
        sha256: &str,
        size: u64,
        step: &mut dyn FnMut(u64),
    ) -> Result<bool, Fault> {
        let path = self.place(sha256);
        let mut file = match open(&path, OFlags::RDONLY) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error).tried("open", &path),
        };
        let meta = file.metadata().tried("look at", &path)?;
        let mut digest = Sha256::new();
        let right = meta.is_file() && meta.len() == size && {
            content::hash(&mut file, size, &mut digest, step).tried("read", &path)?;
            content::hex(digest) == sha256
        };
        if !right {
            fs::remove_file(&path).tried("remove", &path)?;
            return Ok(false);
        }
        // The time of its last use.
        file.set_modified(SystemTime::now()).tried("touch", &path)?;
        Ok(true)
    }

    /// The content, which was found before.
    pub(super) fn content(&self, sha256: &str) -> Result<File, Fault> {
        let path = self.place(sha256);
        open(&path, OFlags::RDONLY).tried("open", &path)
    }

    /// Bytes that have come of a content.
    pub(super) fn came(&self, sha256: &str) -> u64 {
        fs::symlink_metadata(part(&self.place(sha256))).map_or(0, |meta| meta.len())
    }

    /// What changes when somebody receives the content: size and time.
    pub(super) fn pulse(&self, sha256: &str) -> Option<(u64, SystemTime)> {
        let meta = fs::symlink_metadata(part(&self.place(sha256))).ok()?;
        Some((meta.len(), meta.modified().ok()?))
    }

    /// Begins or goes on with a content of `size` bytes; `None` if somebody else is at it.
    pub(super) fn part(
        &self,
        sha256: &str,
        size: u64,
        step: &mut dyn FnMut(u64),
    ) -> Result<Option<Part>, Fault> {
        let whole = self.place(sha256);
        let path = part(&whole);
        make(whole.parent().unwrap_or(&self.folder))?;
        let mut file = open(&path, OFlags::RDWR | OFlags::CREATE).tried("make", &path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Ok(None),
            locked => locked.tried("lock", &path)?,
        }
        if !is_at(&file, &path)? {
            return Ok(None);
        }
        let meta = file.metadata().tried("look at", &path)?;
        if !meta.is_file() || meta.len() > size {
            file.set_len(0).tried("empty", &path)?;
        }
        let mut digest = Sha256::new();
        let length = content::hash(&mut file, size, &mut digest, step).tried("read", &path)?;
        Ok(Some(Part {
            file,
            path,
            length,
            digest,
            whole,
        }))
    }

    /// Takes a content over from a process that is stuck in it: what has come is copied to a part of its own.
    pub(super) fn take_over(&self, sha256: &str) -> Result<(), Fault> {
        let path = part(&self.place(sha256));
        let above = path.parent().unwrap_or(&self.folder);
        let mut fresh = tempfile::NamedTempFile::new_in(above).tried("make a file in", above)?;
        match open(&path, OFlags::RDONLY) {
            Ok(mut old) => std::io::copy(&mut old, fresh.as_file_mut()).tried("copy", &path)?,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error).tried("open", &path),
        };
        fresh
            .persist(&path)
            .map_err(|error| error.error)
            .tried("replace", &path)?;
        Ok(())
    }
}

impl Part {
    /// Whether what came is the content; if so it is in the cache from now on.
    /// `None` if somebody took it over meanwhile.
    pub(super) fn admit(&self, sha256: &str) -> Result<Option<bool>, Fault> {
        if content::hex(self.digest.clone()) != sha256 {
            self.file.set_len(0).tried("empty", &self.path)?;
            return Ok(Some(false));
        }
        // By its descriptor: the part's name may be another one's by now, whose content is not whole.
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        match linkat(CWD, own.as_str(), CWD, &self.whole, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error).tried("make", &self.whole),
        }
        self.discard();
        let mode = Permissions::from_mode(0o400);
        let set = self.file.set_permissions(mode);
        set.tried("set the mode of", &self.whole)?;
        Ok(Some(true))
    }

    /// Gives back the room that it takes.
    pub(super) fn discard(&self) {
        // It is its own file as long as nobody took it over; a race with that costs the other one its head start only.
        if is_at(&self.file, &self.path).unwrap_or(false) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Where a content is in the cache of a host's folder.
pub(super) fn place_in(directory: &Path, sha256: &str) -> PathBuf {
    place(&directory.join(FOLDER), sha256)
}

fn place(folder: &Path, sha256: &str) -> PathBuf {
    folder.join("sha256").join(&sha256[..2]).join(sha256)
}

fn part(whole: &Path) -> PathBuf {
    whole.with_extension("part")
}

fn make(folder: &Path) -> Result<(), Fault> {
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(PRIVATE).create(folder);
    made.tried("make", folder)
}

fn lock_file(folder: &Path) -> Result<File, Fault> {
    let path = folder.join("lock");
    open(&path, OFlags::RDWR | OFlags::CREATE).tried("open", &path)
}

fn open(path: &Path, flags: OFlags) -> std::io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
    Ok(file.into())
}

/// Whether a path still names the open file.
fn is_at(file: &File, path: &Path) -> Result<bool, Fault> {
    let own = file.metadata().tried("look at", path)?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (own.dev(), own.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).tried("look at", path),
    }
}

/// What tidying a cache came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tidied {
    /// Bytes that were removed.
    pub removed: u64,
    /// Bytes that are left.
    pub left: u64,
}

/// Removes the contents that were used longest ago until at most `limit` bytes are left.
///
/// # Errors
/// A transfer uses the cache, or it cannot be read.
pub(super) fn tidy(directory: &Path, limit: u64) -> Result<Tidied, Fault> {
    let folder = directory.join(FOLDER);
    if !folder.is_dir() {
        return Ok(Tidied::default());
    }
    let lock = lock_file(&folder)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Err(Fault::Busy { path: folder }),
        locked => locked.tried("lock", &folder)?,
    }
    let mut found = contents(&folder)?;
    found.sort_by_key(|content| std::cmp::Reverse(content.used));
    let (mut tidied, mut is_full) = (Tidied::default(), false);
    for content in found {
        is_full |= tidied.left + content.size > limit;
        // Parts that nothing has come of are left by cut connections.
        let is_nothing = content.size == 0 && content.path.extension().is_some();
        if is_full || is_nothing {
            fs::remove_file(&content.path).tried("remove", &content.path)?;
            tidied.removed += content.size;
        } else {
            tidied.left += content.size;
        }
    }
    Ok(tidied)
}

struct Content {
    path: PathBuf,
    size: u64,
    used: Duration,
}

fn contents(folder: &Path) -> Result<Vec<Content>, Fault> {
    let mut found = Vec::new();
    let all = walkdir::WalkDir::new(folder.join("sha256")).min_depth(2);
    for step in all {
        let step = match step {
            Ok(step) => step,
            Err(error)
                if error
                    .io_error()
                    .is_some_and(|e| e.kind() == ErrorKind::NotFound) =>
            {
                continue;
            }
            Err(error) => return Err(std::io::Error::from(error)).tried("read", folder),
        };
        let meta = step.metadata().map_err(std::io::Error::from);
        let meta = meta.tried("look at", step.path())?;
        let used = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        found.push(Content {
            path: step.into_path(),
            size: meta.len(),
            used: used
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default(),
        });
    }
    Ok(found)
}
