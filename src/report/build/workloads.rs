//! The cells of each workload, put into groups that one chart can hold.

use serde::Serialize;

use super::compare::{compare, over_cells};
use super::results::{Context, results};
use crate::artifacts::Run;
use crate::plan::{self, Action, Measure};
use crate::report::ReportError;
use crate::report::number;
use crate::report::rows::{Attempt, Axis, Cell, Group, Workload};
use crate::report::timeline::Course;

/// The results of every workload; `order` names those of the experiment in its order.
pub(super) fn workloads(
    run: &Run,
    order: &[&str],
    execution: &[Attempt],
    courses: &mut Vec<Course>,
) -> Result<Vec<Workload>, ReportError> {
    let context = Context { run, execution };
    names(run, order)
        .into_iter()
        .map(|name| workload(&context, name, courses))
        .collect()
}

fn names<'a>(run: &'a Run, order: &[&str]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for round in &run.plan.rounds {
        if !names.contains(&round.cell.workload.as_str()) {
            names.push(&round.cell.workload);
        }
    }
    names.sort_by_key(|n| order.iter().position(|o| o == n).unwrap_or(usize::MAX));
    names
}

fn workload(
    context: &Context<'_>,
    name: &str,
    courses: &mut Vec<Course>,
) -> Result<Workload, ReportError> {
    let rounds: Vec<&plan::Round> = context
        .run
        .plan
        .rounds
        .iter()
        .filter(|r| r.cell.workload == name)
        .collect();
    let mut cells: Vec<Cell> = Vec::new();
    for round in &rounds {
        if !cells.iter().any(|c| c.id == round.cell.id) {
            cells.push(cell(context, &round.cell, &rounds, courses)?);
        }
    }
    let mut parameters = rounds.first().map(|r| parameters(r)).unwrap_or_default();
    parameters.push(("load".into(), load(&cells)));
    let groups = groups(cells);
    Ok(Workload {
        name: name.to_owned(),
        parameters,
        overall: over_cells(&groups, &context.run.plan.baseline),
        groups,
    })
}

fn cell(
    context: &Context<'_>,
    cell: &plan::Cell,
    rounds: &[&plan::Round],
    courses: &mut Vec<Course>,
) -> Result<Cell, ReportError> {
    let mut found = Vec::new();
    for deployment in &context.run.plan.deployments {
        let own: Vec<&plan::Round> = rounds
            .iter()
            .filter(|r| r.cell.id == cell.id && r.deployment == deployment.id)
            .copied()
            .collect();
        found.push(results(context, &deployment.id, &own, courses)?);
    }
    compare(&mut found, &context.run.plan.baseline);
    Ok(Cell {
        id: cell.id.clone(),
        threads: cell.threads,
        rate: cell.rate,
        results: found,
    })
}

/// Along the rates if there are several, one group for each number of threads; else along the threads.
fn groups(mut cells: Vec<Cell>) -> Vec<Group> {
    let rate = |c: &Cell| c.rate.unwrap_or_default();
    cells.sort_by(|a, b| {
        (a.threads, rate(a))
            .partial_cmp(&(b.threads, rate(b)))
            .expect("rates are finite")
    });
    let several = cells.windows(2).any(|w| w[0].rate != w[1].rate);
    if !several {
        let axis = Axis::Threads;
        return vec![Group {
            label: None,
            axis,
            cells,
        }];
    }
    let mut groups: Vec<Group> = Vec::new();
    for cell in cells {
        match groups.last_mut() {
            Some(group) if group.cells[0].threads == cell.threads => group.cells.push(cell),
            _ => groups.push(Group {
                label: Some(match cell.threads {
                    1 => "1 thread".into(),
                    n => format!("{n} threads"),
                }),
                axis: Axis::Rate,
                cells: vec![cell],
            }),
        }
    }
    groups
}

