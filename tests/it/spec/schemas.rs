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
    // Those for the lab name the inventory that `assay lab up` writes.
    let lab = Path::new("tests/fixtures/inventories/lab.yaml");
    for path in yaml_files("experiments") {
        let inventory = path.starts_with("experiments/lab").then_some(lab);
        check(&path, inventory);
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

/// The names of all properties in a schema.
fn keys(schema: &serde_json::Value, found: &mut Vec<String>) {
    if let Some(properties) = schema["properties"].as_object() {
        found.extend(properties.keys().cloned());
    }
    let below = schema
        .as_object()
        .into_iter()
        .flat_map(|object| object.values());
    let items = schema.as_array().into_iter().flatten();
    below.chain(items).for_each(|below| keys(below, found));
}

#[test]
fn the_large_example_uses_every_key_that_sqlite_has_a_use_for() {
    let path = Path::new(ROOT).join("experiments/sqlite-tuning.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let uncommented: String = text
        .lines()
        .filter_map(|line| line.split('#').next())
        .fold(String::new(), |all, line| all + line + "\n");
    let mut all = Vec::new();
    keys(&experiment_schema(), &mut all);
    let unused: Vec<String> = all
        .into_iter()
        .filter(|key| !uncommented.contains(&format!("{key}:")))
        .collect();
    let (of_all, of_servers): (Vec<&str>, Vec<&str>) = unused
        .iter()
        .map(String::as_str)
        .partition(|key| ["extends", "version"].contains(key));
    // There is no version to choose of SQLite: `version` is a key of the cluster and of a variant.
    assert_eq!(of_all, ["extends", "version", "version"]);
    // What only a system with servers has a use for stands in the document.
    let document = std::fs::read_to_string(Path::new(ROOT).join("docs/experiment.md")).unwrap();
    let named = |key: &&str| {
        document.contains(&format!("{key}`")) || document.contains(&format!("`{key}."))
    };
    let missing: Vec<&str> = of_servers
        .iter()
        .copied()
        .filter(|key| !named(key))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(of_servers.contains(&"load_balancer") && of_servers.contains(&"settle"));
    for key in [
        "schema", "records", "tables", "workload", "threads", "restore",
    ] {
        assert!(!of_servers.contains(&key), "{key}");
    }
}

#[test]
fn what_the_starting_experiment_suggests_in_comments_is_valid() {
    let path = Path::new(ROOT).join("templates/init/experiment.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let mut suggestions = 0;
    let mut uncommented = String::new();
    for line in text.lines() {
        let key = line.trim_start().strip_prefix('#').map(str::trim_start);
        let key = key.and_then(|key| key.split_once(':')).map(|(key, _)| key);
        let is_key = |key: &str| key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        if key.is_some_and(is_key) {
            suggestions += 1;
            uncommented += &line.replacen("# ", "", 1);
        } else {
            uncommented += line;
        }
        uncommented.push('\n');
    }
    assert_eq!(suggestions, 18);
    let inventory = "hosts: {local: {connection: local}}\n";
    let files = [
        ("x.yaml", uncommented.as_str()),
        ("inventory.yaml", inventory),
    ];
    let problems = super::support::Folder::with(&files).load("x.yaml");
    let spec = problems.unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(spec.experiment.seed, Some(1));
}
