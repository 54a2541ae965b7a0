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
    /// Why it is not good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What a reader must know of it, each `what: where or how much`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
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
    /// Successful operations that ended in the window.
    pub count: u64,
    /// Successful operations that were in flight when the window ended; in the latencies, in no throughput.
    #[serde(default)]
    pub late: u64,
    /// Operations of an open loop that were due by the window's end and had not begun.
    #[serde(default)]
    pub unstarted: u64,
    /// Threads without a success that ended in the window.
    #[serde(default)]
    pub idle_threads: u32,
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

/// The numbers of one operation; latencies in µs, late ones included, absent without a success.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Numbers {
    /// Successful operations that ended in the window.
    pub count: u64,
    /// Successful operations that were in flight when the window ended.
    #[serde(default)]
    pub late: u64,
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
            late: load.late(),
            unstarted: load.unstarted,
            idle_threads: load.idle_threads,
            errors: load.errors(),
            client_cpu_s: load.client_cpu_s,
            all: Numbers::of(&load.all(), load.late(), errors),
            operations: load
                .operations
                .iter()
                .map(|o| {
                    let numbers = Numbers::of(&o.whole(), o.late.count(), o.errors.clone());
                    (o.name.clone(), numbers)
                })
                .collect(),
        }
    }
}

impl Numbers {
    /// The numbers of a distribution of which `late` were in flight when the window ended.
    fn of(latency: &Latency, late: u64, errors: BTreeMap<String, u64>) -> Self {
        Self {
            count: latency.count() - late,
            late,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::OperationResult;

    #[test]
    fn operations_in_flight_at_the_windows_end_are_in_the_latencies_and_in_no_throughput() {
        let (mut latency, mut late) = (Latency::new(), Latency::new());
        (0..10).for_each(|_| latency.record_us(100));
        late.record_us(9_000);
        let measured = Measured::of(&LoadResult {
            window_s: 2.0,
            operations: vec![OperationResult {
                name: "transaction".into(),
                latency,
                late,
                errors: BTreeMap::new(),
            }],
            threads: 2,
            idle_threads: 1,
            ..Default::default()
        });
        assert_eq!((measured.count, measured.late), (10, 1));
        assert!((measured.throughput - 5.0).abs() < 1e-12);
        assert_eq!(measured.idle_threads, 1);
        for numbers in [&measured.all, &measured.operations["transaction"]] {
            assert_eq!((numbers.count, numbers.late), (10, 1));
            assert!(numbers.max_us >= Some(9_000));
        }
    }
}
