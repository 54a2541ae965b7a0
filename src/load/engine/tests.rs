//! Threads: nobody starts before all are connected, and no trouble of one leaves the others waiting.

use std::sync::atomic::AtomicU32;

use super::*;
use crate::load::backend::{Connection, ErrorKind, Failure, Null, Session, Value};
use crate::load::testing::{failure, order};
use crate::load::workload;
use crate::spec::Kind;

/// A database that counts its connections and does something odd.
struct Odd {
    connections: AtomicU32,
    odd: Oddity,
}

#[derive(Clone, Copy, PartialEq)]
enum Oddity {
    /// Operations fail, fatally, when they come before this many connections.
    Expects(u32),
    /// This connection is refused.
    Refuses(u32),
    /// Opening this connection panics.
    Panics(u32),
}

impl Backend for Odd {
    fn connect(&self) -> Result<Box<dyn Connection>, Failure> {
        let n = self.connections.fetch_add(1, Ordering::SeqCst) + 1;
        assert!(self.odd != Oddity::Panics(n), "connection {n} panics");
        if self.odd == Oddity::Refuses(n) {
            return Err(failure(ErrorKind::CannotOpen));
        }
        Null.connect()
    }

    fn serial_key(&self) -> &'static str {
        Null.serial_key()
    }
}

/// A workload whose operations look whether all are connected.
struct Looking<'a>(&'a Odd);

impl Workload for Looking<'_> {
    fn operations(&self) -> &'static [&'static str] {
        &["look"]
    }

    fn statements(&self) -> Vec<String> {
        Vec::new()
    }

    fn client(&self, _: u64, _: u32) -> Box<dyn workload::Client + '_> {
        Box::new(Looking(self.0))
    }
}

impl workload::Client for Looking<'_> {
    fn draw(&mut self) -> usize {
        0
    }

    fn execute(&mut self, session: &mut dyn Session) -> Result<(), Failure> {
        let connections = self.0.connections.load(Ordering::SeqCst);
        match self.0.odd {
            Oddity::Expects(n) if connections != n => Err(failure(ErrorKind::Corrupt)),
            _ => session.query(0, &[Value::Integer(1)]).map(drop),
        }
    }
}

fn settings(threads: u32) -> Settings {
    Settings {
        threads,
        rate: None,
        warmup: Duration::ZERO,
        window: Duration::from_millis(200),
        seed: 1,
    }
}

fn run_odd(odd: Oddity) -> Result<LoadResult, LoadError> {
    let backend = Odd {
        connections: AtomicU32::new(0),
        odd,
    };
    let done = run(&settings(8), &backend, &Looking(&backend), &mut |_| {});
    done.map(|(result, _)| result)
}

#[test]
fn no_operation_runs_before_all_threads_are_connected() {
    let result = run_odd(Oddity::Expects(8)).unwrap();
    assert!(result.count() > 0);
    assert!(matches!(
        run_odd(Oddity::Expects(9)),
        Err(LoadError::Fatal { .. })
    ));
}

#[test]
fn a_connection_that_is_refused_ends_the_run_before_it_begins() {
    let error = run_odd(Oddity::Refuses(5)).unwrap_err();
    assert!(matches!(error, LoadError::Connect(_)));
}

#[test]
#[should_panic(expected = "a scoped thread panicked")]
fn a_thread_that_panics_does_not_leave_the_others_waiting() {
    let _ = run_odd(Oddity::Panics(5));
}

#[test]
fn progress_and_intervals_and_histograms_agree() {
    let mut run_order = order(Kind::YcsbA);
    run_order.dataset.records = Some(100);
    let workload = workload::open(&run_order, Null.connect().unwrap().as_mut()).unwrap();
    let mut said = (0, 0);
    let (result, _) = run(&settings(2), &Null, workload.as_ref(), &mut |progress| {
        if let Progress::Second { count, errors, .. } = progress {
            said = (said.0 + count, said.1 + errors);
        }
    })
    .unwrap();
    let all = result.intervals.iter().filter(|i| i.operation == "all");
    assert_eq!(all.map(|i| i.count).sum::<u64>(), result.count());
    // Progress looks at the clock's full seconds, the result at each operation's end.
    assert!(said.0 <= result.count() && said.1 == 0);
    assert!(result.count() > 0 && result.client_cpu_s.is_some());
}
