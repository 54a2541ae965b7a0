//! A snapshot's manifest: every file, folder and link in it, written beside it, and the comparison with what is there.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use super::Marker;
use super::marker::open_plain;
use super::survey::Survey;
use super::switch::rename;
use crate::snapshot::SnapshotError;
use crate::snapshot::error::Tried;

/// The format of the file.
const FORMAT: u32 = 1;

/// What a snapshot holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The format of the file.
    pub format: u32,
    /// Whose snapshot it is.
    pub marker: Marker,
    /// Everything in it by path; the first is the directory itself. assay's marker is not among them.
    pub entries: Vec<Entry>,
}

/// A file, folder or link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path in the directory.
    pub path: Name,
    /// Permissions, with the set-id and sticky bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Last change of the content, seconds since 1970, and nanoseconds.
    pub modified: (i64, i64),
    /// Last change of the snapshot's own file by any means (`ctime`), likewise. No program can set it, so that as long as
    /// it is the same, so is the content. Only files have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<(i64, i64)>,
    /// What it is.
    #[serde(flatten)]
    pub kind: Kind,
}

/// When the files of a snapshot were last changed by any means, by their paths.
pub(super) type Changes<'a> = HashMap<&'a OsStr, (i64, i64)>;

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Kind {
    /// A file.
    File {
        /// Bytes.
        size: u64,
        /// Of the whole file, in hex; empty if it was not computed.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        sha256: String,
    },
    /// A folder.
    Folder,
    /// A symbolic link.
    Link {
        /// Where it leads, as written.
        to: Name,
    },
}

/// The bytes of a path: a text, or a list of numbers if they are no UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Name(pub OsString);

impl From<&Path> for Name {
    fn from(path: &Path) -> Self {
        Self(path.as_os_str().to_owned())
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => self.0.as_bytes().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Text(String),
            Bytes(Vec<u8>),
        }
        Ok(Self(match Form::deserialize(deserializer)? {
            Form::Text(text) => text.into(),
            Form::Bytes(bytes) => OsString::from_vec(bytes),
        }))
    }
}

impl Entry {
    /// An entry as the system describes it.
    pub(super) fn new(path: &Path, meta: &Metadata, kind: Kind) -> Self {
        Self {
            path: path.into(),
            mode: meta.mode() & 0o7777,
            uid: meta.uid(),
            gid: meta.gid(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: None,
            kind,
        }
    }

    /// In what another entry of the same path differs; checksums only if both have them.
    fn difference(&self, other: &Self) -> Option<String> {
        let kinds = match (&self.kind, &other.kind) {
            (Kind::File { size: a, .. }, Kind::File { size: b, .. }) if a != b => {
                Some(format!("it has {b} bytes, not {a}"))
            }
            (Kind::File { sha256: a, .. }, Kind::File { sha256: b, .. }) => {
                let differ = a != b && !a.is_empty() && !b.is_empty();
                differ.then(|| "its content is another".to_owned())
            }
            (Kind::Folder, Kind::Folder) => None,
            (Kind::Link { to: a }, Kind::Link { to: b }) => {
                (a != b).then(|| "it leads elsewhere".to_owned())
            }
            (_, _) => Some("it is of another kind".to_owned()),
        };
        let mode = || {
            let differ = self.mode != other.mode;
            differ.then(|| format!("its mode is {:o}, not {:o}", other.mode, self.mode))
        };
        let owner = || {
            let (is, was) = ((other.uid, other.gid), (self.uid, self.gid));
            (is != was).then(|| format!("it belongs to {}:{}, not {}:{}", is.0, is.1, was.0, was.1))
        };
        let time = || {
            (self.modified != other.modified).then(|| "it was modified at another time".to_owned())
        };
        kinds.or_else(mode).or_else(owner).or_else(time)
    }
}

impl Manifest {
    pub(super) fn new(marker: &Marker, entries: Vec<Entry>) -> Self {
        Self {
            format: FORMAT,
            marker: marker.clone(),
            entries,
        }
    }

    /// Notes when the files of the finished snapshot were last changed.
    pub(super) fn note_changes(&mut self, snapshot: &Survey) {
        let files = snapshot.items.iter().filter(|item| item.meta.is_file());
        let changes: Changes<'_> = files
            .map(|item| (item.path.as_os_str(), item.changed()))
            .collect();
        for entry in &mut self.entries {
            entry.changed = changes.get(&*entry.path.0).copied();
        }
    }

