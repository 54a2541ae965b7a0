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
}

/// Runs a thread's operations until the window ends or `stop` is set. In an open loop the time of an operation begins when
/// it was due: after a stall, those behind it are late, and their latencies say by how much.
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
    loop {
        let operation = client.draw();
        let began = match pace {
            Pace::Closed => clock.now(),
            Pace::Open { first, step } => {
                let due = (first + step * number as f64) as u64;
                if due < end {
                    clock.wait_until(due, stop);
                }
                due
            }
        };
        if began >= end || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let result = client.execute(session);
        let ended = clock.now();
        if let Err(failure) = &result
            && failure.kind.is_fatal()
        {
            return Err((operation, failure.clone()));
        }
        if ended >= end {
            return Ok(());
        }
        recorder.record(operation, began, ended, result);
        number += 1;
    }
}

#[cfg(test)]
mod tests;
