//! The loop under a clock that only the operations move.

use std::cell::Cell;
use std::time::Duration;

use super::*;
use crate::load::backend::{ErrorKind, Null};
use crate::load::engine::recorder::{Counter, Rest, Seconds, Tally};
use crate::load::engine::schedule::Schedule;
use crate::load::testing::failure;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// A clock that stands still between operations.
#[derive(Default)]
struct Hand(Cell<u64>);

impl Clock for Hand {
    fn now(&self) -> u64 {
        self.0.get()
    }

    fn wait_until(&self, at: u64, _: &AtomicBool) {
        self.0.set(self.0.get().max(at));
    }
}

/// Operations that take as long, and fail, as a function of their number says.
struct Scripted<'a, F> {
    clock: &'a Hand,
    number: u64,
    script: F,
}

impl<F: FnMut(u64) -> (u64, Option<ErrorKind>)> Client for Scripted<'_, F> {
    fn draw(&mut self) -> usize {
        0
    }

    fn execute(&mut self, _: &mut dyn Session) -> Result<(), Failure> {
        let (time, failed) = (self.script)(self.number);
        self.number += 1;
        self.clock.0.set(self.clock.now() + time);
        failed.map_or(Ok(()), |kind| Err(failure(kind)))
    }
}

struct Outcome {
    seconds: Vec<Seconds>,
    rest: Rest,
    ended: Result<(), (usize, Failure)>,
    started: u64,
    schedule: Schedule,
}

impl Outcome {
    /// The sums of the slots that `which` takes.
    fn sum(&self, which: impl Fn(usize) -> bool) -> Tally {
        let mut sum = Tally::default();
        let wanted = self.seconds.iter().filter(|s| which(s.from));
        wanted.for_each(|s| sum.merge(s.tallies[0].clone()));
        sum
    }

    fn window(&self) -> Tally {
        self.sum(|slot| slot >= self.schedule.warmup_slots())
    }
}

/// Runs one thread for a warm-up and a window, in ms.
fn run(
    pace: Pace,
    (warmup, window): (u64, u64),
    script: impl FnMut(u64) -> (u64, Option<ErrorKind>),
) -> Outcome {
    let schedule = Schedule::new(Duration::from_millis(warmup), Duration::from_millis(window));
    let (clock, counter, stop) = (Hand::default(), Counter::default(), AtomicBool::new(false));
    let mut seconds = Vec::new();
    let mut sink = |s| seconds.push(s);
    let mut recorder = Recorder::new(&schedule, 1, &counter, &mut sink);
    let mut client = Scripted {
        clock: &clock,
        number: 0,
        script,
    };
    let both: (&mut dyn Client, &mut dyn Session) = (&mut client, &mut Null);
    let ended = drive(&clock, &stop, pace, both, &mut recorder);
    let rest = recorder.finish();
    Outcome {
        rest,
        started: client.number,
        seconds,
        ended,
        schedule,
    }
}

fn every_ms() -> Pace {
    Pace::Open {
        first: 0.0,
        step: MS as f64,
    }
}

/// 100 µs each, but number 100 takes half a second.
fn stalling(number: u64) -> (u64, Option<ErrorKind>) {
    (if number == 100 { 500 * MS } else { 100 * US }, None)
}

fn slower_than(tally: &Tally, us: u64) -> u64 {
    let buckets = tally.latency.buckets();
    buckets
        .filter(|(value, _)| *value > us)
        .map(|(_, count)| count)
        .sum()
}

#[test]
fn in_an_open_loop_a_stall_shows_in_every_operation_behind_it() {
    let outcome = run(every_ms(), (0, 2000), stalling);
    let window = outcome.window();
    // Due every 1 ms, done every 0.1 ms: the n-th behind the stall ends 500 - 0.9 n ms after it was due,
    // which is more than 250 ms for n = 0 to 277, and more than 0.1 ms up to n = 555.
    assert_eq!(slower_than(&window, 250_200), 278);
    assert_eq!(slower_than(&window, 110), 556);
    assert_eq!(window.latency.count(), 2000);
}

#[test]
fn in_a_closed_loop_a_stall_shows_once() {
    let outcome = run(Pace::Closed, (0, 2000), stalling);
    // Half a second is lost; the rest are 100 µs each. The last one ends with the window and is not counted.
    assert_eq!(slower_than(&outcome.window(), 110), 1);
    assert_eq!(outcome.window().latency.count(), 15_000);
}

#[test]
fn an_open_loop_that_cannot_keep_up_shows_a_lower_throughput_and_rising_latency() {
    let outcome = run(every_ms(), (0, 1000), |_| (2 * MS, None));
    let window = outcome.window();
    // Two ms each: the n-th ends at 2 n and was due at n - 1. Number 500 would end with the window.
    assert_eq!(window.latency.count(), 499);
    // That one is late, and was due at 499; the 500 behind it had not begun.
    let (operation, latency) = outcome.rest.late.unwrap();
    assert_eq!(
        (operation, latency.unwrap()),
        (0, Duration::from_millis(501))
    );
    assert_eq!(outcome.rest.unstarted, 500);
    let last = window.latency.max_us().unwrap();
    assert!(last.abs_diff(500_000) < 500, "{last}");
}

