//! assay's own driver, as run on a client: `assay agent load`.

use std::path::Path;

use super::{DriverError, Files, Invocation, LoadDriver};
use crate::measurement::LoadResult;
use crate::plan::{Job, LoadRun, Measure, Target, Work};
use crate::spec::Dataset;

/// The native driver.
pub struct Native;

impl LoadDriver for Native {
    fn load(
        &self,
        target: &Target,
        dataset: &Dataset,
        seed: u64,
    ) -> Result<Invocation, DriverError> {
        Ok(invocation(&Job {
            target: target.clone(),
            work: Work::Load(dataset.clone()),
            seed,
        }))
    }

    fn run(
        &self,
        target: &Target,
        measure: &Measure,
        output: &Path,
    ) -> Result<Invocation, DriverError> {
        let run = LoadRun {
            workload: measure.workload.clone(),
            dataset: measure.dataset.clone(),
            threads: measure.threads,
            rate: measure.rate,
            warmup: measure.warmup,
            duration: measure.duration,
            output: output.to_owned(),
        };
        Ok(invocation(&Job {
            target: target.clone(),
            work: Work::Run(run),
            seed: measure.seed,
        }))
    }

    fn parse(&self, files: &Files) -> Result<LoadResult, DriverError> {
        LoadResult::from_files(files).map_err(|(file, why)| {
            if files.contains_key(&file) {
                DriverError::Malformed { file, why }
            } else {
                DriverError::Missing(file)
            }
        })
    }
}

fn invocation(job: &Job) -> Invocation {
    Invocation {
        agent: "load",
        request: serde_json::to_value(job).expect("a job is plain data"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::measurement::Phase;

    /// What `assay agent load` left of a run, and what it said at its end. The recordings are made by the program itself.
    fn recorded(name: &str) -> (Files, serde_json::Value) {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/driver/native");
        let mut files = Files::new();
        for entry in std::fs::read_dir(folder.join(name)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            files.insert(name, std::fs::read(path).unwrap());
        }
        let said = String::from_utf8(files.remove("said.jsonl").unwrap()).unwrap();
        let last = said.lines().last().unwrap();
        (files, serde_json::from_str(last).unwrap())
    }

    #[test]
    fn a_good_run_is_read_as_it_said_at_its_end() {
        let (files, said) = recorded("good");
        let said = &said["done"]["measured"];
        let result = Native.parse(&files).unwrap();
        assert_eq!(said["operations"], result.count());
        assert_eq!(said["seconds"], result.window_s);
        assert_eq!((result.errors(), result.threads), (0, 4));
        let names: Vec<&str> = result.operations.iter().map(|o| o.name.as_str()).collect();
        assert_eq!(names, ["read", "update"]);
        // The rollback journal let one thread through: each of the four was in flight at the end.
        assert_eq!((result.late(), result.idle_threads), (4, 3));
        let measured = result
            .intervals
            .iter()
            .filter(|i| i.phase == Phase::Measure);
        let seconds = measured.filter(|i| i.operation == "all");
        assert_eq!(seconds.map(|i| i.count).sum::<u64>(), result.count());
    }

    #[test]
    fn operations_that_failed_are_read_by_kind() {
        let (files, said) = recorded("failed-operations");
        let result = Native.parse(&files).unwrap();
        let said = &said["done"]["measured"];
        assert_eq!(said["errors"], result.errors());
        assert_eq!(said["operations"], result.operations[0].latency.count());
        let update = &result.operations[1];
        assert_eq!((update.errors.len(), update.latency.count()), (1, 0));
        assert_eq!(said["errors"], update.errors["busy"]);
    }

    #[test]
    fn a_run_that_was_killed_left_nothing_and_is_named() {
        let (files, said) = recorded("cut-off");
        assert!(files.is_empty() && said.get("done").is_none());
        let error = Native.parse(&files).unwrap_err();
        assert_eq!(error.to_string(), "the driver left no `load.json`");
    }

    #[test]
    fn a_file_that_is_missing_or_cut_anywhere_is_named() {
        let (whole, _) = recorded("good");
        let result = Native.parse(&whole).unwrap();
        for name in LoadResult::FILES {
            let mut files = whole.clone();
            let text = files.remove(name).unwrap();
            let error = Native.parse(&files).unwrap_err();
            assert_eq!(error.to_string(), format!("the driver left no `{name}`"));
            for length in (0..text.len()).step_by(7) {
                files.insert(name.into(), text[..length].to_vec());
                match Native.parse(&files) {
                    Err(DriverError::Malformed { file, .. }) => assert_eq!(file, name),
                    Err(other) => panic!("{other}"),
                    // A cut that no reader can see: only lines at the end are gone.
                    Ok(read) => {
                        let lost = read.intervals.len() < result.intervals.len();
                        assert!(lost || read.late() < result.late(), "{name} at {length}");
                    }
                }
            }
        }
    }
}
