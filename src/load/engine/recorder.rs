//! What one thread measures, second by second, without sharing anything with the others while it does.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::schedule::Schedule;
use crate::load::backend::{ErrorKind, Failure};
use crate::measurement::Latency;

/// One operation's results over some time.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Latencies of those that succeeded.
    pub(super) latency: Latency,
    /// Those that failed: how many, and what the first of them said.
    pub(super) errors: BTreeMap<ErrorKind, (u64, Cow<'static, str>)>,
}

impl Tally {
    /// Operations that failed.
    pub(super) fn failed(&self) -> u64 {
        self.errors.values().map(|(count, _)| count).sum()
    }

    /// Adds everything of `other`.
    pub(super) fn merge(&mut self, other: Self) {
        self.latency.merge(&other.latency);
        for (kind, (count, message)) in other.errors {
            self.errors.entry(kind).or_insert((0, message)).0 += count;
        }
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
        }
    }

    /// When the window ends; an operation that ends later is not recorded.
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
                let errors = &mut tally.errors;
                errors.entry(failure.kind).or_insert((0, failure.message)).0 += 1;
            }
        }
    }

    /// Hands over the last second.
    pub(super) fn finish(mut self) {
        self.hand_over(self.schedule.slots());
    }

    fn hand_over(&mut self, to: usize) {
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
