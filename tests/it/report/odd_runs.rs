//! Runs that are unfinished, that failed, that have one variant, one round, a rate.

use std::collections::BTreeMap;

use assay::artifacts::Status;
use assay::report::rows::{Axis, Progress};
use assay::report::{Course, Format, Rows, Timelines, render, table};
use assay::spec::{Kind, Metric};

use super::{html, notes, sample};
use crate::support::sample_run::{Sample, round_id};

fn small() -> Sample {
    Sample {
        workloads: vec![Kind::OltpReadWrite],
        threads: vec![1, 2],
        ..Sample::default()
    }
}

/// Renders in every format, so that no row of the kind breaks one.
fn render_all(rows: &Rows) -> String {
    for format in [Format::Markdown, Format::Csv, Format::Json] {
        assert!(!render(rows, format, None).unwrap().is_empty());
    }
    assert!(!table(rows, Some(80)).is_empty());
    html(rows)
}

#[test]
fn a_run_without_a_round_says_so_in_every_format() {
    let (_folder, _run, rows) = sample(&Sample {
        cut: Some(0),
        ..small()
    });
    assert_eq!(rows.run.progress, Progress::Interrupted);
    assert_eq!((rows.run.rounds.ok, rows.run.rounds.pending), (0, 12));
    assert!(notes(&rows, "0 of 12 rounds done"));
    assert!(notes(&rows, "no good round yet"));
    assert!(render_all(&rows).contains("No round has begun."));
}

#[test]
fn a_run_cut_in_half_shows_what_it_has() {
    let (_folder, _run, rows) = sample(&Sample {
        cut: Some(5),
        ..small()
    });
    assert!(notes(
        &rows,
        "interrupted before its end: 5 of 12 rounds done"
    ));
    let resume = rows
        .again
        .commands
        .iter()
        .any(|(_, c)| c.starts_with("assay resume "));
    assert!(resume);
    assert!(rows.run.disk.is_none());
    render_all(&rows);
}

#[test]
fn failed_rounds_are_listed_and_in_no_number() {
    let lost = round_id(Kind::OltpReadWrite, 2, "wal", 2);
    let (_folder, _run, rows) = sample(&Sample {
        failing: BTreeMap::from([(lost.clone(), "the window was cut short".to_owned())]),
        ..small()
    });
    let result = &rows.workloads[0].groups[0].cells[1].results[1];
    assert_eq!((result.counts.ok, result.counts.failed), (2, 1));
    assert_eq!(result.summary[&Metric::P99].n, 2);
    let comparison = &result.comparison[&Metric::Throughput];
    assert_eq!((comparison.n, comparison.dropped), (2, 1));
    let repetitions: Vec<u32> = comparison.pairs.iter().map(|p| p.0).collect();
    assert_eq!(repetitions, [1, 3]);
    assert!(
        comparison
            .said
            .starts_with("two rounds: both ratios, no verdict")
    );
    assert_eq!(rows.failures.len(), 1);
    assert_eq!(rows.failures[0].round.as_deref(), Some(&lost[..]));
    assert!(notes(&rows, "1 round failed"));
    let page = render_all(&rows);
    assert!(page.contains("the window was cut short"));
    // Over all cells only the repetitions that every cell has count.
    assert_eq!(rows.workloads[0].overall[0].overall.rounds, 2);
}

#[test]
fn a_retried_round_counts_once_and_its_first_attempt_is_listed() {
    let round = round_id(Kind::OltpReadWrite, 1, "delete", 1);
    let (_folder, _run, rows) = sample(&Sample {
        retried: BTreeMap::from([(round, "start took too long".to_owned())]),
        ..small()
    });
    let result = &rows.workloads[0].groups[0].cells[0].results[0];
    assert_eq!(result.counts.ok, 3);
    assert_eq!(result.rounds[0].attempt, Some(2));
    assert!(rows.failures[0].retried);
    assert_eq!(rows.execution.len(), 13);
    assert!(notes(&rows, "1 attempt failed and had another attempt"));
    render_all(&rows);
}

#[test]
fn a_run_whose_rounds_all_failed_has_no_numbers() {
    let mut failing = BTreeMap::new();
    for threads in [1, 2] {
        for variant in ["delete", "wal"] {
            for repetition in 1..=3 {
                let id = round_id(Kind::OltpReadWrite, threads, variant, repetition);
                failing.insert(id, "no space left on device".to_owned());
            }
        }
    }
    let (_folder, _run, rows) = sample(&Sample { failing, ..small() });
    assert_eq!((rows.run.rounds.failed, rows.failures.len()), (12, 12));
    assert!(rows.workloads[0].overall.is_empty());
    render_all(&rows);
}

