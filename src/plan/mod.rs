//! The plan: a pure function from the spec to a value that `check`, `plan`, `run` and `resume` share.
//! Nothing here does I/O; every random order comes from the recorded seed.

mod build;
mod estimate;
mod job;
mod order;
mod text;
mod tool;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use build::build;
pub use estimate::{Estimate, estimate, estimate_steps};
pub use job::{Address, Job, LoadRun, Progress, Protocol, SqlTarget, Target, Tls, Work};
pub use text::text;
pub use tool::{
    Listen, Loading, Probe, Refusal, Seconds, StepRecord, Tool, ToolFile, ToolRecord, ToolStep,
    Versions,
};

use crate::spec::{Dataset, Method, Metric, OnFailure, Order, Restore, System, Workload};
use crate::units::Duration;

/// Everything that a run will do, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The format of this value.
    pub format: u32,
    /// The experiment's name.
    pub experiment: String,
    /// The hash of the resolved spec.
    pub spec: String,
    /// The seed of every random order and key.
    pub seed: u64,
    /// The order that the rounds were put in.
    pub order: Order,
    /// When data is put back.
    pub restore: Restore,
    /// How it is kept.
    pub snapshot: Method,
    /// What follows a failed round.
    pub on_failure: OnFailure,
    /// The variant that the others are compared with.
    pub baseline: String,
    /// The metrics shown.
    pub metrics: Vec<Metric>,
    /// The variants as they will be installed.
    pub deployments: Vec<Deployment>,
    /// All rounds in the order of execution.
    pub rounds: Vec<Round>,
}

impl Plan {
    /// The names of all hosts that it uses.
    #[must_use]
    pub fn hosts(&self) -> BTreeSet<String> {
        let of = |d: &Deployment| -> Vec<String> {
            d.topology
                .values()
                .flatten()
                .chain(&d.clients)
                .cloned()
                .collect()
        };
        self.deployments.iter().flat_map(of).collect()
    }
}

/// A variant as installed on its hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Deployment {
    /// The id, which is also the name of its folder; the variant's name.
    pub id: String,
    /// The system under test.
    pub system: System,
    /// The version that it must report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Role -> hosts.
    pub topology: BTreeMap<String, Vec<String>>,
    /// The hosts that run the driver.
    pub clients: Vec<String>,
    /// Component -> tunables, secrets as `${env:NAME}`.
    pub config: BTreeMap<String, BTreeMap<String, String>>,
    /// The hash of all that shapes its data: system, version, topology, config, datasets, seed.
    pub fingerprint: String,
    /// What is done once, before its first round.
    pub prepare: Vec<Step>,
}

/// One round of one cell on one deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// A stable id: the same cell, variant and repetition have the same one in any plan.
    pub id: String,
    /// The deployment it runs on.
    pub deployment: String,
    /// The cell that it is a round of.
    pub cell: Cell,
    /// Which pass over the cells, from 1.
    pub repetition: u32,
    /// Which block, from 1: with order `interleaved` the rounds of a block are one cell's, one for each variant.
    pub block: u32,
    /// What it does, in order.
    pub steps: Vec<Step>,
}

/// One workload at one point of the sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// A stable id, such as `oltp_read_write.t4`.
    pub id: String,
    /// The workload's name.
    pub workload: String,
    /// Client threads.
    pub threads: u32,
    /// Target rate, operations/s; `None` is closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
}

/// One action and the longest it may take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// What is done.
    pub action: Action,
    /// After this it is killed and has failed.
    pub limit: Duration,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Makes the deployment's empty directories, marked as its own.
    Deploy,
    /// Starts the system and reads its effective configuration back.
    Start,
    /// Loads one dataset.
    Load(Dataset),
    /// Stops the system cleanly.
    Stop,
    /// Keeps a cold copy of the data.
    Snapshot,
    /// Puts the kept copy back.
    Restore,
    /// Warms up and measures.
    Measure(Measure),
    /// Brings logs and results home.
    Collect,
}

/// The parameters of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// What is run.
    pub workload: Workload,
    /// The dataset that it works on.
    pub dataset: Dataset,
    /// Client threads.
    pub threads: u32,
    /// Target rate, operations/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Load that does not count.
    pub warmup: Duration,
    /// The measurement window.
    pub duration: Duration,
    /// The seed of this round's keys and operations; the variants of a block share it.
    pub seed: u64,
}
