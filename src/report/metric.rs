//! What each metric is called, what its unit is, and how it is read from a histogram.

use std::collections::BTreeMap;

use super::rows::Legend;
use crate::measurement::{Latency, Percentile};
use crate::spec::Metric;

/// Every metric, in the order of tables.
pub(super) const ALL: [Metric; 6] = [
    Metric::Throughput,
    Metric::Mean,
    Metric::P50,
    Metric::P95,
    Metric::P99,
    Metric::Max,
];

/// Fewer requests than this beyond a percentile say little about it.
pub(super) const BEYOND: u64 = 10;

/// The metric's word, as an experiment spells it.
#[must_use]
pub(super) const fn word(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "throughput",
        Metric::Mean => "mean",
        Metric::P50 => "p50",
        Metric::P95 => "p95",
        Metric::P99 => "p99",
        Metric::Max => "max",
    }
}

/// The metric's name in tables.
#[must_use]
pub(super) const fn name(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "Throughput",
        Metric::Mean => "Mean latency",
        Metric::P50 => "p50 latency",
        Metric::P95 => "p95 latency",
        Metric::P99 => "p99 latency",
        Metric::Max => "Max latency",
    }
}

/// The unit of the metric's values in data files.
#[must_use]
pub(super) const fn unit(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "op/s",
        Metric::Mean | Metric::P50 | Metric::P95 | Metric::P99 | Metric::Max => "µs",
    }
}

/// The unit of the metric's values in tables for people.
#[must_use]
pub(super) const fn shown_unit(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "op/s",
        Metric::Mean | Metric::P50 | Metric::P95 | Metric::P99 | Metric::Max => "ms",
    }
}

/// What the metric is.
#[must_use]
pub(super) fn legend(metric: Metric) -> Legend {
    let over_rounds = match metric {
        Metric::Throughput => "mean of the rounds",
        Metric::Mean | Metric::P50 | Metric::P95 | Metric::P99 | Metric::Max => {
            "read from the rounds' histograms, merged"
        }
    };
    Legend {
        metric,
        name: name(metric).into(),
        unit: unit(metric).into(),
        over_rounds: over_rounds.into(),
        higher_is_better: metric == Metric::Throughput,
    }
}

/// The percentile that the metric is.
#[must_use]
pub(super) const fn percentile(metric: Metric) -> Option<Percentile> {
    match metric {
        Metric::P50 => Some(Percentile::P50),
        Metric::P95 => Some(Percentile::P95),
        Metric::P99 => Some(Percentile::P99),
        Metric::Throughput | Metric::Mean | Metric::Max => None,
    }
}

/// The latency metrics of a distribution, µs; empty without a success.
#[must_use]
pub(super) fn latencies(latency: &Latency) -> BTreeMap<Metric, f64> {
    let read = |metric| match metric {
        Metric::Throughput => None,
        Metric::Mean => (latency.count() > 0).then(|| latency.mean_us()),
        Metric::Max => latency.max_us().map(|us| us as f64),
        Metric::P50 | Metric::P95 | Metric::P99 => percentile(metric)
            .and_then(|p| latency.at(p))
            .map(|us| us as f64),
    };
    ALL.into_iter()
        .filter_map(|m| Some((m, read(m)?)))
        .collect()
}

/// The percentiles of a distribution that have too few requests beyond them.
#[must_use]
pub(super) fn thin(latency: &Latency) -> Vec<Metric> {
    ALL.into_iter()
        .filter(|m| percentile(*m).is_some_and(|p| latency.beyond(p) < BEYOND))
        .collect()
}