#[test]
fn a_deployment_that_failed_skips_its_rounds_with_its_reason() {
    let (_folder, _run, rows) = sample(&Sample {
        unready: BTreeMap::from([("wal", "load was killed".to_owned())]),
        ..small()
    });
    assert_eq!((rows.run.rounds.ok, rows.run.rounds.skipped), (6, 6));
    assert_eq!(rows.failures.len(), 7);
    assert_eq!(rows.failures[0].round, None);
    assert_eq!(rows.failures[1].status, Status::Skipped);
    let comparison = &rows.workloads[0].groups[0].cells[0].results[1].comparison;
    assert!(
        comparison[&Metric::P95]
            .said
            .starts_with("no pair of good rounds")
    );
    assert!(render_all(&rows).contains("load was killed"));
}

#[test]
fn one_variant_is_compared_with_nothing() {
    let (_folder, _run, rows) = sample(&Sample {
        variants: vec!["delete"],
        ..small()
    });
    assert!(notes(&rows, "one variant, so nothing is compared"));
    assert!(!render_all(&rows).contains("Ratio<small>"));
    assert!(rows.differences.is_empty());
}

#[test]
fn one_round_says_nothing_about_noise_and_two_give_no_verdict() {
    for (repetitions, note, said) in [
        (
            1,
            "nothing can be said about noise",
            "one round each: nothing can be said about noise",
        ),
        (
            2,
            "no verdict can be given",
            "two rounds: both ratios, no verdict",
        ),
        (
            3,
            "no inference is made yet",
            "range of 3 rounds; no inference yet",
        ),
    ] {
        let (_folder, _run, rows) = sample(&Sample {
            repetitions,
            ..small()
        });
        assert!(notes(&rows, note), "{repetitions}");
        let result = &rows.workloads[0].groups[0].cells[0].results[1];
        assert_eq!(result.comparison[&Metric::P99].said, said);
        assert!(render_all(&rows).contains(note));
        assert!(table(&rows, None).contains(note));
    }
}

#[test]
fn a_rate_sweep_lies_along_its_rates_and_says_where_they_were_not_reached() {
    let (_folder, _run, rows) = sample(&Sample {
        rates: vec![20.0, 40.0, 5_000.0],
        threads: vec![2, 8],
        workloads: vec![Kind::OltpReadWrite],
        ..Sample::default()
    });
    let groups = &rows.workloads[0].groups;
    assert_eq!(groups.len(), 2);
    assert_eq!(groups[0].axis, Axis::Rate);
    assert_eq!(groups[1].label.as_deref(), Some("8 threads"));
    assert!(notes(
        &rows,
        "4 results reached less than 95 % of the target rate"
    ));
    let page = render_all(&rows);
    assert!(page.contains("Target<small>op/s</small>"));
}

#[test]
fn percentiles_with_few_requests_beyond_them_are_marked() {
    let (_folder, _run, rows) = sample(&Sample {
        pace: 60,
        ..small()
    });
    let over = rows.workloads[0].groups[0].cells[0].results[0].summary[&Metric::P99];
    assert!(over.thin && over.beyond < Some(10));
    assert!(notes(&rows, "has fewer than 10 requests beyond it"));
    assert!(render_all(&rows).contains('†'));
    assert!(table(&rows, None).contains('†'));
}

#[test]
fn a_changed_spec_is_flagged_with_the_rounds_before_it() {
    let (_folder, _run, rows) = sample(&Sample {
        changed: Some(4),
        ..small()
    });
    assert_eq!(rows.spec.changes[0].rounds_before, 4);
    assert!(notes(
        &rows,
        "4 good rounds before it belong to the former one"
    ));
    let page = render_all(&rows);
    assert!(page.contains("+  repetitions: 3"));
    // The ten minutes between stop and resume are not spent.
    assert!(rows.run.actual_s < 200.0 || rows.run.progress == Progress::Finished);
}

#[test]
fn many_variants_stay_apart() {
    let (_folder, _run, rows) = sample(&Sample {
        variants: vec!["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"],
        repetitions: 1,
        ..small()
    });
    assert_eq!(rows.workloads[0].overall.len(), 9 * 6);
    render_all(&rows);
}

#[test]
fn a_page_of_a_thousand_long_rounds_stays_below_two_megabytes() {
    let (_folder, _run, mut rows) = sample(&small());
    let mut courses = Vec::new();
    for cell in &mut rows.workloads[0].groups[0].cells {
        for result in &mut cell.results {
            let one = result.rounds[0].clone();
            result.rounds.clear();
            for repetition in 1..=250 {
                let mut round = one.clone();
                round.repetition = repetition;
                round.id = format!("{}.{repetition}", one.id);
                courses.push(Course {
                    round: round.id.clone(),
                    good: true,
                    first_s: -60,
                    rates: vec![123_456; 1260],
                    p99_us: vec![Some(12_345); 1260],
                });
                result.rounds.push(round);
            }
        }
    }
    let attempt = rows.execution[0].clone();
    rows.execution = vec![attempt; 1000];
    rows.timelines = Timelines::of(courses);
    assert_eq!(rows.timelines.courses.len(), 1000);
    let page = html(&rows);
    assert!(page.len() < 2_000_000, "{}", page.len());
}
