//! What a reader must know before trusting a number, in the order of its weight.

use std::collections::BTreeMap;

use super::results::REACHED;
use super::{durability, starved};
use crate::artifacts::Status;
use crate::report::metric;
use crate::report::number;
use crate::report::rows::{Interruption, Note, Progress, Rows, Weight};
use crate::spec::Metric;

/// The notes of a report.
pub(super) fn notes(rows: &Rows) -> Vec<Note> {
    let mut notes = Notes(Vec::new());
    progress(rows, &mut notes);
    starved::said(rows)
        .into_iter()
        .for_each(|text| notes.warn(text));
    replication(rows, &mut notes);
    failures(rows, &mut notes);
    of_rounds(rows, &mut notes);
    spec(rows, &mut notes);
    moves(rows, &mut notes);
    interruptions(rows, &mut notes);
    thin(rows, &mut notes);
    apart(rows, &mut notes);
    errors(rows, &mut notes);
    rates(rows, &mut notes);
    design(rows, &mut notes);
    durability::said(&rows.variants)
        .into_iter()
        .for_each(|text| notes.remark(text));
    let mut notes = notes.0;
    notes.sort_by_key(|n| n.weight);
    notes
}

struct Notes(Vec<Note>);

impl Notes {
    fn warn(&mut self, text: String) {
        self.0.push(Note {
            weight: Weight::Warning,
            text,
        });
    }

    fn remark(&mut self, text: String) {
        self.0.push(Note {
            weight: Weight::Remark,
            text,
        });
    }
}

fn progress(rows: &Rows, notes: &mut Notes) {
    let counts = rows.run.rounds;
    let done = format!(
        "{} of {}",
        counts.ok + counts.failed + counts.invalid,
        plural(counts.planned, "round")
    );
    match rows.run.progress {
        Progress::Finished => {}
        Progress::Running => notes.warn(format!("The run goes on: {done} done so far.")),
        Progress::Stopped => {
            let reason = rows
                .run
                .stopped
                .as_deref()
                .unwrap_or("no reason was recorded");
            notes.warn(format!(
                "The run stopped before its end ({reason}): {done} done."
            ));
        }
        Progress::Interrupted => {
            notes.warn(format!(
                "The run was interrupted before its end: {done} done."
            ));
        }
    }
    if counts.ok == 0 {
        notes.warn("There is no good round yet, so there are no numbers.".into());
    }
}

fn replication(rows: &Rows, notes: &mut Notes) {
    if rows.variants.len() < 2 {
        notes.remark("There is one variant, so nothing is compared.".into());
    }
    let most = rows.results().map(|r| r.counts.ok).max().unwrap_or(0);
    match most {
        0 => {}
        1 => notes.warn(
            "One round of each cell and variant: nothing can be said about noise. A difference may be chance.".into(),
        ),
        2 => notes.warn(
            "Two rounds of each cell and variant: both are shown, no verdict can be given.".into(),
        ),
        n => notes.remark(format!(
            "Up to {n} rounds of each cell and variant: look at their ranges; no inference is made yet."
        )),
    }
    lonely(rows, most, notes);
}

/// Comparisons that rest on fewer pairs than two although most cells have more.
fn lonely(rows: &Rows, most: usize, notes: &mut Notes) {
    let pairs = |n: usize| {
        let all = rows.results().filter(|r| r.counts.pending == 0);
        all.filter_map(|r| r.comparison.get(&Metric::Throughput))
            .filter(|c| c.n == n)
            .count()
    };
    let (none, one) = (pairs(0), pairs(1));
    if none > 0 && most > 0 {
        notes.warn(format!(
            "{} no pair of good rounds.",
            has("comparison", none)
        ));
    }
    if one > 0 && most > 1 {
        notes.warn(format!(
            "{} one pair of good rounds only: nothing can be said about noise there.",
            has("comparison", one)
        ));
    }
}

