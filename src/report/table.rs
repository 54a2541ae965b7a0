//! The table that a terminal shows: values and ratios, the notes below.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, presets};

use super::grid::{self, Detail};
use super::rows::{Group, Rows, Weight, Workload};

/// The results as plain text, wrapped to `width` columns if given.
#[must_use]
pub fn table(rows: &Rows, width: Option<u16>) -> String {
    let mut text = String::new();
    for (workload, group) in rows.groups() {
        text.push_str(&heading(rows, workload, group));
        text.push('\n');
        text.push_str(&group_table(rows, group, width));
        text.push_str("\n\n");
    }
    for note in &rows.notes {
        let word = match note.weight {
            Weight::Warning => "warning",
            Weight::Remark => "note",
        };
        text.push_str(&format!("{word}: {}\n", one_line(&note.text)));
    }
    text
}

fn heading(rows: &Rows, workload: &Workload, group: &Group) -> String {
    let mut text = workload.name.clone();
    if let Some(label) = &group.label {
        text.push_str(&format!(", {label}"));
    }
    if rows.variants.len() > 1 {
        text.push_str(&format!(" (ratios to {})", rows.baseline));
    }
    text
}

fn group_table(rows: &Rows, group: &Group, width: Option<u16>) -> String {
    let grid = grid::grid(rows, group, Detail::Short);
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.style_mut().row_separator = LineStyle::none();
    table.force_no_tty();
    table.set_header(&grid.header);
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width);
    }
    for line in &grid.rows {
        table.add_row(line.iter().map(|text| one_line(text)));
    }
    for (column, words) in table.column_iter_mut().zip(&grid.words) {
        column.set_cell_alignment(if *words {
            CellAlignment::Left
        } else {
            CellAlignment::Right
        });
    }
    table.trim_fmt()
}

/// Error texts may hold anything: line breaks and control characters must not reach a terminal.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
