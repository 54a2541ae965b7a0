//! Copies and reads whole trees: contents, owners, modes and times, hard links as such, links never followed.
//! Access control lists and other extended attributes are not kept.

use std::collections::HashMap;
use std::fs::{self, File, Metadata, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown, lchown, symlink};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT};
use serde::{Deserialize, Serialize};

use super::content;
use super::manifest::{Changes, Entry, Kind};
use super::progress::Telling;
use super::survey::{Item, Survey, same};
use crate::snapshot::SnapshotError;
use crate::snapshot::error::Tried;

/// How a file's content gets to its copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cloning {
    /// Both share the blocks until one is written to.
    Reflink,
    /// Every byte is written again.
    Copy,
}

/// A copy in the making.
pub(super) struct Copying<'a, 'b> {
    pub(super) from: &'a Path,
    pub(super) to: &'a Path,
    pub(super) cloning: Cloning,
    /// When files were last changed whose contents are known; all other contents are hashed.
    pub(super) known: &'a Changes<'a>,
    pub(super) telling: &'a mut Telling<'b>,
}

impl Copying<'_, '_> {
    /// Copies what `survey` found in `from` into `to`, a directory that holds nothing but a marker.
    /// Returns what was written.
    pub(super) fn run(&mut self, survey: &Survey) -> Result<Vec<Entry>, SnapshotError> {
        let mut entries = Vec::with_capacity(survey.items.len());
        // The first name in the copy of a file or link that has several.
        let mut names = HashMap::new();
        for item in &survey.items {
            let id = (item.meta.dev(), item.meta.ino());
            let has_other_names = !item.meta.is_dir() && item.meta.nlink() > 1;
            let kind = match names.get(&id) {
                Some(first) if has_other_names => self.other_name(item, &entries, *first)?,
                _ if item.meta.is_dir() => self.folder(item)?,
                _ if item.meta.is_symlink() => self.link(item)?,
                _ => self.file(item)?,
            };
            if has_other_names {
                names.entry(id).or_insert(entries.len());
            }
            entries.push(Entry::new(&item.path, &item.meta, kind));
        }
        self.finish_folders(survey)?;
        Ok(entries)
    }

    fn folder(&mut self, item: &Item) -> Result<Kind, SnapshotError> {
        let to = item.below(self.to);
        if !item.path.as_os_str().is_empty() {
            fs::create_dir(&to).tried("make", &to)?;
        }
        // Open to its owner until everything is in it.
        fs::set_permissions(&to, Permissions::from_mode(0o700)).tried("open", &to)?;
        Ok(Kind::Folder)
    }

    fn link(&mut self, item: &Item) -> Result<Kind, SnapshotError> {
        let (from, to) = (item.below(self.from), item.below(self.to));
        let leads = fs::read_link(&from).tried("read", &from)?;
        symlink(&leads, &to).tried("make", &to)?;
        let made = fs::symlink_metadata(&to).tried("look at", &to)?;
        if let Some((uid, gid)) = owner(&item.meta, &made) {
            lchown(&to, Some(uid), Some(gid)).tried("set the owner of", &to)?;
        }
        rustix::fs::utimensat(CWD, &to, &times(&item.meta), AtFlags::SYMLINK_NOFOLLOW)
            .tried("set the time of", &to)?;
        Ok(Kind::Link {
            to: leads.as_path().into(),
        })
    }

    fn other_name(
        &mut self,
        item: &Item,
        entries: &[Entry],
        first: usize,
    ) -> Result<Kind, SnapshotError> {
        let to = item.below(self.to);
        let first = &entries[first];
        fs::hard_link(self.to.join(&first.path.0), &to).tried("make", &to)?;
        if item.meta.is_file() {
            self.telling.done(1, 0);
        }
        Ok(first.kind.clone())
    }

    fn file(&mut self, item: &Item) -> Result<Kind, SnapshotError> {
        let path = item.below(self.from);
        self.unchanged_file(item, &path)
            .map_err(|error| match error {
                SnapshotError::Io { source, .. } if is_gone(&source) => {
                    SnapshotError::Changed { path }
                }
                error => error,
            })
    }

