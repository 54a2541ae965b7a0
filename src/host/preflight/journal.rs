//! What `--apply` changed on a host, kept in its directory, so that it can be undone exactly. A change is on disk here
//! before it is made: whatever moment the work dies at, the old value is known.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// The file's name in the host's directory.
pub const JOURNAL: &str = ".assay-preflight.json";
/// No journal is larger.
const LIMIT: u64 = 1 << 20;
const FORMAT: u32 = 1;

/// A value that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Change {
    /// The file that holds it.
    pub(super) target: PathBuf,
    /// What it was before the first change.
    pub(super) old: String,
    /// What it was set to; several if it was set more than once. Another value than these is somebody else's.
    pub(super) new: Vec<String>,
    /// When it was first changed.
    pub(super) at: jiff::Timestamp,
    /// What that was for.
    pub(super) what: String,
}

#[derive(Serialize, Deserialize)]
struct Content {
    format: u32,
    changes: Vec<Change>,
}

/// The changes of a host, in the order in which they were first made.
#[derive(Debug)]
pub(super) struct Journal {
    directory: PathBuf,
    changes: Vec<Change>,
}

impl Journal {
    /// Reads the journal in `directory`; none is an empty one.
    pub(super) fn open(directory: &Path) -> Result<Self, Error> {
        let content = match read(&directory.join(JOURNAL))? {
            Some(text) => serde_json::from_slice::<Content>(&text)?,
            None => Content {
                format: FORMAT,
                changes: Vec::new(),
            },
        };
        if content.format != FORMAT {
            let message = format!(
                "it has format {}, this assay reads {FORMAT}",
                content.format
            );
            return Err(Error::new(ErrorKind::InvalidData, message));
        }
        Ok(Self {
            directory: directory.to_owned(),
            changes: content.changes,
        })
    }

    /// Notes a change that is about to be made. Of a value that was changed before, the first old one stays.
    pub(super) fn note(&mut self, change: Change) -> Result<(), Error> {
        match self.changes.iter_mut().find(|c| c.target == change.target) {
            Some(known) => {
                known.new.retain(|value| !change.new.contains(value));
                known.new.extend(change.new);
            }
            None => self.changes.push(change),
        }
        self.write()
    }

    /// All changes.
    pub(super) fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Forgets a change.
    pub(super) fn forget(&mut self, target: &Path) -> Result<(), Error> {
        self.changes.retain(|change| change.target != target);
        self.write()
    }

    /// Takes other changes in place of its own.
    pub(super) fn keep(&mut self, changes: Vec<Change>) -> Result<(), Error> {
        self.changes = changes;
        self.write()
    }

    /// Puts a whole new file in place of the old one; without changes there is none.
    fn write(&self) -> Result<(), Error> {
        let path = self.directory.join(JOURNAL);
        if self.changes.is_empty() {
            return match std::fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let content = Content {
            format: FORMAT,
            changes: self.changes.clone(),
        };
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        serde_json::to_writer_pretty(&mut file, &content)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        File::open(&self.directory)?.sync_all()
    }
}

/// The file's content. A link or a fifo by its name is refused.
fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file: File = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => file.into(),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(Error::other("it is no file"));
    }
    // It says what values are set: only whoever works here may have written it.
    if meta.uid() != rustix::process::geteuid().as_raw() || meta.mode() & 0o022 != 0 {
        return Err(Error::other("somebody else may have written it"));
    }
    let mut text = Vec::new();
    file.take(LIMIT).read_to_end(&mut text)?;
    Ok(Some(text))
}
