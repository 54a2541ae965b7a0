//! Runs on hosts over SSH: as on this machine, and when the host goes away in the middle.

use std::collections::BTreeSet;

use serde_json::Value;

use super::user::{Running, User, until_driving};
use crate::support::lab::{Lab, LabHost, until};

fn json(path: &std::path::Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn the_quickstart_over_ssh_has_the_plan_that_it_has_here_and_knows_its_host() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    user.has(&host);
    let settings = [
        "rounds.warmup=50ms",
        "rounds.duration=200ms",
        "rounds.repetitions=1",
        "sweep.threads=[1]",
    ];
    let said = Running::start(user.quickstart("run", &settings)).end();
    assert_eq!(said.code, Some(0), "{said:?}");
    let run = user.run_folder();

    let here = User::new();
    std::fs::write(
        here.path("hosts.yaml"),
        "hosts: {local: {connection: local, directory: work}}\n",
    )
    .unwrap();
    let local = Running::start(here.quickstart("run", &settings)).end();
    assert_eq!(local.code, Some(0), "{local:?}");
    let plans = [&run, &here.run_folder()].map(|run| std::fs::read(run.join("plan.json")).unwrap());
    assert!(plans[0] == plans[1]);

    let manifest = json(&run.join("manifest.json"));
    let record = &manifest["hosts"]["local"];
    assert_eq!(record["hostname"], host.name.as_str());
    assert_eq!(record["file_system"]["kind"], "xfs");
    assert!(record["clock"]["round_trip_ms"].as_f64().unwrap() > 0.0);
    assert!(record["calibration"]["fsync_p50_ms"].as_f64().unwrap() > 0.0);
    let items = record["preflight"].as_array().unwrap();
    assert!(
        items
            .iter()
            .any(|f| f["item"] == "leftovers" && f["status"] == "ok"),
        "{items:?}"
    );
    assert_eq!(user.runs(&["verify"]).code, Some(0));
}

/// The processes on the host that serve connections.
fn servers(host: &LabHost) -> BTreeSet<String> {
    let found = host.run("pgrep -f 'agent serv[e]' || true");
    found.lines().map(str::to_owned).collect()
}

#[test]
fn two_cuts_in_the_middle_of_a_round_lose_nothing_of_it() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    user.has(&host);
    let mut run = Running::start(user.one_round("run", "25s", ""));
    user.until_measuring(1, &mut run);
    until_driving(&host);
    for times in [1, 2] {
        let before = servers(&host);
        host.cut();
        run.until_it_says("lost the connection to `local`", times);
        host.heal();
        until("it is reached again", || !servers(&host).is_subset(&before));
    }
    assert_eq!(user.ended(), [], "both cuts were in the round");
    let said = run.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(user.ended(), [(1, "ok".into(), String::new())]);
    // Every second of the window is there, each with the operations of its rate.
    let round = std::fs::read_dir(user.run_folder().join("rounds")).unwrap();
    let round = round.map(|entry| entry.unwrap().path()).next().unwrap();
    let result = json(&round.join("result.json"));
    assert_eq!(result["measured"]["count"], 2500, "{}", result["measured"]);
    let intervals = std::fs::read_to_string(round.join("intervals.csv")).unwrap();
    let seconds: BTreeSet<u64> = intervals
        .lines()
        .filter_map(|line| {
            line.strip_prefix("measure,")?
                .split(',')
                .next()?
                .parse()
                .ok()
        })
        .collect();
    assert!(
        (0..25).all(|second| seconds.contains(&second)),
        "{seconds:?}"
    );
}

#[test]
fn a_host_that_dies_in_a_round_ends_the_run_with_the_reason_and_a_resume_goes_on_when_it_is_back() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    user.has(&host);
    let settings = [
        "workloads=[{driver: native, workload: ycsb_a}]",
        "sweep.threads=[1]",
        "rounds.repetitions=1",
        "rounds.duration=3s",
        "rounds.on_failure=stop",
    ];
    let mut command = user.quickstart("run", &settings);
    command.args(["--patience", "2s"]);
    let mut run = Running::start(command);
    user.until_measuring(1, &mut run);
    until_driving(&host);
    host.kill();
    let said = run.end();
    assert_eq!(said.code, Some(4), "{said:?}");
    said.names(&[
        "stopped: round",
        "measure failed: cannot connect to `local`",
        "nothing answered in time",
        "assay resume",
    ]);
    host.heal();
    let resumed = user.runs(&["resume"]);
    assert_eq!(resumed.code, Some(4), "{resumed:?}");
    let ended: Vec<String> = user
        .ended()
        .into_iter()
        .map(|(_, status, _)| status)
        .collect();
    assert_eq!(
        ended,
        ["failed", "ok"],
        "the failure is data, and the rest was done"
    );
}

#[test]
fn a_host_that_is_back_after_a_crash_costs_the_round_and_not_the_run() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    user.has(&host);
    let settings = [
        "workloads=[{driver: native, workload: ycsb_a}]",
        "sweep.threads=[1]",
        "rounds.repetitions=1",
        "rounds.duration=2s",
    ];
    let mut run = Running::start(user.quickstart("run", &settings));
    user.until_measuring(1, &mut run);
    until_driving(&host);
    host.kill();
    host.heal();
    let said = run.end();
    assert_eq!(said.code, Some(4), "{said:?}");
    let ended = user.ended();
    assert_eq!(
        (ended[0].1.as_str(), ended[1].1.as_str()),
        ("failed", "ok"),
        "{ended:?}"
    );
    assert!(
        ended[0].2.contains("it was killed, or the host restarted"),
        "{ended:?}"
    );
}

#[test]
fn a_host_that_stands_still_for_a_while_goes_on_with_its_round() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    user.has(&host);
    let mut run = Running::start(user.one_round("run", "3s", ""));
    user.until_measuring(1, &mut run);
    until_driving(&host);
    host.pause();
    run.until_it_says("lost the connection to `local`", 1);
    host.heal();
    let said = run.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(user.ended(), [(1, "ok".into(), String::new())]);
}
