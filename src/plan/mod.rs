//! The plan: a pure function from the spec to a value that `check`, `plan`, `run` and `resume` share.
//! Nothing here does I/O; every random order comes from the recorded seed.

mod build;
mod estimate;
mod instance;
mod job;
mod order;
mod text;
mod tool;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use build::{BALANCER, build};
pub use estimate::{Estimate, estimate, estimate_steps};
pub use instance::{COMMON, Instance};
pub use job::{Address, Job, LoadRun, Progress, Protocol, SqlTarget, Target, Tls, Work};
pub use text::text;
pub use tool::{
    Listen, Loading, Probe, Refusal, Seconds, StepRecord, Tool, ToolFile, ToolRecord, ToolStep,
    Versions,
};

use crate::spec::{
    Dataset, Deploy, Method, Metric, OnFailure, Order, Packages, Restore, Settle, User, Workload,
};
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
            let instances = d.instances.iter().map(|i| &i.host);
            d.topology
                .values()
                .flatten()
                .chain(&d.clients)
                .chain(instances)
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
    pub system: String,
    /// The version that it must report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Role -> hosts.
    pub topology: BTreeMap<String, Vec<String>>,
    /// The hosts that run the driver.
    pub clients: Vec<String>,
    /// Component -> tunables, secrets as `${env:NAME}`.
    pub config: BTreeMap<String, BTreeMap<String, String>>,
    /// Its processes; none where the system is built into assay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<Instance>,
    /// Global variables that are set, secrets as `${env:NAME}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, serde_json::Value>,
    /// Users that are made, passwords as `${env:NAME}`; the first is the drivers'.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<User>,
    /// The database that drivers use, if it is not the system's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Where its packages come from.
    #[serde(default)]
    pub packages: Packages,
    /// The account on the hosts that its processes run as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_as: Option<String>,
    /// Whether its components and clients speak TLS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tls: bool,
    /// Who deploys it.
    #[serde(default)]
    pub deploy: Deploy,
    /// How TiUP reaches its hosts, where that deploys; the port and the user are ssh's own if they are not given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub logins: BTreeMap<String, Login>,
    /// What stands between clients and the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balancer: Option<Balancer>,
    /// The hash of all that shapes its data: system, version, topology, config, datasets, seed.
    pub fingerprint: String,
    /// What is done once, before its first round.
    pub prepare: Vec<Step>,
}

/// How a host is reached over SSH by another program than assay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    /// Its address.
    pub address: String,
    /// The port of sshd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The user to log in as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The private key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_file: Option<String>,
}

/// What stands between clients and a system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Balancer {
    /// The system of its instance, or nothing where it is there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Where it is, when it is there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The most that the connections of two servers may differ, as a share of their mean.
    pub uneven: f64,
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
    /// Waits until the system is quiet.
    Settle(Settle),
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
