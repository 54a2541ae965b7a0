//! Runs that are unfinished, that failed, that have one variant, one round, a rate.

use std::collections::BTreeMap;

use assay::artifacts::Status;
use assay::report::rows::{Axis, Progress, Weight};
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
fn invalid_rounds_are_listed_with_their_reason_and_in_no_number() {
    let lost = round_id(Kind::OltpReadWrite, 2, "wal", 2);
    let reason = "`kv@db1` was started again during the measurement";
    let (_folder, run, rows) = sample(&Sample {
        invalid: BTreeMap::from([(lost.clone(), reason.to_owned())]),
        ..small()
    });
    // What it measured is kept.
    let result = &run.results[&lost];
    assert_eq!(result.status, Status::Invalid);
    assert!(result.measured.as_ref().unwrap().count > 0);
    let result = &rows.workloads[0].groups[0].cells[1].results[1];
    let counts = result.counts;
    assert_eq!((counts.ok, counts.invalid, counts.failed), (2, 1, 0));
    assert_eq!(result.summary[&Metric::P99].n, 2);
    assert!(result.rounds[1].values.is_empty());
    let comparison = &result.comparison[&Metric::Throughput];
    assert_eq!((comparison.n, comparison.dropped), (2, 1));
    assert!(
        comparison
            .said
            .ends_with("1 pair left out, one side is not good")
    );
    assert_eq!(rows.failures.len(), 1);
    assert_eq!(rows.failures[0].status, Status::Invalid);
    assert!(notes(&rows, "1 round invalid"));
    let page = render_all(&rows);
    assert!(page.contains("1 invalid") && page.contains("<td>invalid</td>"));
    assert!(page.contains("`kv@db1` was started again"));
    let text = render(&rows, Format::Markdown, None).unwrap();
    assert!(text.contains("11 good, 0 failed, 1 invalid, 0 skipped"));
    let csv = render(&rows, Format::Csv, None).unwrap();
    let of_round: Vec<&str> = csv.lines().filter(|l| l.contains(&lost)).collect();
    assert_eq!(of_round.len(), 1);
    assert!(of_round[0].contains(",invalid,,,,,,"), "{}", of_round[0]);
    assert!(of_round[0].ends_with(reason));
}

#[test]
fn what_good_rounds_say_of_themselves_is_a_warning_that_names_them() {
    let id = |repetition| round_id(Kind::OltpReadWrite, 1, "wal", repetition);
    let restless = |what| format!("not quiet when the measurement began: {what}");
    let (_folder, _run, rows) = sample(&Sample {
        noted: BTreeMap::from([
            (id(1), restless("leaders are balanced")),
            (id(2), restless("no operators")),
            (id(3), "connections uneven: db1 40, db2 8".to_owned()),
        ]),
        ..small()
    });
    let text = |words: &str| {
        let mut all = rows.notes.iter();
        let found = all.find(|n| n.text.contains(words)).unwrap();
        assert_eq!(found.weight, Weight::Warning);
        found.text.clone()
    };
    assert_eq!(
        text("Not quiet"),
        "Not quiet when the measurement began in 2 rounds: oltp_read_write.t1.wal.r1 (leaders are balanced), \
         oltp_read_write.t1.wal.r2 (no operators)."
    );
    assert_eq!(
        text("uneven"),
        "Connections uneven in 1 round: oltp_read_write.t1.wal.r3 (db1 40, db2 8)."
    );
    // They are good all the same.
    assert_eq!(rows.run.rounds.ok, 12);
    render_all(&rows);
}

