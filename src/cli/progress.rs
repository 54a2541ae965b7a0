//! How far a run is: a bar on a terminal, plain lines elsewhere. Both read the run's events.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{output, text};
use crate::artifacts::{Entry, Event, Layout, State, Status, read_result};
use crate::measurement::Phase;
use crate::plan::{Action, Measure, Plan, Progress, Round, estimate_steps};
use crate::runner::Notice;

/// Where lines go while a run is on: above the bar, or to standard error.
#[derive(Clone, Debug)]
pub(super) struct Console {
    bar: Option<ProgressBar>,
    quiet: bool,
}

impl Console {
    /// A bar if standard error is a terminal and nothing else but `plain` lines goes there.
    pub(super) fn new(quiet: bool, plain: bool) -> Self {
        let bar = (!quiet && !plain && text::is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:16} round {msg}");
            bar.set_style(style.expect("the template is valid"));
            bar
        });
        Self { bar, quiet }
    }

    /// Prints a line, also when quiet: it answers something that the user did.
    pub(super) fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| output::say(line)),
            None => output::say(line),
        }
    }

    fn line(&self, line: &str) {
        if !self.quiet {
            self.say(line);
        }
    }

    /// Takes the bar away.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The progress of one run.
pub(super) struct Watcher<'a> {
    console: Console,
    plan: &'a Plan,
    layout: &'a Layout,
    state: State,
    what: String,
    phase: String,
    /// Seconds that the rounds finished in this process took, and that they were estimated at.
    took: (f64, f64),
    /// The round in progress: its number in the plan, and when it began.
    current: Option<(usize, Instant)>,
}

impl<'a> Watcher<'a> {
    /// Watches a run from the events that it has so far.
    pub(super) fn new(
        console: Console,
        plan: &'a Plan,
        layout: &'a Layout,
        events: &[Entry],
    ) -> Self {
        let state = State::replay(events);
        if let Some(bar) = &console.bar {
            bar.set_length(plan.rounds.len() as u64);
            bar.enable_steady_tick(Duration::from_millis(250));
        }
        let (what, phase) = (String::new(), String::new());
        Self {
            console,
            plan,
            layout,
            state,
            what,
            phase,
            took: (0.0, 0.0),
            current: None,
        }
    }

    /// Shows what happened.
    pub(super) fn see(&mut self, notice: &Notice<'_>) {
        match notice {
            Notice::Event(entry) => {
                self.state.take(entry);
                self.event(entry);
            }
            Notice::Progress(progress) => self.phase = self.phase_after(progress),
            Notice::Doing(what) => (*what).clone_into(&mut self.phase),
        }
        self.draw();
    }

    fn event(&mut self, entry: &Entry) {
        match &entry.event {
            Event::PrepareStarted {
                deployment, name, ..
            } => {
                self.what = format!("deployment {deployment}");
                self.phase.clone_from(name);
            }
            Event::DeploymentReady {
                deployment,
                snapshot_method,
                bytes,
                ..
            } => {
                let size = crate::units::Bytes(*bytes);
                self.console.line(&format!(
                    "deployment {deployment} is ready: {size}, snapshot by {snapshot_method}"
                ));
            }
            Event::DeploymentFailed { deployment, reason } => {
                self.console
                    .say(&format!("deployment {deployment} failed: {reason}"));
            }
            Event::RoundStarted { round, .. } => {
                self.what = self.name_of(round);
                let place = self.plan.rounds.iter().position(|r| r.id == *round);
                self.current = place.map(|n| (n, Instant::now()));
            }
            Event::StepStarted { name, .. } => {
                self.phase = match (name.as_str(), self.measure()) {
                    ("measure", Some(m)) if m.warmup.0.is_zero() => "measure".to_owned(),
                    ("measure", Some(_)) => "warm-up".to_owned(),
                    _ => name.clone(),
                };
            }
            Event::RoundFinished {
                round,
                attempt,
                status,
                retry,
                reason,
            } => {
                self.round_ended(round, *attempt, *status, *retry, reason.as_deref());
            }
            Event::RunStarted { .. }
            | Event::SpecChanged { .. }
            | Event::HostChanged { .. }
            | Event::PrepareFinished { .. }
            | Event::StepFinished { .. }
            | Event::RunStopped { .. }
            | Event::RunFinished { .. } => {}
        }
    }

