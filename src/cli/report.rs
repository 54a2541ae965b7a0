//! `assay report`: the report of a run in any format. The archive itself is never changed.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::args::{Format as Wanted, Global, Report};
use super::error::{Code, Failure};
use super::{output, runs};
use crate::artifacts::{ArchiveError, write_new};
use crate::report::{Format, Rows, render, rows};

/// The formats that every finished run has.
const ALL: [Format; 4] = [Format::Html, Format::Markdown, Format::Csv, Format::Json];

pub(super) fn report(global: &Global, args: &Report) -> Result<Code, Failure> {
    let run = runs::open(global, args.run.as_deref())?;
    let rows = rows(&run)?;
    let formats: Vec<Format> = match &args.format[..] {
        [] if global.json => vec![Format::Json],
        [] => vec![Format::Markdown],
        given => given.iter().map(|f| format(*f)).collect(),
    };
    let templates = args.templates.as_deref();
    match (&args.output, &formats[..]) {
        (Some(folder), formats) => {
            for format in formats {
                let path = folder.join(format.file_name());
                write(&path, &render(&rows, *format, templates)?)?;
                output::line(path.display())?;
            }
        }
        (None, [one]) => output::print(&render(&rows, *one, templates)?)?,
        (None, _) => {
            return Err(
                Failure::new(Code::Usage, "several formats cannot be printed at once")
                    .hint("name a folder for them: `--output DIR`"),
            );
        }
    }
    Ok(Code::Fine)
}

/// Writes the reports of a run that has just ended; those that are there already stay.
pub(super) fn write_all(rows: &Rows, folder: &Path) -> Result<(), Failure> {
    for format in ALL {
        let path = folder.join(format.file_name());
        if !path.exists() {
            write_new(&path, render(rows, format, None)?.as_bytes())?;
        }
    }
    Ok(())
}

/// Writes a report beside its name and renames it: a link by that name is replaced, not followed.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let io = |source| ArchiveError::Io {
        what: "write",
        path: path.to_owned(),
        source,
    };
    let folder = path.parent().expect("a report lies in a folder");
    if let Some(run) = run_around(folder) {
        return Err(Failure::new(
            Code::Usage,
            format!("`{}` is a run, which is never changed", run.display()),
        )
        .hint("name another folder"));
    }
    fs::create_dir_all(folder).map_err(io)?;
    let mut file = tempfile::Builder::new()
        .prefix(".report-")
        .tempfile_in(folder)
        .map_err(io)?;
    let readable = fs::Permissions::from_mode(0o644);
    file.write_all(text.as_bytes())
        .and_then(|()| file.as_file().set_permissions(readable))
        .map_err(io)?;
    file.persist(path).map_err(|e| io(e.error))?;
    Ok(())
}

/// The run that a folder, which may not be there yet, lies in.
fn run_around(folder: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(folder).ok()?;
    let there = absolute
        .ancestors()
        .find(|a| a.exists())?
        .canonicalize()
        .ok()?;
    there
        .ancestors()
        .find(|a| a.join("manifest.json").exists() && a.join("events.jsonl").exists())
        .map(Path::to_owned)
}

const fn format(wanted: Wanted) -> Format {
    match wanted {
        Wanted::Html => Format::Html,
        Wanted::Markdown => Format::Markdown,
        Wanted::Csv => Format::Csv,
        Wanted::Json => Format::Json,
    }
}
