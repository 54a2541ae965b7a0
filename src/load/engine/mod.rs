//! The engine: client threads that run a workload for warm-up and window, and the measurement that comes of it.
//!
//! An operation counts where it ends: one that begins in the warm-up and ends in the window counts. So the window is exactly
//! as long as asked for, and throughput is completions in it over its length. One that is in flight when the window ends is
//! awaited and recorded as late: in no throughput, but in the latencies, where it would be missed most, as it is the slow
//! ones that are in flight. Operations of an open loop that were due and had not begun by then are counted.

mod clock;
mod collector;
mod cpu;
mod gate;
mod recorder;
mod schedule;
mod worker;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use self::clock::Wall;
use self::collector::Collector;
use self::gate::Gate;
use self::recorder::{Counter, Recorder, Rest, Seconds};
use self::schedule::Schedule;
use self::worker::{Pace, drive};
use super::LoadError;
use super::backend::Backend;
use super::workload::Workload;
use crate::measurement::LoadResult;
use crate::plan::Progress;

/// The stack of a client thread; small, since there may be tens of thousands.
const STACK: usize = 512 << 10;
/// From the moment that all threads are ready to the start of the load.
const LEAD: Duration = Duration::from_millis(2);

/// How a workload is run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// Client threads.
    pub(super) threads: u32,
    /// Operations/s over all threads; `None` is closed loop.
    pub(super) rate: Option<f64>,
    /// Load that does not count.
    pub(super) warmup: Duration,
    /// The measurement window.
    pub(super) window: Duration,
    /// The seed of all streams.
    pub(super) seed: u64,
}

/// What a thread tells the engine.
enum Message {
    /// Connected, statements prepared.
    Ready,
    /// Seconds of load went by.
    Seconds(Seconds),
    /// What is left to say when the load is over.
    Rest(Rest),
    /// The thread gives up, and with it the run.
    Failed(LoadError),
    /// The thread is over, in whichever way.
    Ended,
}

/// Runs `workload` and gives what was measured, and when the window began.
///
/// # Errors
/// A connection or statement cannot be had, or an error that no later operation can survive.
pub(super) fn run(
    settings: &Settings,
    backend: &dyn Backend,
    workload: &dyn Workload,
    progress: &mut dyn FnMut(Progress),
) -> Result<(LoadResult, SystemTime), LoadError> {
    let shared = Shared {
        settings,
        schedule: Schedule::new(settings.warmup, settings.window),
        backend,
        workload,
        statements: workload.statements(),
        gate: Gate::default(),
        stop: AtomicBool::new(false),
        counters: (0..settings.threads).map(|_| Counter::default()).collect(),
    };
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        // Whatever goes wrong below, no thread may be left waiting: the scope joins them all.
        let _ending = Ending(&shared);
        for n in 0..settings.threads {
            let (shared, sender) = (&shared, sender.clone());
            thread::Builder::new()
                .name(format!("client-{n}"))
                .stack_size(STACK)
                .spawn_scoped(scope, move || shared.client(n, &sender))
                .map_err(LoadError::Threads)?;
        }
        shared.all_ready(&receiver)?;
        shared.measure(&receiver, progress)
    })
}

/// What the threads of one run share.
struct Shared<'a> {
    settings: &'a Settings,
    schedule: Schedule,
    backend: &'a dyn Backend,
    workload: &'a dyn Workload,
    statements: Vec<String>,
    gate: Gate,
    stop: AtomicBool,
    counters: Vec<Counter>,
}

/// Lets the threads go when the run is over.
struct Ending<'a>(&'a Shared<'a>);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
        self.0.gate.close();
    }
}

/// Says that a thread is over, also when it panics.
struct Farewell<'a>(&'a Sender<Message>);

impl Drop for Farewell<'_> {
    fn drop(&mut self) {
        // The engine may be gone already after an error of another thread.
        let _ = self.0.send(Message::Ended);
    }
}

