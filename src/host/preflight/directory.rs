//! Whether whoever works on a host can write its directory, or make it where it is missing. To look leaves nothing behind.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use serde::{Deserialize, Serialize};

/// A host's directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Directory {
    /// Its path.
    pub path: PathBuf,
    /// Why nothing can be written there; `None` if it can.
    pub refusal: Option<String>,
}

/// Looks at a host's directory as the one who works there.
pub(super) fn look(directory: &Path) -> Directory {
    Directory {
        path: directory.to_owned(),
        refusal: refusal(directory),
    }
}

/// Of a directory that is not there yet, the closest folder above counts.
fn refusal(directory: &Path) -> Option<String> {
    for folder in directory.ancestors() {
        let why = match folder.symlink_metadata() {
            Ok(_) => why_not(folder)?,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => words(&error),
        };
        return Some(match folder == directory {
            true => format!("cannot be written: {why}"),
            false => format!("cannot be made in {}: {why}", folder.display()),
        });
    }
    None
}

/// Why nothing can be made in a folder by the user that this process acts as.
fn why_not(folder: &Path) -> Option<String> {
    match folder.metadata() {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => return Some("it is no folder".to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Some("it is a link to nowhere".to_owned());
        }
        Err(error) => return Some(words(&error)),
    }
    let write = Access::WRITE_OK | Access::EXEC_OK;
    let allowed = accessat(CWD, folder, write, AtFlags::EACCESS);
    allowed.err().map(|errno| words(&errno.into()))
}

/// What the system says, without the number.
fn words(error: &Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_of_ones_own_can_be_written_and_so_can_what_is_to_be_made_in_it() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["", "a", "a/b/c"] {
            assert_eq!(look(&folder.path().join(name)).refusal, None, "{name}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_no_folder_or_leads_nowhere_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let link = folder.path().join("link");
        symlink("nothing", &link).unwrap();
        for (path, why) in [
            (
                file.clone(),
                "cannot be written: it is no folder".to_owned(),
            ),
            (
                link.clone(),
                "cannot be written: it is a link to nowhere".to_owned(),
            ),
            (
                link.join("a"),
                format!(
                    "cannot be made in {}: it is a link to nowhere",
                    link.display()
                ),
            ),
        ] {
            assert_eq!(look(&path).refusal, Some(why));
        }
        let below = look(&file.join("a")).refusal.unwrap();
        assert!(below.ends_with("Not a directory"), "{below}");
    }
}
