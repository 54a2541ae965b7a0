//! Golden texts; `ASSAY_BLESS=1` writes them anew.

use assay::report::{Format, render, rows};

use crate::support::sample_run::Sample;

#[test]
fn scratch() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(&Sample::default().build(folder.path())).unwrap();
    let html = render(&rows, Format::Html, None);
    match html {
        Ok(h) => std::fs::write("/tmp/report/r.html", h).unwrap(),
        Err(e) => panic!("{e} {:?}", std::error::Error::source(&e)),
    }
}
