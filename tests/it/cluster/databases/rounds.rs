//! A cluster of several hosts in two versions that take turns, behind HAProxy, driven by sysbench.

use std::collections::BTreeSet;
use std::fs;

use serde_json::json;

use super::{Site, json_of, lab_with};

const HOSTS: [&str; 7] = ["sql1", "sql2", "sql3", "kv1", "kv2", "kv3", "edge"];

#[test]
fn two_versions_of_a_cluster_take_turns_behind_a_balancer() {
    let Some(lab) = lab_with(&["mariadbd", "haproxy", "sysbench"]) else {
        return;
    };
    let versions = [("old", "v5.4.3", 2), ("new", "v6.1.2", 3)];
    let well = versions.map(|(_, version, _)| (version, json!({})));
    let site = Site::of_stand_ins(lab, "study.yaml", &HOSTS, &well);
    let said = site.run(&[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let ended = site.ended();
    assert_eq!(ended.len(), 4);
    assert!(ended.iter().all(|(status, _)| status == "ok"), "{ended:?}");
    let order = site.events("round_started");
    let turns: Vec<&str> = order
        .iter()
        .map(|event| event["round"].as_str().unwrap().split('.').nth(2).unwrap())
        .collect();
    assert!(turns[0] != turns[1] && turns[2] != turns[3], "{turns:?}");

    let run = site.run_folder();
    for (variant, version, pool) in versions {
        let start = json_of(&run.join(format!("deployments/{variant}/1-start.json")));
        assert_eq!(start["version"], version);
        assert_eq!(start["whole"].as_object().unwrap().len(), 9);
        let config = &start["config"];
        assert_eq!(
            config["variables"],
            json!({"tidb_enable_1pc": "OFF", "tidb_enable_async_commit": "OFF"})
        );
        assert_eq!(
            config["tikv"]["storage.scheduler-worker-pool-size"],
            pool.to_string()
        );
        assert_eq!(config["tidb"]["performance.max-procs"], "2");
    }
    for (round, balancer) in site.of_rounds("balancer.json") {
        let servers = balancer["servers"].as_object().unwrap();
        assert_eq!(servers.len(), 3, "{round}: {balancer}");
        for (server, connections) in servers {
            assert!(
                connections["total"].as_u64().unwrap() >= 2,
                "{round}: {server}: {balancer}"
            );
        }
    }
    for (round, processes) in site.of_rounds("processes.json") {
        let hosts: BTreeSet<&str> = processes["before"]
            .as_array()
            .unwrap()
            .iter()
            .map(|process| process["host"].as_str().unwrap())
            .collect();
        assert_eq!(hosts, HOSTS.into(), "{round}");
        assert_eq!(processes["before"], processes["after"], "{round}");
    }
    for (round, result) in site.of_rounds("result.json") {
        assert!(
            result["measured"]["count"].as_u64().unwrap() > 0,
            "{round}: {result}"
        );
    }
    let report = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(report.contains("v5.4.3") && report.contains("v6.1.2"));
    let events = fs::read_to_string(run.join("events.jsonl")).unwrap();
    assert!(!events.contains("a b'c"));
    for host in &site.hosts {
        assert_eq!(site.units(host), Vec::<String>::new(), "all is stopped");
    }
    site.is_destroyed_whole();
}
