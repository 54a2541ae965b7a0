//! The one value that every format renders. Latencies are in µs, times in s, throughput in operations/s.
//!
//! A round's percentiles are read from its own histogram, all operations merged. A latency shown for several rounds is
//! read from the exact merge of their histograms; no percentile is ever averaged. Throughput is the mean over rounds.
//! Ratios are made of pairs: the two rounds of one cell and one repetition. Failed and
//! invalid rounds are listed, never averaged in.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::timeline::Timelines;
use crate::artifacts::Status;
use crate::spec::Metric;
use crate::statistics::Overall;

/// The format of `results.json`.
pub const FORMAT: u32 = 1;

/// Tables of keys that are longer are folded.
pub const LONG: usize = 30;

/// Everything that a report tells of a run. Serialized, its numbers have nine digits.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(remote = "Self")]
pub struct Rows {
    /// The format of this value.
    pub format: u32,
    /// The run as a whole.
    pub run: RunFacts,
    /// The variant that the others are compared with.
    pub baseline: String,
    /// The metrics that tables show, in order.
    pub metrics: Vec<Metric>,
    /// What every metric is.
    pub legend: Vec<Legend>,
    /// What is compared, in the order of the experiment.
    pub variants: Vec<Variant>,
    /// Settings in which variants differ.
    pub differences: Vec<Difference>,
    /// Keys of the effective configuration in which variants differ, defaults included.
    pub configuration: Vec<KeyDifference>,
    /// Results, by workload.
    pub workloads: Vec<Workload>,
    /// What a reader must know before trusting a number.
    pub notes: Vec<Note>,
    /// Every attempt that failed or is invalid, and every round that was skipped.
    pub failures: Vec<Failure>,
    /// Every attempt in the order of execution.
    pub execution: Vec<Attempt>,
    /// Times at which the run stopped and was taken up again.
    pub interruptions: Vec<Interruption>,
    /// The hosts and what they are.
    pub hosts: Vec<Facts>,
    /// The programs that were used.
    pub programs: Vec<Program>,
    /// What was run.
    pub spec: SpecTexts,
    /// How to run it again.
    pub again: Again,
    /// Per-second courses of the rounds.
    #[serde(skip)]
    pub timelines: Timelines,
}

/// The run as a whole.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunFacts {
    /// The experiment's name.
    pub experiment: String,
    /// What the experiment is for.
    pub description: Option<String>,
    /// The run's id.
    pub id: String,
    /// When it was made, UTC.
    pub created: jiff::Timestamp,
    /// The version of assay.
    pub assay: String,
    /// The hash of the resolved spec in force.
    pub spec: String,
    /// The seed of every random order and key.
    pub seed: u64,
    /// The order of the rounds, as in the experiment.
    pub order: String,
    /// When data was put back, as in the experiment.
    pub restore: String,
    /// How far it came.
    pub progress: Progress,
    /// Why it stopped before its end.
    pub stopped: Option<String>,
    /// Rounds by how they ended.
    pub rounds: Counts,
    /// Estimated time, s.
    pub estimated_s: f64,
    /// Time spent, over all resumes, s.
    pub actual_s: f64,
    /// Estimated and used bytes on disk; only of a finished run.
    pub disk: Option<Disk>,
}

/// How far a run came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// Every round is done.
    Finished,
    /// It stopped before its end.
    Stopped,
    /// It goes on.
    Running,
    /// Its process ended without a word.
    Interrupted,
}

/// Rounds by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Rounds in the plan.
    pub planned: usize,
    /// They measured what they should.
    pub ok: usize,
    /// They failed.
    pub failed: usize,
    /// They were measured under conditions that make their numbers no result.
    pub invalid: usize,
    /// Their deployment could not be prepared.
    pub skipped: usize,
    /// They are still to come.
    pub pending: usize,
}

/// Bytes on disk, of all deployments with their snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// As estimated before the run.
    pub estimated_bytes: u64,
    /// As used.
    pub actual_bytes: u64,
}

/// What a metric is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Legend {
    /// The metric.
    pub metric: Metric,
    /// Its name in tables.
    pub name: String,
    /// Its unit in the values of this file.
    pub unit: String,
    /// How the value for several rounds is made.
    pub over_rounds: String,
    /// Whether a higher value is the better one.
    pub higher_is_better: bool,
}

