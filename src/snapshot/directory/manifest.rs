//! A snapshot's manifest: every file, folder and link in it, written beside it, and the comparison with what is there.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use super::Marker;
use super::marker::open_plain;
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
    /// What it is.
    #[serde(flatten)]
    pub kind: Kind,
}

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

    /// Reads the manifest beside a snapshot, if there is one.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, SnapshotError> {
        let Some(file) = open_plain(path)? else {
            return Ok(None);
        };
        let manifest = serde_json::from_reader(BufReader::new(file));
        manifest
            .map(Some)
            .map_err(|source| SnapshotError::Malformed {
                path: path.to_owned(),
                source,
            })
    }

    /// The sha256 of its JSON, in hex.
    pub(super) fn digest(&self) -> String {
        let json = serde_json::to_vec(self).expect("a manifest is plain data");
        Sha256::digest(json)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect()
    }

    /// Writes it to disk, whole or not at all; nothing may be at `path`.
    pub(super) fn write(&self, path: &Path) -> Result<(), SnapshotError> {
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".new");
        let unfinished = PathBuf::from(unfinished);
        self.remove_unfinished(&unfinished)?;
        // Made anew, so that no link by this name is followed.
        let file = File::create_new(&unfinished).tried("write", &unfinished)?;
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

    /// Removes what a dead call left of a manifest of this marker: its beginning tells. Anything else is refused.
    fn remove_unfinished(&self, path: &Path) -> Result<(), SnapshotError> {
        let Some(file) = open_plain(path)? else {
            return Ok(());
        };
        let empty = Self::new(&self.marker, Vec::new());
        let beginning = serde_json::to_vec(&empty).expect("a manifest is plain data");
        let beginning = beginning
            .strip_suffix(b"]}")
            .expect("the entries come last");
        let mut found = Vec::new();
        file.take(beginning.len() as u64)
            .read_to_end(&mut found)
            .tried("read", path)?;
        if beginning.starts_with(&found) {
            return fs::remove_file(path).tried("remove", path);
        }
        Err(SnapshotError::NotOurs {
            path: path.to_owned(),
            found: None,
            wanted: self.marker.clone(),
        })
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
