//! What is sent: a file or tree of this machine, read once for however many hosts.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::content;
use super::error::{Fault, Stop, TransferError, Tried};
use super::list::{Entry, Kind, Stamp, below, open, walk};
use super::wire::Packing;

/// A file or tree of this machine with the checksums of its contents. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Source(Arc<Files>);

#[derive(Debug)]
pub(super) struct Files {
    pub(super) root: PathBuf,
    pub(super) entries: Vec<Entry>,
    /// Of each entry.
    details: Vec<Detail>,
}

#[derive(Clone, Copy, Debug)]
struct Detail {
    stamp: Stamp,
    packing: Packing,
}

impl Source {
    /// Reads and hashes `local`: a file, a folder, or a link to one. Links inside stay links; the marker of a deployment's
    /// folder is left out.
    ///
    /// # Errors
    /// It cannot be read, changes meanwhile, or contains something that is neither a file, a folder nor a link.
    pub async fn read(local: &Path) -> Result<Self, TransferError> {
        let local = local.to_owned();
        let read = tokio::task::spawn_blocking(move || Files::read(&local)).await;
        match read {
            Ok(files) => Ok(Self(Arc::new(files.map_err(TransferError::Here)?))),
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }

    /// Bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.entries.iter().map(Entry::size).sum()
    }

    /// How many files there are.
    #[must_use]
    pub fn files(&self) -> usize {
        self.0
            .entries
            .iter()
            .filter(|entry| entry.is_file())
            .count()
    }

    /// The path in the tree and the content of each file.
    pub(in crate::host) fn contents(&self) -> Result<Vec<(PathBuf, Vec<u8>)>, Fault> {
        let files = self.0.entries.iter().filter(|entry| entry.is_file());
        let read = |entry: &Entry| {
            let path = self.0.path(entry);
            let content = fs::read(&path).tried("read", &path)?;
            Ok((entry.path.clone(), content))
        };
        files.map(read).collect()
    }

    pub(super) fn all(&self) -> Arc<Files> {
        Arc::clone(&self.0)
    }

    /// The checksum of a single file.
    pub(super) fn sha256(&self) -> Option<&str> {
        match &self.0.entries.first()?.kind {
            Kind::File { sha256, .. } => Some(sha256),
            Kind::Folder | Kind::Link { .. } => None,
        }
    }

    /// What was read.
    pub(in crate::host) fn root(&self) -> &Path {
        &self.0.root
    }
}

impl Files {
    fn read(local: &Path) -> Result<Self, Fault> {
        let root = fs::canonicalize(local).tried("open", local)?;
        let mut files = Self {
            entries: Vec::new(),
            details: Vec::new(),
            root,
        };
        // Names of one file, or files that share their blocks, are common in data folders: each is read once.
        let mut known: HashMap<Stamp, (String, Packing)> = HashMap::new();
        for mut found in walk(&files.root)? {
            let mut packing = Packing::Plain;
            if let Kind::File { sha256, .. } = &mut found.entry.kind {
                let path = below(&files.root, &found.entry.path);
                let digest = match known.get(&found.stamp) {
                    Some(digest) => digest.clone(),
                    None => digest(&path, found.stamp)?,
                };
                packing = digest.1;
                sha256.clone_from(&digest.0);
                known.insert(found.stamp, digest);
            }
            files.entries.push(found.entry);
            let stamp = found.stamp;
            files.details.push(Detail { stamp, packing });
        }
        Ok(files)
    }

    /// The path of an entry.
    pub(super) fn path(&self, entry: &Entry) -> PathBuf {
        below(&self.root, &entry.path)
    }

    /// How the content of the file `number` is sent.
    pub(super) fn packing(&self, number: usize) -> Packing {
        self.details[number].packing
    }

    /// Copies the content of the file `number` into an empty one of this machine; they share blocks where they can.
    pub(super) fn copy(
        &self,
        number: usize,
        target: &mut fs::File,
        step: &mut dyn FnMut(u64),
    ) -> Result<(), Fault> {
        let path = self.path(&self.entries[number]);
        let (mut file, found) = open(&path)?;
        if rustix::fs::ioctl_ficlone(&*target, &file).is_err() {
            std::io::copy(&mut file, target).tried("copy", &path)?;
        }
        let after = file.metadata().tried("look at", &path)?;
        let size = target.metadata().tried("look at", &path)?.len();
        let stamp = self.details[number].stamp;
        if found != stamp || Stamp::of(&after) != stamp || size != stamp.size() {
            return Err(Fault::Changed { path });
        }
        step(size);
        Ok(())
    }

    /// Sends the content of the file `number` from a byte on.
    pub(super) fn send(
        &self,
        number: usize,
        from: u64,
        output: &mut dyn std::io::Write,
        (step, wire): (&mut dyn FnMut(u64), &mut dyn FnMut(u64)),
    ) -> Result<(), Stop> {
        use std::io::{Seek, SeekFrom};
        let path = self.path(&self.entries[number]);
        let stamp = self.details[number].stamp;
        let changed = || Fault::Changed { path: path.clone() };
        let (mut file, found) = open(&path)?;
        if found != stamp {
            return Err(changed().into());
        }
        file.seek(SeekFrom::Start(from)).tried("read", &path)?;
        let outgoing = content::Outgoing {
            file: &file,
            path: &path,
            length: self.entries[number].size().saturating_sub(from),
            packing: self.details[number].packing,
            digest: None,
            step,
        };
        content::send(outgoing, output, wire, &|| {
            let after = file.metadata().tried("look at", &path)?;
            match Stamp::of(&after) == stamp {
                true => Ok(()),
                false => Err(changed()),
            }
        })
    }
}

/// The checksum of a file, and how it is sent.
fn digest(path: &Path, stamp: Stamp) -> Result<(String, Packing), Fault> {
    let changed = || Fault::Changed {
        path: path.to_owned(),
    };
    let (mut file, found) = open(path)?;
    if found != stamp {
        return Err(changed());
    }
    let mut digest = Sha256::new();
    let read = content::hash(&mut file, found.size(), &mut digest, &mut |_| {});
    let read = read.tried("read", path)?;
    let packing = content::packing(&file, found.size()).tried("read", path)?;
    let after = file.metadata().tried("look at", path)?;
    if read != found.size() || Stamp::of(&after) != stamp {
        return Err(changed());
    }
    Ok((content::hex(digest), packing))
}