fn failures(rows: &Rows, notes: &mut Notes) {
    let counts = rows.run.rounds;
    if counts.failed + counts.invalid + counts.skipped > 0 {
        let mut lost = Vec::new();
        if counts.failed > 0 {
            lost.push(format!("{} failed", plural(counts.failed, "round")));
        }
        if counts.invalid > 0 {
            lost.push(format!("{} invalid", plural(counts.invalid, "round")));
        }
        if counts.skipped > 0 {
            lost.push(format!("{} skipped", plural(counts.skipped, "round")));
        }
        notes.warn(format!(
            "{}: listed with reasons, in no number.",
            lost.join(", ")
        ));
    }
    let retried = rows.failures.iter().filter(|f| f.retried);
    let retried: Vec<String> = retried.filter_map(|f| f.round.clone()).collect();
    if !retried.is_empty() {
        notes.remark(format!(
            "{} not good and had another attempt: {}.",
            were("attempt", retried.len()),
            named(&retried)
        ));
    }
    let again = |round: &str, attempt| {
        let mut all = rows.execution.iter();
        all.any(|a| a.round == round && a.attempt > attempt)
    };
    let cut = rows.execution.iter().filter(|a| a.status.is_none());
    let cut: Vec<String> = cut
        .filter(|a| again(&a.round, a.attempt))
        .map(|a| a.round.clone())
        .collect();
    if !cut.is_empty() {
        notes.remark(format!(
            "{} cut off with the process and had another attempt: {}.",
            were("attempt", cut.len()),
            named(&cut)
        ));
    }
}

/// What good rounds say of themselves, by what it is.
fn of_rounds(rows: &Rows, notes: &mut Notes) {
    let mut kinds: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let rounds = rows.results().flat_map(|r| &r.rounds);
    for round in rounds.filter(|r| r.status == Some(Status::Ok)) {
        for note in &round.notes {
            let (kind, more) = note.split_once(": ").unwrap_or((note, ""));
            let rounds = kinds.entry(kind).or_default();
            rounds.push(match more {
                "" => round.id.clone(),
                more => format!("{} ({more})", round.id),
            });
        }
    }
    for (kind, rounds) in kinds {
        let (first, rest) = kind.split_at(kind.chars().next().map_or(0, char::len_utf8));
        notes.warn(format!(
            "{}{rest} in {}: {}.",
            first.to_uppercase(),
            plural(rounds.len(), "round"),
            named(&rounds)
        ));
    }
}

fn interruptions(rows: &Rows, notes: &mut Notes) {
    for interruption in &rows.interruptions {
        let mut text = gap(interruption);
        if interruption.split.is_empty() {
            text.push_str(" No pair of rounds lies on both sides of it.");
            notes.remark(text);
            continue;
        }
        let pairs: Vec<String> = interruption
            .split
            .iter()
            .map(|(cell, repetition)| format!("{cell} repetition {repetition}"))
            .collect();
        let lie = if pairs.len() == 1 {
            "pair of rounds lies"
        } else {
            "pairs of rounds lie"
        };
        text.push_str(&format!(
            " {} {lie} on both sides of it, so the machine may have changed between the two: {}.",
            pairs.len(),
            named(&pairs)
        ));
        notes.warn(text);
    }
}

fn gap(interruption: &Interruption) -> String {
    format!(
        "The run stood still from {} for {} ({}), then went on.",
        number::time(interruption.stopped),
        number::duration(interruption.seconds),
        interruption
            .reason
            .as_deref()
            .unwrap_or("its process ended without a word"),
    )
}

