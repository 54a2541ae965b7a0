//! Reports: one value, [`Rows`], made from a run's folder, and one file for each format that renders it.

mod assets;
mod build;
mod csv;
mod grid;
mod html;
mod json;
mod markdown;
mod metric;
mod number;
pub mod rows;
mod table;
mod timeline;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub use build::rows;
pub use rows::Rows;
pub use table::table;
pub use timeline::{Course, Timelines};

use crate::artifacts::ArchiveError;

/// A format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One self-contained page with charts.
    Html,
    /// Tables as text.
    Markdown,
    /// One row for each round, operation and metric.
    Csv,
    /// The rows themselves.
    Json,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The run cannot be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A file of the page is neither in the folder of templates nor built in.
    #[error("there is no template `report/{0}`")]
    NoTemplate(String),
    /// A template in the folder given cannot be read.
    #[error("cannot read the template `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A template does not render.
    #[error("cannot render the report's template")]
    Template(#[from] minijinja::Error),
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 4] = [Self::Html, Self::Markdown, Self::Csv, Self::Json];

    /// The word for it on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Markdown => "markdown",
            Self::Csv => "csv",
            Self::Json => "json",
        }
    }

    /// The name of its file in a run's folder.
    #[must_use]
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Html => "report.html",
            Self::Markdown => "report.md",
            Self::Csv => "results.csv",
            Self::Json => "results.json",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "html" => Ok(Self::Html),
            "markdown" | "md" => Ok(Self::Markdown),
            "csv" => Ok(Self::Csv),
            "json" => Ok(Self::Json),
            other => Err(format!(
                "expected `html`, `markdown`, `csv` or `json`, found `{other}`"
            )),
        }
    }
}

/// The rows in a format. Files in `templates`/report stand in for those built in.
///
/// # Errors
/// A template cannot be read or does not render.
pub fn render(
    rows: &Rows,
    format: Format,
    templates: Option<&Path>,
) -> Result<String, ReportError> {
    match format {
        Format::Html => html::render(rows, templates),
        Format::Markdown => Ok(markdown::render(rows)),
        Format::Csv => Ok(csv::render(rows)),
        Format::Json => Ok(json::render(rows)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_reads_back_its_own_word() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        assert!("pdf".parse::<Format>().is_err());
    }
}