/// One of the things compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// The system.
    pub system: String,
    /// The version that it had to report.
    pub version: Option<String>,
    /// Role -> hosts.
    pub topology: BTreeMap<String, Vec<String>>,
    /// The hosts that ran the driver.
    pub clients: Vec<String>,
    /// Component -> tunables that the experiment sets.
    pub config: BTreeMap<String, BTreeMap<String, String>>,
    /// The version that the system reported; absent before it was started.
    pub reported_version: Option<String>,
    /// Component -> all tunables as read back from the system; empty before it was started.
    pub effective: BTreeMap<String, BTreeMap<String, String>>,
    /// How its data was kept; absent before it was ready.
    pub snapshot_method: Option<String>,
    /// Bytes of its data.
    pub data_bytes: Option<u64>,
}

/// A setting in which variants differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The setting, such as `sqlite.journal_mode`.
    pub setting: String,
    /// Its value in each variant, in their order; absent where it is not set.
    pub values: Vec<Option<String>>,
}

/// A key of the effective configuration in which variants differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyDifference {
    /// The component, such as `tikv`; its first instance tells of it.
    pub component: String,
    /// The key, dotted.
    pub key: String,
    /// Its value in each variant, in their order; absent where there is no such key or nothing was started.
    pub values: Vec<Option<String>>,
    /// Whether the experiment asks for it, in one variant at least.
    pub asked: bool,
}

/// One workload's results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// Its parameters, its dataset's and its rounds', as label and value.
    pub parameters: Vec<(String, String)>,
    /// Its cells, in groups that one chart can hold.
    pub groups: Vec<Group>,
    /// Each variant against the baseline over all cells.
    pub overall: Vec<OverallRow>,
}

/// Cells along one axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// What the cells have in common besides the workload; absent when there is one group.
    pub label: Option<String>,
    /// The axis along which they differ.
    pub axis: Axis,
    /// The cells, rising along the axis.
    pub cells: Vec<Cell>,
}

/// An axis of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Client threads.
    Threads,
    /// Target rate, operations/s.
    Rate,
}

/// A variant against the baseline over all cells of a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OverallRow {
    /// The variant.
    pub variant: String,
    /// The metric.
    pub metric: Metric,
    /// The ratio and its spread over cells.
    #[serde(flatten)]
    pub overall: Overall,
    /// Cells in it whose ratio has too few requests beyond the percentile.
    pub thin: usize,
    /// Cells of an open loop that are left out: for throughput those where both sides kept the target rate, for latencies
    /// those where one did not.
    pub left_out: usize,
}

/// One workload at one point of the sweep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Its id.
    pub id: String,
    /// Client threads.
    pub threads: u32,
    /// Target rate, operations/s; absent in closed loop.
    pub rate: Option<f64>,
    /// What each variant came to, in their order.
    pub results: Vec<Results>,
}

/// One cell on one variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Results {
    /// The variant.
    pub variant: String,
    /// Its rounds by how they ended.
    pub counts: Counts,
    /// Its rounds, by repetition.
    pub rounds: Vec<Round>,
    /// Each metric over the good rounds; empty without any.
    pub summary: BTreeMap<Metric, Over>,
    /// Each operation over the good rounds.
    pub operations: Vec<Operation>,
    /// Failed operations of the good rounds by kind of error.
    pub errors: BTreeMap<String, u64>,
    /// CPUs that the client kept busy in the window, mean of the good rounds where it is known.
    pub client_cores: Option<f64>,
    /// Whether the target rate was not kept, in open loop.
    pub missed: bool,
    /// Each metric against the baseline; empty for the baseline itself.
    pub comparison: BTreeMap<Metric, Comparison>,
}

