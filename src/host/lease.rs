//! The lease of a host: a locked file in its directory. The system frees it when its holder dies.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The lock file's name.
const NAME: &str = "lease";

/// Who holds a host; the content of the lock file.
#[derive(Serialize, Deserialize)]
struct Holder {
    owner: String,
    pid: u32,
    since: jiff::Timestamp,
}

/// Why a host is not held.
pub(super) enum Refusal {
    /// Another holds it: who, and since when.
    Held(String),
    /// The lock file cannot be used.
    Io(std::io::Error),
}

/// A held lock file.
pub(super) struct Held(File);

/// Takes the lease of the host whose directory is `directory`, which is made when it is missing.
pub(super) fn take(directory: &Path, owner: &str) -> Result<Held, Refusal> {
    std::fs::create_dir_all(directory).map_err(Refusal::Io)?;
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(directory.join(NAME))
        .map_err(Refusal::Io)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(Refusal::Held(holder(&mut file))),
        Err(TryLockError::Error(error)) => return Err(Refusal::Io(error)),
    }
    let mut held = Held(file);
    held.write(owner).map_err(Refusal::Io)?;
    Ok(held)
}

/// Who holds the file, as it says itself. The holder may just now be writing it.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.read_to_string(&mut text);
    match read.ok().and_then(|_| serde_json::from_str(&text).ok()) {
        Some(Holder { owner, pid, since }) => {
            format!("`{owner}` (process {pid}) since {since:.0}")
        }
        None => "another run".to_owned(),
    }
}

impl Held {
    fn write(&mut self, owner: &str) -> std::io::Result<()> {
        let holder = Holder {
            owner: owner.to_owned(),
            pid: std::process::id(),
            since: jiff::Timestamp::now(),
        };
        self.0.set_len(0)?;
        self.0.rewind()?;
        serde_json::to_writer(&self.0, &holder)?;
        self.0.write_all(b"\n")?;
        self.0.sync_data()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Unlocked by name: a child that is being spawned just now may have a copy of the descriptor for a moment.
        let _ = self.0.set_len(0);
        let _ = self.0.unlock();
    }
}
