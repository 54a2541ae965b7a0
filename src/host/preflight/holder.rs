//! Who holds a host at the moment: what runs there is then that one's and no leftover. To look takes no lease and makes no file.

use std::fs::{File, TryLockError};
use std::io::Read;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::host::lease::{DEAD, Holder, NAME};

/// No lease's file is larger, bytes.
const LIMIT: u64 = 64 << 10;

/// A living holder of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldBy {
    /// Who it is and since when.
    pub text: String,
    /// The number of its process.
    pid: u32,
    /// What that number is one of.
    boot: String,
}

impl HeldBy {
    /// Whether it is the process that asks.
    #[must_use]
    pub fn is_this_process(&self) -> bool {
        let here = Holder::elsewhere("", String::new());
        let boot = here.control.map(|control| control.boot);
        self.pid == here.pid && boot.as_ref() == Some(&self.boot)
    }
}

/// Who holds the host whose directory is `directory`, if that one lives: it keeps the lease's file locked, or its heart beats.
pub(super) fn look(directory: &Path) -> Option<HeldBy> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(directory.join(NAME), flags, Mode::empty()).ok()?;
    let file = File::from(file);
    let meta = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut content = Vec::new();
    (&file).take(LIMIT).read_to_end(&mut content).ok()?;
    let mut holder: Holder = serde_json::from_slice(&content).ok()?;
    let text = holder.text();
    let lives = match &holder.control {
        Some(_) => meta.modified().ok()?.elapsed().unwrap_or_default() <= DEAD,
        None => is_locked(&file),
    };
    // A holder without a machine is on this one.
    let here = || Holder::elsewhere("", String::new()).control;
    holder.control = holder.control.or_else(here);
    (lives && !holder.is_known_dead()).then(|| HeldBy {
        text,
        pid: holder.pid,
        boot: holder.control.map(|c| c.boot).unwrap_or_default(),
    })
}

/// Whether somebody keeps the file locked. Who wants the lock just now tries again.
fn is_locked(file: &File) -> bool {
    match file.try_lock_shared() {
        Ok(()) => {
            let _ = file.unlock();
            false
        }
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::host::Claim;
    use crate::host::lease::{release, take, take_for};

    #[test]
    fn a_holder_of_this_machine_is_found_for_as_long_as_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(look(folder.path()), None);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let held = take(folder.path(), Claim::of("run x")).unwrap();
        let found = look(folder.path()).unwrap();
        assert!(found.text.starts_with("run x (process "), "{}", found.text);
        assert!(found.text.contains(" since "), "{}", found.text);
        assert!(found.is_this_process());
        held.check().unwrap();
        drop(held);
        assert_eq!(look(folder.path()), None);
    }

    #[test]
    fn what_is_written_without_a_lock_holds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let text = serde_json::to_string(&Holder::here("run x")).unwrap();
        std::fs::write(folder.path().join(NAME), text).unwrap();
        assert_eq!(look(folder.path()), None);
    }

    #[test]
    fn a_holder_of_another_machine_is_found_while_its_heart_beats() {
        let folder = tempfile::tempdir().unwrap();
        let mut holder = Holder::elsewhere("run y", "t".into());
        if let Some(control) = &mut holder.control {
            control.machine = "ws7".into();
            control.boot = "another".into();
        }
        take_for(folder.path(), &holder, None, false).unwrap();
        let found = look(folder.path()).unwrap();
        assert!(found.text.contains("run y") && found.text.contains("on ws7"));
        assert!(!found.is_this_process());
        let file = File::options()
            .write(true)
            .open(folder.path().join(NAME))
            .unwrap();
        file.set_modified(SystemTime::now() - DEAD * 2).unwrap();
        assert_eq!(look(folder.path()), None);
        file.set_modified(SystemTime::now()).unwrap();
        assert!(look(folder.path()).is_some());
        release(folder.path(), "t").unwrap();
        assert_eq!(look(folder.path()), None);
    }
}
