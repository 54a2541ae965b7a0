//! sysbench and its OLTP scripts, 1.0 and 1.1, on MySQL and PostgreSQL servers: its command lines and its reports.

mod command;
mod connection;
mod options;
mod report;
mod result;

use std::path::Path;

pub use options::{Refusal, Series, check as check_options};
pub use report::{Histogram, Latencies, Queries, Report, Second, Unusable};

use super::{DriverError, Files, Invocation, LoadDriver};
use crate::measurement::LoadResult;
use crate::plan::{Measure, StepRecord, Target, Tool, ToolRecord};
use crate::spec::Dataset;

/// The step that measures.
const RUN: &str = "run";
/// What the measured run printed.
const OUTPUT: &str = "sysbench.txt";
/// What a warm-up of its own printed.
const WARMUP: &str = "warmup.txt";

/// sysbench, as installed on a client.
pub struct Sysbench;

impl LoadDriver for Sysbench {
    fn load(
        &self,
        target: &Target,
        dataset: &Dataset,
        seed: u64,
    ) -> Result<Invocation, DriverError> {
        Ok(invocation(&command::load(target, dataset, seed)?))
    }

    fn run(
        &self,
        target: &Target,
        measure: &Measure,
        output: &Path,
    ) -> Result<Invocation, DriverError> {
        Ok(invocation(&command::run(target, measure, output)?))
    }

    fn parse(&self, files: &Files) -> Result<LoadResult, DriverError> {
        let run = record(files)?;
        if run.status != Some(0) {
            return Err(Unusable::Ended(run.status).into());
        }
        let report = Report::read(&text(files, OUTPUT)?)?;
        let warmup = match files.contains_key(WARMUP) {
            true => report::seconds(&text(files, WARMUP)?),
            false => Vec::new(),
        };
        // A warm-up of the same run used a part of it.
        let warmed_up = run.args.iter().any(|arg| arg.starts_with("--warmup-time="));
        let cpu_s = run.cpu_s.filter(|_| !warmed_up);
        Ok(result::of(&report, &warmup, cpu_s)?)
    }
}

fn invocation(tool: &Tool) -> Invocation {
    Invocation {
        agent: "tool",
        request: serde_json::to_value(tool).expect("a tool's order is plain data"),
    }
}

/// How the measured run went.
fn record(files: &Files) -> Result<StepRecord, DriverError> {
    let file = Tool::RECORD;
    let bytes = files
        .get(file)
        .ok_or_else(|| DriverError::Missing(file.into()))?;
    let malformed = |why: String| DriverError::Malformed {
        file: file.into(),
        why,
    };
    let record: ToolRecord =
        serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))?;
    let run = record.steps.into_iter().find(|step| step.name == RUN);
    run.ok_or_else(|| malformed(format!("there is no step `{RUN}` in it")))
}

fn text(files: &Files, name: &str) -> Result<String, DriverError> {
    let bytes = files
        .get(name)
        .ok_or_else(|| DriverError::Missing(name.into()))?;
    Ok(String::from_utf8_lossy(bytes).into_owned())
}
