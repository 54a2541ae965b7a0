//! The numbers of a report against ones computed here in another way.

use assay::measurement::{Latency, Percentile};
use assay::report::rows::{Cell, Results};
use assay::report::{Format, render};
use assay::spec::{Kind, Metric};

use super::{default_rows, sample};
use crate::support::sample_run::Sample;

fn one_cell() -> Sample {
    Sample {
        workloads: vec![Kind::YcsbA],
        threads: vec![4],
        ..Sample::default()
    }
}

fn close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-9
}

fn only_cell(rows: &assay::report::Rows) -> &Cell {
    &rows.workloads[0].groups[0].cells[0]
}

#[test]
fn a_percentile_over_rounds_is_read_from_the_merge_and_is_no_average() {
    let (_folder, run, rows) = sample(&one_cell());
    let mut averaged = 0;
    for result in &only_cell(&rows).results {
        let mut merged = Latency::new();
        let mut own = Vec::new();
        for (planned, found) in run.rounds().filter(|(r, _)| r.deployment == result.variant) {
            let load = run.load_result(found.unwrap()).unwrap().unwrap();
            merged.merge(&load.all());
            let p99 = load.all().at(Percentile::P99).unwrap() as f64;
            let row = result.rounds.iter().find(|r| r.id == planned.id).unwrap();
            assert_eq!(row.values[&Metric::P99], p99);
            own.push(p99);
        }
        let over = result.summary[&Metric::P99];
        assert_eq!(over.value, merged.at(Percentile::P99).unwrap() as f64);
        assert_eq!(over.beyond, Some(merged.beyond(Percentile::P99)));
        assert_eq!(over.min, own.iter().copied().fold(f64::INFINITY, f64::min));
        averaged += usize::from(over.value == own.iter().sum::<f64>() / own.len() as f64);
    }
    assert_eq!(averaged, 0);
}

#[test]
fn throughput_over_rounds_is_their_mean_and_a_ratio_is_that_of_the_geometric_means() {
    let (_folder, run, rows) = sample(&one_cell());
    let measured = |result: &Results| -> Vec<f64> {
        run.results
            .values()
            .filter(|r| r.variant == result.variant)
            .map(|r| r.measured.as_ref().unwrap().throughput)
            .collect()
    };
    let [base, other] = &only_cell(&rows).results[..] else {
        panic!("two variants");
    };
    let (a, b) = (measured(base), measured(other));
    assert!(close(
        base.summary[&Metric::Throughput].value,
        a.iter().sum::<f64>() / 3.0
    ));
    // The cube root of the products instead of means of logarithms.
    let ratio = (b.iter().product::<f64>() / a.iter().product::<f64>()).cbrt();
    let comparison = &other.comparison[&Metric::Throughput];
    assert!(close(comparison.ratio.unwrap(), ratio));
    assert_eq!(comparison.n, 3);
    assert!(base.comparison.is_empty());
}

#[test]
fn the_ratio_over_all_cells_is_the_root_of_the_product_of_all_pairs() {
    let rows = default_rows();
    let workload = &rows.workloads[1];
    let row = workload
        .overall
        .iter()
        .find(|r| r.metric == Metric::P95)
        .unwrap();
    let pairs: Vec<f64> = workload.groups[0]
        .cells
        .iter()
        .flat_map(|c| &c.results[1].comparison[&Metric::P95].pairs)
        .map(|(_, ratio)| *ratio)
        .collect();
    assert_eq!(pairs.len(), 12);
    let root = pairs.iter().product::<f64>().powf(1.0 / 12.0);
    assert!(close(row.overall.ratio, root));
    assert_eq!((row.overall.cells, row.overall.rounds), (4, 3));
}

#[test]
fn rows_have_nine_digits_wherever_they_are_written_as_json() {
    let written = serde_json::to_string(default_rows()).unwrap();
    let longest = written
        .split(|c: char| !(c.is_ascii_digit() || c == '.'))
        .filter(|n| n.parse::<f64>().is_ok() && n.contains('.'))
        .map(|n| n.trim_start_matches(['0', '.']).replace('.', "").len())
        .max();
    assert_eq!(longest, Some(9));
    let file = render(default_rows(), Format::Json, None).unwrap();
    let parsed: serde_json::Value = serde_json::from_str(&file).unwrap();
    assert_eq!(
        parsed,
        serde_json::from_str::<serde_json::Value>(&written).unwrap()
    );
}

#[test]
fn client_cpus_are_its_cpu_time_over_the_window() {
    let (_folder, _run, rows) = sample(&one_cell());
    let cores = only_cell(&rows).results[0].client_cores.unwrap();
    assert!(close(cores, 0.25));
    let text = render(&rows, Format::Markdown, None).unwrap();
    assert!(text.contains("| Client CPUs |") && text.contains("| 0.25 |"));
    assert!(text.contains("load closed loop"));
}

#[test]
fn operations_that_failed_are_counted_by_kind() {
    let errors = [("busy".to_owned(), 3), ("locked".to_owned(), 1)];
    let (_folder, _run, rows) = sample(&Sample {
        errors: errors.clone().into(),
        ..one_cell()
    });
    let result = &only_cell(&rows).results[0];
    assert_eq!(result.errors["busy"], 9);
    assert_eq!(result.rounds[0].errors, Some(4));
    assert!(super::notes(
        &rows,
        "24 operations failed in good rounds (busy: 18, locked: 6)"
    ));
}

#[test]
fn the_order_of_execution_is_that_of_the_event_log() {
    let (_folder, run, rows) = sample(&one_cell());
    let planned: Vec<&str> = run.plan.rounds.iter().map(|r| r.id.as_str()).collect();
    let executed: Vec<&str> = rows.execution.iter().map(|a| a.round.as_str()).collect();
    assert_eq!(executed, planned);
    let last = only_cell(&rows).results.iter().flat_map(|r| &r.rounds);
    assert_eq!(last.filter_map(|r| r.position).max(), Some(6));
}

#[test]
fn settings_are_those_that_the_system_read_back() {
    let variant = &default_rows().variants[1];
    assert_eq!(variant.reported_version.as_deref(), Some("3.51.0"));
    assert_eq!(variant.effective["sqlite"]["page_size"], "4096");
    let names: Vec<&str> = default_rows()
        .differences
        .iter()
        .map(|d| d.setting.as_str())
        .collect();
    assert_eq!(names, ["sqlite.journal_mode", "sqlite.synchronous"]);
}
