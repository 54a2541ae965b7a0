//! `rounds/<id>/result.json`: what one round came to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Status;
use crate::measurement::{Latency, LoadResult, Percentile};

/// The result of one attempt at one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundResult {
    /// The round's id.
    pub round: String,
    /// The cell's id.
    pub cell: String,
    /// The deployment, which is the variant's name.
    pub variant: String,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// How it ended.
    pub status: Status,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it began, UTC.
    pub started: jiff::Timestamp,
    /// When it ended, UTC.
    pub ended: jiff::Timestamp,
    /// Seconds that each step took, in order.
    pub steps: Vec<(String, f64)>,
    /// What was measured; absent when nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

/// The numbers of a round; latencies in µs. The histograms themselves are in `latency.hlog`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Length of the window, s.
    pub window_s: f64,
    /// Client threads.
    pub threads: u32,
    /// Successful operations per second.
    pub throughput: f64,
    /// Successful operations.
    pub count: u64,
    /// Failed operations.
    pub errors: u64,
    /// CPU time of the client during the window, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpu_s: Option<f64>,
    /// All operations together, histograms merged.
    pub all: Numbers,
    /// Each operation.
    pub operations: BTreeMap<String, Numbers>,
}

/// The numbers of one operation; latencies in µs, absent without a success.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Numbers {
    /// Successful operations.
    pub count: u64,
    /// Failed operations by kind of error.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// Mean latency.
    pub mean_us: Option<f64>,
    /// Smallest latency.
    pub min_us: Option<u64>,
    /// Median.
    pub p50_us: Option<u64>,
    /// 95th percentile.
    pub p95_us: Option<u64>,
    /// 99th percentile.
    pub p99_us: Option<u64>,
    /// 99.9th percentile.
    pub p999_us: Option<u64>,
    /// Largest latency.
    pub max_us: Option<u64>,
}

impl Measured {
    /// The numbers of a load result.
    #[must_use]
    pub fn of(load: &LoadResult) -> Self {
        let mut errors: BTreeMap<String, u64> = BTreeMap::new();
        for (kind, n) in load.operations.iter().flat_map(|o| &o.errors) {
            *errors.entry(kind.clone()).or_default() += n;
        }
        Self {
            window_s: load.window_s,
            threads: load.threads,
            throughput: load.throughput(),
            count: load.count(),
            errors: load.errors(),
            client_cpu_s: load.client_cpu_s,
            all: Numbers::of(&load.all(), errors),
            operations: load
                .operations
                .iter()
                .map(|o| (o.name.clone(), Numbers::of(&o.latency, o.errors.clone())))
                .collect(),
        }
    }
}

impl Numbers {
    fn of(latency: &Latency, errors: BTreeMap<String, u64>) -> Self {
        Self {
            count: latency.count(),
            errors,
            mean_us: (latency.count() > 0).then(|| latency.mean_us()),
            min_us: latency.min_us(),
            p50_us: latency.at(Percentile::P50),
            p95_us: latency.at(Percentile::P95),
            p99_us: latency.at(Percentile::P99),
            p999_us: latency.at(Percentile::P999),
            max_us: latency.max_us(),
        }
    }
}
