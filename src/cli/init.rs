//! `assay init`: a commented experiment to start from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};

use super::args::{Global, Init};
use super::error::{Code, Failure};
use super::output;

const EXPERIMENT: &str = include_str!("../../templates/init/experiment.yaml");

pub(super) fn init(global: &Global, args: &Init) -> Result<Code, Failure> {
    let file = args.file.display();
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&args.file)
        .and_then(|mut f| f.write_all(EXPERIMENT.as_bytes()));
    match written {
        Ok(()) => {
            if global.json {
                output::json(&serde_json::json!({ "wrote": args.file }))?;
            } else {
                output::line(format_args!(
                    "wrote {file}; next: assay plan {file}, then assay run {file}"
                ))?;
            }
            Ok(Code::Fine)
        }
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Err(Failure::new(
            Code::Usage,
            format!("`{file}` is there already; nothing was changed"),
        )
        .hint("name another file: `assay init FILE`")),
        Err(e) => Err(Failure::from_error(
            Code::Usage,
            &crate::artifacts::ArchiveError::Io {
                what: "write",
                path: args.file.clone(),
                source: e,
            },
        )),
    }
}
