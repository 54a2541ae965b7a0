//! A folder with spec files, and ways to load from it.

use std::path::Path;

use assay::spec::{Check, Problems, Request, Spec, load};
use tempfile::TempDir;

/// The repository.
pub(super) const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The smallest experiment that loads.
pub(super) const SMALL: &str = "\
name: small
cluster: {system: sqlite, topology: {sqlite: [local]}}
variants: {a: {}, b: {}}
dataset: {driver: native, schema: ycsb}
workloads:
  - {driver: native, workload: ycsb_c}
sweep: {threads: [1]}
rounds: {duration: 1s}
";

/// A folder with files.
pub(super) struct Folder(TempDir);

impl Folder {
    pub(super) fn with(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self(folder)
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn load(&self, name: &str) -> Result<Spec, Problems> {
        self.load_with(name, &[], &[])
    }

    pub(super) fn load_with(
        &self,
        name: &str,
        overrides: &[&str],
        checks: &[Check<'_>],
    ) -> Result<Spec, Problems> {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        let request = Request {
            path: Path::new(name),
            inventory: None,
            overrides: &overrides,
            environment: &environment,
            working_directory: self.path(),
        };
        load(&request, checks)
    }
}

/// The environment of all tests.
pub(super) fn environment(name: &str) -> Option<String> {
    match name {
        "BENCH_PASSWORD" => Some("hunter2 & co".to_owned()),
        "ONE" => Some("1".to_owned()),
        _ => None,
    }
}

/// Loads a text.
pub(super) fn load_text(text: &str) -> Result<Spec, Problems> {
    Folder::with(&[("x.yaml", text)]).load("x.yaml")
}

/// Loads the small experiment with one line of it replaced.
pub(super) fn load_small(line: &str, replacement: &str) -> Result<Spec, Problems> {
    let mut text = String::new();
    let mut replaced = false;
    for old in SMALL.lines() {
        if old.starts_with(line) {
            text.push_str(replacement);
            replaced = true;
        } else {
            text.push_str(old);
        }
        text.push('\n');
    }
    assert!(replaced, "no line begins with {line:?}");
    load_text(&text)
}
