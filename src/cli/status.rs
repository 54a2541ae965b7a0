//! `assay status`: how far a run is, also while it goes on.

use serde::Serialize;

use super::args::{Global, OneRun};
use super::error::{Code, Failure};
use super::{output, runs, text};
use crate::artifacts::{End, Event, Run, Status};
use crate::plan::{Round, estimate_steps};

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    /// A process is carrying it out.
    Running,
    /// Every round is done.
    Finished,
    /// It was stopped.
    Stopped,
    /// Its process ended without a word.
    Crashed,
}

impl Phase {
    pub(super) fn of(run: &Run) -> Self {
        match (&run.state.end, run.live) {
            (_, true) => Self::Running,
            (Some(End::Finished), false) => Self::Finished,
            (Some(End::Stopped(_)), false) => Self::Stopped,
            (None, false) => Self::Crashed,
        }
    }

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Stopped => "stopped",
            Self::Crashed => "crashed",
        }
    }
}

/// The numbers of rounds by how they ended.
#[derive(Debug, Default, Serialize)]
pub(super) struct Counts {
    pub(super) ok: usize,
    pub(super) failed: usize,
    pub(super) invalid: usize,
    pub(super) skipped: usize,
    pub(super) planned: usize,
}

impl Counts {
    pub(super) fn of(run: &Run) -> Self {
        let mut counts = Self {
            planned: run.plan.rounds.len(),
            ..Self::default()
        };
        for round in &run.plan.rounds {
            match run
                .state
                .rounds
                .get(&round.id)
                .and_then(|r| r.outcome.as_ref())
                .map(|o| o.1)
            {
                Some(Status::Ok) => counts.ok += 1,
                Some(Status::Failed) => counts.failed += 1,
                Some(Status::Invalid) => counts.invalid += 1,
                Some(Status::Skipped) => counts.skipped += 1,
                None => {}
            }
        }
        counts
    }

    pub(super) fn done(&self) -> usize {
        self.ok + self.failed + self.invalid
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    run: &'a std::path::Path,
    experiment: &'a str,
    state: Phase,
    reason: Option<&'a str>,
    rounds: Counts,
    current: Option<(&'a str, &'a str)>,
    spent_s: f64,
    left_s: f64,
}

pub(super) fn status(global: &Global, args: &OneRun) -> Result<Code, Failure> {
    let run = runs::open(global, args.run.as_deref())?;
    let answer = Answer {
        run: run.layout.folder(),
        experiment: &run.manifest.experiment,
        state: Phase::of(&run),
        reason: match &run.state.end {
            Some(End::Stopped(reason)) => Some(reason),
            Some(End::Finished) | None => None,
        },
        rounds: Counts::of(&run),
        current: run
            .state
            .current
            .as_ref()
            .map(|c| (c.what.as_str(), c.step.as_str())),
        spent_s: run.state.spent_s,
        left_s: left_s(&run),
    };
    if global.json {
        output::json(&answer)?;
    } else {
        print(&answer)?;
    }
    Ok(Code::Fine)
}

/// The estimate of what is left, less what the round in progress has had.
fn left_s(run: &Run) -> f64 {
    let estimate = |r: &Round| estimate_steps(&run.plan, &r.steps);
    let left: f64 = run
        .plan
        .rounds
        .iter()
        .filter(|r| !run.state.is_done(&r.id))
        .map(estimate)
        .sum();
    let begun = run.events.iter().rev().find_map(|e| match &e.event {
        Event::RoundStarted { round, .. } if run.live && !run.state.is_done(round) => {
            Some((round, e.at))
        }
        _ => None,
    });
    let had = begun.map_or(0.0, |(id, at)| {
        let most = run
            .plan
            .rounds
            .iter()
            .find(|r| r.id == *id)
            .map_or(0.0, estimate);
        jiff::Timestamp::now()
            .duration_since(at)
            .as_secs_f64()
            .clamp(0.0, most)
    });
    (left - had).max(0.0)
}

fn print(answer: &Answer<'_>) -> Result<(), Failure> {
    let counts = &answer.rounds;
    output::line(format_args!("run      {}", answer.run.display()))?;
    let reason = answer
        .reason
        .map(|r| format!(": {}", output::clean(r)))
        .unwrap_or_default();
    output::line(format_args!("state    {}{reason}", answer.state.word()))?;
    output::line(format_args!(
        "rounds   {} of {} done, {} failed, {} invalid, {} skipped",
        counts.done(),
        counts.planned,
        counts.failed,
        counts.invalid,
        counts.skipped
    ))?;
    if let (Phase::Running, Some((what, step))) = (answer.state, answer.current) {
        output::line(format_args!("now      {what}, {step}"))?;
    }
    output::line(format_args!(
        "time     {} spent, about {} left",
        text::time(answer.spent_s),
        text::time(answer.left_s)
    ))?;
    if matches!(answer.state, Phase::Stopped | Phase::Crashed) {
        output::line(format_args!(
            "next     assay resume {}",
            answer.run.display()
        ))?;
    }
    Ok(())
}
