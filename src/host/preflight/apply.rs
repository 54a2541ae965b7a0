//! Changes a host's settings, and puts them back as they were. Only running values are changed: they last until the next
//! boot.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::fix::Fix;
use super::journal::{Change, JOURNAL, Journal};
use crate::host::facts::{selected, words};

/// What is to be changed, or undone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The host's directory, which keeps the journal.
    pub directory: PathBuf,
    /// The fixes to make; those that are not safe are left out.
    #[serde(default)]
    pub fixes: Vec<Fix>,
}

/// A value that was to be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// The file that holds it.
    pub target: PathBuf,
    /// What it was; `None` if it could not be read.
    pub old: Option<String>,
    /// What it was to be.
    pub new: String,
    /// What came of it.
    pub done: Done,
}

/// What came of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Done {
    /// It was made.
    Changed,
    /// Nothing had to be done.
    AsWanted,
    /// It cannot be made, and why.
    Refused(String),
}

/// A value that was to be put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reverted {
    /// The file that holds it.
    pub target: PathBuf,
    /// What it was before assay changed it.
    pub old: String,
    /// What came of it.
    pub done: Undone,
}

/// What came of putting a value back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undone {
    /// It is as it was; it had been this.
    Restored(String),
    /// It already was: a boot, or a death before the change was made.
    AsBefore,
    /// Somebody has since set it to this, and it was left alone.
    LeftAlone(String),
    /// It cannot be put back, and why; it stays noted.
    Refused(String),
}

/// Why nothing could be changed or put back.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The journal cannot be used.
    #[error("cannot {what} `{}`", path.display())]
    Journal {
        /// What was tried.
        what: &'static str,
        /// The journal.
        path: PathBuf,
        /// Why it failed.
        source: Error,
    },
}

impl ApplyError {
    fn of(what: &'static str, directory: &Path, source: Error) -> Self {
        let path = directory.join(JOURNAL);
        Self::Journal { what, path, source }
    }
}

/// Makes the safe ones of the fixes on the machine below `root`. Each old value is on disk before its change.
/// A change that the system refuses is told and does not hold up the others.
///
/// # Errors
/// Old values cannot be kept; then nothing is changed any more.
pub fn apply(
    root: &Path,
    request: &Request,
    now: jiff::Timestamp,
) -> Result<Vec<Applied>, ApplyError> {
    let directory = &request.directory;
    let failed = |what| move |error| ApplyError::of(what, directory, error);
    let safe = request.fixes.iter().filter(|fix| fix.is_safe());
    let mut found = Vec::new();
    let mut journal = Journal::open(directory).map_err(failed("read"))?;
    for fix in safe {
        for (target, new) in fix.targets(root) {
            let old = value(&target);
            let done = match &old {
                Ok(old) if *old == new => Done::AsWanted,
                Ok(old) => {
                    let change = Change {
                        target: target.clone(),
                        old: old.clone(),
                        new: vec![new.clone()],
                        at: now,
                        what: fix.to_string(),
                    };
                    change_to(&mut journal, change, &new).map_err(failed("write"))?
                }
                Err(error) => Done::Refused(why(error)),
            };
            found.push(Applied {
                target,
                old: old.ok(),
                new,
                done,
            });
        }
    }
    Ok(found)
}

/// Notes a change and makes it; one that is refused is forgotten again.
fn change_to(journal: &mut Journal, change: Change, new: &str) -> Result<Done, Error> {
    let (before, target) = (journal.changes().to_vec(), change.target.clone());
    journal.note(change)?;
    match set(&target, new) {
        Ok(()) => Ok(Done::Changed),
        Err(error) => {
            journal.keep(before)?;
            Ok(Done::Refused(why(&error)))
        }
    }
}

/// Puts back what [`apply`] changed, the last change first. A value that is no longer the one that assay set is
/// somebody's own and left alone.
///
/// # Errors
/// The journal cannot be read or written.
pub fn revert(root: &Path, directory: &Path) -> Result<Vec<Reverted>, ApplyError> {
    let failed = |what| move |error| ApplyError::of(what, directory, error);
    let mut journal = Journal::open(directory).map_err(failed("read"))?;
    let mut found = Vec::new();
    for change in journal.changes().to_vec().into_iter().rev() {
        let done = put_back(root, &change);
        if !matches!(done, Undone::Refused(_)) {
            journal.forget(&change.target).map_err(failed("write"))?;
        }
        found.push(Reverted {
            target: change.target,
            old: change.old,
            done,
        });
    }
    Ok(found)
}

fn put_back(root: &Path, change: &Change) -> Undone {
    if !is_setting(root, &change.target) {
        return Undone::Refused("assay changes no such file".to_owned());
    }
    match value(&change.target) {
        Ok(now) if now == change.old => Undone::AsBefore,
        Ok(now) if !change.new.contains(&now) => Undone::LeftAlone(now),
        Ok(now) => match set(&change.target, &change.old) {
            Ok(()) => Undone::Restored(now),
            Err(error) => Undone::Refused(why(&error)),
        },
        Err(error) => Undone::Refused(why(&error)),
    }
}

