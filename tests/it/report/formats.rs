//! Golden texts; `ASSAY_BLESS=1` writes them anew.

use assay::report::{Format, render, rows, table};

use crate::support::sample_run::Sample;

#[test]
fn scratch() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(&Sample::default().build(folder.path())).unwrap();
    println!("{}", table(&rows, None));
    println!("{}", render(&rows, Format::Markdown, None).unwrap());
    let csv = render(&rows, Format::Csv, None).unwrap();
    println!("{}", csv.lines().take(12).collect::<Vec<_>>().join("\n"));
    let json = render(&rows, Format::Json, None).unwrap();
    println!("{} {}", csv.len(), json.len());
}
