//! Joins what the threads measured: exact sums by second and over the window. A second is closed, and its memory
//! freed, when every thread is past it.

use std::collections::BTreeMap;

use super::recorder::{Rest, Seconds, Tally};
use super::schedule::Schedule;
use crate::measurement::{Interval, LoadResult, OperationResult, Percentile, Phase};

/// The name of the intervals over all operations.
const ALL: &str = "all";

/// The sums so far.
pub(super) struct Collector<'a> {
    schedule: &'a Schedule,
    operations: &'static [&'static str],
    threads: u32,
    /// Slot -> number of threads that are in it.
    threads_in: BTreeMap<usize, u32>,
    /// The first slot that is not closed.
    next: usize,
    open: BTreeMap<usize, Vec<Tally>>,
    intervals: Vec<Interval>,
    window: Vec<Tally>,
    late: Vec<Tally>,
    unstarted: u64,
    idle_threads: u32,
}

impl<'a> Collector<'a> {
    /// Nothing yet, from `threads` threads.
    pub(super) fn new(
        schedule: &'a Schedule,
        operations: &'static [&'static str],
        threads: u32,
    ) -> Self {
        Self {
            schedule,
            operations,
            threads,
            threads_in: BTreeMap::from([(0, threads)]),
            next: 0,
            open: BTreeMap::new(),
            intervals: Vec::new(),
            window: vec![Tally::default(); operations.len()],
            late: vec![Tally::default(); operations.len()],
            unstarted: 0,
            idle_threads: 0,
        }
    }

    /// Adds a thread's second.
    pub(super) fn add(&mut self, seconds: Seconds) {
        match self.open.get_mut(&seconds.from) {
            Some(sum) => {
                let pairs = sum.iter_mut().zip(seconds.tallies);
                pairs.for_each(|(sum, tally)| sum.merge(tally));
            }
            None => drop(self.open.insert(seconds.from, seconds.tallies)),
        }
        if let Some(threads) = self.threads_in.get_mut(&seconds.from) {
            *threads -= 1;
            if *threads == 0 {
                self.threads_in.remove(&seconds.from);
            }
        }
        *self.threads_in.entry(seconds.to).or_default() += 1;
        let slowest = self.threads_in.keys().next().copied();
        self.close_until(slowest.unwrap_or_default());
    }

    /// Adds what a thread said at its end.
    pub(super) fn add_rest(&mut self, rest: Rest) {
        self.unstarted += rest.unstarted;
        self.idle_threads += u32::from(rest.idle);
        match rest.late {
            None => {}
            Some((operation, Ok(latency))) => self.late[operation].latency.record(latency),
            Some((operation, Err(failure))) => self.late[operation].fail(failure),
        }
    }

    /// The result; seconds without any operation are in it too.
    pub(super) fn finish(mut self) -> LoadResult {
        self.close_until(self.schedule.slots());
        let tallies = self.window.into_iter().zip(self.late);
        let operations = self.operations.iter().zip(tallies);
        LoadResult {
            window_s: self.schedule.window_s(),
            operations: operations.map(|(name, t)| result(name, t)).collect(),
            intervals: self.intervals,
            threads: self.threads,
            client_cpu_s: None,
            idle_threads: self.idle_threads,
            unstarted: self.unstarted,
        }
    }

    fn close_until(&mut self, slot: usize) {
        while self.next < slot {
            let empty = || vec![Tally::default(); self.operations.len()];
            let tallies = self.open.remove(&self.next).unwrap_or_else(empty);
            self.close(self.next, tallies);
            self.next += 1;
        }
    }

    fn close(&mut self, slot: usize, tallies: Vec<Tally>) {
        let (phase, second) = self.schedule.phase(slot);
        let mut all = Tally::default();
        let lines: Vec<Interval> = self
            .operations
            .iter()
            .zip(&tallies)
            .map(|(name, tally)| {
                all.merge(tally.clone());
                interval(phase, second, name, tally)
            })
            .collect();
        self.intervals.push(interval(phase, second, ALL, &all));
        self.intervals.extend(lines);
        if phase == Phase::Measure {
            let sums = self.window.iter_mut().zip(tallies);
            sums.for_each(|(sum, tally)| sum.merge(tally));
        }
    }
}

fn interval(phase: Phase, second: u64, operation: &str, tally: &Tally) -> Interval {
    let at = |percentile| tally.latency.at(percentile).unwrap_or(0);
    Interval {
        phase,
        second,
        operation: operation.to_owned(),
        count: tally.latency.count(),
        errors: tally.failed(),
        mean_us: tally.latency.mean_us(),
        p50_us: at(Percentile::P50),
        p95_us: at(Percentile::P95),
        p99_us: at(Percentile::P99),
        max_us: tally.latency.max_us().unwrap_or(0),
    }
}

