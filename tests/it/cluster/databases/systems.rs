//! Systems of the distribution's packages, with no stand-in: the experiments that the documents show.

use std::path::Path;

use super::{Site, json_of, lab_with};

/// An experiment of the lab, run with little load; the values of a tunable in its two variants.
fn compares(site: &Site<'_>, settings: &[&str], tunable: &str, variants: [(&str, &str); 2]) {
    let few = [
        "rounds.warmup=200ms",
        "rounds.duration=1s",
        "rounds.repetitions=1",
        "sweep.threads=[2]",
    ];
    let said = site.run(&[&few[..], settings].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let ended = site.ended();
    assert_eq!(ended.len(), 2);
    assert!(ended.iter().all(|(status, _)| status == "ok"), "{ended:?}");
    let run = site.run_folder();
    for (variant, value) in variants {
        let start = json_of(&run.join(format!("deployments/{variant}/1-start.json")));
        let config = start["config"].as_object().unwrap();
        let found = config.values().find_map(|tunables| tunables.get(tunable));
        assert_eq!(found.unwrap(), value, "{start}");
    }
    for (round, result) in site.of_rounds("result.json") {
        assert!(
            result["measured"]["count"].as_u64().unwrap() > 0,
            "{round}: {result}"
        );
    }
    assert!(run.join("report.html").exists());
    site.is_destroyed_whole();
}

fn experiment(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("experiments/lab")
        .join(name)
}

#[test]
fn mariadb_with_replicas_behind_haproxy_is_compared_with_no_stand_in() {
    let Some(lab) = lab_with(&["mariadbd", "haproxy", "sysbench"]) else {
        return;
    };
    let hosts = ["lab1", "lab2", "lab3", "lab4", "lab5"];
    let site = Site::new(lab, experiment("mariadb-haproxy.yaml"), &hosts);
    let settings = [
        "dataset={\"driver\": \"sysbench\", \"tables\": 1, \"table_size\": 500, \"then\": [\"analyze\"]}",
        "workloads=[{\"driver\": \"sysbench\", \"script\": \"oltp_write_only\"}]",
    ];
    let tunable = "innodb_flush_log_at_trx_commit";
    compares(
        &site,
        &settings,
        tunable,
        [("every-commit", "1"), ("every-second", "2")],
    );
}

#[test]
fn postgresql_is_compared_with_no_stand_in() {
    let Some(lab) = lab_with(&["postgres", "sysbench"]) else {
        return;
    };
    let site = Site::new(lab, experiment("postgresql.yaml"), &["lab1", "lab5"]);
    let settings = ["dataset={\"driver\": \"sysbench\", \"tables\": 1, \"table_size\": 500}"];
    compares(
        &site,
        &settings,
        "synchronous_commit",
        [("waits", "on"), ("goes-on", "off")],
    );
}
