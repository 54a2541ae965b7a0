//! Rounds on a cluster: processes that are watched, quiet that is waited for, connections that are counted.

use super::*;

const HELD: &str = "probe-until";

/// A system of one process, as a pack beside the experiment.
const SHOP: &str = "\
description: a made-up system
protocol: mysql
programs: installed
entry: {role: shop, port: port}
tls: true
roles:
  shop:
    description: serves
    program: /usr/bin/shop
    count: {min: 1}
    ports: {port: 4000}
    data: true
    run: [/usr/bin/shop]
settle:
  - {name: the shelves are full, command: [/usr/bin/shop, --full]}
";

/// A round that begins while something is not quiet is what `at_limit` says.
fn shop(at_limit: &str) -> Value {
    json!({
        "name": "fake",
        "cluster": {"system": "shop", "topology": {"shop": ["local"]}},
        "variants": {"a": {}},
        "load_balancer": {"system": "haproxy", "host": "local"},
        "dataset": {"driver": "native", "schema": "ycsb", "records": 10},
        "workloads": [{"driver": "native", "workload": "ycsb_c"}],
        "sweep": {"threads": [1]},
        "rounds": {
            "warmup": "1s", "duration": "10s", "repetitions": 2,
            "settle": {"timeout": "5m", "at_limit": at_limit},
        },
    })
}

/// A bench whose host runs the shop and HAProxy.
fn bench(experiment: &Value) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let pack = folder.path().join("templates/shop");
    std::fs::create_dir_all(&pack).unwrap();
    std::fs::write(pack.join("system.yaml"), SHOP).unwrap();
    let bench = Bench::with_packs(experiment, Packs::beside(folder.path()));
    // They are read when they are first asked for.
    assert!(bench.packs.get("shop").is_ok());
    let host = &bench.host;
    let nothing = json!({"units": [], "paths": [], "left": []});
    host.on("service-remove", move |_, _| Ok(nothing.clone()));
    let installed = json!({"paths": [], "units": [], "reloaded": false});
    host.on("service-install", move |_, _| Ok(installed.clone()));
    let ran = json!({"status": 0, "signal": null, "stdout": "", "stderr": ""});
    host.on("service-run", move |_, _| Ok(ran.clone()));
    host.on("service-start", |request, _| Ok(states(request, 0)));
    host.on("service-status", |request, _| Ok(states(request, 0)));
    host.on("service-stop", |request, _| {
        let units = request["units"].as_array().unwrap().iter();
        let stopped =
            units.map(|n| json!({"name": n, "before": "active", "killed": false, "exit": null}));
        Ok(stopped.collect())
    });
    host.on(HELD, |_, _| Ok(json!({"after": "1s"})));
    host.on("probe-http", |_, _| {
        Ok(json!({"status": 200, "body": statistics([0, 0])}))
    });
    bench
}

/// The states of the units that are asked for, as they are after so many restarts of the shop.
fn states(request: &Value, restarts: i64) -> Value {
    let units = request["units"].as_array().unwrap().iter();
    let state = units.map(|name| {
        let again = restarts * i64::from(name.as_str().unwrap().contains("shop"));
        json!({
            "name": name, "activity": "active", "pid": 7, "started": 1_000 + again,
            "uptime": 1, "restarts": again, "memory": null, "exit": null,
        })
    });
    state.collect()
}

/// HAProxy's statistics with so many connections at two servers.
fn statistics(connections: [u64; 2]) -> String {
    let [a, b] = connections;
    format!(
        "# pxname,svname,qcur,qmax,scur,smax,slim,stot,status,type,\n\
         shop,FRONTEND,,,{a},{a},,{a},OPEN,0,\n\
         shop,db1:4000,0,0,{a},{a},,{a},UP,2,\n\
         shop,db2:4000,0,0,{b},{b},,{b},UP,2,\n"
    )
}

fn finished(ok: usize, invalid: usize) -> Outcome {
    Outcome::Finished {
        ok,
        failed: 0,
        invalid,
    }
}