    /// The round as the bar shows it: its cell, its variant, its repetition.
    fn name_of(&self, id: &str) -> String {
        match self.plan.rounds.iter().find(|r| r.id == id) {
            Some(r) => format!("{}  {} #{}", r.cell.id, r.deployment, r.repetition),
            None => id.to_owned(),
        }
    }

    fn round_ended(
        &mut self,
        id: &str,
        attempt: u32,
        status: Status,
        retry: bool,
        reason: Option<&str>,
    ) {
        if let Some((n, began)) = self.current.take() {
            self.took.0 += began.elapsed().as_secs_f64();
            self.took.1 += estimate_steps(self.plan, &self.plan.rounds[n].steps);
        }
        let done = self.done();
        let place = format!(
            "round {done:>width$}/{}  {id}",
            self.plan.rounds.len(),
            width = digits(self.plan)
        );
        match status {
            Status::Ok => {
                let numbers = self.numbers(id, attempt);
                // On a terminal the bar says it all.
                if self.console.bar.is_none() {
                    self.console.line(&format!(
                        "{place}  {numbers}  ({} left)",
                        text::time(self.left_s())
                    ));
                }
            }
            Status::Failed | Status::Invalid => {
                let again = if retry { ", it is tried again" } else { "" };
                self.console.say(&format!(
                    "{place}  {}{again}: {}",
                    status.word(),
                    output::clean(reason.unwrap_or("for no known reason"))
                ));
            }
            Status::Skipped => self.console.line(&format!("{place}  skipped")),
        }
    }

    fn numbers(&self, id: &str, attempt: u32) -> String {
        let measured = read_result(self.layout, id, attempt)
            .ok()
            .and_then(|r| r.measured);
        measured.map_or_else(String::new, |m| {
            let p95 = m
                .all
                .p95_us
                .map_or_else(|| "-".to_owned(), |us| text::latency(us as f64));
            let errors = if m.errors > 0 {
                format!("  {} errors", m.errors)
            } else {
                String::new()
            };
            format!("{:.0} op/s  p95 {p95}{errors}", m.throughput)
        })
    }

    fn done(&self) -> usize {
        self.plan
            .rounds
            .iter()
            .filter(|r| self.state.is_done(&r.id))
            .count()
    }

    /// The estimate of what is left, corrected by how long the rounds so far took, less what the one in progress has had.
    fn left_s(&self) -> f64 {
        let left = |r: &&Round| !self.state.is_done(&r.id);
        let estimate = |r: &Round| estimate_steps(self.plan, &r.steps);
        let estimated: f64 = self.plan.rounds.iter().filter(left).map(estimate).sum();
        let pace = if self.took.1 > 0.0 {
            self.took.0 / self.took.1
        } else {
            1.0
        };
        let had = self.current.map_or(0.0, |(n, began)| {
            began
                .elapsed()
                .as_secs_f64()
                .min(pace * estimate(&self.plan.rounds[n]))
        });
        (pace * estimated - had).max(0.0)
    }

    /// The measurement of the round in progress.
    fn measure(&self) -> Option<&Measure> {
        let (n, _) = self.current?;
        self.plan.rounds[n]
            .steps
            .iter()
            .find_map(|s| match &s.action {
                Action::Measure(measure) => Some(measure),
                _ => None,
            })
    }

    /// What comes after the second or the rows that were just reported.
    fn phase_after(&self, progress: &Progress) -> String {
        match progress {
            Progress::Loaded { rows, of } => {
                format!("load {:.0} %", 100.0 * *rows as f64 / (*of).max(1) as f64)
            }
            Progress::Second {
                phase: Phase::Measure,
                second,
                ..
            } => format!("measure {} s", second + 1),
            Progress::Second {
                phase: Phase::Warmup,
                second,
                ..
            } => {
                let over = self
                    .measure()
                    .is_none_or(|m| (second + 1) as f64 >= m.warmup.as_secs_f64());
                if over {
                    "measure".to_owned()
                } else {
                    format!("warm-up {} s", second + 1)
                }
            }
        }
    }

    fn draw(&self) {
        if let Some(bar) = &self.console.bar {
            let (done, all) = (self.done(), self.plan.rounds.len());
            bar.set_position(done as u64);
            // Between rounds the one before is still what is shown.
            let at = self.current.map_or(done, |(n, _)| n + 1).max(1);
            let left = text::time(self.left_s());
            bar.set_message(format!(
                "{at}/{all}  {}  {}  {left} left",
                self.what, self.phase
            ));
        }
    }
}

fn digits(plan: &Plan) -> usize {
    plan.rounds.len().to_string().len()
}
