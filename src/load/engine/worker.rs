//! One client thread's loop.

use std::sync::atomic::{AtomicBool, Ordering};

use super::Settings;
use super::clock::Clock;
use super::recorder::Recorder;
use crate::load::backend::{Failure, Session};
use crate::load::workload::Client;

/// When a thread begins its next operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pace {
    /// As soon as the last one ended.
    Closed,
    /// At fixed times, whatever became of the last one: `first`, and every `step` from there, ns.
    Open {
        /// When the first operation is due.
        first: f64,
        /// From one operation to the next.
        step: f64,
    },
}

impl Pace {
    /// The pace of thread `n`. Open-loop threads take turns, so that together they keep an even rate.
    pub(super) fn new(settings: &Settings, n: u32) -> Self {
        match settings.rate {
            None => Self::Closed,
            Some(rate) => Self::Open {
                first: f64::from(n) * 1e9 / rate,
                step: f64::from(settings.threads) * 1e9 / rate,
            },
        }
    }

    /// When the operation of this number is due, counted from 0; `None` is at once.
    fn due(self, number: u64) -> Option<u64> {
        match self {
            Self::Closed => None,
            Self::Open { first, step } => Some((first + step * number as f64) as u64),
        }
    }

    /// How many operations are due before `end`, in an open loop.
    fn due_before(self, end: u64) -> u64 {
        match self {
            Self::Closed => 0,
            Self::Open { first, step } => ((end as f64 - first) / step).ceil().max(0.0) as u64,
        }
    }
}

/// Runs a thread's operations until the window ends or `stop` is set. In an open loop the time of an operation begins when
/// it was due: after a stall, those behind it are delayed, and their latencies say by how much. The operation in flight when
/// the window ends is awaited; its latency is known in full.
///
/// # Errors
/// The position of the operation and its failure, when no later one can succeed.
pub(super) fn drive<C: Clock>(
    clock: &C,
    stop: &AtomicBool,
    pace: Pace,
    (client, session): (&mut dyn Client, &mut dyn Session),
    recorder: &mut Recorder<'_>,
) -> Result<(), (usize, Failure)> {
    let end = recorder.end();
    let mut number = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        let due = pace.due(number);
        if due.is_some_and(|due| due >= end) {
            break;
        }
        // What is drawn is carried out, also past the end: an insert's key that stayed unused would be missed later.
        let operation = client.draw();
        let began = match due {
            None => clock.now(),
            Some(due) => {
                clock.wait_until(due, stop);
                due
            }
        };
        let result = client.execute(session);
        let ended = clock.now();
        if let Err(failure) = &result
            && failure.kind.is_fatal()
        {
            return Err((operation, failure.clone()));
        }
        number += 1;
        if ended >= end {
            recorder.late(operation, began, ended, result);
            break;
        }
        recorder.record(operation, began, ended, result);
    }
    recorder.unstarted(pace.due_before(end).saturating_sub(number));
    Ok(())
}

#[cfg(test)]
mod tests;
