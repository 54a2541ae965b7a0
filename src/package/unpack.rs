//! Unpacks a `.tar.gz` into an empty folder. Nothing is written outside, whatever the archive says: no path leads there, and
//! links are made last, so that no path leads through one.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, BufReader, ErrorKind, Read, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use flate2::bufread::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use super::PackageError;
use super::content::CHUNK;
use super::error::{Refusal, Tried as _};

/// Unpacks what `packed` gives. `what` names the archive in errors; `step` is called with every piece, and may end it.
pub(super) fn unpack(
    packed: impl Read,
    into: &Path,
    what: &str,
    step: &dyn Fn() -> Result<(), PackageError>,
) -> Result<(), PackageError> {
    let damaged = |source| PackageError::Damaged {
        archive: what.to_owned(),
        source,
    };
    let packed = BufReader::with_capacity(CHUNK, packed);
    let mut archive = Archive::new(MultiGzDecoder::new(packed));
    let mut work = Work {
        into,
        what,
        step,
        buffer: vec![0; CHUNK],
        modes: BTreeMap::new(),
        links: Vec::new(),
        is_empty: true,
    };
    for entry in archive.entries().map_err(damaged)? {
        step()?;
        work.entry(&mut entry.map_err(damaged)?)?;
    }
    // The checksum of all comes after the last entry.
    let mut rest = archive.into_inner();
    while rest.read(&mut work.buffer).map_err(damaged)? > 0 {
        step()?;
    }
    work.finish()
}

/// An archive that is being unpacked.
struct Work<'a> {
    into: &'a Path,
    what: &'a str,
    step: &'a dyn Fn() -> Result<(), PackageError>,
    buffer: Vec<u8>,
    /// Of folders: one may forbid to write into itself.
    modes: BTreeMap<PathBuf, u32>,
    /// From where to where.
    links: Vec<(PathBuf, PathBuf)>,
    is_empty: bool,
}

impl Work<'_> {
    fn entry(&mut self, entry: &mut Entry<'_, impl Read>) -> Result<(), PackageError> {
        let name = entry.path_bytes().into_owned();
        let name = Path::new(std::ffi::OsStr::from_bytes(&name));
        let kind = entry.header().entry_type();
        if kind == EntryType::XGlobalHeader {
            return Ok(());
        }
        if is_pax_sparse(entry) {
            return Err(self.refused(Refusal::Kind {
                entry: text(name),
                kind: "a sparse file of the pax format",
            }));
        }
        let outside = || Refusal::Outside { entry: text(name) };
        let path = plain(name).ok_or_else(|| self.refused(outside()))?;
        let target = entry.link_name_bytes().unwrap_or_default().into_owned();
        let target = Path::new(std::ffi::OsStr::from_bytes(&target));
        let mode = entry.header().mode().unwrap_or(0o644);
        let is_folder = name.as_os_str().as_bytes().ends_with(b"/");
        if path.as_os_str().is_empty() {
            // The folder itself.
            return match kind {
                EntryType::Directory => Ok(()),
                _ => Err(self.refused(outside())),
            };
        }
        match kind {
            EntryType::Directory => self.folder(&path, mode),
            // Archives of the oldest kind know folders by that.
            EntryType::Regular if is_folder => self.folder(&path, mode),
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                self.file(entry, &path, mode)
            }
            EntryType::Symlink => self.link(path, target),
            EntryType::Link => self.hard_link(&path, target),
            other => Err(self.refused(Refusal::Kind {
                entry: text(&path),
                kind: word(other),
            })),
        }
    }

    fn folder(&mut self, path: &Path, mode: u32) -> Result<(), PackageError> {
        self.make(path)?;
        self.modes.insert(path.to_owned(), mode);
        Ok(())
    }

    /// Makes a folder and those above it. Nothing in it is a link yet.
    fn make(&self, path: &Path) -> Result<(), PackageError> {
        let full = self.into.join(path);
        match fs::create_dir_all(&full) {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::AlreadyExists | ErrorKind::NotADirectory
                ) =>
            {
                Err(self.clash(path))
            }
            made => made.tried("make the folder", &full),
        }
    }

    /// Makes way for a file: one that came before by its name is replaced, as `tar` does it.
    fn make_way(&mut self, path: &Path) -> Result<PathBuf, PackageError> {
        self.is_empty = false;
        self.make(path.parent().unwrap_or(Path::new("")))?;
        self.links.retain(|(link, _)| link != path);
        let full = self.into.join(path);
        match fs::remove_file(&full) {
            Ok(()) => Ok(full),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(full),
            Err(_) if full.is_dir() => Err(self.clash(path)),
            Err(error) => Err(error).tried("replace", &full),
        }
    }

    fn file(
        &mut self,
        entry: &mut Entry<'_, impl Read>,
        path: &Path,
        mode: u32,
    ) -> Result<(), PackageError> {
        let full = self.make_way(path)?;
        let mut file = File::create_new(&full).tried("write", &full)?;
        let mut left = entry.size();
        while left > 0 {
            (self.step)()?;
            let got = match entry.read(&mut self.buffer) {
                Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read,
            };
            let got = got.map_err(|error| self.damaged(error))?;
            file.write_all(&self.buffer[..got]).tried("write", &full)?;
            left = left.saturating_sub(got as u64);
        }
        // Neither set-user-id nor what keeps its owner from reading it.
        let permissions = Permissions::from_mode((mode & 0o777) | 0o400);
        file.set_permissions(permissions)
            .tried("set the mode of", &full)?;
        let time = entry.header().mtime().unwrap_or(0);
        let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(time));
        // A time that the file system cannot keep is none to fail for.
        let _ = file.set_modified(time.unwrap_or(SystemTime::UNIX_EPOCH));
        Ok(())
    }

    fn link(&mut self, path: PathBuf, target: &Path) -> Result<(), PackageError> {
        if !stays_inside(&path, target) {
            return Err(self.refused(Refusal::Link {
                entry: text(&path),
                target: text(target),
            }));
        }
        self.make_way(&path)?;
        self.links.push((path, target.to_owned()));
        Ok(())
    }

    fn hard_link(&mut self, path: &Path, target: &Path) -> Result<(), PackageError> {
        let file = plain(target).filter(|target| {
            let meta = fs::symlink_metadata(self.into.join(target));
            meta.is_ok_and(|meta| meta.is_file())
        });
        let Some(file) = file else {
            return Err(self.refused(Refusal::HardLink {
                entry: text(path),
                target: text(target),
            }));
        };
        if file == path {
            return Ok(());
        }
        let full = self.make_way(path)?;
        fs::hard_link(self.into.join(file), &full).tried("link", &full)
    }

    /// Makes the links and sets the modes of folders.
    fn finish(self) -> Result<(), PackageError> {
        if self.is_empty {
            return Err(self.refused(Refusal::Empty));
        }
        for (path, target) in &self.links {
            let full = self.into.join(path);
            match symlink(target, &full) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    return Err(self.clash(path));
                }
                made => made.tried("link", &full)?,
            }
        }
        for (path, mode) in &self.modes {
            let full = self.into.join(path);
            // Its owner can always look into it and remove it.
            let permissions = Permissions::from_mode((mode & 0o777) | 0o700);
            fs::set_permissions(&full, permissions).tried("set the mode of", &full)?;
        }
        Ok(())
    }

    fn clash(&self, path: &Path) -> PackageError {
        self.refused(Refusal::Clash { entry: text(path) })
    }

    fn refused(&self, source: Refusal) -> PackageError {
        PackageError::Refused {
            archive: self.what.to_owned(),
            source,
        }
    }

    fn damaged(&self, source: io::Error) -> PackageError {
        PackageError::Damaged {
            archive: self.what.to_owned(),
            source,
        }
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().escape_debug().to_string()
}

