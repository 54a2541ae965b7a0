//! What a file or tree consists of: read from a disk, and checked when it comes from a peer.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use walkdir::WalkDir;

use super::error::{Fault, Tried};
use super::name;
use crate::host::MARKER_FILE;

/// Permissions that are transferred. Set-id bits are not: a peer must not plant programs that run as somebody else.
const PERMISSIONS: u32 = 0o777;

/// A file, folder or link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Its path in the tree; empty for the tree or file itself, which comes first.
    #[serde(with = "name")]
    pub(super) path: PathBuf,
    /// Permissions.
    pub(super) mode: u32,
    /// What it is.
    pub(super) kind: Kind,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// A folder.
    Folder,
    /// A file.
    File {
        /// Bytes.
        size: u64,
        /// Of the whole content, in hex; empty as long as nobody read it.
        sha256: String,
    },
    /// A symbolic link.
    Link {
        /// Where it leads, as written.
        #[serde(with = "name")]
        to: PathBuf,
    },
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Stamp {
    pub(super) fn of(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
        }
    }

    /// Whether a file of the later stamp may still begin with the content of this one: it is the same or has grown.
    pub(super) fn allows(&self, later: &Self) -> bool {
        let same_file = (self.device, self.inode) == (later.device, later.inode);
        self == later || (same_file && self.size < later.size)
    }

    /// Bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }
}

/// An entry as it was found on a disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) entry: Entry,
    pub(super) stamp: Stamp,
}

impl Entry {
    /// The bytes of a file; none for anything else.
    pub(super) fn size(&self) -> u64 {
        match self.kind {
            Kind::File { size, .. } => size,
            Kind::Folder | Kind::Link { .. } => 0,
        }
    }

    pub(super) fn is_file(&self) -> bool {
        matches!(self.kind, Kind::File { .. })
    }
}

/// `root` and the entry's path below it.
pub(super) fn below(root: &Path, path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() {
        // Joined with nothing it would end in a slash, which follows a link.
        root.to_owned()
    } else {
        root.join(path)
    }
}

/// Everything in `root`, a file or a folder, by path; without the marker of a deployment's folder. Contents are not read.
pub(super) fn walk(root: &Path) -> Result<Vec<Found>, Fault> {
    let mut found = Vec::new();
    for step in WalkDir::new(root)
        .follow_root_links(false)
        .sort_by_file_name()
    {
        let step = step.map_err(|error| {
            let path = error.path().unwrap_or(root).to_owned();
            let error = error.into_io_error().unwrap_or_else(|| Errno::LOOP.into());
            Fault::of("read", &path, &error)
        })?;
        let meta = step.metadata().map_err(std::io::Error::from);
        let meta = meta.tried("look at", step.path())?;
        let path = step.path().strip_prefix(root).unwrap_or(Path::new(""));
        if path != Path::new(MARKER_FILE) {
            found.push(look(step.path(), path, &meta)?);
        }
    }
    Ok(found)
}

fn look(at: &Path, path: &Path, meta: &Metadata) -> Result<Found, Fault> {
    let file_type = meta.file_type();
    let kind = if file_type.is_dir() {
        Kind::Folder
    } else if file_type.is_file() {
        Kind::File {
            size: meta.len(),
            sha256: String::new(),
        }
    } else if file_type.is_symlink() && !path.as_os_str().is_empty() {
        let to = std::fs::read_link(at).tried("read", at)?;
        Kind::Link { to }
    } else {
        return Err(Fault::Kind {
            path: at.to_owned(),
            kind: other_kind(file_type).to_owned(),
        });
    };
    let entry = Entry {
        path: path.to_owned(),
        mode: meta.mode() & PERMISSIONS,
        kind,
    };
    let stamp = Stamp::of(meta);
    Ok(Found { entry, stamp })
}

fn other_kind(kind: std::fs::FileType) -> &'static str {
    match kind {
        kind if kind.is_symlink() => "a symbolic link",
        kind if kind.is_fifo() => "a fifo",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

/// Opens a file of a tree. What became a link or a fifo meanwhile is neither followed nor waited for.
pub(super) fn open(path: &Path) -> Result<(File, Stamp), Fault> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file: File = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => file.into(),
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => {
            return Err(Fault::Changed {
                path: path.to_owned(),
            });
        }
        Err(error) => return Err(error).tried("open", path),
    };
    let meta = file.metadata().tried("look at", path)?;
    Ok((file, Stamp::of(&meta)))
}

