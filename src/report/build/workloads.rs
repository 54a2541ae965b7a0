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
    let groups = groups(cells);
    Ok(Workload {
        name: name.to_owned(),
        parameters: rounds.first().map(|r| parameters(r)).unwrap_or_default(),
        overall: over_cells(&groups),
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

/// What was run, as label and value.
fn parameters(round: &plan::Round) -> Vec<(String, String)> {
    let measure = round.steps.iter().find_map(|s| match &s.action {
        Action::Measure(measure) => Some(measure),
        _ => None,
    });
    let Some(measure) = measure else {
        return Vec::new();
    };
    let Measure {
        workload,
        dataset,
        warmup,
        duration,
        ..
    } = measure;
    let mut parameters = pairs("", workload);
    parameters.retain(|(label, _)| label != "name");
    parameters.extend(pairs("dataset ", dataset));
    parameters.push(("warm-up".into(), number::duration(warmup.as_secs_f64())));
    parameters.push(("window".into(), number::duration(duration.as_secs_f64())));
    parameters
}

fn pairs<T: Serialize>(prefix: &str, value: &T) -> Vec<(String, String)> {
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
            (format!("{prefix}{}", key.replace('_', " ")), text)
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
    fn one_rate_leaves_the_threads_as_axis() {
        let found = groups(cells(&[(1, Some(20.0)), (2, Some(20.0))]));
        assert_eq!(shape(&found), [(None, Axis::Threads, vec![1.0, 2.0])]);
    }
}
