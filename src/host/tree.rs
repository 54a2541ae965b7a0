//! Copies a folder's tree to another place on this machine, flushed to disk.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Copies the folder `from` to `to`, which must not exist; on failure nothing is left of it.
/// Links are copied as links, never followed.
///
/// # Errors
/// `from` cannot be read, `to` exists or cannot be written, or something is neither a file, a folder nor a link.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    let copied = fill(from, to).and_then(|()| sync(to.parent().unwrap_or(Path::new("/"))));
    if copied.is_err() {
        let _ = fs::remove_dir_all(to);
    }
    copied
}

fn fill(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            fs::create_dir(&target)?;
            fill(&source, &target)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(&source)?, &target)?;
        } else if kind.is_file() {
            fs::copy(&source, &target)?;
            sync(&target)?;
        } else {
            let message = format!("`{}` is no file, folder or link", source.display());
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
    }
    sync(to)
}

/// Flushes a file or a folder to disk.
fn sync(path: &Path) -> io::Result<()> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    File::open(path)?.sync_all()
}