/// One round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Round {
    /// Its id.
    pub id: String,
    /// Which pass over the cells, from 1.
    pub repetition: u32,
    /// Which block, from 1.
    pub block: u32,
    /// Its place in the order of execution, from 1; absent before it began.
    pub position: Option<usize>,
    /// Which attempt counted; absent before one did.
    pub attempt: Option<u32>,
    /// How it ended; absent before it did.
    pub status: Option<Status>,
    /// Why it is not good.
    pub reason: Option<String>,
    /// What a reader must know of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// When it began, UTC.
    pub started: Option<jiff::Timestamp>,
    /// The window that was really used, s.
    pub window_s: Option<f64>,
    /// CPU time that the client itself used in the window, s.
    pub client_cpu_s: Option<f64>,
    /// Operations that succeeded and ended in the window.
    pub count: Option<u64>,
    /// Operations that succeeded but were in flight when the window ended: in the latencies, in no throughput.
    pub late: Option<u64>,
    /// Operations of an open loop that were due by the window's end and had not begun.
    pub unstarted: Option<u64>,
    /// Threads without a success that ended in the window.
    pub idle_threads: Option<u32>,
    /// The part of the threads' time in the window that the latencies account for, in closed loop; above 1 when operations
    /// reach over the window's edges.
    pub accounted: Option<f64>,
    /// Operations that failed.
    pub errors: Option<u64>,
    /// Each metric; empty unless the round is good.
    pub values: BTreeMap<Metric, f64>,
    /// Percentiles with fewer than ten requests beyond them.
    pub thin: Vec<Metric>,
    /// Each kind of operation; empty unless the round is good.
    pub operations: BTreeMap<String, RoundOperation>,
}

/// One kind of operation in one round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoundOperation {
    /// Each metric.
    pub values: BTreeMap<Metric, f64>,
    /// Percentiles with fewer than ten requests beyond them.
    pub thin: Vec<Metric>,
}

/// A metric over the good rounds of a cell on one variant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Over {
    /// How many rounds.
    pub n: usize,
    /// Throughput: the mean over rounds. Latency: read from the merge of the rounds' histograms.
    pub value: f64,
    /// The smallest value of a round.
    pub min: f64,
    /// The largest value of a round.
    pub max: f64,
    /// Requests beyond the percentile in the merge; absent for other metrics.
    pub beyond: Option<u64>,
    /// Whether they are fewer than ten.
    pub thin: bool,
}

/// One kind of operation over the good rounds of a cell on one variant, histograms merged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Operation {
    /// `read`, `update`, `transaction`, ...
    pub name: String,
    /// Operations that succeeded and ended in the window.
    pub count: u64,
    /// Operations that succeeded but were in flight when it ended.
    pub late: u64,
    /// Failed operations by kind of error.
    pub errors: BTreeMap<String, u64>,
    /// Its latencies, and its throughput as the mean over rounds.
    pub values: BTreeMap<Metric, f64>,
    /// Percentiles with fewer than ten requests beyond them.
    pub thin: Vec<Metric>,
}

/// A metric of a variant against the baseline, in one cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Pairs of good rounds.
    pub n: usize,
    /// The ratio of the geometric means; absent without a pair or with a value of 0.
    pub ratio: Option<f64>,
    /// The smallest ratio of a pair.
    pub min: Option<f64>,
    /// The largest ratio of a pair.
    pub max: Option<f64>,
    /// Each pair's repetition and ratio.
    pub pairs: Vec<(u32, f64)>,
    /// Repetitions of which only one side is good; they are left out.
    pub dropped: usize,
    /// Whether a round of a pair has fewer than ten requests beyond the percentile.
    pub thin: bool,
    /// The two values over rounds divided; absent without both.
    pub quotient: Option<f64>,
    /// Whether that is on the other side of 1 than the ratio, or outside the pairs' ratios.
    pub apart: bool,
    /// What can be said of it.
    pub said: String,
}

/// What a reader must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// How much it matters.
    pub weight: Weight,
    /// The sentence.
    pub text: String,
}

/// How much a note matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Numbers are missing or may mislead.
    Warning,
    /// Good to know.
    Remark,
}

/// An attempt that failed or is invalid, or a round that was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The round; absent when a deployment failed.
    pub round: Option<String>,
    /// Its cell.
    pub cell: Option<String>,
    /// The variant.
    pub variant: String,
    /// Which repetition.
    pub repetition: Option<u32>,
    /// Which attempt.
    pub attempt: Option<u32>,
    /// Failed, invalid or skipped.
    pub status: Status,
    /// Why.
    pub reason: String,
    /// Whether a later attempt took its place.
    pub retried: bool,
}

