//! What a reader must know before trusting a number, in the order of its weight.

use std::collections::BTreeMap;

use crate::report::metric;
use crate::report::number;
use crate::report::rows::{Note, Progress, Rows, Weight};
use crate::spec::Metric;

/// An open loop that reaches less than this part of its target rate is told.
const REACHED: f64 = 0.95;

/// The notes of a report.
pub(super) fn notes(rows: &Rows) -> Vec<Note> {
    let mut notes = Notes(Vec::new());
    progress(rows, &mut notes);
    replication(rows, &mut notes);
    failures(rows, &mut notes);
    spec(rows, &mut notes);
    thin(rows, &mut notes);
    errors(rows, &mut notes);
    rates(rows, &mut notes);
    design(rows, &mut notes);
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
        counts.planned - counts.pending,
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
    if counts.failed + counts.skipped > 0 {
        let mut lost = Vec::new();
        if counts.failed > 0 {
            lost.push(format!("{} failed", plural(counts.failed, "round")));
        }
        if counts.skipped > 0 {
            lost.push(format!("{} skipped", plural(counts.skipped, "round")));
        }
        notes.warn(format!(
            "{}: listed with reasons, in no number.",
            lost.join(", ")
        ));
    }
    let retried = rows.failures.iter().filter(|f| f.retried).count();
    if retried > 0 {
        notes.remark(format!(
            "{} failed and had another attempt.",
            plural(retried, "attempt")
        ));
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

fn thin(rows: &Rows, notes: &mut Notes) {
    for metric in metric::ALL {
        let (mut thin, mut all) = (0, 0);
        for result in rows.results() {
            if let Some(over) = result.summary.get(&metric) {
                all += 1;
                thin += usize::from(over.thin);
            }
        }
        if thin > 0 && rows.metrics.contains(&metric) {
            notes.warn(format!(
                "{} of {thin} of {} has fewer than {} requests beyond it (marked †): it says little.",
                metric::word(metric),
                plural(all, "result"),
                metric::BEYOND,
            ));
        }
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
    let short = rows
        .groups()
        .flat_map(|(_, g)| &g.cells)
        .flat_map(|c| c.results.iter().map(move |r| (c.rate, r)))
        .filter(|(rate, result)| {
            let reached = result.summary.get(&Metric::Throughput).map(|o| o.value);
            matches!((rate, reached), (Some(target), Some(reached)) if reached < REACHED * target)
        })
        .count();
    if short > 0 {
        notes.warn(format!(
            "{} reached less than {:.0} % of the target rate: latencies there grow with the length of the window.",
            plural(short, "result"),
            REACHED * 100.0,
        ));
    }
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

/// `1 round`, `2 rounds`.
fn plural(n: usize, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}
