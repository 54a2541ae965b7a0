//! Two runs and one host.

use super::user::{MINUTE, Running, User, units, until_driving};
use crate::support::lab::{Lab, LabHost, until};
use std::time::Instant;

/// Assay's processes on a host.
fn processes(host: &LabHost) -> String {
    host.run("pgrep -af '[.]cache/assay/' || true")
}

#[test]
fn a_second_run_is_told_who_holds_the_host_and_takes_it_over_when_that_one_is_dead() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    user.has(&host);
    let mut first = Running::start(user.one_round("run", "100s", ""));
    user.until_measuring(1, &mut first);
    let load = until_driving(&host);
    let run = user.run_folder();
    let id = run.file_name().unwrap().to_string_lossy();
    let said = user.runs(&["run", "one.yaml", "-i", "hosts.yaml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    said.names(&[
        &format!("host `local` is held by run artifacts/quickstart/{id} (process "),
        " since 20",
        "last heard of",
        "wait for that run to end",
    ]);

    first.signal("KILL");
    assert_eq!(first.end().code, None);
    assert_eq!(
        units(&host),
        std::slice::from_ref(&load),
        "a job survives its run"
    );
    let mut resumed = Running::start(user.assay(&["resume"]));
    user.until_measuring(2, &mut resumed);
    assert_ne!(until_driving(&host), load);
    assert_eq!(units(&host).len(), 1);
    // The first request ends after the round, the second ends it.
    resumed.signal("INT");
    resumed.until_it_says("stop", 1);
    resumed.signal("INT");
    let said = resumed.end();
    assert_eq!(said.code, Some(130), "{said:?}");
    until("no job is left", || units(&host).is_empty());
}

#[test]
fn the_lease_of_a_run_on_another_machine_is_broken_only_when_it_is_old_and_one_says_so() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    user.has(&host);
    let lease = format!("{}/.assay-lease", user.directory());
    let text = r#"{"owner":"run far","pid":1,"since":"2026-01-02T03:04:05Z","control":{"machine":"elsewhere","boot":"other","token":"t"}}"#;
    let leave = |age: &str| {
        host.run(&format!(
            "mkdir -p {0} && echo '{text}' >{lease} && touch -d '{age} ago' {lease}",
            user.directory()
        ));
    };
    let run = |more: &[&str]| {
        let mut command = user.one_round("run", "500ms", "");
        command.args(more);
        Running::start(command).end()
    };
    let held =
        "host `local` is held by run far (process 1 on elsewhere) since 2026-01-02T03:04:05Z";
    leave("10 seconds");
    let said = run(&["--break-lease"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    said.names(&[held, "wait for that run to end"]);
    leave("3 minutes");
    let said = run(&[]);
    assert_eq!(said.code, Some(3), "{said:?}");
    said.names(&[held, "last heard of 3m", "`--break-lease`"]);
    assert!(!user.path("artifacts").exists());
    let said = run(&["--break-lease"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(host.run(&format!("cat {lease}")), "");
}

#[test]
fn of_a_run_that_was_killed_nothing_is_left_when_the_next_one_has_ended() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    user.has(&host);
    let mut first = Running::start(user.one_round("run", "100s", ""));
    user.until_measuring(1, &mut first);
    until_driving(&host);
    assert!(processes(&host).contains("agent load"));
    first.signal("KILL");
    assert_eq!(first.end().code, None);
    let killed = Instant::now();
    let next = Running::start(user.one_round("run", "300ms", "")).end();
    assert_eq!(next.code, Some(0), "{next:?}");
    until("no unit and no process of assay is left there", || {
        units(&host).is_empty() && processes(&host).is_empty()
    });
    let jobs = format!("ls -A {}/.assay-jobs", user.directory());
    assert_eq!(host.run(&jobs), "");
    // The master of the killed run's connection ends by itself.
    while !user.processes().is_empty() {
        assert!(killed.elapsed() < MINUTE, "{:?}", user.processes());
        std::thread::park_timeout(std::time::Duration::from_millis(100));
    }
}
