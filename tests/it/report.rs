//! Reports of a sample run in every format, of partial and odd runs, with hostile texts, and in a real browser.

mod browser;
mod formats;
mod hostile;
mod numbers;
mod odd_runs;

use std::sync::OnceLock;

use assay::artifacts::Run;
use assay::report::{Format, Rows, render};
use tempfile::TempDir;

use crate::support::sample_run::Sample;

/// The run and rows of a sample; the folder lives as long as the first value.
fn sample(sample: &Sample) -> (TempDir, Run, Rows) {
    let folder = tempfile::tempdir().unwrap();
    let run = sample.build(folder.path());
    let rows = assay::report::rows(&run).unwrap();
    (folder, run, rows)
}

/// The rows of the default sample, made once.
fn default_rows() -> &'static Rows {
    static ROWS: OnceLock<Rows> = OnceLock::new();
    ROWS.get_or_init(|| {
        let (folder, _run, mut rows) = sample(&Sample::default());
        // Golden texts name no folder of one test run.
        let made_in = folder.path().to_str().unwrap();
        for (_, command) in &mut rows.again.commands {
            *command = command.replace(made_in, "/lab");
        }
        rows
    })
}

fn html(rows: &Rows) -> String {
    render(rows, Format::Html, None).unwrap()
}

/// Whether a note holds `words`.
fn notes(rows: &Rows, words: &str) -> bool {
    rows.notes.iter().any(|n| n.text.contains(words))
}
