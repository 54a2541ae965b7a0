//! Texts that mean something to HTML, CSV, Markdown or a terminal.

use std::collections::BTreeMap;

use assay::report::{Format, render, table};
use assay::spec::Kind;

use super::{html, sample};
use crate::support::sample_run::{Sample, round_id};

const TEXT: &str = "=cmd|'/C calc'!A1 </script><script>alert(1)</script> \"quoted\", a | b\r\n\u{1b}[31mred `code` <!-- ]]>";

fn hostile() -> Sample {
    Sample {
        workloads: vec![Kind::YcsbA],
        threads: vec![1],
        failing: BTreeMap::from([(round_id(Kind::YcsbA, 1, "wal", 1), TEXT.to_owned())]),
        errors: BTreeMap::from([(TEXT.to_owned(), 2)]),
        hostile: Some(TEXT),
        ..Sample::default()
    }
}

#[test]
fn no_text_becomes_markup_of_the_page() {
    let (_folder, _run, rows) = sample(&hostile());
    let page = html(&rows);
    assert!(!page.contains("<script>alert"));
    assert!(page.contains("&lt;script&gt;alert"));
    // The page's own scripts, and no other end of a script.
    assert_eq!(
        page.matches("</script>").count(),
        page.matches("<script").count()
    );
    let mut data = rows.clone();
    data.variants[0].name = "</script><b>".into();
    assert!(!html(&data).contains("</script><b>"));
}

#[test]
fn every_csv_record_has_all_columns() {
    let (_folder, _run, rows) = sample(&hostile());
    let text = render(&rows, Format::Csv, None).unwrap();
    let records = records(&text);
    assert!(records.iter().all(|r| r.len() == records[0].len()));
    let at = |name: &str| records[0].iter().position(|c| c == name).unwrap();
    let failed: Vec<_> = records
        .iter()
        .filter(|r| r[at("status")] == "failed")
        .collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0][at("reason")], format!("'{TEXT}"));
    assert_eq!(failed[0][at("value")], "");
}

/// A reader of RFC 4180, written apart from the writer.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, quoted) {
            ('"', true) if chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            ('"', _) => quoted = !quoted,
            (',', false) => record.push(std::mem::take(&mut field)),
            ('\n', false) => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            (c, _) => field.push(c),
        }
    }
    records
}

#[test]
fn every_markdown_table_row_has_all_columns() {
    let (_folder, _run, rows) = sample(&hostile());
    let text = render(&rows, Format::Markdown, None).unwrap();
    let outside_code = text.split("```").step_by(2).collect::<String>();
    assert!(!outside_code.contains("<script>"));
    let mut columns = None;
    for line in outside_code.lines() {
        if !line.starts_with('|') {
            columns = None;
            continue;
        }
        let bars = line.replace("\\|", "").matches('|').count();
        assert_eq!(*columns.get_or_insert(bars), bars, "{line}");
    }
}

#[test]
fn no_control_character_reaches_a_terminal() {
    let (_folder, _run, rows) = sample(&hostile());
    let text = table(&rows, Some(100));
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
}

#[test]
fn commands_to_run_again_are_quoted_and_secrets_named() {
    let (_folder, mut run, _rows) = sample(&hostile());
    run.manifest.source = "my experiments/it's $(rm).yaml".into();
    run.manifest.overrides = vec!["name=a b".into(), "seed=1".into()];
    let rows = assay::report::rows(&run).unwrap();
    assert_eq!(
        rows.again.commands[0].1,
        r"assay run 'my experiments/it'\''s $(rm).yaml' --set 'name=a b' --set seed=42"
    );
    assert_eq!(rows.again.environment, ["BENCH_PASSWORD"]);
}

#[test]
fn commands_to_run_again_name_files_that_are_there_wherever_they_are_run() {
    let (_folder, run, rows) = sample(&Sample {
        cut: Some(1),
        ..Sample::default()
    });
    let folder = run.layout.folder().to_str().unwrap();
    assert!(folder.starts_with('/'));
    let commands: Vec<&str> = rows
        .again
        .commands
        .iter()
        .map(|(_, c)| c.as_str())
        .collect();
    // The seed follows from the resolved experiment: with `--set` its hash would be another.
    let exact = format!("assay run {folder}/experiment.yaml -i {folder}/inventory.yaml");
    assert_eq!(
        commands[1..],
        [
            exact,
            format!("assay resume {folder}"),
            format!("assay verify {folder}")
        ]
    );
}
