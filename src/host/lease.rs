//! The lease of a host: a locked file in its directory. The system frees it when its holder and all that it started here
//! are dead: programs inherit the lock, so that one which outlives a killed run for a moment still keeps others out.

use std::fs::{File, Metadata, TryLockError};
use std::io::Error;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

/// The lock file's name.
const NAME: &str = ".assay-lease";
/// How long what a dead holder started may still take, and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(20);
/// No lock file is larger.
const LIMIT: usize = 64 << 10;

/// Who holds a host; the content of the lock file, which is empty when nobody does.
#[derive(Serialize, Deserialize)]
struct Holder {
    owner: String,
    pid: u32,
    since: jiff::Timestamp,
}

/// Why a host is not held.
#[derive(Debug)]
pub(super) enum Refusal {
    /// Another holds it: who, and since when.
    Held(String),
    /// The lock file cannot be used.
    Io(Error),
}

/// A held lock file.
#[derive(Debug)]
pub(super) struct Held {
    file: File,
    path: PathBuf,
}

/// Takes the lease of the host whose directory is `directory`, which is made when it is missing.
/// What is not assay's own lock file is neither followed nor changed.
pub(super) fn take(directory: &Path, owner: &str) -> Result<Held, Refusal> {
    std::fs::create_dir_all(directory).map_err(Refusal::Io)?;
    let path = directory.join(NAME);
    let file = open(&path).map_err(Refusal::Io)?;
    lock(&file)?;
    let known = content(&file).map_err(Refusal::Io)?;
    if !known.is_empty() && serde_json::from_slice::<Holder>(&known).is_err() {
        let _ = file.unlock();
        return Err(Refusal::Io(foreign(&path, "it names no holder")));
    }
    let held = Held { file, path };
    // Between the opening and the lock, somebody may have removed it, and another may have locked a new one.
    held.check().map_err(Refusal::Io)?;
    held.write(owner).map_err(Refusal::Io)?;
    Ok(held)
}

/// Locks the file. One whose holder is dead is waited for: what the holder left running ends by itself.
fn lock(file: &File) -> Result<(), Refusal> {
    let patience = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(Refusal::Io(error)),
            Err(TryLockError::WouldBlock) if is_orphaned(file) && Instant::now() < patience => {
                std::thread::sleep(PAUSE);
            }
            Err(TryLockError::WouldBlock) => return Err(Refusal::Held(holder(file))),
        }
    }
}

/// Whether the process that holds the file is dead.
fn is_orphaned(file: &File) -> bool {
    let known = content(file)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Holder>(&bytes).ok());
    let pid = known
        .and_then(|holder| i32::try_from(holder.pid).ok())
        .and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// Opens the lock file, which is made when it is missing. A fifo by its name does not hang.
/// It stays open in programs that are started from here.
fn open(path: &Path) -> Result<File, Error> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mode = Mode::from_raw_mode(0o644);
    let file: File = match rustix::fs::open(path, flags, mode) {
        Ok(file) => file.into(),
        Err(Errno::LOOP) => return Err(foreign(path, "it is a symbolic link")),
        Err(Errno::ISDIR | Errno::NXIO | Errno::NODEV) => {
            return Err(foreign(path, "it is no file"));
        }
        Err(error) => return Err(error.into()),
    };
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(foreign(path, "it is no file"));
    }
    if meta.nlink() > 1 {
        return Err(foreign(path, "it has another name"));
    }
    Ok(file)
}

fn foreign(path: &Path, why: &str) -> Error {
    Error::other(format!(
        "`{}` is left alone, for it is no lease of assay: {why}",
        path.display()
    ))
}

fn content(file: &File) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; LIMIT];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Who holds the file, as it says itself. The holder may just now be writing it.
fn holder(file: &File) -> String {
    let read = content(file).ok();
    match read.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
        Some(Holder { owner, pid, since }) => {
            let owner = owner.replace(char::is_control, " ");
            format!("{owner} (process {pid}) since {since:.0}")
        }
        None => "another run".to_owned(),
    }
}

impl Held {
    /// In one piece: a death leaves the file empty or complete.
    fn write(&self, owner: &str) -> Result<(), Error> {
        let holder = Holder {
            owner: owner.to_owned(),
            pid: std::process::id(),
            since: jiff::Timestamp::now(),
        };
        let mut text = serde_json::to_vec(&holder)?;
        text.push(b'\n');
        self.file.set_len(0)?;
        self.file.write_all_at(&text, 0)?;
        self.file.sync_data()
    }

    /// Whether the file by the lease's name is still the one that is locked: removed or replaced, with its directory or
    /// alone, it keeps nobody else from taking a new one.
    pub(super) fn check(&self) -> Result<(), Error> {
        let id = |meta: &Metadata| (meta.dev(), meta.ino());
        let why = match std::fs::symlink_metadata(&self.path) {
            Ok(meta) if id(&meta) == id(&self.file.metadata()?) => return Ok(()),
            Ok(_) => "it was replaced".to_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                "it was removed".to_owned()
            }
            Err(error) => error.to_string(),
        };
        Err(Error::other(why))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Unlocked by name: a child that is being spawned just now may have a copy of the descriptor for a moment.
        let _ = self.file.set_len(0);
        let _ = self.file.unlock();
    }
}
