//! Load tools. A driver does no I/O: it says what to run and reads what came back.

mod native;
pub mod sysbench;

use std::collections::BTreeMap;
use std::path::Path;

pub use native::Native;
pub use sysbench::Sysbench;

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
    ///
    /// # Errors
    /// The tool cannot do it.
    fn load(
        &self,
        target: &Target,
        dataset: &Dataset,
        seed: u64,
    ) -> Result<Invocation, DriverError>;

    /// What runs a measurement against `target`, leaving its files in `output`.
    ///
    /// # Errors
    /// The tool cannot do it.
    fn run(
        &self,
        target: &Target,
        measure: &Measure,
        output: &Path,
    ) -> Result<Invocation, DriverError>;

    /// Reads the files that a run left.
    ///
    /// # Errors
    /// A file is missing or is not what the tool writes.
    fn parse(&self, files: &Files) -> Result<LoadResult, DriverError>;
}

/// Work that a tool cannot do, or output that cannot be used.
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
    /// sysbench cannot do what is asked.
    #[error("cannot do this with sysbench")]
    Refused(#[from] sysbench::Refusal),
    /// sysbench's numbers say nothing.
    #[error("the numbers of sysbench cannot be used")]
    Unusable(#[from] sysbench::Unusable),
}
