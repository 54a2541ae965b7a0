//! The table of a group of cells as text: one row for each cell and variant. Terminal and Markdown share it.

use super::metric;
use super::number;
use super::rows::{Cell, Comparison, Counts, Group, Over, Results, Rows};
use crate::spec::Metric;

/// Rows of text; the first `left` columns are words, the others numbers.
pub(super) struct Grid {
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// Whether a column holds words.
    pub(super) words: Vec<bool>,
}

/// How much a grid tells.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// Values and ratios.
    Short,
    /// Their ranges over rounds as well.
    Ranges,
}

/// The grid of one group.
pub(super) fn grid(rows: &Rows, group: &Group, detail: Detail) -> Grid {
    let rates = group.cells.iter().any(|c| c.rate.is_some());
    let compared = rows.variants.len() > 1;
    // The label of a group says how many threads all its cells have.
    let threads = group.label.is_none();
    let mut header = Vec::new();
    header.extend(threads.then(|| "Threads".to_owned()));
    header.extend(rates.then(|| "Target op/s".to_owned()));
    header.extend(["Variant".to_owned(), "Rounds".to_owned()]);
    for metric in &rows.metrics {
        header.push(match (detail, metric) {
            (Detail::Short, Metric::Throughput) => metric::shown_unit(*metric).to_owned(),
            (Detail::Short | Detail::Ranges, metric) => title(*metric),
        });
        header.extend((detail == Detail::Ranges).then(|| "range".to_owned()));
        header.extend(compared.then(|| "Ratio".to_owned()));
    }
    header.extend((detail == Detail::Ranges).then(|| "Client CPUs".to_owned()));
    let mut lines = Vec::new();
    for cell in &group.cells {
        for (n, result) in cell.results.iter().enumerate() {
            let columns = Columns {
                threads,
                rates,
                compared,
            };
            lines.push(line(rows, cell, result, n == 0, detail, columns));
        }
    }
    let words = header.iter().map(|h| h == "Variant").collect();
    Grid {
        header,
        rows: lines,
        words,
    }
}

/// Columns that not every grid has.
#[derive(Clone, Copy)]
struct Columns {
    threads: bool,
    rates: bool,
    compared: bool,
}

fn line(
    rows: &Rows,
    cell: &Cell,
    result: &Results,
    first: bool,
    detail: Detail,
    columns: Columns,
) -> Vec<String> {
    let once = |text: String| if first { text } else { String::new() };
    let mut line = Vec::new();
    if columns.threads {
        line.push(once(cell.threads.to_string()));
    }
    if columns.rates {
        line.push(once(cell.rate.map(number::rate).unwrap_or_default()));
    }
    line.extend([result.variant.clone(), rounds(result.counts)]);
    for metric in &rows.metrics {
        let over = result.summary.get(metric);
        line.push(over.map_or("–".into(), |o| value(*metric, o, result.missed)));
        if detail == Detail::Ranges {
            line.push(over.map_or(String::new(), |o| range(*metric, o)));
        }
        if columns.compared {
            line.push(ratio(result.comparison.get(metric), detail));
        }
    }
    if detail == Detail::Ranges {
        line.push(result.client_cores.map(number::cores).unwrap_or_default());
    }
    line
}

/// A metric's name with the unit of tables: `p95 ms`.
pub(super) fn title(metric: Metric) -> String {
    format!("{} {}", metric::short(metric), metric::shown_unit(metric))
}

/// `3`, or `2 of 3` when not all are good.
pub(super) fn rounds(counts: Counts) -> String {
    if counts.ok == counts.planned {
        counts.ok.to_string()
    } else {
        format!("{} of {}", counts.ok, counts.planned)
    }
}

/// The value, marked † when it is read from too few requests, and § when it is a throughput below the target rate.
fn value(metric: Metric, over: &Over, missed: bool) -> String {
    let few = if over.thin { "†" } else { "" };
    let slow = if missed && metric == Metric::Throughput {
        "§"
    } else {
        ""
    };
    format!("{}{few}{slow}", number::of(metric, over.value))
}

/// What a ratio is marked with: † when a round of it is read from too few requests, ‡ when the values beside it say something
/// else.
fn marks(comparison: &Comparison) -> String {
    let few = if comparison.thin { "†" } else { "" };
    let apart = if comparison.apart { "‡" } else { "" };
    format!("{few}{apart}")
}

fn range(metric: Metric, over: &Over) -> String {
    match over.n {
        0 | 1 => String::new(),
        _ => format!(
            "{}–{}",
            number::of(metric, over.min),
            number::of(metric, over.max)
        ),
    }
}

fn ratio(comparison: Option<&Comparison>, detail: Detail) -> String {
    let Some(comparison) = comparison else {
        return String::new();
    };
    match (comparison.ratio, comparison.min, comparison.max) {
        (Some(ratio), Some(min), Some(max)) if detail == Detail::Ranges && comparison.n > 1 => {
            format!(
                "{}{} ({})",
                number::ratio(ratio),
                marks(comparison),
                number::ratio_range(min, max)
            )
        }
        (Some(ratio), ..) => format!("{}{}", number::ratio(ratio), marks(comparison)),
        _ => "–".into(),
    }
}
