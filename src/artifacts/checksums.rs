//! `SHA256SUMS`: written when a run ends, checked by `assay verify` or by `sha256sum -c`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::layout::{SUMS, TORN};
use super::{ArchiveError, Layout, write_new};

/// What checking a run's files found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Files that are as they were.
    pub good: usize,
    /// Files whose content changed.
    pub changed: Vec<PathBuf>,
    /// Files that are gone.
    pub missing: Vec<PathBuf>,
    /// Files that were not there.
    pub unknown: Vec<PathBuf>,
}

impl Verification {
    /// Whether every file is as it was and none was added.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.changed.is_empty() && self.missing.is_empty() && self.unknown.is_empty()
    }
}

/// Writes the checksums of every file of the run, and clears away what a killed process left half written.
///
/// # Errors
/// A file cannot be read, or the checksums are there already.
pub fn write_sums(layout: &Layout) -> Result<(), ArchiveError> {
    remove_torn(layout.folder())?;
    let mut text = String::new();
    for (path, sum) in sums_of(layout.folder())? {
        text.push_str(&sum_line(&sum, &path));
    }
    write_new(&layout.sums(), text.as_bytes())
}

/// Compares every file of the run with its checksum.
///
/// # Errors
/// The run has no checksums, or a file cannot be read.
pub fn verify(layout: &Layout) -> Result<Verification, ArchiveError> {
    let path = layout.sums();
    if !layout.manifest().is_file() && !path.exists() {
        return Err(ArchiveError::NoRun(layout.folder().to_owned()));
    }
    if !path.exists() {
        return Err(ArchiveError::Unfinished(layout.folder().to_owned()));
    }
    let text = std::fs::read_to_string(&path).map_err(|e| ArchiveError::io("read", &path, e))?;
    let mut found = sums_of(layout.folder())?;
    let mut verification = Verification::default();
    for (number, line) in text.lines().enumerate() {
        let Some((wanted, name)) = read_line(line) else {
            let why = format!("line {} is no checksum: `{line}`", number + 1);
            return Err(ArchiveError::Damaged { path, why });
        };
        match found.remove(Path::new(&name)) {
            Some(sum) if sum == wanted => verification.good += 1,
            Some(_) => verification.changed.push(name.into()),
            None => verification.missing.push(name.into()),
        }
    }
    verification.unknown = found.into_keys().collect();
    Ok(verification)
}

/// A line as `sha256sum` writes it: names with a line feed or a backslash are escaped, and a backslash in front says so.
fn sum_line(sum: &str, path: &Path) -> String {
    let name = path.to_string_lossy();
    if name.contains(['\n', '\\', '\r']) {
        let escaped = name
            .replace('\\', "\\\\")
            .replace('\n', "\\n")
            .replace('\r', "\\r");
        format!("\\{sum}  {escaped}\n")
    } else {
        format!("{sum}  {name}\n")
    }
}

/// Reads what [`sum_line`] writes.
fn read_line(line: &str) -> Option<(&str, String)> {
    let Some(escaped) = line.strip_prefix('\\') else {
        return line
            .split_once("  ")
            .map(|(sum, name)| (sum, name.to_owned()));
    };
    let (sum, escaped) = escaped.split_once("  ")?;
    let mut name = String::new();
    let mut rest = escaped.chars();
    while let Some(c) = rest.next() {
        name.push(match c {
            '\\' => match rest.next()? {
                'n' => '\n',
                'r' => '\r',
                other => other,
            },
            c => c,
        });
    }
    Some((sum, name))
}

/// The sha256 of a file, in hex.
///
/// # Errors
/// The file cannot be read.
pub fn sha256_of(path: &Path) -> Result<String, ArchiveError> {
    let io = |e| ArchiveError::io("read", path, e);
    let mut file = File::open(path).map_err(io)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(io)? {
            0 => return Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect()),
            n => hash.update(&buffer[..n]),
        }
    }
}

fn remove_torn(folder: &Path) -> Result<(), ArchiveError> {
    for entry in walkdir::WalkDir::new(folder) {
        let entry = entry.map_err(|e| ArchiveError::io("read", folder, e.into()))?;
        if entry.file_type().is_file() && entry.file_name().to_string_lossy().starts_with(TORN) {
            std::fs::remove_file(entry.path())
                .map_err(|e| ArchiveError::io("remove", entry.path(), e))?;
        }
    }
    Ok(())
}

fn sums_of(folder: &Path) -> Result<BTreeMap<PathBuf, String>, ArchiveError> {
    let mut sums = BTreeMap::new();
    for entry in walkdir::WalkDir::new(folder) {
        let entry = entry.map_err(|e| ArchiveError::io("read", folder, e.into()))?;
        let name = entry
            .path()
            .strip_prefix(folder)
            .expect("walked paths lie in their folder")
            .to_owned();
        if entry.file_type().is_file() && name != Path::new(SUMS) {
            sums.insert(name, sha256_of(entry.path())?);
        }
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_a_missing_and_an_added_file_are_each_named() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            write_new(&folder.path().join("sub").join(name), name.as_bytes()).unwrap();
        }
        let layout = Layout::new(folder.path());
        write_sums(&layout).unwrap();
        assert!(verify(&layout).unwrap().is_good());
        std::fs::write(folder.path().join("sub/a"), "x").unwrap();
        std::fs::remove_file(folder.path().join("sub/b")).unwrap();
        std::fs::write(folder.path().join("d"), "x").unwrap();
        let found = verify(&layout).unwrap();
        assert_eq!(found.good, 1);
        assert_eq!(found.changed, [PathBuf::from("sub/a")]);
        assert_eq!(found.missing, [PathBuf::from("sub/b")]);
        assert_eq!(found.unknown, [PathBuf::from("d")]);
    }

    #[test]
    fn names_with_line_feeds_and_backslashes_are_read_back_and_by_sha256sum() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a\nb", "c\\d", "plain"] {
            write_new(&folder.path().join(name), name.as_bytes()).unwrap();
        }
        let layout = Layout::new(folder.path());
        write_sums(&layout).unwrap();
        assert_eq!(
            verify(&layout).unwrap(),
            Verification {
                good: 3,
                ..Verification::default()
            }
        );
        let check = std::process::Command::new("sha256sum")
            .args(["--check", "--quiet", "SHA256SUMS"])
            .current_dir(folder.path())
            .status();
        assert!(check.unwrap().success());
    }

    #[test]
    fn the_sums_have_the_form_that_sha256sum_reads() {
        let folder = tempfile::tempdir().unwrap();
        write_new(&folder.path().join("a"), b"abc").unwrap();
        let layout = Layout::new(folder.path());
        write_sums(&layout).unwrap();
        // The digest of "abc" is the first example of FIPS 180.
        let wanted = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n";
        assert_eq!(std::fs::read_to_string(layout.sums()).unwrap(), wanted);
    }
}
