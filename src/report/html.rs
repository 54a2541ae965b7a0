//! `report.html`: one page that opens offline. The template gets the rows; the charts' script gets compact numbers.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, UndefinedBehavior, context};
use serde::Serialize;

use super::rows::{Axis, Cell, Counts, Group, LONG, Results, Rows, Workload};
use super::timeline::Course;
use super::{ReportError, assets, grid, metric, number};
use crate::spec::Metric;
use crate::units::Bytes;

const PAGE: &str = "report.html.j2";
/// Colours, marks and dashes repeat after so many variants; the three together do not.
const STYLES: usize = 8;
/// Strips of ratios reach at least 5 % to either side.
const LEAST_REACH: f64 = 0.05;

/// The rows as a page.
pub(super) fn render(rows: &Rows, templates: Option<&Path>) -> Result<String, ReportError> {
    let source = assets::text(PAGE, templates)?;
    let asset = |name| assets::text(name, templates).map(Value::from_safe_string);
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(
        SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()?,
    );
    add_filters(&mut environment);
    environment.add_template_owned(PAGE, source)?;
    let titles = |metrics: &[Metric]| {
        let titles: Vec<Title> = metrics.iter().map(|m| title(*m)).collect();
        Value::from(Serde(titles))
    };
    let page = environment.get_template(PAGE)?.render(context! {
        rows => Value::from(Serde(rows)),
        long => LONG,
        systems => rows.systems().join(", "),
        without_value => rows.variants.iter().map(|v| v.without_value()).collect::<Vec<_>>(),
        metrics => titles(&rows.metrics),
        every_metric => titles(&metric::ALL),
        reaches => Value::from(Serde(reaches(rows))),
        data => Value::from_safe_string(data(rows)),
        style => asset("report.css")?,
        script => asset("report.js")?,
        chart_style => asset("vendor/uPlot.min.css")?,
        chart_script => asset("vendor/uPlot.iife.min.js")?,
        chart_licence => asset("vendor/uPlot.LICENSE")?,
    })?;
    Ok(page)
}

/// A metric as a column.
#[derive(Serialize)]
struct Title {
    metric: Metric,
    word: &'static str,
    title: &'static str,
    short: &'static str,
    unit: &'static str,
    higher_is_better: bool,
}

fn title(metric: Metric) -> Title {
    Title {
        metric,
        word: metric::word(metric),
        title: metric::name(metric),
        short: metric::short(metric),
        unit: metric::shown_unit(metric),
        higher_is_better: metric == Metric::Throughput,
    }
}

fn add_filters(environment: &mut Environment<'_>) {
    environment.add_filter("figure", |value: f64, word: String| {
        let found = metric::ALL.into_iter().find(|m| metric::word(*m) == word);
        number::of(found.unwrap_or(Metric::Mean), value)
    });
    environment.add_filter("rate", number::rate);
    environment.add_filter("ratio", number::ratio);
    environment.add_filter("ratio_range", number::ratio_range);
    environment.add_filter("cores", number::cores);
    environment.add_filter("duration", number::duration);
    environment.add_filter("grouped", number::grouped);
    environment.add_filter("bytes", |n: u64| Bytes(n).to_string());
    environment.add_filter("time", |text: String| {
        text.parse().map_or(text, number::time)
    });
    environment.add_filter("clock", |text: String| {
        let time = text.parse::<jiff::Timestamp>();
        time.map_or(text, |t| t.strftime("%H:%M:%S").to_string())
    });
    environment.add_filter("style_of", |index: usize| index % STYLES);
    environment.add_filter("rounds", |ok: usize, planned: usize| {
        grid::rounds(Counts {
            ok,
            planned,
            ..Default::default()
        })
    });
    environment.add_filter("place", |ratio: f64, reach: f64| {
        format!("{:.1}", 50.0 + 46.0 * ratio.ln() / reach)
    });
}