impl Shared<'_> {
    /// A client thread, from its connection to its last operation.
    fn client(&self, n: u32, sender: &Sender<Message>) {
        let _farewell = Farewell(sender);
        if let Err(error) = self.connected(n, sender) {
            self.stop.store(true, Ordering::Relaxed);
            let _ = sender.send(Message::Failed(error));
        }
    }

    fn connected(&self, n: u32, sender: &Sender<Message>) -> Result<(), LoadError> {
        let mut connection = self.backend.connect().map_err(LoadError::connect)?;
        let prepared = connection.session(&self.statements);
        let mut session = prepared.map_err(LoadError::data)?;
        let mut client = self.workload.client(self.settings.seed, n);
        let _ = sender.send(Message::Ready);
        let Some(start) = self.gate.wait() else {
            return Ok(());
        };
        thread::sleep(start.saturating_duration_since(Instant::now()));
        let mut sink = |seconds| {
            let _ = sender.send(Message::Seconds(seconds));
        };
        let operations = self.workload.operations();
        let counter = &self.counters[n as usize];
        let mut recorder = Recorder::new(&self.schedule, operations.len(), counter, &mut sink);
        let pace = Pace::new(self.settings, n);
        drive(
            &Wall::from(start),
            &self.stop,
            pace,
            (client.as_mut(), session.as_mut()),
            &mut recorder,
        )
        .map_err(|(operation, failure)| LoadError::Fatal {
            operation: operations[operation].into(),
            failure,
        })?;
        let _ = sender.send(Message::Rest(recorder.finish()));
        Ok(())
    }

    /// Waits until every thread is ready. No load starts before.
    fn all_ready(&self, receiver: &Receiver<Message>) -> Result<(), LoadError> {
        let mut waiting = self.settings.threads;
        while waiting > 0 {
            match receiver.recv().expect("the engine keeps a sender") {
                Message::Ready => waiting -= 1,
                Message::Failed(error) => return Err(error),
                Message::Ended => return Err(LoadError::Thread),
                Message::Seconds(_) | Message::Rest(_) => {
                    unreachable!("no load runs before all are ready")
                }
            }
        }
        Ok(())
    }

    /// Starts the load and gathers what the threads measure, until the last of them is over.
    fn measure(
        &self,
        receiver: &Receiver<Message>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(LoadResult, SystemTime), LoadError> {
        let (start, started) = (Instant::now() + LEAD, SystemTime::now() + LEAD);
        self.gate.open(start);
        let mut watch = Watch::new(self, start);
        let threads = self.settings.threads;
        let mut collector = Collector::new(&self.schedule, self.workload.operations(), threads);
        let (mut running, mut failed) = (threads, None);
        while running > 0 {
            match receiver.recv_timeout(watch.until_next()) {
                Ok(Message::Seconds(seconds)) => collector.add(seconds),
                Ok(Message::Rest(rest)) => collector.add_rest(rest),
                Ok(Message::Failed(error)) => failed = failed.or(Some(error)),
                Ok(Message::Ended) => running -= 1,
                Ok(Message::Ready) => unreachable!("every thread was ready before the start"),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("the engine keeps a sender"),
            }
            watch.tick(progress);
        }
        if let Some(error) = failed {
            return Err(error);
        }
        let mut result = collector.finish();
        result.client_cpu_s = watch.window_cpu();
        Ok((result, started + self.settings.warmup))
    }
}

/// What the engine does at the full seconds of the load: progress, and CPU time at both ends of the window.
struct Watch<'a> {
    shared: &'a Shared<'a>,
    start: Instant,
    slot: usize,
    seen: (u64, u64),
    cpu: [Option<f64>; 2],
}

impl<'a> Watch<'a> {
    fn new(shared: &'a Shared<'a>, start: Instant) -> Self {
        let from_start = shared.schedule.warmup_slots() == 0;
        Self {
            shared,
            start,
            slot: 0,
            seen: (0, 0),
            cpu: [from_start.then(cpu::used).flatten(), None],
        }
    }

    /// When the current second ends; far away after the last.
    fn until_next(&self) -> Duration {
        if self.slot == self.shared.schedule.slots() {
            return Duration::from_secs(3600);
        }
        let until = Duration::from_nanos(self.shared.schedule.until(self.slot));
        (self.start + until).saturating_duration_since(Instant::now())
    }

    fn tick(&mut self, progress: &mut dyn FnMut(Progress)) {
        let schedule = &self.shared.schedule;
        while self.slot < schedule.slots() && self.until_next().is_zero() {
            let (count, errors) = Counter::sum(&self.shared.counters);
            let (phase, second) = schedule.phase(self.slot);
            progress(Progress::Second {
                phase,
                second,
                count: count - self.seen.0,
                errors: errors - self.seen.1,
            });
            self.seen = (count, errors);
            self.slot += 1;
            if self.slot == schedule.warmup_slots() {
                self.cpu[0] = cpu::used();
            }
            if self.slot == schedule.slots() {
                self.cpu[1] = cpu::used();
            }
        }
    }

    fn window_cpu(&self) -> Option<f64> {
        Some((self.cpu[1]? - self.cpu[0]?).max(0.0))
    }
}

#[cfg(test)]
mod tests;
