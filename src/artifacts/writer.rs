//! Writes a run's folder. A new run appears whole or not at all, and nothing written is written again.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::layout::TORN;
use super::{ArchiveError, EventLog, Layout, Manifest};
use crate::plan::Plan;

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
    let partial = Layout::new(parent.join(format!(".{}.partial", manifest.run)));
    fs::create_dir(partial.folder()).map_err(|e| ArchiveError::io("make", partial.folder(), e))?;
    for part in ["deployments", "rounds"] {
        let path = partial.folder().join(part);
        fs::create_dir(&path).map_err(|e| ArchiveError::io("make", &path, e))?;
    }
    let json = serde_json::to_vec_pretty(manifest).expect("a manifest is plain data");
    write_new(&partial.manifest(), &json)?;
    write_revision(&partial, 1, texts, plan)?;
    write_new(&partial.events(), b"")?;
    fs::rename(partial.folder(), &folder).map_err(|e| ArchiveError::io("make", &folder, e))?;
    sync_folder(&parent)?;
    let layout = Layout::new(folder);
    let log = EventLog::open(&layout.events())?;
    Ok((layout, log))
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

/// Writes a file that is not there yet, whole or not at all, and flushes it to disk; its folder is made when needed.
///
/// # Errors
/// The file is there already, or the disk refuses.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    let io = |e| ArchiveError::io("write", path, e);
    let folder = path.parent().expect("a file of a run lies in a folder");
    fs::create_dir_all(folder).map_err(io)?;
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