#[tokio::test(start_paused = true)]
async fn a_round_during_which_a_process_was_started_again_is_invalid_and_keeps_its_numbers() {
    let bench = bench(&shop("invalid"));
    // Before and after the first round, before and after the second: the third look finds nothing new.
    let mut looks = 0;
    bench.host.on("service-status", move |request, _| {
        looks += 1;
        Ok(states(request, i64::from(looks > 1)))
    });
    assert_eq!(bench.go().await.unwrap(), finished(1, 1));
    let run = bench.run();
    let first = &run.plan.rounds[0].id;
    let result = &run.results[first];
    assert_eq!(result.status, Status::Invalid);
    let reason = "`shop-4000@local` was started again during the measurement";
    assert_eq!(result.reason.as_deref(), Some(reason));
    assert_eq!(result.measured.as_ref().unwrap().count, 100);
    let folder = run.layout.round(first, 1);
    let processes = std::fs::read(folder.join("processes.json")).unwrap();
    let processes: Value = serde_json::from_slice(&processes).unwrap();
    let of = |when: &str| processes[when][0]["started_us"].clone();
    assert_eq!((of("before"), of("after")), (json!(1_000), json!(1_001)));
    bench.assert_every_round_ended_exactly_once();
}

#[tokio::test(start_paused = true)]
async fn an_invalid_round_is_tried_again_where_failed_ones_are() {
    let mut experiment = shop("invalid");
    experiment["rounds"]["on_failure"] = json!("retry 1");
    let bench = bench(&experiment);
    let mut looks = 0;
    bench.host.on("service-status", move |request, _| {
        looks += 1;
        Ok(states(request, i64::from(looks > 1)))
    });
    assert_eq!(bench.go().await.unwrap(), finished(2, 0));
    let run = bench.run();
    assert_eq!(run.results[&run.plan.rounds[0].id].attempt, 2);
}

#[tokio::test(start_paused = true)]
async fn a_round_before_which_the_system_was_not_quiet_in_time_is_invalid_or_says_so() {
    let restless = |request: &Value, _: &mut dyn FnMut(Value)| {
        if request.to_string().contains("--full") {
            return Err(vec![
                "`/usr/bin/shop --full` ended with status 1".to_owned(),
            ]);
        }
        Ok(json!({"after": "1s"}))
    };
    let strict = bench(&shop("invalid"));
    strict.host.on(HELD, restless);
    assert_eq!(strict.go().await.unwrap(), finished(0, 2));
    let run = strict.run();
    let result = &run.results[&run.plan.rounds[0].id];
    assert_eq!(result.measured, None);
    let reason = result.reason.as_deref().unwrap();
    assert!(
        reason.starts_with("not quiet within 5m: the shelves are full: "),
        "{reason}"
    );
    let lenient = bench(&shop("warn"));
    lenient.host.on(HELD, restless);
    assert_eq!(lenient.go().await.unwrap(), finished(2, 0));
    let run = lenient.run();
    let notes = &run.results[&run.plan.rounds[0].id].notes;
    let note = "not quiet when the measurement began: the shelves are full: ";
    assert!(notes[0].starts_with(note), "{notes:?}");
}

#[tokio::test(start_paused = true)]
async fn connections_behind_a_balancer_are_kept_and_uneven_ones_noted() {
    let bench = bench(&shop("invalid"));
    // Idle, in the middle of the measurement, and after it, twice.
    let mut looks = [[0, 0], [40, 8], [40, 8], [0, 0], [24, 24], [24, 24]].into_iter();
    bench.host.on("probe-http", move |_, _| {
        let counts = looks.next().expect("so many looks and no more");
        Ok(json!({"status": 200, "body": statistics(counts)}))
    });
    assert_eq!(bench.go().await.unwrap(), finished(2, 0));
    let run = bench.run();
    let of = |n: usize| {
        let id = &run.plan.rounds[n].id;
        let file = run.layout.round(id, 1).join("balancer.json");
        let kept: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        (kept, run.results[id].notes.clone())
    };
    let (kept, notes) = of(0);
    let db1 = json!({"current": 40, "most": 40, "total": 40, "up": true});
    assert_eq!(kept["servers"]["db1:4000"], db1);
    assert_eq!(notes, ["connections uneven: db1:4000 40, db2:4000 8"]);
    assert!(of(1).1.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_does_not_tell_spoils_no_round() {
    let bench = bench(&shop("invalid"));
    bench
        .host
        .on("probe-http", |_, _| Ok(json!({"status": 503, "body": ""})));
    assert_eq!(bench.go().await.unwrap(), finished(2, 0));
    let run = bench.run();
    let notes = &run.results[&run.plan.rounds[0].id].notes;
    assert!(notes[0].starts_with("connections not read: "), "{notes:?}");
    assert!(notes[0].contains("answers with status 503"), "{notes:?}");
}