/// One attempt at a round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attempt {
    /// Its place, from 1.
    pub position: usize,
    /// When it began, UTC.
    pub at: jiff::Timestamp,
    /// The round.
    pub round: String,
    /// Its cell.
    pub cell: String,
    /// The variant.
    pub variant: String,
    /// Which repetition.
    pub repetition: u32,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// How it ended; absent when the process died within it.
    pub status: Option<Status>,
    /// From begin to end, s.
    pub seconds: Option<f64>,
}

/// A time at which the run stopped and was taken up again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interruption {
    /// When the last thing before it happened, UTC.
    pub stopped: jiff::Timestamp,
    /// When the run was taken up again, UTC.
    pub resumed: jiff::Timestamp,
    /// What lies between, s.
    pub seconds: f64,
    /// Why it stopped; absent when the process ended without a word.
    pub reason: Option<String>,
    /// Cells and repetitions whose good rounds lie on both sides of it.
    pub split: Vec<(String, u32)>,
}

/// What a host is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Its name in the inventory.
    pub name: String,
    /// Label and value; what could not be read is left out.
    pub facts: Vec<(String, String)>,
}

/// A program that was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Option<String>,
    /// Its sha256 in hex.
    pub sha256: Option<String>,
}

/// What was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpecTexts {
    /// The resolved experiment in force, as YAML.
    pub experiment: String,
    /// The resolved inventory in force, as YAML.
    pub inventory: String,
    /// Changes that were accepted on resume.
    pub changes: Vec<SpecChange>,
    /// Changes of host or program that were accepted on resume.
    pub moves: Vec<HostChange>,
}

/// A change of host or program that was accepted on resume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostChange {
    /// When, UTC.
    pub at: jiff::Timestamp,
    /// Good rounds that were measured before it.
    pub rounds_before: usize,
    /// What differs, by path.
    pub difference: Vec<String>,
}

/// A change of the spec that was accepted on resume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpecChange {
    /// When, UTC.
    pub at: jiff::Timestamp,
    /// The hash before.
    pub from: String,
    /// The hash after.
    pub to: String,
    /// Good rounds that were measured before it.
    pub rounds_before: usize,
    /// What differs, by path.
    pub difference: Vec<String>,
}

/// How to run it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Again {
    /// What a command does, and the command for a POSIX shell.
    pub commands: Vec<(String, String)>,
    /// Environment variables that must be set first: the secrets of the experiment.
    pub environment: Vec<String>,
}

impl Variant {
    /// The system with the version that it reported, `sqlite 3.51.0`, or that it was to have.
    #[must_use]
    pub fn system_and_version(&self) -> String {
        match (&self.reported_version, &self.version) {
            (Some(version), _) => format!("{} {version}", self.system),
            (None, Some(wanted)) => format!("{} ({wanted} wanted, not deployed)", self.system),
            (None, None) => format!("{} (not deployed)", self.system),
        }
    }

    /// What stands for a setting of which nothing is known.
    #[must_use]
    pub fn without_value(&self) -> &'static str {
        if self.reported_version.is_some() {
            "not set"
        } else {
            "not deployed"
        }
    }
}

impl Serialize for Rows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = Self::serialize(self, serde_json::value::Serializer)
            .map_err(serde::ser::Error::custom)?;
        super::json::round(&mut value);
        value.serialize(serializer)
    }
}

impl Rows {
    /// The systems under test with their versions, each once.
    #[must_use]
    pub fn systems(&self) -> Vec<String> {
        let mut systems: Vec<String> = Vec::new();
        for system in self.variants.iter().map(Variant::system_and_version) {
            if !systems.contains(&system) {
                systems.push(system);
            }
        }
        systems
    }

    /// Every group of cells with its workload.
    pub fn groups(&self) -> impl Iterator<Item = (&Workload, &Group)> {
        self.workloads
            .iter()
            .flat_map(|w| w.groups.iter().map(move |g| (w, g)))
    }

    /// Every cell on every variant.
    pub fn results(&self) -> impl Iterator<Item = &Results> {
        self.groups()
            .flat_map(|(_, g)| &g.cells)
            .flat_map(|c| &c.results)
    }
}

impl Group {
    /// Where a cell lies on the axis.
    #[must_use]
    pub fn point(&self, cell: &Cell) -> f64 {
        match self.axis {
            Axis::Threads => f64::from(cell.threads),
            Axis::Rate => cell.rate.unwrap_or_default(),
        }
    }
}
