//! A report of sysbench as a load result.

use std::collections::BTreeMap;

use super::report::{Histogram, Report, Second, Unusable};
use crate::measurement::{Interval, Latency, LoadResult, OperationResult, Phase};

/// What an event of an OLTP script is.
const TRANSACTION: &str = "transaction";
/// All operations together.
const ALL: &str = "all";

/// The result of a measured run, with the seconds of a warm-up of its own.
pub(super) fn of(
    report: &Report,
    warmup: &[Second],
    client_cpu_s: Option<f64>,
) -> Result<LoadResult, Unusable> {
    let histogram = report.histogram.as_ref().ok_or(Unusable::NoHistogram)?;
    let errors = [
        ("ignored", report.ignored_errors),
        ("reconnect", report.reconnects),
    ];
    let transaction = OperationResult {
        name: TRANSACTION.into(),
        latency: latency(histogram, report.latency.max),
        // sysbench waits for what is in flight and counts it, and its time goes on until then.
        late: Latency::new(),
        errors: errors
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(kind, count)| (kind.to_owned(), count))
            .collect::<BTreeMap<_, _>>(),
    };
    let warmup = warmup.iter().flat_map(|s| intervals(Phase::Warmup, s));
    let window = report.seconds.iter();
    let window = window.flat_map(|s| intervals(Phase::Measure, s));
    Ok(LoadResult {
        window_s: report.total_s,
        operations: vec![transaction],
        intervals: warmup.chain(window).collect(),
        threads: report.threads,
        client_cpu_s,
        idle_threads: 0,
        unstarted: report.queue.unwrap_or(0),
    })
}

/// The latencies of a histogram: each counts as the centre of its bucket, but the largest is known. A centre may lie above it.
fn latency(histogram: &Histogram, max_ms: f64) -> Latency {
    let max_us = (max_ms * 1000.0).round() as u64;
    let mut latency = Latency::new();
    let mut left: u64 = histogram.iter().map(|(_, count)| count).sum();
    for (centre, count) in histogram {
        for _ in 0..*count {
            left -= 1;
            let us = if left == 0 { max_us } else { *centre };
            latency.record_us(us.min(max_us));
        }
    }
    latency
}

/// A second as two intervals, of the transactions and of all, as other drivers have them. Rates stand for counts.
fn intervals(phase: Phase, second: &Second) -> [Interval; 2] {
    let us = |percent| match second.percentile {
        (there, ms) if there == percent => (ms * 1000.0).round() as u64,
        _ => 0,
    };
    [TRANSACTION, ALL].map(|operation| Interval {
        phase,
        second: second.end.saturating_sub(1),
        operation: operation.to_owned(),
        count: second.tps.round() as u64,
        errors: second.errors.round() as u64,
        mean_us: 0.0,
        p50_us: us(50),
        p95_us: us(95),
        p99_us: us(99),
        max_us: us(100),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_latency_is_above_the_largest_and_one_is_the_largest() {
        // 8.28 ms is the largest; the centre of its bucket may be above it.
        for top in [8_130, 8_277, 8_428] {
            let latency = latency(&vec![(5_000, 3), (top, 2)], 8.28);
            assert_eq!(latency.count(), 5);
            assert_eq!(latency.max_us().map(|us| us / 10), Some(828));
            assert_eq!(latency.min_us(), Some(5_000));
        }
    }
}
