//! Variants against the baseline: pairs of one cell and one repetition, and all cells of a workload together.

use std::collections::BTreeMap;

use crate::artifacts::Status;
use crate::report::metric;
use crate::report::rows::{Cell, Comparison, Group, OverallRow, Results};
use crate::spec::Metric;
use crate::statistics::{PairedRatio, overall, paired_ratio};

/// Compares every variant of a cell with the baseline.
pub(super) fn compare(results: &mut [Results], baseline: &str) {
    let Some(base) = results.iter().find(|r| r.variant == baseline).cloned() else {
        return;
    };
    for other in results.iter_mut().filter(|r| r.variant != baseline) {
        other.comparison = metric::ALL
            .into_iter()
            .map(|m| (m, comparison(&base, other, m)))
            .collect();
    }
}

fn comparison(base: &Results, other: &Results, metric: Metric) -> Comparison {
    let (before, after) = (by_repetition(base, metric), by_repetition(other, metric));
    let common: Vec<u32> = before
        .keys()
        .filter(|r| after.contains_key(r))
        .copied()
        .collect();
    let values: Vec<(f64, f64)> = common.iter().map(|r| (before[r], after[r])).collect();
    let paired = paired_ratio(&values).ok();
    let dropped = dropped(base, other);
    let quotient = quotient(base, other, metric);
    Comparison {
        thin: thin(base, &common, metric) || thin(other, &common, metric),
        apart: paired
            .as_ref()
            .zip(quotient)
            .is_some_and(|(p, quotient)| apart(quotient, p)),
        quotient,
        n: common.len(),
        ratio: paired.as_ref().map(|p| p.ratio),
        min: paired.as_ref().map(|p| p.min),
        max: paired.as_ref().map(|p| p.max),
        said: said(common.len(), dropped, paired.is_some()),
        pairs: paired
            .map(|p| common.into_iter().zip(p.pairs).collect())
            .unwrap_or_default(),
        dropped,
    }
}

fn thin(results: &Results, repetitions: &[u32], metric: Metric) -> bool {
    let used = results.rounds.iter();
    used.filter(|r| repetitions.contains(&r.repetition))
        .any(|r| r.thin.contains(&metric))
}

/// The values of both sides over rounds, divided: what a reader of a table would compute.
fn quotient(base: &Results, other: &Results, metric: Metric) -> Option<f64> {
    let before = base.summary.get(&metric)?.value;
    let after = other.summary.get(&metric)?.value;
    (before > 0.0).then(|| after / before)
}

/// Differences that three digits do not show are none.
const VISIBLE: f64 = 0.005;

/// Whether the quotient of the values says something else than the pairs: it lies on the other side of 1 than their ratio,
/// or outside their range.
fn apart(quotient: f64, paired: &PairedRatio) -> bool {
    let other_side = (quotient - 1.0) * (paired.ratio - 1.0) < 0.0
        && (quotient / paired.ratio).ln().abs() > VISIBLE;
    let outside =
        quotient < paired.min * (1.0 - VISIBLE) || quotient > paired.max * (1.0 + VISIBLE);
    other_side || outside
}

fn by_repetition(results: &Results, metric: Metric) -> BTreeMap<u32, f64> {
    results
        .rounds
        .iter()
        .filter_map(|r| Some((r.repetition, *r.values.get(&metric)?)))
        .collect()
}

/// Repetitions of which one side is good and the other is not.
fn dropped(base: &Results, other: &Results) -> usize {
    let lost = |s| matches!(s, Some(Status::Failed | Status::Invalid | Status::Skipped));
    let good = |s| s == Some(Status::Ok);
    base.rounds
        .iter()
        .filter_map(|b| {
            let o = other.rounds.iter().find(|o| o.repetition == b.repetition)?;
            Some((b.status, o.status))
        })
        .filter(|(b, o)| good(*b) && lost(*o) || lost(*b) && good(*o))
        .count()
}

fn said(pairs: usize, dropped: usize, has_ratio: bool) -> String {
    let mut text = match pairs {
        0 => "no pair of good rounds".to_owned(),
        _ if !has_ratio => "no ratio: a value is 0".to_owned(),
        1 => "one round each: nothing can be said about noise".to_owned(),
        2 => "two rounds: both ratios, no verdict".to_owned(),
        n => format!("range of {n} rounds; no inference yet"),
    };
    if dropped > 0 {
        let pairs = if dropped == 1 { "pair" } else { "pairs" };
        text.push_str(&format!(
            "; {dropped} {pairs} left out, one side is not good"
        ));
    }
    text
}

