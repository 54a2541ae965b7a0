//! `results.csv`: tidy, one row for each round, operation and metric, as RFC 4180 but with line feeds.
//!
//! | column | meaning |
//! |---|---|
//! | `experiment`, `run` | the experiment's name, the run's id |
//! | `workload`, `cell`, `threads`, `rate` | what was run; `rate` in operations/s, empty in closed loop |
//! | `variant`, `repetition`, `block` | which side, which pass over the cells, which block |
//! | `position`, `started` | place in the order of execution from 1, begin in UTC |
//! | `round`, `attempt`, `status` | the round's id, the attempt that counted, `ok`, `failed`, `invalid`, `skipped` or `pending` |
//! | `operation` | `all` or one kind of operation |
//! | `metric`, `unit`, `value` | a metric of the round, its unit, its value; also `count`, `late`, `unstarted` and `errors` of `all` |
//! | `thin` | `true` when a percentile has fewer than ten requests beyond it |
//! | `reason` | why the round is not good |
//!
//! A round without a result has one row whose `operation` to `thin` are empty. A reason that begins like a formula has an
//! apostrophe before it, so that spreadsheets take it as text.

use super::metric;
use super::rows::{Cell, Results, Round, Rows, Workload};
use crate::artifacts::Status;

const HEADER: &str = "experiment,run,workload,cell,threads,rate,variant,repetition,block,position,started,round,attempt,\
                      status,operation,metric,unit,value,thin,reason\n";

/// The rows as CSV.
#[must_use]
pub(super) fn render(rows: &Rows) -> String {
    let mut text = HEADER.to_owned();
    for (workload, group) in rows.groups() {
        for cell in &group.cells {
            for result in &cell.results {
                for round in &result.rounds {
                    write_round(
                        &mut text,
                        &start(rows, workload, cell, result, round),
                        round,
                    );
                }
            }
        }
    }
    text
}

/// The columns up to the status.
fn start(rows: &Rows, workload: &Workload, cell: &Cell, result: &Results, round: &Round) -> String {
    let optional = |n: Option<String>| n.unwrap_or_default();
    [
        rows.run.experiment.clone(),
        rows.run.id.clone(),
        workload.name.clone(),
        cell.id.clone(),
        cell.threads.to_string(),
        optional(cell.rate.map(|r| r.to_string())),
        result.variant.clone(),
        round.repetition.to_string(),
        round.block.to_string(),
        optional(round.position.map(|n| n.to_string())),
        optional(round.started.map(|t| t.to_string())),
        round.id.clone(),
        optional(round.attempt.map(|n| n.to_string())),
        status(round.status).to_owned(),
    ]
    .map(|f| field(&f))
    .join(",")
}

fn write_round(text: &mut String, start: &str, round: &Round) {
    let reason = field(&harmless(round.reason.as_deref().unwrap_or_default()));
    let mut line = |columns: [&str; 5]| {
        let columns = columns.map(field).join(",");
        text.push_str(&format!("{start},{columns},{reason}\n"));
    };
    if round.status != Some(Status::Ok) {
        line(["", "", "", "", ""]);
        return;
    }
    for (name, count) in [
        ("count", round.count),
        ("late", round.late),
        ("unstarted", round.unstarted),
        ("errors", round.errors),
    ] {
        let count = count.unwrap_or_default().to_string();
        line(["all", name, "operations", &count, "false"]);
    }
    let all = ("all", &round.values, &round.thin);
    // A tool that tells no operations apart calls its only one `all`.
    let others = round.operations.iter().filter(|(name, _)| *name != "all");
    let others = others.map(|(name, o)| (name.as_str(), &o.values, &o.thin));
    for (operation, values, thin) in std::iter::once(all).chain(others) {
        for (m, value) in values {
            let thin = thin.contains(m).to_string();
            let value = plain(*value);
            line([operation, metric::word(*m), metric::unit(*m), &value, &thin]);
        }
    }
}

const fn status(status: Option<Status>) -> &'static str {
    match status {
        Some(status) => status.word(),
        None => "pending",
    }
}

/// At most three decimals: latencies are whole µs or means of them.
fn plain(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn harmless(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_separators_are_quoted_and_formulas_disarmed() {
        assert_eq!(field("a,b"), "\"a,b\"");
        assert_eq!(field("say \"x\"\n"), "\"say \"\"x\"\"\n\"");
        assert_eq!(field("plain|text"), "plain|text");
        assert_eq!(harmless("=1+1"), "'=1+1");
        assert_eq!(harmless("disk full"), "disk full");
    }

    #[test]
    fn values_carry_no_needless_zeros() {
        assert_eq!(plain(1234.0), "1234");
        assert_eq!(plain(0.1234), "0.123");
        assert_eq!(plain(0.0), "0");
    }
}
