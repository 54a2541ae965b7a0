//! The order that a client's native driver carries out, and what it says while it works.
//! It stands here because both sides of it, the driver that writes it and the engine that reads it, lie above.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::measurement::Phase;
use crate::spec::{Dataset, Workload};
use crate::units::Duration;

/// One job of the native driver on one client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The database to talk to.
    pub target: Target,
    /// What to do there.
    pub work: Work,
    /// The seed of all keys, values and operations.
    pub seed: u64,
}

/// A database as the native driver reaches it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A SQLite file, with the pragmas that every connection sets, in order.
    Sqlite {
        /// The database file.
        path: PathBuf,
        /// Pragma names and values.
        pragmas: Vec<(String, String)>,
    },
    /// Nothing: every statement succeeds at once. Measures the driver itself.
    Null,
}

/// What a job does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Creates and fills the tables of a dataset.
    Load(Dataset),
    /// Runs a workload and measures it.
    Run(LoadRun),
}

/// One measured run of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadRun {
    /// What is run.
    pub workload: Workload,
    /// The dataset that it works on, as loaded.
    pub dataset: Dataset,
    /// Client threads, each with its own connection.
    pub threads: u32,
    /// Target rate over all threads, operations/s; `None` is closed loop.
    pub rate: Option<f64>,
    /// Load that does not count.
    pub warmup: Duration,
    /// The measurement window.
    pub duration: Duration,
    /// The folder on the client that the result's files go to; it is made when needed.
    pub output: PathBuf,
}

/// What a job says while it works, one JSON object a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// Rows loaded so far, and in all.
    Loaded {
        /// Rows written.
        rows: u64,
        /// Rows wanted.
        of: u64,
    },
    /// A second of load went by.
    Second {
        /// Warm-up or window.
        phase: Phase,
        /// Seconds since the phase began.
        second: u64,
        /// Operations that succeeded in it.
        count: u64,
        /// Operations that failed in it.
        errors: u64,
    },
}
