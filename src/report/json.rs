//! `results.json`: the rows as they are.

use super::rows::Rows;

/// The rows as JSON, ended by a line break.
#[must_use]
pub(super) fn render(rows: &Rows) -> String {
    let mut text = serde_json::to_string_pretty(rows).expect("rows are plain data");
    text.push('\n');
    text
}