/// Refuses a list from a peer that could reach another place than the one where it is put: whatever is in it lies in a
/// folder that stands before it in the list.
pub(super) fn check<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Result<(), Fault> {
    let mut kinds: HashMap<&Path, &Kind> = HashMap::new();
    for entry in entries {
        let refuse = |why: &str| {
            Err(Fault::Refused {
                path: entry.path.clone(),
                why: why.to_owned(),
            })
        };
        let above = match entry.path.parent() {
            None if kinds.is_empty() && entry.path.as_os_str().is_empty() => None,
            None => return refuse("it is no path in a tree"),
            Some(above) => Some(above),
        };
        if !is_plain(&entry.path) {
            return refuse("it is no plain path");
        }
        if above.is_some_and(|above| !matches!(kinds.get(above), Some(Kind::Folder))) {
            return refuse("it is in no folder of the list");
        }
        if entry.path == Path::new(MARKER_FILE) {
            return refuse("it is assay's own");
        }
        match &entry.kind {
            Kind::Link { .. } if above.is_none() => return refuse("it is a link"),
            Kind::Link { to } if to.as_os_str().is_empty() || has_nul(to) => {
                return refuse("it leads nowhere");
            }
            Kind::File { sha256, .. } if !sha256.is_empty() && !is_hash(sha256) => {
                return refuse("its checksum is none");
            }
            Kind::File { .. } | Kind::Folder | Kind::Link { .. } => {}
        }
        if kinds.insert(&entry.path, &entry.kind).is_some() {
            return refuse("it is there twice");
        }
    }
    if kinds.is_empty() {
        return Err(Fault::Refused {
            path: PathBuf::new(),
            why: "the list is empty".to_owned(),
        });
    }
    Ok(())
}

/// Whether a path consists of names only, written in the one way.
fn is_plain(path: &Path) -> bool {
    let mut written = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => written.push(name),
            _ => return false,
        }
    }
    written.as_os_str() == path.as_os_str() && !has_nul(path)
}

fn has_nul(path: &Path) -> bool {
    path.as_os_str().as_bytes().contains(&0)
}

/// Whether a text is a sha256 in hex.
pub(super) fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(path: &str) -> Entry {
        let (path, kind) = (path.into(), Kind::Folder);
        Entry {
            path,
            mode: 0o755,
            kind,
        }
    }

    fn file(path: &str, sha256: &str) -> Entry {
        let kind = Kind::File {
            size: 1,
            sha256: sha256.to_owned(),
        };
        Entry {
            kind,
            ..folder(path)
        }
    }

    fn link(path: &str, to: &str) -> Entry {
        let kind = Kind::Link { to: to.into() };
        Entry {
            kind,
            ..folder(path)
        }
    }

    fn why(entries: &[Entry]) -> String {
        match check(entries) {
            Err(Fault::Refused { why, .. }) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_tree_and_a_single_file_are_taken() {
        let hash = "0f".repeat(32);
        let tree = [
            folder(""),
            folder("a"),
            file("a/b", &hash),
            link("c", "/etc"),
        ];
        check(&tree).unwrap();
        check(&[file("", &hash)]).unwrap();
    }

    #[test]
    fn names_that_lead_out_of_the_tree_are_refused() {
        for path in [
            "/etc/x",
            "../x",
            "a/../../x",
            "..",
            ".",
            "a/./b",
            "a//b",
            "a/",
            "a\0b",
        ] {
            let list = [folder(""), folder("a"), file(path, "")];
            assert!(check(&list).is_err(), "{path}");
        }
    }

    #[test]
    fn a_file_below_a_link_or_below_nothing_is_refused() {
        let through = [folder(""), link("a", "/etc"), file("a/passwd", "")];
        assert_eq!(why(&through), "it is in no folder of the list");
        assert_eq!(
            why(&[folder(""), file("a/b", "")]),
            "it is in no folder of the list"
        );
        assert_eq!(
            why(&[file("", ""), file("a", "")]),
            "it is in no folder of the list"
        );
    }

    #[test]
    fn other_lists_that_no_disk_gives_are_refused() {
        assert_eq!(why(&[]), "the list is empty");
        assert_eq!(why(&[link("", "/etc")]), "it is a link");
        assert_eq!(
            why(&[folder(""), file("a", ""), folder("a")]),
            "it is there twice"
        );
        assert_eq!(why(&[folder(""), folder("")]), "it is no path in a tree");
        assert_eq!(
            why(&[folder(""), file("a", "../../x")]),
            "its checksum is none"
        );
        assert_eq!(
            why(&[folder(""), file(MARKER_FILE, "")]),
            "it is assay's own"
        );
    }

    #[test]
    fn a_file_may_grow_but_not_be_replaced_rewritten_or_cut() {
        let stamp = Stamp {
            device: 1,
            inode: 1,
            size: 10,
            modified: (5, 0),
        };
        let later = Stamp {
            modified: (6, 0),
            ..stamp
        };
        assert!(stamp.allows(&stamp));
        assert!(stamp.allows(&Stamp { size: 11, ..later }));
        assert!(!stamp.allows(&later));
        assert!(!stamp.allows(&Stamp { size: 9, ..later }));
        assert!(!stamp.allows(&Stamp {
            inode: 2,
            size: 11,
            ..later
        }));
    }
}