#[test]
fn threads_of_an_open_loop_take_turns() {
    let settings = Settings {
        threads: 4,
        rate: Some(1000.0),
        warmup: Duration::ZERO,
        window: Duration::ZERO,
        seed: 0,
    };
    let mut due: Vec<u64> = Vec::new();
    for n in 0..4 {
        let pace = Pace::new(&settings, n);
        due.extend((0..5).map(|number| pace.due(number).unwrap()));
    }
    due.sort_unstable();
    assert_eq!(due, (0..20).map(|k| k * MS).collect::<Vec<_>>());
}

#[test]
fn the_warmup_is_left_out_and_an_operation_counts_where_it_ends() {
    // 300 ms each; the window goes from 1000 to 2000 ms. Ends at 1200, 1500 and 1800 count: the first of these began in
    // the warm-up. The one that ends at 2100 is awaited and not followed; it is late, with its whole latency.
    let outcome = run(Pace::Closed, (1000, 1000), |_| (300 * MS, None));
    assert_eq!(outcome.window().latency.count(), 3);
    assert_eq!(outcome.sum(|slot| slot == 0).latency.count(), 3);
    assert_eq!(outcome.started, 7);
    let (_, latency) = outcome.rest.late.unwrap();
    assert_eq!(latency.unwrap(), Duration::from_millis(300));
    assert!(!outcome.rest.idle && outcome.rest.unstarted == 0);
}

#[test]
fn a_thread_that_waits_all_through_the_window_is_idle_and_its_operation_late() {
    let outcome = run(Pace::Closed, (1000, 1000), |number| {
        (if number == 3 { 5000 * MS } else { 300 * MS }, None)
    });
    assert_eq!(outcome.window().latency.count(), 0);
    assert!(outcome.rest.idle);
    let (_, latency) = outcome.rest.late.unwrap();
    assert_eq!(latency.unwrap(), Duration::from_millis(5000));
}

#[test]
fn a_late_operation_that_fails_is_an_error() {
    let outcome = run(Pace::Closed, (0, 1000), |_| {
        (600 * MS, Some(ErrorKind::Busy))
    });
    assert_eq!(outcome.window().errors[&ErrorKind::Busy].0, 1);
    let (_, late) = outcome.rest.late.unwrap();
    assert_eq!(late.unwrap_err().kind, ErrorKind::Busy);
}

#[test]
fn an_open_loop_that_keeps_up_leaves_nothing_unstarted() {
    let outcome = run(every_ms(), (0, 1000), |_| (100 * US, None));
    assert_eq!(outcome.window().latency.count(), 1000);
    assert!(outcome.rest.late.is_none() && outcome.rest.unstarted == 0);
}

#[test]
fn slow_warmup_operations_do_not_taint_the_window() {
    let outcome = run(Pace::Closed, (1000, 1000), |number| {
        (if number < 2 { 400 * MS } else { 10 * MS }, None)
    });
    assert!(outcome.window().latency.max_us() < Some(10_100));
}

#[test]
fn failures_are_counted_by_kind_beside_the_latencies() {
    let outcome = run(Pace::Closed, (0, 1000), |number| {
        let kind = match number % 10 {
            0 => Some(ErrorKind::Busy),
            1 => Some(ErrorKind::Other(1)),
            _ => None,
        };
        // Failures are fast: as throughput they would make a broken database look quick.
        (if kind.is_some() { US } else { MS }, kind)
    });
    let window = outcome.window();
    let count = |kind| window.errors[&kind].0;
    assert_eq!(
        (count(ErrorKind::Busy), count(ErrorKind::Other(1))),
        (125, 125)
    );
    assert!(window.latency.count() < 1000 && window.latency.min_us() >= Some(1000));
}

#[test]
fn a_run_whose_operations_all_fail_ends_at_its_time() {
    let outcome = run(Pace::Closed, (100, 900), |_| (MS, Some(ErrorKind::Locked)));
    assert!(outcome.ended.is_ok());
    assert_eq!(
        (outcome.window().latency.count(), outcome.started),
        (0, 1000)
    );
}

#[test]
fn a_fatal_failure_ends_the_thread_at_once() {
    for kind in [ErrorKind::Full, ErrorKind::Corrupt, ErrorKind::CannotOpen] {
        let outcome = run(Pace::Closed, (0, 1000), |number| {
            (MS, (number == 5).then_some(kind))
        });
        assert_eq!(outcome.ended.unwrap_err().1.kind, kind);
        assert_eq!(outcome.started, 6);
    }
}

#[test]
fn seconds_without_an_operation_are_skipped_in_one_step() {
    let outcome = run(Pace::Closed, (0, 10_000), |number| {
        (if number == 1 { 7000 * MS } else { 1500 * MS }, None)
    });
    let steps: Vec<_> = outcome.seconds.iter().map(|s| (s.from, s.to)).collect();
    assert_eq!(steps, [(0, 1), (1, 8), (8, 10)]);
}