/// For each workload and metric, the largest distance of any paired ratio from 1, as a logarithm:
/// all strips of a column share it.
fn reaches(rows: &Rows) -> Vec<BTreeMap<&'static str, f64>> {
    let of = |workload: &Workload, metric: Metric| {
        let cells = workload.groups.iter().flat_map(|g| &g.cells);
        let comparisons = cells
            .flat_map(|c| &c.results)
            .filter_map(|r| r.comparison.get(&metric));
        comparisons
            .flat_map(|c| [c.min, c.max])
            .flatten()
            .map(|ratio| ratio.ln().abs())
            .fold(LEAST_REACH, f64::max)
    };
    rows.workloads
        .iter()
        .map(|w| metric::ALL.map(|m| (metric::word(m), of(w, m))).into())
        .collect()
}

/// What the charts draw. Metrics are in the order of [`DRAWN`].
#[derive(Serialize)]
struct Data<'a> {
    variants: Vec<&'a str>,
    groups: Vec<GroupData<'a>>,
    step: u64,
    courses: Vec<CourseData<'a>>,
}

/// The metrics that charts show: those of a cell's `s` and, after the repetition, of its `r`.
const DRAWN: [Metric; 4] = [Metric::Throughput, Metric::P50, Metric::P95, Metric::P99];

#[derive(Serialize)]
struct GroupData<'a> {
    workload: &'a str,
    label: Option<&'a str>,
    axis: Axis,
    cells: Vec<CellData>,
}

#[derive(Serialize)]
struct CellData {
    x: f64,
    /// By variant.
    v: Vec<ResultData>,
}

#[derive(Serialize)]
struct ResultData {
    /// The values over all rounds, `null` where there are none.
    s: [Option<f64>; 4],
    /// Each good round: repetition, then its values.
    r: Vec<(u32, [Option<f64>; 4])>,
}

#[derive(Serialize)]
struct CourseData<'a> {
    /// Indices of group, cell and variant.
    at: [usize; 3],
    /// Repetition.
    k: u32,
    /// Whether the round is good.
    ok: bool,
    /// The second of the first point.
    t: i64,
    /// Operations/s.
    n: &'a [u64],
    /// 99th percentiles, µs.
    p: &'a [Option<u64>],
}

/// The charts' numbers as JSON that cannot end its script element.
fn data(rows: &Rows) -> String {
    let groups = rows.groups().map(|(workload, group)| GroupData {
        workload: &workload.name,
        label: group.label.as_deref(),
        axis: group.axis,
        cells: group.cells.iter().map(|c| cell_data(group, c)).collect(),
    });
    let data = Data {
        variants: rows.variants.iter().map(|v| v.name.as_str()).collect(),
        groups: groups.collect(),
        step: rows.timelines.step_s,
        courses: courses(rows),
    };
    serde_json::to_string(&data)
        .expect("charts are plain data")
        .replace('<', "\\u003c")
}

fn cell_data(group: &Group, cell: &Cell) -> CellData {
    let result = |result: &Results| ResultData {
        s: DRAWN.map(|m| result.summary.get(&m).map(|o| rounded(o.value))),
        r: result
            .rounds
            .iter()
            .filter(|r| !r.values.is_empty())
            .map(|r| {
                (
                    r.repetition,
                    DRAWN.map(|m| r.values.get(&m).copied().map(rounded)),
                )
            })
            .collect(),
    };
    CellData {
        x: group.point(cell),
        v: cell.results.iter().map(result).collect(),
    }
}

/// To a hundredth, which no chart can show.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn courses(rows: &Rows) -> Vec<CourseData<'_>> {
    let mut places = HashMap::new();
    for (g, (_, group)) in rows.groups().enumerate() {
        for (c, cell) in group.cells.iter().enumerate() {
            for (v, result) in cell.results.iter().enumerate() {
                let rounds = result.rounds.iter();
                places.extend(rounds.map(|r| (r.id.as_str(), ([g, c, v], r.repetition))));
            }
        }
    }
    let course = |course: &'_ Course| {
        let (at, k) = *places.get(course.round.as_str())?;
        Some((at, k, course.good, course.first_s))
    };
    rows.timelines
        .courses
        .iter()
        .filter_map(|c| {
            let (at, k, ok, t) = course(c)?;
            Some(CourseData {
                at,
                k,
                ok,
                t,
                n: &c.rates,
                p: &c.p99_us,
            })
        })
        .collect()
}
