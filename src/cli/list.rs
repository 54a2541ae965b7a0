//! `assay list`: all runs, oldest first.

use comfy_table::{CellAlignment, Table, presets};
use serde_json::json;

use super::args::Global;
use super::error::{Code, Failure};
use super::status::{Counts, Phase};
use super::{output, runs, text};
use crate::artifacts::Run;

pub(super) fn list(global: &Global) -> Result<Code, Failure> {
    let mut found: Vec<(std::path::PathBuf, Result<Run, _>)> = runs::all(global)?
        .into_iter()
        .map(|folder| (folder.clone(), Run::open(&folder)))
        .collect();
    found.sort_by(|a, b| a.0.file_name().cmp(&b.0.file_name()));
    if global.json {
        let rows: Vec<_> = found
            .iter()
            .map(|(folder, run)| row_json(folder, run.as_ref().ok()))
            .collect();
        output::json(&rows)?;
        return Ok(Code::Fine);
    }
    if found.is_empty() {
        output::say(format_args!(
            "there are no runs in `{}`",
            global.artifacts.display()
        ));
        return Ok(Code::Fine);
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["experiment", "run", "state", "rounds", "time"]);
    for (folder, run) in &found {
        table.add_row(match run {
            Ok(run) => row(run),
            // One damaged run must not hide the others.
            Err(error) => vec![
                String::new(),
                folder.display().to_string(),
                error.to_string(),
            ],
        });
    }
    if let Some(column) = table.column_mut(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    output::line(table.trim_fmt())?;
    Ok(Code::Fine)
}

fn row(run: &Run) -> Vec<String> {
    let counts = Counts::of(run);
    let failed = match counts.failed + counts.invalid + counts.skipped {
        0 => String::new(),
        n => format!(" ({n} bad)"),
    };
    vec![
        run.manifest.experiment.clone(),
        run.manifest.run.clone(),
        Phase::of(run).word().to_owned(),
        format!("{}/{}{failed}", counts.done(), counts.planned),
        text::time(run.state.spent_s),
    ]
}

fn row_json(folder: &std::path::Path, run: Option<&Run>) -> serde_json::Value {
    match run {
        Some(run) => json!({
            "folder": folder,
            "experiment": run.manifest.experiment,
            "run": run.manifest.run,
            "state": Phase::of(run),
            "rounds": Counts::of(run),
            "spent_s": run.state.spent_s,
            "assay": run.manifest.assay,
        }),
        None => json!({ "folder": folder, "state": "damaged" }),
    }
}
