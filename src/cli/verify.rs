//! `assay verify`: every file of a run against its checksums.

use super::args::{Global, OneRun};
use super::error::{Code, Failure};
use super::{runs, text};
use crate::artifacts::{Layout, Verification, verify as check};

pub(super) fn verify(global: &Global, args: &OneRun) -> Result<Code, Failure> {
    let folder = runs::find(global, args.run.as_deref())?;
    let found = check(&Layout::new(&folder))?;
    if global.json {
        text::print_json(&found);
    } else {
        print(&found);
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

fn print(found: &Verification) {
    let say = |what: &str, paths: &[std::path::PathBuf]| {
        for path in paths {
            println!("{what}  {}", path.display());
        }
    };
    say("changed", &found.changed);
    say("missing", &found.missing);
    say("unknown", &found.unknown);
    println!("{} files are as they were", found.good);
}
