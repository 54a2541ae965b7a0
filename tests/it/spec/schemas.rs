//! The published schemas and examples.

use std::path::{Path, PathBuf};

use assay::spec::{Request, Spec, experiment_schema, inventory_schema, load};

use super::support::{ROOT, environment};

/// Compares a generated file with the one that is kept, or writes it where `ASSAY_BLESS` is set.
fn kept(path: &str, generated: &str) {
    let path = Path::new(ROOT).join(path);
    if std::env::var_os("ASSAY_BLESS").is_some() {
        std::fs::write(&path, generated).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == generated,
        "{} is out of date: run the tests with ASSAY_BLESS=1 and look at the difference",
        path.display()
    );
}

#[test]
fn the_schemas_in_docs_are_those_of_the_code() {
    let text = |schema| serde_json::to_string_pretty(&schema).unwrap() + "\n";
    kept("docs/experiment.schema.json", &text(experiment_schema()));
    kept("docs/inventory.schema.json", &text(inventory_schema()));
}

fn yaml_files(folder: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = walkdir::WalkDir::new(Path::new(ROOT).join(folder))
        .into_iter()
        .map(|entry| entry.unwrap().into_path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .map(|path| path.strip_prefix(ROOT).unwrap().to_owned())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no files in {folder}");
    files
}

fn check(path: &Path, inventory: Option<&Path>) -> Spec {
    let request = Request {
        path,
        inventory,
        overrides: &[],
        environment: &environment,
        working_directory: Path::new(ROOT),
    };
    load(&request, &[]).unwrap_or_else(|problems| panic!("{}\n{problems}", path.display()))
}

#[test]
fn every_experiment_of_the_project_loads() {
    for path in yaml_files("experiments") {
        check(&path, None);
    }
    check(Path::new("templates/init/experiment.yaml"), None);
}

#[test]
fn every_inventory_of_the_project_loads() {
    for path in yaml_files("inventories") {
        let folder = tempfile::tempdir().unwrap();
        let spec = folder.path().join("x.yaml");
        let inventory = std::fs::read_to_string(Path::new(ROOT).join(&path)).unwrap();
        let host = inventory
            .lines()
            .find_map(|line| line.strip_prefix("  ")?.strip_suffix(':'))
            .unwrap();
        let text = super::support::SMALL.replace("[local]", &format!("[{host}]"));
        std::fs::write(&spec, text).unwrap();
        check(&spec, Some(&path));
    }
}

#[test]
fn the_quickstart_has_48_rounds_and_fits_into_two_minutes() {
    let spec = check(Path::new("experiments/quickstart.yaml"), None);
    let experiment = &spec.experiment;
    let rounds = experiment.variants.len()
        * experiment.workloads.len()
        * experiment.sweep.threads.len()
        * experiment.rounds.repetitions as usize;
    assert_eq!(rounds, 48);
    let load = experiment.rounds.warmup.as_secs_f64() + experiment.rounds.duration.as_secs_f64();
    // Half of the time is left for restoring, starting, stopping and loading.
    assert!(load * 48.0 < 65.0);
}
