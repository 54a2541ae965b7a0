//! Copies a folder's tree to another place on this machine, flushed to disk.

use std::fs::{self, File};
use std::io::{self, Error, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::MARKER_FILE;

/// Copies the folder `from` to `to`, which must not exist; folders above it are made. On failure nothing is left of it.
/// Links are copied as links, never followed; the marker of a deployment's folder is left out.
///
/// # Errors
/// `from` cannot be read, `to` exists or cannot be written, or something is neither a file, a folder nor a link.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if fs::symlink_metadata(from)?.is_symlink() {
        let message = format!("`{}` is a symbolic link", from.display());
        return Err(Error::other(message));
    }
    let above = to.parent().unwrap_or(Path::new("/"));
    if !above.as_os_str().is_empty() {
        fs::create_dir_all(above)?;
    }
    fs::create_dir(to)?;
    let copied = fill(from, to, Some(MARKER_FILE)).and_then(|()| sync(above));
    if copied.is_err() {
        let _ = fs::remove_dir_all(to);
    }
    copied
}

/// Copies what is in a folder, but for a file of the name `without`.
fn fill(from: &Path, to: &Path, without: Option<&str>) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if without.is_some_and(|name| entry.file_name() == name) {
            continue;
        }
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            fs::create_dir(&target)?;
            fill(&source, &target, None)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(&source)?, &target)?;
        } else if kind.is_file() {
            file(&source, &target)?;
        } else {
            return Err(unsupported(&source));
        }
    }
    sync(to)
}

/// Copies a file. What became a link or a fifo meanwhile is neither followed nor waited for.
fn file(source: &Path, target: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut from: File = rustix::fs::open(source, flags, Mode::empty())?.into();
    let meta = from.metadata()?;
    if !meta.is_file() {
        return Err(unsupported(source));
    }
    let mut to = File::create_new(target)?;
    io::copy(&mut from, &mut to)?;
    to.set_permissions(meta.permissions())?;
    to.sync_all()
}

fn unsupported(path: &Path) -> Error {
    let message = format!("`{}` is no file, folder or link", path.display());
    Error::new(ErrorKind::Unsupported, message)
}

/// Flushes a folder to disk.
fn sync(path: &Path) -> io::Result<()> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    File::open(path)?.sync_all()
}
