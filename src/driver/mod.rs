//! Load tools. A driver does no I/O: it says what to run and reads what came back.

mod native;

use std::collections::BTreeMap;
use std::path::Path;

pub use native::Native;

use crate::measurement::LoadResult;
use crate::plan::{Measure, Target};
use crate::spec::Dataset;

/// What to run on a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Invocation {
    /// The program's arguments; the program is the assay binary.
    pub agent: &'static str,
    /// The request, as JSON.
    pub request: serde_json::Value,
}

/// The files that a load run left, by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A load tool.
pub trait LoadDriver: Send + Sync {
    /// What loads `dataset` into `target`.
    fn load(&self, target: &Target, dataset: &Dataset, seed: u64) -> Invocation;

    /// What runs a measurement against `target`, leaving its files in `output`.
    fn run(&self, target: &Target, measure: &Measure, output: &Path) -> Invocation;

    /// Reads the files that a run left.
    ///
    /// # Errors
    /// A file is missing or is not what the tool writes.
    fn parse(&self, files: &Files) -> Result<LoadResult, DriverError>;
}

/// Output that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// A file is missing.
    #[error("the driver left no `{0}`")]
    Missing(String),
    /// A file is not what the tool writes.
    #[error("cannot read the driver's `{file}`: {why}")]
    Malformed {
        /// The file.
        file: String,
        /// What is wrong.
        why: String,
    },
}