/// Whether an entry is a map of holes and what lies between them, which would be taken for the file.
fn is_pax_sparse(entry: &mut Entry<'_, impl Read>) -> bool {
    let extensions = entry.pax_extensions().ok().flatten();
    let mut keys = extensions.into_iter().flatten().flatten();
    keys.any(|extension| extension.key_bytes().starts_with(b"GNU.sparse."))
}

fn word(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Char | EntryType::Block => "a device",
        EntryType::Fifo => "a fifo",
        _ => "of an unknown kind",
    }
}

/// The path without `.`; `None` if it is absolute or leads upwards.
fn plain(path: &Path) -> Option<PathBuf> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    let is_plain = |part: &Component<'_>| matches!(part, Component::Normal(_));
    let parts: Vec<_> = parts.collect();
    parts.iter().all(is_plain).then(|| parts.iter().collect())
}

/// Whether a link leads to a place inside. Its folder is no link, so it may begin with as many `..` as it is deep; behind a
/// name a `..` could lead from where another link leads to.
fn stays_inside(link: &Path, target: &Path) -> bool {
    let depth = link.components().count() - 1;
    let parts = target
        .components()
        .filter(|part| *part != Component::CurDir);
    let parts: Vec<_> = parts.collect();
    let up = parts
        .iter()
        .take_while(|part| **part == Component::ParentDir);
    let up = up.count();
    let mut rest = parts[up..].iter();
    !parts.is_empty() && up <= depth && rest.all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_neither_upwards_nor_to_the_root() {
        let plain = |path: &str| plain(Path::new(path)).map(|path| text(&path));
        assert_eq!(plain("./a//b/./c").as_deref(), Some("a/b/c"));
        assert_eq!(plain("./").as_deref(), Some(""));
        assert_eq!(plain("a/..b").as_deref(), Some("a/..b"));
        for wrong in ["/a", "../a", "a/../b", "a/.."] {
            assert_eq!(plain(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn links_lead_to_places_inside() {
        let inside = |link: &str, target: &str| stays_inside(Path::new(link), Path::new(target));
        for (link, target) in [
            ("a", "b"),
            ("a/b", "../c"),
            ("a/b/c", "../../d/e"),
            ("a/b", "./c"),
            ("a/b", ".."),
        ] {
            assert!(inside(link, target), "{link} -> {target}");
        }
        for (link, target) in [
            ("a", "/etc"),
            ("a", "../b"),
            ("a/b", "../../c"),
            ("a/b", "c/../d"),
            ("a", ""),
            ("a", "."),
        ] {
            assert!(!inside(link, target), "{link} -> {target}");
        }
    }
}