/// The first few of some names.
pub(super) fn named(names: &[String]) -> String {
    const MOST: usize = 6;
    let shown = names[..names.len().min(MOST)].join(", ");
    match names.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn spec(rows: &Rows, notes: &mut Notes) {
    for change in &rows.spec.changes {
        notes.warn(format!(
            "The spec was changed when the run was resumed at {}: {} before it belong to the former one.",
            number::time(change.at),
            plural(change.rounds_before, "good round"),
        ));
    }
}

fn moves(rows: &Rows, notes: &mut Notes) {
    for change in &rows.spec.moves {
        notes.warn(format!(
            "Another host or program was accepted when the run was resumed at {}: {} before it ran under the former one ({}).",
            number::time(change.at),
            plural(change.rounds_before, "good round"),
            named(&change.difference),
        ));
    }
}

fn thin(rows: &Rows, notes: &mut Notes) {
    for metric in metric::ALL {
        let overs: Vec<_> = rows
            .results()
            .filter_map(|r| r.summary.get(&metric))
            .collect();
        let ratios = rows.results().filter_map(|r| r.comparison.get(&metric));
        let ratios: Vec<_> = ratios.filter(|c| c.ratio.is_some()).collect();
        let thin = overs.iter().filter(|o| o.thin).count();
        let thin_ratios = ratios.iter().filter(|c| c.thin).count();
        let mut parts = Vec::new();
        if thin > 0 {
            parts.push(format!("{thin} of {}", plural(overs.len(), "result")));
        }
        if thin_ratios > 0 {
            parts.push(format!(
                "rounds of {thin_ratios} of {}",
                plural(ratios.len(), "ratio")
            ));
        }
        if !parts.is_empty() && rows.metrics.contains(&metric) {
            notes.warn(format!(
                "Fewer than {} requests lie beyond {} in {} (marked †): they say little.",
                metric::BEYOND,
                metric::word(metric),
                parts.join(" and in "),
            ));
        }
    }
}

fn apart(rows: &Rows, notes: &mut Notes) {
    let shown = rows.results().flat_map(|r| &r.comparison);
    let apart = shown
        .filter(|(metric, c)| rows.metrics.contains(metric) && c.apart)
        .count();
    if apart > 0 {
        let (noun, follow) = if apart == 1 {
            ("ratio", "does")
        } else {
            ("ratios", "do")
        };
        notes.remark(format!(
            "{apart} {noun} (marked ‡) {follow} not follow from the values beside: a value is read from all rounds together, a \
             ratio is the mean of pairs of rounds. Where rounds or their tails differ, the two can disagree: look at the range."
        ));
    }
}

fn errors(rows: &Rows, notes: &mut Notes) {
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for (kind, n) in rows.results().flat_map(|r| &r.errors) {
        *kinds.entry(kind).or_default() += n;
    }
    if !kinds.is_empty() {
        let all: u64 = kinds.values().sum();
        let each: Vec<String> = kinds
            .iter()
            .map(|(k, n)| format!("{k}: {}", number::grouped(*n)))
            .collect();
        notes.warn(format!(
            "{} failed in good rounds ({}): in no histogram and no throughput.",
            match all {
                1 => "1 operation".into(),
                n => format!("{} operations", number::grouped(n)),
            },
            each.join(", "),
        ));
    }
}

fn rates(rows: &Rows, notes: &mut Notes) {
    let (mut missed, mut unstarted) = (Vec::new(), 0);
    for cell in rows.groups().flat_map(|(_, g)| &g.cells) {
        for result in cell.results.iter().filter(|r| r.missed) {
            missed.push(format!("{} on {}", cell.id, result.variant));
            unstarted += result
                .rounds
                .iter()
                .filter_map(|r| r.unstarted)
                .sum::<u64>();
        }
    }
    if missed.is_empty() {
        return;
    }
    let left = match unstarted {
        0 => String::new(),
        1 => " 1 operation was due at the end of its window and had not begun.".into(),
        n => format!(
            " {} operations were due at the end of their window and had not begun.",
            number::grouped(n)
        ),
    };
    notes.warn(format!(
        "{} reached less than {:.0} % of the target rate or fell behind it (marked §): {}. Latencies there grow with the length \
         of the window; they are in no summary.{left}",
        plural(missed.len(), "result"),
        REACHED * 100.0,
        named(&missed),
    ));
}

fn design(rows: &Rows, notes: &mut Notes) {
    if rows.run.order == "blocked" && rows.variants.len() > 1 {
        notes.warn(
            "The variants ran one after the other (order blocked): drift of the machine cannot be told from a difference."
                .into(),
        );
    }
    if rows.run.restore == "never" {
        notes.warn("Data was never put back: each round worked on what the last one left.".into());
    }
}

/// `1 comparison has`, `2 comparisons have`.
fn has(noun: &str, n: usize) -> String {
    format!(
        "{} {}",
        plural(n, noun),
        if n == 1 { "has" } else { "have" }
    )
}

/// `1 attempt was`, `2 attempts were`.
fn were(noun: &str, n: usize) -> String {
    let were = if n == 1 { "was" } else { "were" };
    format!("{} {were}", plural(n, noun))
}

/// `1 round`, `2 rounds`.
fn plural(n: usize, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}