    /// What was noted of changes.
    pub(super) fn changes(&self) -> Changes<'_> {
        let entries = self.entries.iter();
        entries
            .filter_map(|entry| Some((&*entry.path.0, entry.changed?)))
            .collect()
    }

    /// Reads the manifest beside a snapshot, if there is one.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, SnapshotError> {
        let Some(file) = open_plain(path)? else {
            return Ok(None);
        };
        let manifest = serde_json::from_reader(BufReader::new(file)).and_then(Self::usable);
        manifest
            .map(Some)
            .map_err(|source| SnapshotError::Malformed {
                path: path.to_owned(),
                source,
            })
    }

    /// Refuses another format, and files without a checksum, of which nothing could be said.
    fn usable(self) -> serde_json::Result<Self> {
        if self.format != FORMAT {
            let why = format!("its format is {}, not {FORMAT}", self.format);
            return Err(serde_json::Error::custom(why));
        }
        for entry in &self.entries {
            if matches!(&entry.kind, Kind::File { sha256, .. } if sha256.is_empty()) {
                let path = Path::new(&entry.path.0).display();
                let why = format!("it has no checksum of `{path}`");
                return Err(serde_json::Error::custom(why));
            }
        }
        Ok(self)
    }

    /// The sha256 of its JSON, in hex.
    pub(super) fn digest(&self) -> String {
        let json = serde_json::to_vec(self).expect("a manifest is plain data");
        Sha256::digest(json)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect()
    }

    /// Writes it to disk, whole or not at all; neither it nor what a dead call left of it may be there.
    pub(super) fn write(&self, path: &Path) -> Result<(), SnapshotError> {
        let unfinished = unfinished(path);
        // Made anew, so that no link by this name is followed.
        let file = File::create_new(&unfinished).tried("make", &unfinished)?;
        let written = self
            .write_to(file)
            .tried("write", &unfinished)
            .and_then(|()| rename(&unfinished, path));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written
    }

    fn write_to(&self, file: File) -> std::io::Result<()> {
        let mut writer = BufWriter::new(file);
        serde_json::to_writer(&mut writer, self)?;
        writer.write_all(b"\n")?;
        let file = writer
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)?;
        file.sync_all()
    }

    /// Refuses entries that are not those of the manifest, naming the first below `root`.
    pub(super) fn compare(&self, root: &Path, found: &[Entry]) -> Result<(), SnapshotError> {
        let differs = |name: &OsStr, why: String| {
            Err(SnapshotError::Differs {
                path: if name.is_empty() {
                    root.to_owned()
                } else {
                    root.join(name)
                },
                why,
            })
        };
        let wanted: BTreeMap<_, _> = self.entries.iter().map(|e| (&e.path.0, e)).collect();
        let found: BTreeMap<_, _> = found.iter().map(|e| (&e.path.0, e)).collect();
        for (name, entry) in &wanted {
            match found.get(name).map(|found| entry.difference(found)) {
                Some(None) => {}
                Some(Some(why)) => return differs(name, why),
                None => return differs(name, "it is missing".to_owned()),
            }
        }
        match found.keys().find(|name| !wanted.contains_key(*name)) {
            Some(name) => differs(name, "the manifest does not know it".to_owned()),
            None => Ok(()),
        }
    }
}

/// Removes what a dead call of the same marker left of the manifest at `path`: its beginning tells. Anything else is
/// refused.
pub(super) fn remove_unfinished(path: &Path, marker: &Marker) -> Result<(), SnapshotError> {
    let path = &unfinished(path);
    let Some(file) = open_plain(path)? else {
        return Ok(());
    };
    let empty = serde_json::to_vec(&Manifest::new(marker, Vec::new()));
    let empty = empty.expect("a manifest is plain data");
    let beginning = empty
        .strip_suffix(b"]}")
        .expect("the entries come last, in a list");
    let mut found = Vec::new();
    file.take(beginning.len() as u64)
        .read_to_end(&mut found)
        .tried("read", path)?;
    if beginning.starts_with(&found) {
        return fs::remove_file(path).tried("remove", path);
    }
    Err(SnapshotError::NotOurs {
        path: path.clone(),
        found: None,
        wanted: marker.clone(),
    })
}

/// A manifest that is being written; it becomes the manifest by a rename.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}