/// Closed or open loop, with its rate.
fn load(cells: &[Cell]) -> String {
    let mut rates: Vec<Option<f64>> = Vec::new();
    for cell in cells {
        if !rates.contains(&cell.rate) {
            rates.push(cell.rate);
        }
    }
    match rates[..] {
        [] | [None] => "closed loop".into(),
        [Some(rate)] => format!("open loop at {} op/s", number::rate(rate)),
        _ => format!("open loop at {} target rates", rates.len()),
    }
}

/// What was run, as label and value.
fn parameters(round: &plan::Round) -> Vec<(String, String)> {
    let measure = round.steps.iter().find_map(|s| match &s.action {
        Action::Measure(measure) => Some(measure),
        _ => None,
    });
    let Some(measure) = measure else {
        return Vec::new();
    };
    let mut parameters = fields(&measure.workload);
    parameters.retain(|(label, _)| label != "name");
    parameters.push(("dataset".into(), dataset(measure)));
    let lengths = [("warm-up", measure.warmup), ("window", measure.duration)];
    parameters.extend(lengths.map(|(label, d)| (label.to_owned(), d.to_string())));
    parameters
}

/// `ycsb, records 1,000`.
fn dataset(measure: &Measure) -> String {
    let mut words = Vec::new();
    for (label, value) in fields(&measure.dataset) {
        match label.as_str() {
            "driver" => {}
            "schema" => words.insert(0, value),
            _ => words.push(format!("{label} {value}")),
        }
    }
    words.join(", ")
}

/// The fields that are set.
fn fields<T: Serialize>(value: &T) -> Vec<(String, String)> {
    let json = serde_json::to_value(value).expect("a spec is plain data");
    let fields = json.as_object().into_iter().flatten();
    fields
        .filter(|(_, v)| !v.is_null())
        .map(|(key, value)| {
            let text = match value {
                serde_json::Value::String(text) => text.clone(),
                serde_json::Value::Number(n) => n.as_u64().map_or(n.to_string(), number::grouped),
                other => other.to_string(),
            };
            (key.replace('_', " "), text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(points: &[(u32, Option<f64>)]) -> Vec<Cell> {
        points
            .iter()
            .map(|(threads, rate)| Cell {
                id: format!("w.t{threads}"),
                threads: *threads,
                rate: *rate,
                results: Vec::new(),
            })
            .collect()
    }

    fn shape(groups: &[Group]) -> Vec<(Option<&str>, Axis, Vec<f64>)> {
        groups
            .iter()
            .map(|g| {
                (
                    g.label.as_deref(),
                    g.axis,
                    g.cells.iter().map(|c| g.point(c)).collect(),
                )
            })
            .collect()
    }

    #[test]
    fn closed_loop_cells_are_one_group_along_rising_threads() {
        let found = groups(cells(&[(8, None), (1, None)]));
        assert_eq!(shape(&found), [(None, Axis::Threads, vec![1.0, 8.0])]);
    }

    #[test]
    fn several_rates_make_one_group_for_each_number_of_threads() {
        let found = groups(cells(&[
            (4, Some(20.0)),
            (1, Some(20.0)),
            (4, Some(10.0)),
            (1, Some(10.0)),
        ]));
        let wanted = [
            (Some("1 thread"), Axis::Rate, vec![10.0, 20.0]),
            (Some("4 threads"), Axis::Rate, vec![10.0, 20.0]),
        ];
        assert_eq!(shape(&found), wanted);
    }

    #[test]
    fn a_workload_says_whether_its_load_is_closed_or_open() {
        assert_eq!(load(&cells(&[(1, None), (2, None)])), "closed loop");
        assert_eq!(
            load(&cells(&[(1, Some(2000.0))])),
            "open loop at 2,000 op/s"
        );
        let several = cells(&[(1, Some(10.0)), (1, Some(20.0)), (2, Some(10.0))]);
        assert_eq!(load(&several), "open loop at 2 target rates");
    }

    #[test]
    fn one_rate_leaves_the_threads_as_axis() {
        let found = groups(cells(&[(1, Some(20.0)), (2, Some(20.0))]));
        assert_eq!(shape(&found), [(None, Axis::Threads, vec![1.0, 2.0])]);
    }
}
