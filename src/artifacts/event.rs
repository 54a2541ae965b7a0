//! The events of a run: one JSON object a line, flushed to disk before what it announces counts as done.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// An event and when it happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When, UTC, RFC 3339 with milliseconds.
    pub at: jiff::Timestamp,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run began, or was taken up again.
    RunStarted {
        /// The process that carries it out.
        pid: u32,
        /// The version of assay.
        version: String,
        /// Estimated time of all that is left, s.
        estimated_s: f64,
        /// Whether it was taken up again.
        resumed: bool,
    },
    /// A changed spec was accepted on resume.
    SpecChanged {
        /// The hash before.
        from: String,
        /// The hash after.
        to: String,
        /// The number of its files: `experiment.2.yaml`, `plan.2.json`, ...
        revision: u32,
        /// What differs: `rounds.duration: 1s -> 2s`.
        difference: Vec<String>,
        /// Rounds that were done on a deployment that is another one now: they are run again.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        outdated: Vec<String>,
    },
    /// A changed host or program was accepted on resume.
    HostChanged {
        /// What differs: `local: kernel: 6.1 -> 6.2`.
        difference: Vec<String>,
    },
    /// A step of a deployment's preparation began.
    PrepareStarted {
        /// The deployment.
        deployment: String,
        /// The index of the step.
        step: usize,
        /// Its name.
        name: String,
    },
    /// A step of a deployment's preparation ended.
    PrepareFinished {
        /// The deployment.
        deployment: String,
        /// The index of the step.
        step: usize,
        /// Its name.
        name: String,
        /// How long it took, s.
        seconds: f64,
        /// Why it failed; absent when it did not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A deployment is ready for rounds.
    DeploymentReady {
        /// The deployment.
        deployment: String,
        /// Its fingerprint.
        fingerprint: String,
        /// The method that its snapshot was taken with.
        snapshot_method: String,
        /// Bytes of its data.
        bytes: u64,
        /// The sha256 of its snapshot's manifest.
        snapshot: String,
        /// Its tunables as read back after its start, by component: every round must find the same.
        effective: Tunables,
    },
    /// A deployment cannot be prepared; its rounds are skipped.
    DeploymentFailed {
        /// The deployment.
        deployment: String,
        /// Why.
        reason: String,
    },
    /// A round began.
    RoundStarted {
        /// The round.
        round: String,
        /// Which attempt, from 1. Its files lie in `rounds/<round>` or, from 2 on, `rounds/<round>+<attempt>`.
        attempt: u32,
    },
    /// A step of a round began.
    StepStarted {
        /// The round.
        round: String,
        /// The step's name.
        name: String,
    },
    /// A step of a round ended.
    StepFinished {
        /// The round.
        round: String,
        /// The step's name.
        name: String,
        /// How long it took, s.
        seconds: f64,
        /// Why it failed; absent when it did not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A round ended and its files are complete on disk.
    RoundFinished {
        /// The round.
        round: String,
        /// Which attempt.
        attempt: u32,
        /// How.
        status: Status,
        /// Whether another attempt follows.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        retry: bool,
        /// Why it is not good.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The run stopped before its end; `assay resume` goes on.
    RunStopped {
        /// Why.
        reason: String,
    },
    /// Every round is done.
    RunFinished {
        /// Rounds that are good.
        ok: usize,
        /// Rounds that failed.
        failed: usize,
        /// Rounds that are invalid.
        #[serde(default, skip_serializing_if = "is_zero")]
        invalid: usize,
        /// The estimate that the run began with, s.
        estimated_s: f64,
        /// Time really spent, over all resumes, s.
        actual_s: f64,
        /// The estimate of bytes on disk, all deployments with snapshots.
        estimated_bytes: u64,
        /// Bytes on the hosts when the run ended, and the one copy that a restore makes beside them.
        actual_bytes: u64,
    },
}

/// Runs without invalid rounds say nothing of them.
const fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// Tunables and their values, by component.
pub type Tunables = BTreeMap<String, BTreeMap<String, String>>;

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It measured what it should.
    Ok,
    /// A step failed.
    Failed,
    /// It was measured under conditions that make its numbers no result: a process was started again meanwhile, or the
    /// system was not quiet in time.
    Invalid,
    /// Its deployment could not be prepared.
    Skipped,
}

impl Status {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Invalid => "invalid",
            Self::Skipped => "skipped",
        }
    }

    /// Whether an attempt that ended so is tried again where failed ones are.
    #[must_use]
    pub const fn is_lost(self) -> bool {
        match self {
            Self::Failed | Self::Invalid => true,
            Self::Ok | Self::Skipped => false,
        }
    }
}
