//! `assay show`: the results of a run as a table.

use super::args::{Global, OneRun};
use super::error::{Code, Failure};
use super::{output, runs, text};

pub(super) fn show(global: &Global, args: &OneRun) -> Result<Code, Failure> {
    let run = runs::open(global, args.run.as_deref())?;
    let rows = crate::report::rows(&run)?;
    if global.json {
        output::json(&rows)?;
    } else {
        output::line(crate::report::table(&rows, text::width()))?;
    }
    Ok(Code::Fine)
}
