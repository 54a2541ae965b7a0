//! What was cut short is finished by doing it again, and what is done may be done again.

use serde_json::Value;

use super::{Site, lab};
use crate::cluster::user::Running;

/// How the instances are: name, state, health.
fn states(site: &Site<'_>) -> Vec<(String, String, Option<String>)> {
    let said = site.does("status", &["--json"]).json();
    let instances = said["one"].as_array().unwrap();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    instances
        .iter()
        .map(|i| {
            let name = text(&i["instance"]).unwrap();
            (name, text(&i["state"]).unwrap(), text(&i["fault"]))
        })
        .collect()
}

/// All three instances in one state.
fn all(state: &str, fault: Option<&str>) -> Vec<(String, String, Option<String>)> {
    ["pd-2379@db", "tikv-20160@db", "tidb-4000@db"]
        .map(|name| (name.to_owned(), state.to_owned(), fault.map(str::to_owned)))
        .to_vec()
}

/// Kills a command when it says that it is at a step.
fn killed_at(site: &Site<'_>, command: &str, step: &str) {
    let running = Running::start(site.assay(command, &["-v"]));
    running.until_it_says(&format!("one: {step}"), 1);
    running.signal("KILL");
    running.end();
}

#[test]
fn a_deploy_and_a_start_that_were_killed_are_finished_by_the_next() {
    let Some(lab) = lab() else { return };
    let site = Site::of_one(lab);
    for step in [
        "package pd",
        "folders and files",
        "programs",
        "data and checks",
    ] {
        killed_at(&site, "deploy", step);
    }
    site.does("deploy", &[]);
    for step in ["start pd", "start tikv", "variables"] {
        killed_at(&site, "start", step);
    }
    site.does("start", &[]);
    assert_eq!(states(&site), all("active", None));
    killed_at(&site, "stop", "stop tikv");
    site.does("stop", &[]);
    assert_eq!(states(&site), all("inactive", Some("it does not run")));
}

#[test]
fn a_cluster_is_deployed_started_shown_stopped_and_destroyed_as_often_as_one_likes() {
    let Some(lab) = lab() else { return };
    let site = Site::of_one(lab);
    site.does("deploy", &[]);
    site.does("deploy", &[]);
    site.does("start", &[]).names(&["one runs"]);
    let first = site.does("status", &["--json"]).json();
    site.does("start", &[]);
    let second = site.does("status", &["--json"]).json();
    for (before, after) in first["one"]
        .as_array()
        .unwrap()
        .iter()
        .zip(second["one"].as_array().unwrap())
    {
        assert_eq!(before["pid"], after["pid"], "what runs goes on");
        assert!(after["uptime_s"].as_f64() > before["uptime_s"].as_f64());
        let version = after["version"].as_str().unwrap();
        assert_eq!(version.trim_start_matches('v'), "6.1.2");
        assert_eq!(after["leader"], after["role"] == "pd");
        assert_eq!(after["restarts"], 0);
    }
    assert_eq!(states(&site), all("active", None));
    let table = site.does("status", &[]).out;
    let leader = table
        .lines()
        .find(|line| line.contains("pd-2379@db (leader)"))
        .unwrap();
    assert!(leader.contains("healthy"), "{table}");

    site.does("stop", &[]).names(&["one is stopped"]);
    site.does("stop", &[]);
    assert_eq!(states(&site), all("inactive", Some("it does not run")));
    site.does("destroy", &[]).names(&["one is removed"]);
    site.does("destroy", &[]);
    assert_eq!(states(&site), all("absent", Some("it does not run")));
}
