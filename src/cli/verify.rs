//! `assay verify`: every file of a run against its checksums.

use super::args::{Global, OneRun};
use super::error::{Code, Failure};
use super::{output, runs};
use crate::artifacts::{Layout, Verification, verify as check};

pub(super) fn verify(global: &Global, args: &OneRun) -> Result<Code, Failure> {
    let folder = runs::find(global, args.run.as_deref())?;
    let found = check(&Layout::new(&folder))?;
    if global.json {
        output::json(&found)?;
    } else {
        print(&found)?;
    }
    if found.is_good() {
        return Ok(Code::Fine);
    }
    let bad = found.changed.len() + found.missing.len() + found.unknown.len();
    Err(Failure::new(
        Code::Rounds,
        format!(
            "`{}` is not as it was: {bad} files differ",
            folder.display()
        ),
    )
    .hint("do not trust its results; take the archive from a backup, or run again"))
}

fn print(found: &Verification) -> Result<(), Failure> {
    let all = [
        ("changed", &found.changed),
        ("missing", &found.missing),
        ("unknown", &found.unknown),
    ];
    for (what, paths) in all {
        for path in paths {
            output::line(format_args!(
                "{what}  {}",
                output::clean(&path.to_string_lossy())
            ))?;
        }
    }
    output::line(format_args!("{} files are as they were", found.good))
}