    fn unchanged_file(&mut self, item: &Item, path: &Path) -> Result<Kind, SnapshotError> {
        let to = item.below(self.to);
        let from = open(path)?;
        let before = from.metadata().tried("look at", path)?;
        let changed = || SnapshotError::Changed {
            path: path.to_owned(),
        };
        if !same(&item.meta, &before) {
            return Err(changed());
        }
        let mut options = File::options();
        let target = options.read(true).write(true).create_new(true).open(&to);
        let target = target.tried("make", &to)?;
        let size = before.len();
        let hash = self.known.get(item.path.as_os_str()) != Some(&item.changed());
        let sha256 = self.content((&from, &target), size, hash, path)?;
        dress(&target, &item.meta).tried("set owner, mode and time of", &to)?;
        let after = from.metadata().tried("look at", path)?;
        let written = target.metadata().tried("look at", &to)?;
        if !same(&before, &after) || written.len() != size {
            return Err(changed());
        }
        self.telling.done(1, 0);
        Ok(Kind::File { size, sha256 })
    }

    /// Fills a file; returns its sha256 if one is wanted.
    fn content(
        &mut self,
        (from, to): (&File, &File),
        size: u64,
        hash: bool,
        path: &Path,
    ) -> Result<String, SnapshotError> {
        let telling = &mut *self.telling;
        let mut step = |bytes| telling.done(0, bytes);
        if self.cloning == Cloning::Copy {
            return content::copy(from, to, size, hash, &mut step).tried("copy", path);
        }
        content::share(from, to).map_err(|source| SnapshotError::Reflink {
            path: path.to_owned(),
            source,
        })?;
        if hash {
            return content::hash(to, size, &mut step).tried("read the copy of", path);
        }
        step(size);
        Ok(String::new())
    }

    /// Gives the folders their owners, modes and times, the inner ones first.
    fn finish_folders(&mut self, survey: &Survey) -> Result<(), SnapshotError> {
        for item in survey.items.iter().rev().filter(|item| item.meta.is_dir()) {
            let to = item.below(self.to);
            let folder = File::open(&to).tried("open", &to)?;
            dress(&folder, &item.meta).tried("set owner, mode and time of", &to)?;
        }
        Ok(())
    }
}

/// Reads and hashes a whole tree.
pub(super) fn read(
    root: &Path,
    survey: &Survey,
    telling: &mut Telling<'_>,
) -> Result<Vec<Entry>, SnapshotError> {
    let mut entries = Vec::with_capacity(survey.items.len());
    for item in &survey.items {
        let path = item.below(root);
        let kind = if item.meta.is_dir() {
            Kind::Folder
        } else if item.meta.is_symlink() {
            let to = fs::read_link(&path).tried("read", &path)?;
            Kind::Link {
                to: to.as_path().into(),
            }
        } else {
            let size = item.meta.len();
            let mut step = |bytes| telling.done(0, bytes);
            let sha256 = content::hash(&open(&path)?, size, &mut step).tried("read", &path)?;
            telling.done(1, 0);
            Kind::File { size, sha256 }
        };
        entries.push(Entry::new(&item.path, &item.meta, kind));
    }
    Ok(entries)
}

/// Whether a file, or its end, is no longer where it was.
fn is_gone(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotFound, UnexpectedEof};
    matches!(error.kind(), NotFound | UnexpectedEof)
}

/// Opens a file that is no link; what became a fifo meanwhile does not hang.
fn open(path: &Path) -> Result<File, SnapshotError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty());
    file.map(File::from).tried("open", path)
}

/// Gives an open file or folder the owner, mode and time of another.
fn dress(file: &File, like: &Metadata) -> std::io::Result<()> {
    if let Some((uid, gid)) = owner(like, &file.metadata()?) {
        fchown(file, Some(uid), Some(gid))?;
    }
    // After the owner: a change of owner clears the set-id bits.
    file.set_permissions(Permissions::from_mode(like.mode() & 0o7777))?;
    Ok(rustix::fs::futimens(file, &times(like))?)
}

/// The owner to set, if it is another than the present one: only root may.
fn owner(like: &Metadata, is: &Metadata) -> Option<(u32, u32)> {
    let wanted = (like.uid(), like.gid());
    (wanted != (is.uid(), is.gid())).then_some(wanted)
}

/// The time of the last change of the content; that of the last access stays.
fn times(like: &Metadata) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: like.mtime(),
            tv_nsec: like.mtime_nsec(),
        },
    }
}
