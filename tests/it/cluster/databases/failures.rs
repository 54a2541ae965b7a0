//! Each misbehaviour of a database ends within its limit, as a failure that names what it was.

use std::fs;

use serde_json::json;

use super::{Site, VERSION, lab};
use crate::support::mirror::Mirror;

#[test]
fn a_server_that_does_not_answer_in_time_is_named_with_the_limit() {
    let Some(lab) = lab() else { return };
    let site = Site::misbehaving(lab, json!({"pd-server": {"answer-after": 600}}));
    site.does("deploy", &[]);
    let said = site.says("start", &["--set", "rounds.limits.start=5s"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    said.names(&[
        "error: not ready in time: `pd-2379@db`",
        ":2379/pd/ping`: answers: not within ",
        "last: no answer within ",
    ]);
}

#[test]
fn a_server_that_ends_in_a_measurement_makes_the_round_invalid() {
    let Some(lab) = lab() else { return };
    let site = Site::misbehaving(lab, json!({"tidb-server": {"die-after": 20}}));
    let said = site.run(&["rounds.duration=1m"]);
    assert_eq!(said.code, Some(4), "{said:?}");
    let ended = site.ended();
    let [(status, reason)] = &ended[..] else {
        panic!("{ended:?}")
    };
    assert_eq!(status, "invalid", "{reason}");
    let known = ["ended", "was started again"];
    assert!(
        known
            .map(|how| format!("`tidb-4000@db` {how} during the measurement"))
            .contains(reason),
        "{reason}"
    );
    let (_, processes) = site.of_rounds("processes.json").swap_remove(0);
    let before = processes["before"].as_array().unwrap();
    assert_eq!(before.len(), 3, "{processes}");
    assert_ne!(processes["before"], processes["after"]);
}

#[test]
fn a_cluster_that_never_balances_makes_a_round_invalid() {
    let Some(lab) = lab() else { return };
    let site = Site::misbehaving(lab, json!({"pd-server": {"never-balance": true}}));
    let said = site.run(&["rounds.settle.timeout=6s"]);
    assert_eq!(said.code, Some(4), "{said:?}");
    let ended = site.ended();
    let (status, reason) = &ended[0];
    assert_eq!(status, "invalid", "{reason}");
    let expected = "not quiet within 6s: no operator moves regions: ";
    assert!(reason.starts_with(expected), "{reason}");
}

#[test]
fn a_store_that_is_never_idle_is_noted_with_its_round_where_the_limit_only_warns() {
    let Some(lab) = lab() else { return };
    let site = Site::misbehaving(lab, json!({"tikv-server": {"never-idle": true}}));
    let said = site.run(&["rounds.settle.timeout=8s", "rounds.settle.at_limit=warn"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let (_, result) = site.of_rounds("result.json").swap_remove(0);
    assert!(result["measured"]["count"].as_u64().unwrap() > 0);
    let note = result["notes"][0].as_str().unwrap();
    let busy = [
        "compaction of `tikv-20160@db` is idle",
        "`tikv-20160@db` has flushed its memtables",
    ];
    let noted = busy.iter().find(|what| {
        let start = format!("not quiet when the measurement began: waited until {what}");
        note.starts_with(&start)
    });
    let report = fs::read_to_string(site.run_folder().join("report.html")).unwrap();
    let words = noted
        .unwrap_or_else(|| panic!("{note}"))
        .rsplit("` ")
        .next()
        .unwrap();
    assert!(report.contains(words), "the report tells");
}

#[test]
fn a_tunable_or_a_variable_that_does_not_take_effect_fails_the_deployment_with_both_values() {
    let Some(lab) = lab() else { return };
    let tunable = json!({"ignore-config": ["storage.scheduler-worker-pool-size"]});
    let variable = json!({"ignore-variables": ["tidb_enable_1pc"]});
    let site = Site::of_stand_ins(
        lab,
        "one.yaml",
        &["db"],
        &[
            ("v6.1.2", json!({"tikv-server": tunable})),
            ("v6.1.3", json!({"tidb-server": variable})),
        ],
    );
    let said = site.run(&[
        r#"variants={"tunable": {"version": "v6.1.2"}, "variable": {"version": "v6.1.3"}}"#,
    ]);
    assert_eq!(said.code, Some(3), "{said:?}");
    let failed = site.events("deployment_failed");
    let reason = |of: &str| {
        let event = failed.iter().find(|event| event["deployment"] == of);
        event.unwrap()["reason"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        reason("tunable"),
        "start failed: `storage.scheduler-worker-pool-size` of `tikv-20160@db` is 4 where the experiment asks for 2"
    );
    assert_eq!(
        reason("variable"),
        "start failed: the variable `tidb_enable_1pc` of `tidb` is ON where the experiment asks for 0"
    );
    let skipped = site.ended();
    assert!(
        skipped.iter().all(|(status, _)| status == "skipped"),
        "{skipped:?}"
    );
    assert_eq!(site.units(site.host()), Vec::<String>::new());
}

#[test]
fn a_server_that_does_not_end_when_asked_is_killed_at_its_limit_and_that_is_said() {
    let Some(lab) = lab() else { return };
    let site = Site::misbehaving(lab, json!({"tidb-server": {"ignore-term": true}}));
    site.does("deploy", &[]);
    site.does("start", &[]);
    let said = site.says("stop", &["--set", "rounds.limits.start=3s"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    said.names(&["`tidb-4000@db` did not stop within 3s and was killed"]);
    // The rest is stopped by the next.
    site.does("stop", &[]);
    assert_eq!(site.units(site.host()), Vec::<String>::new());
}

#[test]
fn a_configuration_that_a_program_refuses_is_told_before_anything_is_started() {
    let Some(lab) = lab() else { return };
    // Of a version that the catalogue of keys does not cover, only the program itself can judge.
    let site = Site::of_stand_ins(lab, "one.yaml", &["db"], &[("v8.9.0", json!({}))]);
    let new = r#"variants={"one": {"version": "v8.9.0"}}"#;
    let wrong = r#"cluster.config.tikv={"coprocessor.nonsense": 1}"#;
    let said = site.says("deploy", &["--set", new, "--set", wrong]);
    assert_eq!(said.code, Some(3), "{said:?}");
    said.names(&[
        "error: the configuration is refused by `tikv-20160@db`",
        "coprocessor.nonsense",
    ]);
    assert_eq!(site.units(site.host()), Vec::<String>::new());
}

#[test]
fn a_package_of_another_version_than_its_name_says_fails_the_start() {
    let Some(lab) = lab() else { return };
    let site = Site::of_one(lab);
    let other = Mirror::make(&site.user.path("other"), &["v5.4.3"]);
    let tarball = other.package("tikv", "v5.4.3");
    let tarball = format!("cluster.packages.tarballs.tikv={}", tarball.display());
    site.does("deploy", &["--set", &tarball]);
    let said = site.says("start", &["--set", &tarball]);
    assert_eq!(said.code, Some(3), "{said:?}");
    let expected = format!(
        "`tikv-20160@db` is version 5.4.3 where the experiment asks for {}",
        &VERSION[1..]
    );
    said.names(&[&expected]);
}

#[test]
fn data_of_another_cluster_is_refused() {
    let Some(lab) = lab() else { return };
    let site = Site::of_one(lab);
    for command in ["deploy", "start", "stop"] {
        site.does(command, &[]);
    }
    // PD begins anew, and TiKV has the data of what was before.
    let pd = format!("{}/cluster/one/data/pd-2379", site.user.directory());
    let gone = format!("find {pd} -mindepth 1 -not -name '.assay*' -delete");
    site.host().run(&gone);
    let said = site.says("start", &["--set", "rounds.limits.start=8s"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    said.names(&[
        "the unit `assay-cluster-one-tikv-20160.service` ended with status 1 instead of running",
        "cluster ID mismatch",
    ]);
}
