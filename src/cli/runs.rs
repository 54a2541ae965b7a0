//! Finds the run that the user means.

use std::path::{Path, PathBuf};

use super::args::Global;
use super::error::{Code, Failure};
use crate::artifacts::{Run, created, list_runs};

/// Opens the run that `wanted` names: a folder, an id, or the beginning of one; without it, the newest.
pub(super) fn open(global: &Global, wanted: Option<&str>) -> Result<Run, Failure> {
    Ok(Run::open(&find(global, wanted)?)?)
}

/// The folder of the run that `wanted` names.
pub(super) fn find(global: &Global, wanted: Option<&str>) -> Result<PathBuf, Failure> {
    if let Some(path) = wanted.map(Path::new).filter(|p| p.is_dir()) {
        return Ok(path.to_owned());
    }
    let runs = all(global)?;
    let Some(wanted) = wanted else {
        // Two runs of one second differ in milliseconds, which their names do not hold.
        let newest = runs
            .into_iter()
            .max_by_key(|folder| (created(folder).ok(), folder.clone()));
        return newest.ok_or_else(|| none(global));
    };
    let of = |path: &PathBuf| {
        let relative = path
            .strip_prefix(&global.artifacts)
            .expect("runs lie below the artifacts");
        let id = path.file_name().unwrap_or_default().to_string_lossy();
        id.starts_with(wanted)
            || id.ends_with(wanted)
            || relative.to_string_lossy().starts_with(wanted)
    };
    let mut found: Vec<PathBuf> = runs.into_iter().filter(of).collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::new(
            Code::Usage,
            format!("no run `{wanted}` in `{}`", global.artifacts.display()),
        )
        .hint("`assay list` shows the runs; `--artifacts DIR` says where they are")),
        n => {
            let names: Vec<String> = found.iter().map(|p| format!("  {}", p.display())).collect();
            Err(Failure::new(
                Code::Usage,
                format!("`{wanted}` fits {n} runs:\n{}", names.join("\n")),
            )
            .hint("give more of the id"))
        }
    }
}

/// The folders of all runs.
pub(super) fn all(global: &Global) -> Result<Vec<PathBuf>, Failure> {
    if !global.artifacts.exists() {
        return Ok(Vec::new());
    }
    Ok(list_runs(&global.artifacts)?)
}

fn none(global: &Global) -> Failure {
    Failure::new(
        Code::Usage,
        format!("there are no runs in `{}`", global.artifacts.display()),
    )
    .hint("`assay run EXPERIMENT` makes one; `--artifacts DIR` says where they are")
}
