//! Makes the rows of a run: reads every good round's histograms once and merges them.

mod again;
mod compare;
mod configuration;
mod durability;
mod facts;
mod history;
mod notes;
mod results;
mod starved;
mod workloads;

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::ReportError;
use super::metric;
use super::rows::{FORMAT, Rows, SpecTexts};
use super::timeline::Timelines;
use crate::artifacts::{ArchiveError, Run};

/// What the rows take from the resolved experiment beyond the plan; anything unknown is passed over.
#[derive(Default, Deserialize)]
struct Told {
    description: Option<String>,
    #[serde(default)]
    workloads: Vec<ToldWorkload>,
}

#[derive(Deserialize)]
struct ToldWorkload {
    name: Option<String>,
    workload: String,
}

impl Told {
    /// The names of the workloads in the order that the experiment gives them.
    fn order(&self) -> Vec<&str> {
        self.workloads
            .iter()
            .map(|w| w.name.as_ref().unwrap_or(&w.workload).as_str())
            .collect()
    }
}

/// The rows of a run, which may be unfinished.
///
/// # Errors
/// A file of the run is missing or damaged.
pub fn rows(run: &Run) -> Result<Rows, ReportError> {
    let experiment = read(&run.layout.experiment(run.state.revision))?;
    let inventory = read(&run.layout.inventory(run.state.revision))?;
    let told: Told = serde_saphyr::from_str(&experiment).unwrap_or_default();
    let execution = history::execution(run);
    let mut courses = Vec::new();
    let workloads = workloads::workloads(run, &told.order(), &execution, &mut courses)?;
    let variants = facts::variants(run);
    let mut rows = Rows {
        format: FORMAT,
        run: facts::run(run, told.description.clone()),
        baseline: run.plan.baseline.clone(),
        metrics: run.plan.metrics.clone(),
        legend: metric::ALL.into_iter().map(metric::legend).collect(),
        differences: facts::differences(&variants),
        configuration: configuration::configuration(run),
        variants,
        workloads,
        notes: Vec::new(),
        failures: history::failures(run),
        interruptions: history::interruptions(run, &execution),
        execution,
        hosts: facts::hosts(run),
        programs: facts::programs(run),
        again: again::again(run, &experiment, &inventory),
        spec: SpecTexts {
            changes: history::spec_changes(run),
            moves: history::host_changes(run),
            experiment,
            inventory,
        },
        timelines: Timelines::of(courses),
    };
    rows.run.rounds = rows
        .results()
        .fold(Default::default(), |sum, r| sum + r.counts);
    history::add_unusable_rounds(&mut rows);
    rows.notes = notes::notes(&rows);
    Ok(rows)
}

fn read(path: &Path) -> Result<String, ArchiveError> {
    fs::read_to_string(path).map_err(|source| ArchiveError::io("read", path, source))
}
