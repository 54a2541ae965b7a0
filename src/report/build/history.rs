//! What the event log tells: the order of execution, failures, changes of the spec.

use std::collections::{BTreeMap, BTreeSet};

use crate::artifacts::{Entry, Event, Run, Status};
use crate::plan;
use crate::report::rows::{Attempt, Failure, HostChange, Interruption, Rows, SpecChange};

/// Every attempt at a round of the plan in force, in the order of execution.
pub(super) fn execution(run: &Run) -> Vec<Attempt> {
    let planned = planned(run);
    let mut attempts: Vec<Attempt> = Vec::new();
    for entry in &run.events {
        match &entry.event {
            Event::RoundStarted { round, attempt } => {
                let Some(plan) = planned.get(round.as_str()) else {
                    continue;
                };
                attempts.push(Attempt {
                    position: attempts.len() + 1,
                    at: entry.at,
                    round: round.clone(),
                    cell: plan.cell.id.clone(),
                    variant: plan.deployment.clone(),
                    repetition: plan.repetition,
                    attempt: *attempt,
                    status: None,
                    seconds: None,
                });
            }
            Event::RoundFinished {
                round,
                attempt,
                status,
                ..
            } => {
                let begun = |a: &&mut Attempt| a.round == *round && a.attempt == *attempt;
                if let Some(found) = attempts.iter_mut().rev().find(begun) {
                    found.status = Some(*status);
                    found.seconds = Some(entry.at.duration_since(found.at).as_secs_f64());
                }
            }
            _ => {}
        }
    }
    attempts
}

/// Deployments that failed for good, attempts that failed or are invalid, rounds that were skipped.
pub(super) fn failures(run: &Run) -> Vec<Failure> {
    let planned = planned(run);
    let deployments = run.state.unready.iter().map(|(variant, reason)| Failure {
        round: None,
        cell: None,
        variant: variant.clone(),
        repetition: None,
        attempt: None,
        status: Status::Failed,
        reason: reason.clone(),
        retried: false,
    });
    let rounds = run.events.iter().filter_map(|entry| {
        let Event::RoundFinished {
            round,
            attempt,
            status,
            retry,
            reason,
        } = &entry.event
        else {
            return None;
        };
        let plan = planned.get(round.as_str())?;
        // A skipped round gets its chance again on resume: only the outcome that stands is told.
        let outcome = run.state.rounds.get(round).and_then(|r| r.outcome.as_ref());
        let stands = || outcome.is_some_and(|(a, s, _)| (a, s) == (attempt, status));
        match status {
            Status::Ok => return None,
            Status::Skipped if !stands() => return None,
            Status::Failed | Status::Invalid | Status::Skipped => {}
        }
        Some(Failure {
            round: Some(round.clone()),
            cell: Some(plan.cell.id.clone()),
            variant: plan.deployment.clone(),
            repetition: Some(plan.repetition),
            attempt: Some(*attempt),
            status: *status,
            reason: reason
                .clone()
                .unwrap_or_else(|| "no reason was recorded".into()),
            // On resume a round may get another attempt that the first one's end did not foresee.
            retried: *retry || outcome.is_some_and(|(a, ..)| a > attempt),
        })
    });
    deployments.chain(rounds).collect()
}

/// Adds the rounds that the log calls good but that cannot be used.
pub(super) fn add_unusable_rounds(rows: &mut Rows) {
    let known = |rows: &Rows, id: &str| {
        rows.failures
            .iter()
            .any(|f| f.round.as_deref() == Some(id) && !f.retried)
    };
    let mut found = Vec::new();
    for (_, group) in rows.groups() {
        for cell in &group.cells {
            for result in &cell.results {
                let lost = result
                    .rounds
                    .iter()
                    .filter(|r| r.status == Some(Status::Failed));
                found.extend(lost.filter(|r| !known(rows, &r.id)).map(|r| Failure {
                    round: Some(r.id.clone()),
                    cell: Some(cell.id.clone()),
                    variant: result.variant.clone(),
                    repetition: Some(r.repetition),
                    attempt: r.attempt,
                    status: Status::Failed,
                    reason: r.reason.clone().unwrap_or_default(),
                    retried: false,
                }));
            }
        }
    }
    rows.failures.extend(found);
}

/// The times between the last sign of a process and the next one's start.
pub(super) fn interruptions(run: &Run, execution: &[Attempt]) -> Vec<Interruption> {
    // What a resume accepts is noted before it begins; the gap lies before that.
    let accepted = |e: &&Entry| {
        matches!(
            e.event,
            Event::SpecChanged { .. } | Event::HostChanged { .. }
        )
    };
    let events: Vec<&Entry> = run.events.iter().filter(|e| !accepted(e)).collect();
    let pairs = events.windows(2);
    let gaps = pairs.filter(|w| matches!(w[1].event, Event::RunStarted { .. }));
    gaps.map(|w| {
        let (stopped, resumed) = (w[0].at, w[1].at);
        Interruption {
            stopped,
            resumed,
            seconds: resumed.duration_since(stopped).as_secs_f64(),
            reason: match &w[0].event {
                Event::RunStopped { reason } => Some(reason.clone()),
                Event::RunFinished { .. } => Some("finished".into()),
                _ => None,
            },
            split: split(execution, resumed),
        }
    })
    .collect()
}

/// Cells and repetitions with good rounds on both sides of `moment`.
fn split(execution: &[Attempt], moment: jiff::Timestamp) -> Vec<(String, u32)> {
    let good = execution.iter().filter(|a| a.status == Some(Status::Ok));
    let (before, after): (Vec<_>, Vec<_>) = good.partition(|a| a.at < moment);
    let pair = |a: &&Attempt| (a.cell.clone(), a.repetition);
    let before: BTreeSet<_> = before.iter().map(pair).collect();
    let after: BTreeSet<_> = after.iter().map(pair).collect();
    before.intersection(&after).cloned().collect()
}

/// Every event with the good rounds of the plan that ended before it.
fn with_good_rounds(run: &Run) -> impl Iterator<Item = (usize, &Entry)> {
    let planned = planned(run);
    run.events.iter().scan(0, move |good, entry| {
        let before = *good;
        if let Event::RoundFinished {
            round,
            status: Status::Ok,
            ..
        } = &entry.event
        {
            *good += usize::from(planned.contains_key(round.as_str()));
        }
        Some((before, entry))
    })
}

/// The changes of the spec that were accepted on resume.
pub(super) fn spec_changes(run: &Run) -> Vec<SpecChange> {
    let change = |(rounds_before, entry): (usize, &Entry)| match &entry.event {
        Event::SpecChanged {
            from,
            to,
            difference,
            ..
        } => Some(SpecChange {
            at: entry.at,
            from: from.clone(),
            to: to.clone(),
            rounds_before,
            difference: difference.clone(),
        }),
        _ => None,
    };
    with_good_rounds(run).filter_map(change).collect()
}

/// The changes of host or program that were accepted on resume.
pub(super) fn host_changes(run: &Run) -> Vec<HostChange> {
    let change = |(rounds_before, entry): (usize, &Entry)| match &entry.event {
        Event::HostChanged { difference } => Some(HostChange {
            at: entry.at,
            rounds_before,
            difference: difference.clone(),
        }),
        _ => None,
    };
    with_good_rounds(run).filter_map(change).collect()
}

fn planned(run: &Run) -> BTreeMap<&str, &plan::Round> {
    run.plan.rounds.iter().map(|r| (r.id.as_str(), r)).collect()
}
