//! assay's own driver, as run on a client: `assay agent load`.

use std::path::Path;

use super::{DriverError, Files, Invocation, LoadDriver};
use crate::measurement::LoadResult;
use crate::plan::{Job, LoadRun, Measure, Target, Work};
use crate::spec::Dataset;

/// The native driver.
pub struct Native;

impl LoadDriver for Native {
    fn load(&self, target: &Target, dataset: &Dataset, seed: u64) -> Invocation {
        invocation(&Job {
            target: target.clone(),
            work: Work::Load(dataset.clone()),
            seed,
        })
    }

    fn run(&self, target: &Target, measure: &Measure, output: &Path) -> Invocation {
        let run = LoadRun {
            workload: measure.workload.clone(),
            dataset: measure.dataset.clone(),
            threads: measure.threads,
            rate: measure.rate,
            warmup: measure.warmup,
            duration: measure.duration,
            output: output.to_owned(),
        };
        invocation(&Job {
            target: target.clone(),
            work: Work::Run(run),
            seed: measure.seed,
        })
    }

    fn parse(&self, files: &Files) -> Result<LoadResult, DriverError> {
        LoadResult::from_files(files).map_err(|(file, why)| DriverError::Malformed { file, why })
    }
}

fn invocation(job: &Job) -> Invocation {
    Invocation {
        agent: "load",
        request: serde_json::to_value(job).expect("a job is plain data"),
    }
}