#[test]
fn keys_of_the_effective_configuration_that_differ_are_shown_and_many_are_folded() {
    let (_folder, _run, rows) = sample(&Sample { keys: 3, ..small() });
    let found = rows.configuration.iter().map(|d| (&*d.key, d.asked));
    let found: Vec<_> = found.collect();
    let expected = [
        ("journal-mode", true),
        ("section.key-01", false),
        ("section.key-02", false),
    ];
    assert_eq!(found, expected);
    let page = render_all(&rows);
    assert!(page.contains("section.key-01") && page.contains("wal 1"));
    assert!(!page.contains("3 keys</summary>"));
    let text = render(&rows, Format::Markdown, None).unwrap();
    assert!(text.contains("| sqlite | journal-mode | delete 0 | wal 0 | the experiment |"));
    let (_folder, _run, many) = sample(&Sample {
        keys: 31,
        ..small()
    });
    assert!(render_all(&many).contains("<summary>31 keys</summary>"));
    let text = render(&many, Format::Markdown, None).unwrap();
    assert!(text.contains("<details>\n<summary>31 keys</summary>\n\n| Component |"));
    // A system that tells nothing has no such table.
    let (_folder, _run, none) = sample(&small());
    assert!(!render_all(&none).contains("What differs</h3>"));
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
    assert!(notes(
        &rows,
        "1 attempt was not good and had another attempt: oltp_read_write.t1.delete.r1."
    ));
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
fn a_version_that_was_only_wanted_is_not_told_as_found() {
    let (_folder, _run, rows) = sample(&Sample {
        unready: BTreeMap::from([
            ("delete", "no such version".to_owned()),
            ("wal", "no such version".to_owned()),
        ]),
        wanted: Some("9.9"),
        pragmas: [["delete", "full"], ["delete", "full"]],
        ..small()
    });
    assert_eq!(rows.systems(), ["sqlite (9.9 wanted, not deployed)"]);
    assert!(rows.differences.is_empty());
    assert!(render_all(&rows).contains("9.9 wanted, not deployed"));
}

#[test]
fn settings_of_a_variant_that_was_not_deployed_are_unknown_rather_than_unset() {
    let (_folder, _run, rows) = sample(&Sample {
        unready: BTreeMap::from([("wal", "load was killed".to_owned())]),
        wanted: Some("3.51.0"),
        ..small()
    });
    let names: Vec<&str> = rows
        .differences
        .iter()
        .map(|d| d.setting.as_str())
        .collect();
    // `page_size` was read back from one side only.
    assert_eq!(
        names,
        ["sqlite.journal_mode", "sqlite.synchronous", "version"]
    );
    assert_eq!(
        rows.differences[2].values[1].as_deref(),
        Some("3.51.0 (wanted)")
    );
    assert_eq!(rows.variants[1].without_value(), "not deployed");
    assert!(!render_all(&rows).contains("not set"));
}

#[test]
fn skipped_rounds_are_not_done() {
    let (_folder, _run, rows) = sample(&Sample {
        unready: BTreeMap::from([("wal", "load was killed".to_owned())]),
        cut: Some(4),
        ..small()
    });
    assert!(notes(
        &rows,
        "interrupted before its end: 2 of 12 rounds done"
    ));
}

#[test]
fn threads_that_waited_outside_of_the_numbers_are_a_warning_that_names_the_cell() {
    let (_folder, _run, rows) = sample(&Sample {
        starved: Some("delete"),
        ..small()
    });
    let starved = &rows.workloads[0].groups[0].cells[1].results[0];
    let accounted = starved.rounds[0].accounted.unwrap();
    assert!((0.4..0.6).contains(&accounted), "{accounted}");
    let note = rows
        .notes
        .iter()
        .find(|n| n.text.contains("waited outside"))
        .unwrap();
    assert_eq!(note.weight, Weight::Warning);
    let words = "oltp_read_write.t2 on delete (1 of 2 threads ended nothing in a window, latencies account for ";
    assert!(note.text.contains(words), "{}", note.text);
    // One thread starves nobody, and the other variant is sound.
    assert!(!note.text.contains(".t1") && !note.text.contains("on wal"));
    render_all(&rows);
    let (_folder, _run, sound) = sample(&small());
    assert!(!notes(&sound, "waited outside"));
}

#[test]
fn summaries_of_an_open_loop_hold_only_cells_that_say_something() {
    let (_folder, _run, rows) = sample(&Sample {
        rates: vec![20.0, 40.0, 5_000.0],
        threads: vec![8],
        unstarted: 3,
        ..small()
    });
    let results = |cell: usize| &rows.workloads[0].groups[0].cells[cell].results;
    assert!(results(2).iter().all(|r| r.missed) && !results(0)[0].missed);
    let row = |metric| {
        let mut overall = rows.workloads[0].overall.iter();
        overall.find(|r| r.metric == metric).unwrap()
    };
    let (throughput, p95) = (row(Metric::Throughput), row(Metric::P95));
    assert_eq!((throughput.overall.cells, throughput.left_out), (1, 2));
    assert_eq!((p95.overall.cells, p95.left_out), (2, 1));
    assert!(notes(
        &rows,
        "(marked §): oltp_read_write.t8.q5000 on delete, "
    ));
    assert!(notes(
        &rows,
        "18 operations were due at the end of their window"
    ));
    let page = render_all(&rows);
    assert!(page.contains("the target rate was not kept\">§") && page.contains("2 of 3 cells"));
    assert!(page.contains("open loop at 3 target rates"));
    let text = render(&rows, Format::Markdown, None).unwrap();
    assert!(text.contains("Throughput in one cell"));
    assert!(table(&rows, None).contains('§'));
}

#[test]
fn a_group_for_one_number_of_threads_has_no_column_for_it() {
    let (_folder, _run, rows) = sample(&Sample {
        rates: vec![20.0, 40.0],
        threads: vec![1, 2],
        ..small()
    });
    let text = render(&rows, Format::Markdown, None).unwrap();
    assert!(text.contains("1 thread:\n") && text.contains("2 threads:\n"));
    assert!(!text.contains("| Threads"));
}

#[test]
fn a_ratio_of_few_requests_is_marked_and_so_is_the_summary() {
    let (_folder, _run, rows) = sample(&Sample {
        pace: 60,
        threads: vec![8],
        ..small()
    });
    let result = &rows.workloads[0].groups[0].cells[0].results[1];
    // The rounds together have enough, each alone has not.
    assert!(!result.summary[&Metric::P99].thin);
    assert!(result.comparison[&Metric::P99].thin);
    let overall = rows.workloads[0]
        .overall
        .iter()
        .find(|r| r.metric == Metric::P99);
    assert_eq!(overall.unwrap().thin, 1);
    assert!(notes(&rows, "in rounds of 1 of 1 ratio (marked †)"));
    let text = render(&rows, Format::Markdown, None).unwrap();
    assert!(
        text.lines()
            .any(|l| l.contains("p99 latency in one cell") && l.ends_with('†'))
    );
    assert!(text.contains("×† ("));
}

#[test]
fn values_that_contradict_their_ratio_are_marked() {
    let mut marked = 0;
    for repetitions in [2, 3, 4, 5] {
        let (_folder, _run, rows) = sample(&Sample {
            spread: 0.9,
            repetitions,
            threads: vec![1, 2, 4, 8],
            ..small()
        });
        for result in rows.results() {
            for (metric, c) in &result.comparison {
                let (Some(ratio), Some(quotient)) = (c.ratio, c.quotient) else {
                    continue;
                };
                let other_side =
                    (ratio < 0.99 && quotient > 1.01) || (ratio > 1.01 && quotient < 0.99);
                let outside = quotient < c.min.unwrap() * 0.99 || quotient > c.max.unwrap() * 1.01;
                if other_side || outside {
                    assert!(c.apart, "{metric:?} {ratio} {quotient}");
                }
                marked += usize::from(c.apart && rows.metrics.contains(metric));
            }
        }
        let shown = rows.results().flat_map(|r| &r.comparison);
        let shown = shown
            .filter(|(m, c)| rows.metrics.contains(m) && c.apart)
            .count();
        assert_eq!(notes(&rows, "(marked ‡)"), shown > 0);
        assert_eq!(
            table(&rows, None).contains("×‡") || table(&rows, None).contains("×†‡"),
            shown > 0
        );
        render_all(&rows);
    }
    assert!(marked > 0);
}

#[test]
fn variants_that_differ_in_durability_are_told() {
    let (_folder, _run, rows) = sample(&small());
    assert!(notes(
        &rows,
        "wal (journal_mode wal, synchronous normal) may lose the last commits"
    ));
    let (_folder, _run, rows) = sample(&Sample {
        pragmas: [["delete", "full"], ["wal", "full"]],
        ..small()
    });
    assert!(!notes(&rows, "durability"));
}

#[test]
fn an_interruption_is_told_with_its_length_and_the_pairs_that_it_split() {
    for (after, split) in [(4, None), (5, Some("oltp_read_write.t1 repetition 2"))] {
        let (_folder, _run, rows) = sample(&Sample {
            changed: Some(after),
            ..small()
        });
        assert_eq!(rows.interruptions.len(), 1);
        assert!((rows.interruptions[0].seconds - 600.0).abs() < 1e-6);
        assert!(notes(&rows, "for 10m (interrupted), then went on."));
        match split {
            None => assert!(notes(&rows, "No pair of rounds lies on both sides")),
            Some(pair) => assert!(notes(
                &rows,
                &format!(
                    "1 pair of rounds lies on both sides of it, so the machine may have changed between the two: {pair}."
                )
            )),
        }
        render_all(&rows);
    }
}

#[test]
fn an_attempt_that_died_with_its_process_is_told() {
    let (_folder, _run, rows) = sample(&Sample {
        dying: Some(2),
        ..small()
    });
    assert_eq!((rows.run.rounds.ok, rows.execution.len()), (12, 13));
    assert!(notes(
        &rows,
        "1 attempt was cut off with the process and had another attempt: oltp_read_write.t2.wal.r1."
    ));
    assert!(notes(
        &rows,
        "for 1m 30s (its process ended without a word)"
    ));
    render_all(&rows);
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
    assert!(notes(&rows, "Fewer than 10 requests lie beyond p99 in "));
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
    assert!(page.contains("rounds.repetitions: 2 -&gt; 3"));
    assert!(notes(
        &rows,
        "4 good rounds before it ran under the former one (local: kernel: 6.1.0 -> 6.12.0)"
    ));
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