/// An operation's result. What the first error of each kind said goes to the log, once, however many there were.
fn result(name: &str, (mut window, late): (Tally, Tally)) -> OperationResult {
    let mut errors = BTreeMap::new();
    window.merge_errors(late.errors);
    for (kind, (count, message)) in window.errors {
        tracing::warn!(operation = name, %kind, count, "operations failed: {message}");
        errors.insert(kind.to_string(), count);
    }
    OperationResult {
        name: name.to_owned(),
        latency: window.latency,
        late: late.latency,
        errors,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::load::backend::ErrorKind;
    use crate::load::testing::failure;

    const OPERATIONS: &[&str] = &["read", "update"];

    fn tally(latencies: &[u64], failed: u64) -> Tally {
        let mut tally = Tally::default();
        latencies.iter().for_each(|us| tally.latency.record_us(*us));
        if failed > 0 {
            let errors = (failed, "database is locked".into());
            tally.errors.insert(ErrorKind::Busy, errors);
        }
        tally
    }

    fn seconds(from: usize, to: usize, read: &[u64], update: &[u64], failed: u64) -> Seconds {
        let tallies = vec![tally(read, 0), tally(update, failed)];
        Seconds { from, to, tallies }
    }

    /// A warm-up of one second and a window of three, measured by two threads. The second thread was stuck.
    fn result() -> LoadResult {
        let schedule = Schedule::new(Duration::from_secs(1), Duration::from_secs(3));
        let mut collector = Collector::new(&schedule, OPERATIONS, 2);
        collector.add(seconds(0, 1, &[900], &[], 5));
        collector.add(seconds(1, 2, &[10, 20], &[30], 0));
        collector.add(seconds(2, 4, &[10], &[], 0));
        assert_eq!(
            collector.next, 0,
            "no second is closed before all threads are past it"
        );
        collector.add(seconds(0, 3, &[900], &[], 0));
        assert_eq!((collector.next, collector.open.len()), (3, 0));
        collector.add(seconds(3, 4, &[], &[2_000_000], 2));
        collector.add_rest(Rest {
            late: Some((0, Ok(Duration::from_secs(3)))),
            unstarted: 4,
            idle: true,
        });
        collector.add_rest(Rest {
            late: Some((1, Err(failure(ErrorKind::Busy)))),
            unstarted: 1,
            idle: false,
        });
        collector.finish()
    }

    #[test]
    fn the_window_is_the_exact_sum_of_the_threads_without_the_warmup() {
        let result = result();
        let [read, update] = &result.operations[..] else {
            panic!()
        };
        assert_eq!(read.latency, tally(&[10, 10, 20], 0).latency);
        assert_eq!(update.latency, tally(&[30, 2_000_000], 0).latency);
        assert!(read.errors.is_empty());
        assert!((result.throughput() - 5.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn what_was_in_flight_at_the_end_is_kept_apart_and_its_failures_count() {
        let result = result();
        let [read, update] = &result.operations[..] else {
            panic!()
        };
        assert_eq!(read.late, tally(&[3_000_000], 0).latency);
        assert_eq!((read.whole().count(), update.late.count()), (4, 0));
        assert_eq!(update.errors, BTreeMap::from([("busy".to_owned(), 3)]));
        assert_eq!((result.unstarted, result.idle_threads), (5, 1));
    }

    #[test]
    fn every_second_of_both_phases_has_its_lines_also_without_operations() {
        let result = result();
        let lines: Vec<_> = result
            .intervals
            .iter()
            .map(|i| (i.phase, i.second, i.operation.as_str(), i.count, i.errors))
            .collect();
        let (w, m) = (Phase::Warmup, Phase::Measure);
        assert_eq!(
            lines,
            [
                (w, 0, "all", 2, 5),
                (w, 0, "read", 2, 0),
                (w, 0, "update", 0, 5),
                (m, 0, "all", 3, 0),
                (m, 0, "read", 2, 0),
                (m, 0, "update", 1, 0),
                (m, 1, "all", 1, 0),
                (m, 1, "read", 1, 0),
                (m, 1, "update", 0, 0),
                (m, 2, "all", 1, 2),
                (m, 2, "read", 0, 0),
                (m, 2, "update", 1, 2),
            ]
        );
    }

    #[test]
    fn a_run_without_any_operation_has_its_seconds_too() {
        let schedule = Schedule::new(Duration::ZERO, Duration::from_secs(2));
        let result = Collector::new(&schedule, OPERATIONS, 1).finish();
        assert_eq!((result.intervals.len(), result.count()), (6, 0));
    }
}
