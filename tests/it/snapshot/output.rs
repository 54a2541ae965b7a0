//! The folder of a driver's results: marked and emptied before a measurement, fetched and removed after it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use assay::host::{Host, LocalHost};
use assay::snapshot::{MarkedDirectory, agent};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{marker, other_marker};

/// A deployment's folder, and that of its driver's results in it.
struct Deployment {
    folder: TempDir,
    out: PathBuf,
}

impl Deployment {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let out = folder.path().join("quick/wal/out");
        Self { folder, out }
    }

    /// Asks the agent `name` for its work on the folder of results.
    fn ask(&self, name: &str) -> Result<(), String> {
        let request = json!(MarkedDirectory {
            directory: self.out.clone(),
            marker: marker(),
        });
        let outcome = agent(name, request, &mut |_| {}).unwrap();
        outcome
            .map(|done| assert_eq!(done, Value::Null))
            .map_err(|error| error.to_string())
    }

    fn host(&self) -> LocalHost {
        LocalHost::new("here", self.folder.path(), "/bin/false")
    }

    /// A message with the folder of results as `OUT`.
    fn said(&self, message: &str) -> String {
        message.replace(&self.out.display().to_string(), "OUT")
    }
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn results_are_written_into_an_empty_folder_fetched_without_the_marker_and_removed() {
    let deployment = Deployment::new();
    let out = &deployment.out;
    for attempt in ["r1+1", "r1+2"] {
        deployment.ask("deploy").unwrap();
        assert_eq!(names(out), [".assay-marker"]);
        fs::create_dir(out.join("deep")).unwrap();
        for i in 0..200 {
            let name = if i % 2 == 0 { "" } else { "deep/" };
            fs::write(out.join(format!("{name}{i}")), attempt).unwrap();
        }
        let home = deployment.folder.path().join("rounds").join(attempt);
        deployment.host().fetch(out, &home).await.unwrap();
        assert_eq!(fs::read_to_string(home.join("0")).unwrap(), attempt);
        assert_eq!(names(&home.join("deep")).len(), 100);
        // 100 files and a folder, but no marker.
        assert_eq!(names(&home).len(), 101);
        assert!(!home.join(".assay-marker").exists());
    }
    for _ in 0..2 {
        deployment.ask("remove").unwrap();
        assert_eq!(names(out.parent().unwrap()), [""; 0]);
    }
}

#[tokio::test]
async fn what_an_earlier_measurement_left_is_gone_before_the_next() {
    let deployment = Deployment::new();
    deployment.ask("deploy").unwrap();
    let outside = TempDir::new().unwrap();
    let thesis = outside.path().join("thesis");
    fs::write(&thesis, "years of work").unwrap();
    // A link that a driver's results would be written through.
    symlink(&thesis, deployment.out.join("load.json")).unwrap();
    symlink(outside.path(), deployment.out.join("r1+1")).unwrap();
    deployment.ask("deploy").unwrap();
    assert_eq!(names(&deployment.out), [".assay-marker"]);
    assert_eq!(fs::read_to_string(&thesis).unwrap(), "years of work");
}

#[tokio::test]
async fn a_link_in_the_place_of_the_results_is_refused_and_what_it_leads_to_stays() {
    let deployment = Deployment::new();
    let outside = TempDir::new().unwrap();
    let target = outside.path().join("a/b");
    fs::create_dir_all(&target).unwrap();
    fs::write(target.join("thesis"), "years of work").unwrap();
    fs::create_dir_all(deployment.out.parent().unwrap()).unwrap();
    symlink(&target, &deployment.out).unwrap();
    for name in ["deploy", "remove"] {
        let said = deployment.said(&deployment.ask(name).unwrap_err());
        assert_eq!(said, "`OUT` is no place for data: it is a symbolic link");
    }
    let home = deployment.folder.path().join("home");
    let fetched = deployment.host().fetch(&deployment.out, &home).await;
    assert!(fetched.is_err() && !home.exists());
    assert_eq!(names(&target), ["thesis"]);
}

#[tokio::test]
async fn foreign_content_in_the_place_of_the_results_is_refused_and_stays() {
    let deployment = Deployment::new();
    let out = &deployment.out;
    fs::create_dir_all(out).unwrap();
    fs::write(out.join("thesis"), "years of work").unwrap();
    let start = "`OUT` is left alone: it carries no marker of assay";
    for name in ["deploy", "remove"] {
        let said = deployment.said(&deployment.ask(name).unwrap_err());
        assert!(said.starts_with(start), "{said}");
    }
    assert_eq!(names(out), ["thesis"]);
    // Nor is it a folder of another deployment's.
    let marker = serde_json::to_string(&other_marker()).unwrap();
    fs::write(out.join(".assay-marker"), marker).unwrap();
    for name in ["deploy", "remove"] {
        let said = deployment.said(&deployment.ask(name).unwrap_err());
        let start = "`OUT` is left alone: it carries the marker of deployment `delete`";
        assert!(said.starts_with(start), "{said}");
    }
    assert_eq!(names(out), [".assay-marker", "thesis"]);
}

#[tokio::test]
async fn a_file_in_the_place_of_the_results_is_refused_and_stays() {
    let deployment = Deployment::new();
    fs::create_dir_all(deployment.out.parent().unwrap()).unwrap();
    fs::write(&deployment.out, "years of work").unwrap();
    for name in ["deploy", "remove"] {
        let said = deployment.said(&deployment.ask(name).unwrap_err());
        assert_eq!(said, "`OUT` is no place for data: it is no directory");
    }
    assert!(deployment.out.is_file());
}