/// Whether a file is one that assay changes: the journal may lie where others can write.
fn is_setting(root: &Path, target: &Path) -> bool {
    let Ok(below) = target.strip_prefix(root) else {
        return false;
    };
    let as_fix = match below.strip_prefix("proc/sys") {
        Ok(key) => Fix::WriteSysctl {
            key: key.to_string_lossy().replace('/', "."),
            value: String::new(),
        },
        Err(_) => Fix::WriteFile {
            path: Path::new("/").join(below),
            value: String::new(),
        },
    };
    as_fix.targets(root).iter().any(|(path, _)| path == target)
}

/// A setting's value: the word in brackets where there is one.
fn value(target: &Path) -> Result<String, Error> {
    let text = std::fs::read_to_string(target)?;
    Ok(selected(&text).unwrap_or_else(|| words(&text)))
}

/// Sets a value and reads it back: some settings take less than what is written. It never makes a file.
fn set(target: &Path, new: &str) -> Result<(), Error> {
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(target)?;
    std::io::Write::write_all(&mut file, new.as_bytes())?;
    drop(file);
    match value(target)? {
        now if now == new => Ok(()),
        now => Err(Error::other(format!("it stayed at `{now}`"))),
    }
}

fn why(error: &Error) -> String {
    match error.kind() {
        ErrorKind::ReadOnlyFilesystem => "read-only, as in a container".to_owned(),
        ErrorKind::PermissionDenied => "only root may".to_owned(),
        ErrorKind::NotFound => "this kernel has no such setting".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const SWAPPINESS: &str = "proc/sys/vm/swappiness";
    const SOMAXCONN: &str = "proc/sys/net/core/somaxconn";
    const THP: &str = "sys/kernel/mm/transparent_hugepage/enabled";

    /// A machine with a few settings.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            for (path, text) in [
                (SWAPPINESS, "60\n"),
                (SOMAXCONN, "4096\n"),
                (THP, "always\n"),
            ] {
                let path = machine.root().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            fs::create_dir(machine.directory()).unwrap();
            machine
        }

        fn root(&self) -> &Path {
            self.0.path()
        }

        fn directory(&self) -> PathBuf {
            self.0.path().join("assay")
        }

        fn get(&self, path: &str) -> String {
            value(&self.root().join(path)).unwrap()
        }

        fn put(&self, path: &str, text: &str) {
            fs::write(self.root().join(path), text).unwrap();
        }

        fn apply(&self, fixes: &[Fix]) -> Vec<Done> {
            let request = Request {
                directory: self.directory(),
                fixes: fixes.to_vec(),
            };
            let applied = apply(self.root(), &request, jiff::Timestamp::UNIX_EPOCH).unwrap();
            applied.into_iter().map(|applied| applied.done).collect()
        }

        fn revert(&self) -> Vec<(String, Undone)> {
            let reverted = revert(self.root(), &self.directory()).unwrap();
            let below = |path: &Path| {
                path.strip_prefix(self.root())
                    .unwrap()
                    .display()
                    .to_string()
            };
            reverted
                .into_iter()
                .map(|r| (below(&r.target), r.done))
                .collect()
        }

        fn has_journal(&self) -> bool {
            self.directory().join(JOURNAL).exists()
        }
    }

    fn swappiness(value: &str) -> Fix {
        Fix::WriteSysctl {
            key: "vm.swappiness".into(),
            value: value.into(),
        }
    }

    fn somaxconn() -> Fix {
        Fix::WriteSysctl {
            key: "net.core.somaxconn".into(),
            value: "32768".into(),
        }
    }

    fn thp() -> Fix {
        Fix::WriteFile {
            path: Path::new("/").join(THP),
            value: "never".into(),
        }
    }

    #[test]
    fn what_was_changed_is_put_back_in_reverse_order_and_nothing_stays() {
        let machine = Machine::new();
        let done = machine.apply(&[swappiness("0"), somaxconn(), thp(), Fix::SwapOff]);
        assert_eq!(done, [Done::Changed, Done::Changed, Done::Changed]);
        let all = [SWAPPINESS, SOMAXCONN, THP];
        assert_eq!(all.map(|path| machine.get(path)), ["0", "32768", "never"]);
        let undone = machine.revert();
        let restored = |path: &str, was: &str| (path.to_owned(), Undone::Restored(was.to_owned()));
        let expected = [
            restored(THP, "never"),
            restored(SOMAXCONN, "32768"),
            restored(SWAPPINESS, "0"),
        ];
        assert_eq!(undone, expected);
        assert_eq!(all.map(|path| machine.get(path)), ["60", "4096", "always"]);
        assert!(!machine.has_journal());
        assert_eq!(machine.revert(), []);
    }

    #[test]
    fn a_second_apply_keeps_the_first_old_value() {
        let machine = Machine::new();
        machine.apply(&[swappiness("10")]);
        assert_eq!(machine.apply(&[swappiness("10")]), [Done::AsWanted]);
        assert_eq!(machine.apply(&[swappiness("0")]), [Done::Changed]);
        assert_eq!(
            machine.revert(),
            [(SWAPPINESS.to_owned(), Undone::Restored("0".into()))]
        );
        assert_eq!(machine.get(SWAPPINESS), "60");
    }

    #[test]
    fn a_death_between_the_note_and_the_change_leaves_nothing_to_undo() {
        let machine = Machine::new();
        machine.apply(&[somaxconn(), swappiness("0")]);
        // As if it had died when the second change was noted and not yet made.
        machine.put(SWAPPINESS, "60");
        let undone = machine.revert();
        let expected = [
            (SWAPPINESS.to_owned(), Undone::AsBefore),
            (SOMAXCONN.to_owned(), Undone::Restored("32768".into())),
        ];
        assert_eq!(undone, expected);
    }

    #[test]
    fn a_death_while_a_value_is_changed_again_is_undone_from_either_value() {
        for now in ["10", "0"] {
            let machine = Machine::new();
            machine.apply(&[swappiness("10")]);
            machine.apply(&[swappiness("0")]);
            machine.put(SWAPPINESS, now);
            let undone = machine.revert();
            assert_eq!(
                undone,
                [(SWAPPINESS.to_owned(), Undone::Restored(now.into()))]
            );
            assert_eq!(machine.get(SWAPPINESS), "60");
        }
    }

    #[test]
    fn the_old_value_is_on_disk_before_the_change_is_made() {
        let machine = Machine::new();
        // The directory takes no journal: then nothing may be changed.
        fs::remove_dir(machine.directory()).unwrap();
        let request = Request {
            directory: machine.directory(),
            fixes: vec![swappiness("0")],
        };
        let error = apply(machine.root(), &request, jiff::Timestamp::UNIX_EPOCH).unwrap_err();
        assert!(error.to_string().contains(JOURNAL), "{error}");
        assert_eq!(machine.get(SWAPPINESS), "60");
    }

    #[test]
    fn a_value_that_somebody_set_since_is_left_alone_and_told() {
        let machine = Machine::new();
        machine.apply(&[swappiness("0"), somaxconn()]);
        machine.put(SWAPPINESS, "1\n");
        let undone = machine.revert();
        let expected = [
            (SOMAXCONN.to_owned(), Undone::Restored("32768".into())),
            (SWAPPINESS.to_owned(), Undone::LeftAlone("1".into())),
        ];
        assert_eq!(undone, expected);
        assert_eq!(machine.get(SWAPPINESS), "1");
        assert!(!machine.has_journal());
    }

    #[test]
    fn a_setting_that_is_not_there_is_told_and_the_others_are_made() {
        let machine = Machine::new();
        fs::remove_file(machine.root().join(SWAPPINESS)).unwrap();
        let done = machine.apply(&[swappiness("0"), somaxconn()]);
        let refused = Done::Refused("this kernel has no such setting".into());
        assert_eq!(done, [refused, Done::Changed]);
        assert!(!machine.root().join(SWAPPINESS).exists());
        assert_eq!(machine.revert().len(), 1);
    }

    #[test]
    fn what_cannot_be_put_back_stays_noted() {
        let machine = Machine::new();
        machine.apply(&[swappiness("0"), somaxconn()]);
        fs::remove_file(machine.root().join(SWAPPINESS)).unwrap();
        let undone = machine.revert();
        assert!(matches!(undone[1], (_, Undone::Refused(_))), "{undone:?}");
        assert!(machine.has_journal());
        machine.put(SWAPPINESS, "0");
        assert_eq!(
            machine.revert(),
            [(SWAPPINESS.to_owned(), Undone::Restored("0".into()))]
        );
        assert!(!machine.has_journal());
    }

    #[test]
    fn a_journal_that_names_other_files_harms_none() {
        let machine = Machine::new();
        fs::write(machine.root().join("secret"), "0").unwrap();
        machine.apply(&[swappiness("0")]);
        let path = machine.directory().join(JOURNAL);
        let text = fs::read_to_string(&path).unwrap();
        let target = machine.root().join(SWAPPINESS).display().to_string();
        for other in [
            machine.root().join("secret"),
            machine.root().join("proc/sys/vm/../../../secret"),
            "/etc/passwd".into(),
        ] {
            let other = other.display().to_string();
            fs::write(&path, text.replace(&target, &other)).unwrap();
            let undone = revert(machine.root(), &machine.directory()).unwrap();
            assert!(matches!(undone[0].done, Undone::Refused(_)), "{other}");
        }
        let kept = fs::read_to_string(machine.root().join("secret")).unwrap();
        assert_eq!(kept, "0");
    }
}
