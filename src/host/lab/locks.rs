//! Locks on the folders of labs. The system frees them when their holder dies; a lock lies on the folder itself, so that
//! nothing is left of it.

use std::fs::{File, TryLockError};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use super::{LabError, Labs, description, io};

/// How a lab is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// To make or remove it.
    Alone,
    /// The same, when whoever works on it is done.
    AloneInTime,
    /// To do something to one of its hosts.
    Beside,
}

impl Labs {
    /// Locks the folder of all labs, which is made when it is missing.
    pub(super) fn lock_all(&self) -> Result<File, LabError> {
        loop {
            self.make_folder()?;
            match lock(&self.folder, Mode::AloneInTime)? {
                Some(held) => return Ok(held),
                // The last lab was removed in between, and the folder with it.
                None => continue,
            }
        }
    }

    /// Locks a lab.
    ///
    /// # Errors
    /// There is none by that name, or another process works on it.
    pub(super) fn lock(&self, name: &str, mode: Mode) -> Result<File, LabError> {
        description::check_name(name)?;
        let folder = self.of(name);
        match std::fs::symlink_metadata(&folder) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => {
                let why = "it is no folder".to_owned();
                return Err(LabError::Foreign { path: folder, why });
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(LabError::None(name.to_owned()));
            }
            Err(error) => return Err(io("read", &folder)(error)),
        }
        lock(&folder, mode)?.ok_or_else(|| LabError::None(name.to_owned()))
    }

    /// Locks a host, so that faults of one follow each other.
    pub(super) fn lock_host(&self, folder: &Path) -> Result<File, LabError> {
        let missing = || LabError::NoHost(folder.display().to_string());
        lock(folder, Mode::AloneInTime)?.ok_or_else(missing)
    }

    /// Only its owner may write into the folder: what is found there is acted on with all rights.
    fn make_folder(&self) -> Result<(), LabError> {
        let refuse = |why: &str| LabError::Folder {
            folder: self.folder.clone(),
            why: why.to_owned(),
        };
        if !description::is_plain(&self.folder) {
            return Err(refuse(
                "it must be an absolute path of two parts or more, of letters, digits, dots, dashes and underscores",
            ));
        }
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(&self.folder)
            .map_err(io("make", &self.folder))?;
        let real = self
            .folder
            .canonicalize()
            .map_err(io("read", &self.folder))?;
        if real != self.folder {
            return Err(refuse("a part of it is a symbolic link"));
        }
        let meta = real.metadata().map_err(io("read", &real))?;
        if meta.uid() != rustix::process::geteuid().as_raw() || meta.mode() & 0o022 != 0 {
            return Err(refuse("others may write into it"));
        }
        Ok(())
    }
}

/// Locks a folder; `None` if it is gone, or is another one, by the time that it is locked.
fn lock(folder: &Path, mode: Mode) -> Result<Option<File>, LabError> {
    let file = match File::open(folder) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io("open", folder)(error)),
    };
    let locked = match mode {
        Mode::Alone => file.try_lock(),
        Mode::AloneInTime => file.lock().map_err(TryLockError::Error),
        Mode::Beside => file.try_lock_shared(),
    };
    match locked {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let name = folder.file_name().unwrap_or_default();
            return Err(LabError::Busy(name.to_string_lossy().into_owned()));
        }
        Err(TryLockError::Error(error)) => return Err(io("lock", folder)(error)),
    }
    let held = file.metadata().map_err(io("read", folder))?;
    let is_same = std::fs::symlink_metadata(folder)
        .is_ok_and(|now| (now.dev(), now.ino()) == (held.dev(), held.ino()));
    Ok(is_same.then_some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_that_is_being_made_is_busy_and_one_that_is_not_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let labs = Labs::new(folder.path(), "/bin/assay");
        std::fs::create_dir(labs.of("a")).unwrap();
        let held = labs.lock("a", Mode::Alone).unwrap();
        for mode in [Mode::Alone, Mode::Beside] {
            let error = labs.lock("a", mode).unwrap_err();
            assert!(matches!(error, LabError::Busy(name) if name == "a"));
        }
        drop(held);
        let first = labs.lock("a", Mode::Beside).unwrap();
        let second = labs.lock("a", Mode::Beside).unwrap();
        drop((first, second));
        assert!(matches!(
            labs.lock("b", Mode::Alone).unwrap_err(),
            LabError::None(_)
        ));
        assert!(matches!(
            labs.lock("../a", Mode::Alone).unwrap_err(),
            LabError::Name(_)
        ));
    }

    #[test]
    fn a_link_in_the_place_of_a_lab_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let labs = Labs::new(folder.path(), "/bin/assay");
        std::os::unix::fs::symlink("/etc", labs.of("a")).unwrap();
        let error = labs.lock("a", Mode::Alone).unwrap_err();
        assert!(matches!(error, LabError::Foreign { .. }), "{error}");
    }

    #[test]
    fn a_folder_that_others_may_write_into_holds_no_labs() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
        let error = Labs::new(&open, "/bin/assay").lock_all().unwrap_err();
        assert!(error.to_string().contains("others may write"), "{error}");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        let error = Labs::new(&link, "/bin/assay").lock_all().unwrap_err();
        assert!(error.to_string().contains("symbolic link"), "{error}");
    }
}
