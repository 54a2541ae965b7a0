//! How long a plan will take and how much disk it needs. A rough guess before anything ran: the speeds below were
//! measured on a plain disk with two CPUs and are meant to be on the safe side. The run records how wrong it was.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Action, Plan, Step};
use crate::spec::{Dataset, Engine, Schema};

/// Rows loaded per second.
const LOAD_ROWS_PER_S: f64 = 60_000.0;
/// Bytes copied per second.
const COPY_BYTES_PER_S: f64 = 300e6;
/// What any step on a host takes at least, s: a process starts, files are flushed.
const STEP_S: f64 = 0.03;
/// What the driver takes beyond warm-up and window, s: connections, results.
const DRIVER_S: f64 = 0.2;
/// Bytes that the archive keeps of a round and of each of its seconds.
const ROUND_BYTES: u64 = 16_000;
const SECOND_BYTES: u64 = 400;

/// What a plan will cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Preparing all deployments, s.
    pub prepare_s: f64,
    /// All rounds, s.
    pub rounds_s: f64,
    /// Bytes on the hosts at the fullest moment: every deployment's data and snapshot, and one copy being restored.
    pub host_bytes: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
}

impl Estimate {
    /// Preparation and rounds, s.
    #[must_use]
    pub fn total_s(&self) -> f64 {
        self.prepare_s + self.rounds_s
    }
}

/// Estimates a whole plan.
#[must_use]
pub fn estimate(plan: &Plan) -> Estimate {
    let bytes = data_bytes(plan);
    let of = |steps: &[Step]| -> f64 { steps.iter().map(|s| step_s(s, bytes)).sum() };
    // What is there already lies on no host of the plan.
    let own = plan.deployments.iter();
    let own = own.filter(|d| d.deploy.engine != Engine::External).count();
    let deployments = u64::try_from(own).expect("deployments are few");
    Estimate {
        prepare_s: plan.deployments.iter().map(|d| of(&d.prepare)).sum(),
        rounds_s: plan.rounds.iter().map(|r| of(&r.steps)).sum(),
        host_bytes: if deployments == 0 {
            0
        } else {
            bytes * (2 * deployments + 1)
        },
        archive_bytes: plan.rounds.iter().map(|r| archive_bytes(&r.steps)).sum(),
    }
}

/// Estimates the steps of one preparation or round, s.
#[must_use]
pub fn estimate_steps(plan: &Plan, steps: &[Step]) -> f64 {
    let bytes = data_bytes(plan);
    steps.iter().map(|s| step_s(s, bytes)).sum()
}

/// Bytes of one deployment's data.
fn data_bytes(plan: &Plan) -> u64 {
    let Some(first) = plan.deployments.first() else {
        return 0;
    };
    first
        .prepare
        .iter()
        .map(|s| match &s.action {
            Action::Load(dataset) => dataset_bytes(dataset),
            Action::Deploy
            | Action::Start
            | Action::Settle(_)
            | Action::Stop
            | Action::Snapshot
            | Action::Restore
            | Action::Measure(_)
            | Action::Collect => 0,
        })
        .sum()
}

/// Bytes of a dataset on disk: rows with their indexes and what pages leave unused.
fn dataset_bytes(dataset: &Dataset) -> u64 {
    match dataset.schema() {
        Schema::Ycsb => {
            let (records, fields, length) = dataset.ycsb_shape();
            let row = u64::from(fields) * (u64::from(length) + 3) + 60;
            records.saturating_mul(row + row / 5)
        }
        Schema::Sysbench => dataset.rows().saturating_mul(240),
    }
}

fn step_s(step: &Step, bytes: u64) -> f64 {
    let copy = bytes as f64 / COPY_BYTES_PER_S;
    STEP_S
        + match &step.action {
            Action::Deploy | Action::Start | Action::Settle(_) | Action::Stop | Action::Collect => {
                0.0
            }
            Action::Load(dataset) => dataset.rows() as f64 / LOAD_ROWS_PER_S,
            Action::Snapshot | Action::Restore => copy,
            Action::Measure(m) => DRIVER_S + m.warmup.as_secs_f64() + m.duration.as_secs_f64(),
        }
}

fn archive_bytes(steps: &[Step]) -> u64 {
    let seconds: Duration = steps
        .iter()
        .map(|s| match &s.action {
            Action::Measure(m) => m.warmup.0 + m.duration.0,
            Action::Deploy
            | Action::Start
            | Action::Load(_)
            | Action::Settle(_)
            | Action::Stop
            | Action::Snapshot
            | Action::Restore
            | Action::Collect => Duration::ZERO,
        })
        .sum();
    ROUND_BYTES + seconds.as_secs() * SECOND_BYTES
}
