//! Reads a run's folder, also of a run that goes on or crashed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::{
    ArchiveError, Entry, FORMAT, Layout, Manifest, RoundResult, State, Status, is_written,
    read_events,
};
use crate::measurement::LoadResult;
use crate::plan::{Plan, Round};

/// A run as its folder tells it.
#[derive(Clone, Debug)]
pub struct Run {
    /// Where things lie.
    pub layout: Layout,
    /// What ran, where, with what.
    pub manifest: Manifest,
    /// The plan in force.
    pub plan: Plan,
    /// Every event so far.
    pub events: Vec<Entry>,
    /// The events replayed.
    pub state: State,
    /// The results that count, by round.
    pub results: BTreeMap<String, RoundResult>,
    /// Whether a process is carrying the run out now.
    pub live: bool,
}

impl Run {
    /// Reads the run in `folder`.
    ///
    /// # Errors
    /// The folder is no run, has a newer format, or a file of it is damaged.
    pub fn open(folder: &Path) -> Result<Self, ArchiveError> {
        let layout = Layout::new(folder);
        if !layout.manifest().is_file() {
            return Err(ArchiveError::NoRun(folder.to_owned()));
        }
        let format: Format = read_json(&layout.manifest())?;
        if format.format != FORMAT {
            return Err(ArchiveError::Format {
                path: layout.manifest(),
                found: format.format,
            });
        }
        let manifest: Manifest = read_json(&layout.manifest())?;
        let live = is_written(&layout.events());
        let events = read_events(&layout.events())?;
        let state = State::replay(&events);
        let plan = read_plan(&layout, &manifest, &state)?;
        let results = read_results(&layout, &plan, &state)?;
        Ok(Self {
            layout,
            manifest,
            plan,
            events,
            state,
            results,
            live,
        })
    }

    /// The rounds of the plan in order, each with its result if it has one.
    pub fn rounds(&self) -> impl Iterator<Item = (&Round, Option<&RoundResult>)> {
        self.plan
            .rounds
            .iter()
            .map(|r| (r, self.results.get(&r.id)))
    }

    /// The whole load result of a round, histograms and intervals included; `None` when it measured nothing.
    ///
    /// # Errors
    /// A file is missing or damaged.
    pub fn load_result(&self, result: &RoundResult) -> Result<Option<LoadResult>, ArchiveError> {
        if result.measured.is_none() {
            return Ok(None);
        }
        let folder = self.layout.round(&result.round, result.attempt);
        let files = read_files(&folder)?;
        LoadResult::from_files(&files)
            .map(Some)
            .map_err(|(file, why)| ArchiveError::Damaged {
                path: folder.join(file),
                why,
            })
    }
}

/// The plan in force; one that is not this run's would make its results look like others.
fn read_plan(layout: &Layout, manifest: &Manifest, state: &State) -> Result<Plan, ArchiveError> {
    let path = layout.plan(state.revision);
    let plan: Plan = read_json(&path)?;
    let wanted = state.spec.as_ref().unwrap_or(&manifest.spec);
    if plan.experiment == manifest.experiment && plan.spec == *wanted {
        return Ok(plan);
    }
    let why = format!(
        "it is the plan of another run: spec {} of `{}`",
        plan.spec, plan.experiment
    );
    Err(ArchiveError::Damaged { path, why })
}

/// The files right in a folder, by name.
///
/// # Errors
/// The folder or a file cannot be read.
pub fn read_files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, ArchiveError> {
    let io = |e| ArchiveError::io("read", folder, e);
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        if entry.file_type().map_err(io)?.is_file() {
            let bytes =
                fs::read(entry.path()).map_err(|e| ArchiveError::io("read", &entry.path(), e))?;
            files.insert(entry.file_name().to_string_lossy().into_owned(), bytes);
        }
    }
    Ok(files)
}

/// When the run in `folder` was made.
///
/// # Errors
/// It has no readable manifest.
pub fn created(folder: &Path) -> Result<jiff::Timestamp, ArchiveError> {
    #[derive(serde::Deserialize)]
    struct Created {
        created: jiff::Timestamp,
    }
    let found: Created = read_json(&Layout::new(folder).manifest())?;
    Ok(found.created)
}

#[derive(serde::Deserialize)]
struct Format {
    format: u32,
}

/// The result of one attempt at a round.
///
/// # Errors
/// It is missing or damaged.
pub fn read_result(
    layout: &Layout,
    round: &str,
    attempt: u32,
) -> Result<RoundResult, ArchiveError> {
    read_json(&layout.round(round, attempt).join("result.json"))
}

fn read_results(
    layout: &Layout,
    plan: &Plan,
    state: &State,
) -> Result<BTreeMap<String, RoundResult>, ArchiveError> {
    let mut results = BTreeMap::new();
    for round in &plan.rounds {
        let outcome = state.rounds.get(&round.id).and_then(|r| r.outcome.as_ref());
        // A skipped round has no result.
        if let Some((attempt, Status::Ok | Status::Failed | Status::Invalid, _)) = outcome {
            results.insert(round.id.clone(), read_result(layout, &round.id, *attempt)?);
        }
    }
    Ok(results)
}

/// The folders of all runs below `artifacts`, oldest first within each experiment.
///
/// # Errors
/// A folder cannot be read.
pub fn list_runs(artifacts: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
    let mut found = Vec::new();
    for experiment in folders(artifacts)? {
        found.extend(
            folders(&experiment)?
                .into_iter()
                .filter(|f| f.join("manifest.json").is_file()),
        );
    }
    Ok(found)
}

fn folders(of: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
    let io = |e| ArchiveError::io("read", of, e);
    let mut found = Vec::new();
    for entry in fs::read_dir(of).map_err(io)? {
        let entry = entry.map_err(io)?;
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !hidden && entry.file_type().map_err(io)?.is_dir() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// The bytes of a regular file: a fifo in its place would never end.
pub(super) fn read_file(path: &Path) -> Result<Vec<u8>, ArchiveError> {
    let io = |e| ArchiveError::io("read", path, e);
    if !fs::metadata(path).map_err(io)?.is_file() {
        return Err(ArchiveError::Damaged {
            path: path.to_owned(),
            why: "it is no regular file".to_owned(),
        });
    }
    fs::read(path).map_err(io)
}

pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, ArchiveError> {
    let bytes = read_file(path)?;
    serde_json::from_slice(&bytes).map_err(|source| ArchiveError::Json {
        path: path.to_owned(),
        line: source.line(),
        source,
    })
}