/// Every variant against the baseline over all cells, from the repetitions that have a pair in every cell. Cells of an open
/// loop say something of throughput only where a side missed the target rate, and of latency only where both kept it.
pub(super) fn over_cells(groups: &[Group], baseline: &str) -> Vec<OverallRow> {
    let cells: Vec<&Cell> = groups.iter().flat_map(|g| &g.cells).collect();
    let Some(first) = cells.first() else {
        return Vec::new();
    };
    let base = first.results.iter().position(|r| r.variant == baseline);
    let mut rows = Vec::new();
    for (at, results) in first.results.iter().enumerate() {
        for metric in results.comparison.keys() {
            let used: Vec<&Cell> = cells
                .iter()
                .filter(|c| speaks(c, [base.unwrap_or(at), at], *metric))
                .copied()
                .collect();
            rows.extend(over(&used, at, *metric).map(|row| OverallRow {
                left_out: cells.len() - used.len(),
                ..row
            }));
        }
    }
    rows
}

fn speaks(cell: &Cell, sides: [usize; 2], metric: Metric) -> bool {
    let missed = sides.iter().any(|at| cell.results[*at].missed);
    match metric {
        _ if cell.rate.is_none() => true,
        Metric::Throughput => missed,
        Metric::Mean | Metric::P50 | Metric::P95 | Metric::P99 | Metric::Max => !missed,
    }
}

fn over(cells: &[&Cell], at: usize, metric: Metric) -> Option<OverallRow> {
    let comparisons: Vec<&Comparison> = cells
        .iter()
        .map(|c| &c.results[at].comparison[&metric])
        .collect();
    let columns: Vec<BTreeMap<u32, f64>> = comparisons
        .iter()
        .map(|c| c.pairs.iter().copied().collect())
        .collect();
    Some(OverallRow {
        variant: cells.first()?.results[at].variant.clone(),
        metric,
        overall: overall(&complete(&columns)).ok()?,
        thin: comparisons.iter().filter(|c| c.thin).count(),
        left_out: 0,
    })
}

/// `[round][cell]` of the repetitions that every cell has.
fn complete(columns: &[BTreeMap<u32, f64>]) -> Vec<Vec<f64>> {
    let repetitions = columns.first().into_iter().flat_map(BTreeMap::keys);
    repetitions
        .filter_map(|r| columns.iter().map(|c| c.get(r).copied()).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_depends_on_the_number_of_pairs() {
        assert_eq!(said(0, 0, false), "no pair of good rounds");
        assert_eq!(
            said(1, 0, true),
            "one round each: nothing can be said about noise"
        );
        assert_eq!(said(2, 0, true), "two rounds: both ratios, no verdict");
        assert_eq!(
            said(3, 1, true),
            "range of 3 rounds; no inference yet; 1 pair left out, one side is not good"
        );
        assert_eq!(said(2, 0, false), "no ratio: a value is 0");
    }

    #[test]
    fn values_that_contradict_the_ratio_beside_them_are_found() {
        let paired = |pairs: &[(f64, f64)]| paired_ratio(pairs).unwrap();
        // Pairs of 0.90, 0.95 and 1.10: their geometric mean is 0.980.
        let mixed = paired(&[(100.0, 90.0), (100.0, 95.0), (100.0, 110.0)]);
        assert!(apart(1.05, &mixed), "on the other side of 1");
        assert!(!apart(0.97, &mixed));
        assert!(apart(0.85, &mixed), "outside the pairs");
        let close = paired(&[(1000.0, 1001.0), (1000.0, 1002.0)]);
        assert!(!apart(0.9995, &close), "no reader can see that");
    }

    #[test]
    fn only_repetitions_that_every_cell_has_count_over_all_cells() {
        let columns = [
            BTreeMap::from([(1, 2.0), (2, 3.0), (3, 4.0)]),
            BTreeMap::from([(1, 5.0), (3, 6.0)]),
        ];
        assert_eq!(complete(&columns), [[2.0, 5.0], [4.0, 6.0]]);
        assert!(complete(&[]).is_empty());
    }
}
