//! Writes a run's folder. A new run appears whole or not at all, and nothing written is written again.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::layout::TORN;
use super::{ArchiveError, EventLog, Layout, Manifest, is_written};
use crate::plan::Plan;

/// What the name of a run's folder ends with until it is whole.
const PARTIAL: &str = ".partial";

/// The texts of a run's resolved spec.
#[derive(Clone, Debug, PartialEq)]
pub struct SpecTexts<'a> {
    /// The resolved experiment, as YAML.
    pub experiment: &'a str,
    /// The resolved inventory, as YAML.
    pub inventory: &'a str,
}

/// Makes the folder of a new run in `artifacts/<experiment>/<run>` and opens its log.
///
/// # Errors
/// The folder cannot be written, or is there already.
pub fn create_run(
    artifacts: &Path,
    manifest: &Manifest,
    texts: &SpecTexts<'_>,
    plan: &Plan,
) -> Result<(Layout, EventLog), ArchiveError> {
    let parent = artifacts.join(&manifest.experiment);
    fs::create_dir_all(&parent).map_err(|e| ArchiveError::io("make", &parent, e))?;
    let folder = parent.join(&manifest.run);
    if folder.exists() {
        return Err(ArchiveError::io(
            "make",
            &folder,
            std::io::ErrorKind::AlreadyExists.into(),
        ));
    }
    remove_abandoned(&parent);
    let partial = Layout::new(parent.join(format!(".{}{PARTIAL}", manifest.run)));
    let log = fill(&partial, manifest, texts, plan);
    if log.is_err() {
        // Best effort: the error is what counts.
        let _ = fs::remove_dir_all(partial.folder());
    }
    let log = log?;
    fs::rename(partial.folder(), &folder).map_err(|e| ArchiveError::io("make", &folder, e))?;
    sync_folder(&parent)?;
    let layout = Layout::new(folder);
    let log = log.at(layout.events());
    Ok((layout, log))
}

/// Writes all that a run begins with, and locks its log.
fn fill(
    layout: &Layout,
    manifest: &Manifest,
    texts: &SpecTexts<'_>,
    plan: &Plan,
) -> Result<EventLog, ArchiveError> {
    fs::create_dir(layout.folder()).map_err(|e| ArchiveError::io("make", layout.folder(), e))?;
    let log = EventLog::open(&layout.events())?;
    for part in ["deployments", "rounds"] {
        let path = layout.folder().join(part);
        fs::create_dir(&path).map_err(|e| ArchiveError::io("make", &path, e))?;
    }
    let json = serde_json::to_vec_pretty(manifest).expect("a manifest is plain data");
    write_new(&layout.manifest(), &json)?;
    write_revision(layout, 1, texts, plan)?;
    Ok(log)
}

/// Removes what killed processes left of runs that never appeared; one whose log is locked is being made now.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let log = Layout::new(entry.path()).events();
        if name.starts_with('.') && name.ends_with(PARTIAL) && log.is_file() && !is_written(&log) {
            // Best effort: what stays behind is hidden and small.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Writes one revision of the resolved spec and its plan.
///
/// # Errors
/// A file is there already, or cannot be written.
pub fn write_revision(
    layout: &Layout,
    revision: u32,
    texts: &SpecTexts<'_>,
    plan: &Plan,
) -> Result<(), ArchiveError> {
    write_new(&layout.experiment(revision), texts.experiment.as_bytes())?;
    write_new(&layout.inventory(revision), texts.inventory.as_bytes())?;
    write_new(&layout.plan(revision), plan_text(plan).as_bytes())
}

/// The text of `plan.json`: the same plan is the same bytes.
#[must_use]
pub fn plan_text(plan: &Plan) -> String {
    let mut text = serde_json::to_string_pretty(plan).expect("a plan is plain data");
    text.push('\n');
    text
}

/// Writes a file that is not there yet, whole or not at all, and flushes it to disk; its folder is made when needed,
/// but not the folder's parent.
///
/// # Errors
/// The file is there already, or the disk refuses.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    let io = |e| ArchiveError::io("write", path, e);
    let folder = path.parent().expect("a file of a run lies in a folder");
    // Only one folder is made: a run's own folder that is gone must not come back in parts.
    match fs::create_dir(folder) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(io(e)),
        _ => {}
    }
    let mut file = tempfile::Builder::new()
        .prefix(TORN)
        .tempfile_in(folder)
        .map_err(io)?;
    file.write_all(bytes)
        .and_then(|()| file.as_file().sync_all())
        .map_err(io)?;
    let readable = fs::Permissions::from_mode(0o644);
    file.as_file().set_permissions(readable).map_err(io)?;
    file.persist_noclobber(path).map_err(|e| io(e.error))?;
    sync_folder(folder)
}

fn sync_folder(folder: &Path) -> Result<(), ArchiveError> {
    File::open(folder)
        .and_then(|f| f.sync_all())
        .map_err(|e| ArchiveError::io("flush", folder, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_never_written_over_and_its_run_never_comes_back_in_parts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rounds/a");
        write_new(&path, b"1").unwrap();
        assert!(write_new(&path, b"2").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"1");
        fs::remove_dir_all(folder.path()).unwrap();
        assert!(write_new(&path, b"3").is_err());
        assert!(!folder.path().exists());
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_another_makes_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let [dead, live] =
            [".a.partial", ".b.partial"].map(|name| Layout::new(parent.path().join(name)));
        for layout in [&dead, &live] {
            fs::create_dir(layout.folder()).unwrap();
            drop(EventLog::open(&layout.events()).unwrap());
        }
        let _log = EventLog::open(&live.events()).unwrap();
        remove_abandoned(parent.path());
        assert!(!dead.folder().exists() && live.folder().exists());
    }
}
