//! What one thread measures, second by second, without sharing anything with the others while it does.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::schedule::Schedule;
use crate::load::backend::{ErrorKind, Failure};
use crate::measurement::Latency;

/// Failures by kind: how many, and what the first of them said.
pub(super) type Errors = BTreeMap<ErrorKind, (u64, Cow<'static, str>)>;

/// One operation's results over some time.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Latencies of those that succeeded.
    pub(super) latency: Latency,
    /// Those that failed.
    pub(super) errors: Errors,
}

impl Tally {
    /// Operations that failed.
    pub(super) fn failed(&self) -> u64 {
        self.errors.values().map(|(count, _)| count).sum()
    }

    /// Adds everything of `other`.
    pub(super) fn merge(&mut self, other: Self) {
        self.latency.merge(&other.latency);
        self.merge_errors(other.errors);
    }

    /// Adds failures of another tally.
    pub(super) fn merge_errors(&mut self, errors: Errors) {
        for (kind, (count, message)) in errors {
            self.errors.entry(kind).or_insert((0, message)).0 += count;
        }
    }

    /// Adds a failure.
    pub(super) fn fail(&mut self, failure: Failure) {
        let errors = &mut self.errors;
        errors.entry(failure.kind).or_insert((0, failure.message)).0 += 1;
    }
}

/// What a thread did in slot `from`; it is in slot `to` now, and did nothing in those between.
#[derive(Debug)]
pub(super) struct Seconds {
    pub(super) from: usize,
    pub(super) to: usize,
    /// By operation.
    pub(super) tallies: Vec<Tally>,
}

/// What a thread has to say when its load is over.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// The operation that was in flight when the window ended, and what became of it.
    pub(super) late: Option<(usize, Result<Duration, Failure>)>,
    /// Operations that were due by the window's end and had not begun.
    pub(super) unstarted: u64,
    /// Whether none of its operations succeeded in the window.
    pub(super) idle: bool,
}

/// A thread's operations so far, for those who watch. On a cache line of its own, written by one thread only.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Counter {
    succeeded: AtomicU64,
    failed: AtomicU64,
}

impl Counter {
    fn add(counter: &AtomicU64) {
        // There is one writer: a load and a store cost less than an atomic addition.
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Operations that succeeded and that failed, over all threads.
    pub(super) fn sum(counters: &[Self]) -> (u64, u64) {
        counters.iter().fold((0, 0), |(succeeded, failed), c| {
            (
                succeeded + c.succeeded.load(Ordering::Relaxed),
                failed + c.failed.load(Ordering::Relaxed),
            )
        })
    }
}

/// One thread's record of the current second; finished seconds go to the sink.
pub(super) struct Recorder<'a> {
    schedule: &'a Schedule,
    counter: &'a Counter,
    sink: &'a mut dyn FnMut(Seconds),
    slot: usize,
    until: u64,
    tallies: Vec<Tally>,
    rest: Rest,
}

impl<'a> Recorder<'a> {
    /// A record of `operations` operations, from the load's start.
    pub(super) fn new(
        schedule: &'a Schedule,
        operations: usize,
        counter: &'a Counter,
        sink: &'a mut dyn FnMut(Seconds),
    ) -> Self {
        Self {
            schedule,
            counter,
            sink,
            slot: 0,
            until: schedule.until(0),
            tallies: vec![Tally::default(); operations],
            rest: Rest {
                idle: true,
                ..Rest::default()
            },
        }
    }

    /// When the window ends; an operation that ends later is late.
    pub(super) fn end(&self) -> u64 {
        self.schedule.end()
    }

    /// Records an operation that began, or was due, at `began` and ended at `ended`, before the window's end.
    pub(super) fn record(
        &mut self,
        operation: usize,
        began: u64,
        ended: u64,
        result: Result<(), Failure>,
    ) {
        if ended >= self.until {
            self.hand_over(self.schedule.slot(ended));
        }
        let tally = &mut self.tallies[operation];
        match result {
            Ok(()) => {
                Counter::add(&self.counter.succeeded);
                let latency = ended.saturating_sub(began);
                tally.latency.record(Duration::from_nanos(latency));
            }
            Err(failure) => {
                Counter::add(&self.counter.failed);
                tally.fail(failure);
            }
        }
    }

    /// Records the operation that was in flight when the window ended.
    pub(super) fn late(
        &mut self,
        operation: usize,
        began: u64,
        ended: u64,
        result: Result<(), Failure>,
    ) {
        let latency = Duration::from_nanos(ended.saturating_sub(began));
        self.rest.late = Some((operation, result.map(|()| latency)));
    }

    /// Says how many operations were due by the window's end and had not begun.
    pub(super) fn unstarted(&mut self, operations: u64) {
        self.rest.unstarted = operations;
    }

    /// Hands over the last second; gives what is in no second.
    pub(super) fn finish(mut self) -> Rest {
        self.hand_over(self.schedule.slots());
        self.rest
    }

    fn hand_over(&mut self, to: usize) {
        if self.slot >= self.schedule.warmup_slots() {
            self.rest.idle &= self.tallies.iter().all(|t| t.latency.count() == 0);
        }
        let fresh = vec![Tally::default(); self.tallies.len()];
        (self.sink)(Seconds {
            from: self.slot,
            to,
            tallies: std::mem::replace(&mut self.tallies, fresh),
        });
        self.slot = to;
        self.until = self.schedule.until(to);
    }
}
