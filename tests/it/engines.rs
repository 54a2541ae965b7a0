//! Who else deploys: a cluster that is there already, and TiUP, of which a stand-in is used that records what it is told.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use assay::database::{self, Database, DatabaseError, Hosts, Parts, Work};
use assay::host::{Bounds, FakeHost, Host};
use assay::pack::Packs;
use assay::plan::{Action, Plan, build, estimate};
use assay::spec::{Experiment, Inventory, Problem};
use assay::tiup;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::mariadb::MariaDb;
use crate::support::skipped;

fn inventory() -> Inventory {
    let host =
        |address: &str| json!({"address": address, "user": "ops", "identity_file": "/keys/ops"});
    serde_json::from_value(json!({"hosts": {
        "db1": host("10.0.0.1"),
        "db2": host("10.0.0.2"),
        "client": host("10.0.0.9"),
    }}))
    .unwrap()
}

/// An experiment with everything but who deploys.
fn experiment(over: &Value) -> Experiment {
    let mut whole = json!({
        "name": "engines",
        "cluster": {"system": "tidb"},
        "variants": {"a": {}, "b": {}},
        "clients": ["client"],
        "dataset": {"driver": "sysbench", "tables": 1, "table_size": 100},
        "workloads": [{"driver": "sysbench", "script": "oltp_read_only"}],
        "sweep": {"threads": [1]},
        "rounds": {"duration": "1s", "repetitions": 1},
    });
    for (key, value) in over.as_object().unwrap() {
        whole[key] = value.clone();
    }
    serde_json::from_value(whole).unwrap()
}

fn plan(experiment: &Experiment) -> Plan {
    build(experiment, &inventory(), &Packs::built_in(), "0123").unwrap()
}

fn problems(over: &Value) -> Vec<String> {
    let found = database::check(&experiment(over), &inventory(), &Packs::built_in());
    let told = |problem: Problem| format!("{}: {}", problem.path, problem.message);
    found.into_iter().map(told).collect()
}

fn names(steps: &[assay::plan::Step]) -> Vec<&'static str> {
    steps.iter().map(|step| step.action.name()).collect()
}

/// Two variants of clusters that are there already.
fn external(variants: Value) -> Value {
    json!({
        "deploy": {"engine": "external", "addresses": ["10.0.1.1:4000", "10.0.1.2:4000"]},
        "snapshot": {"restore": "never"},
        "variants": variants,
    })
}

#[test]
fn a_cluster_that_is_there_is_neither_deployed_nor_stopped_and_lies_on_no_host_of_the_plan() {
    let plan = plan(&experiment(&external(
        json!({"a": {}, "b": {"addresses": ["10.0.2.1:4000"]}}),
    )));
    for deployment in &plan.deployments {
        assert_eq!(names(&deployment.prepare), ["start", "load"]);
        assert!(deployment.instances.is_empty());
    }
    for round in &plan.rounds {
        assert_eq!(
            names(&round.steps),
            ["start", "settle", "measure", "collect"]
        );
    }
    assert_eq!(plan.deployments[1].deploy.addresses, ["10.0.2.1:4000"]);
    assert_ne!(
        plan.deployments[0].fingerprint,
        plan.deployments[1].fingerprint
    );
    assert_eq!(Vec::from_iter(plan.hosts()), ["client"]);
    assert_eq!(estimate(&plan).host_bytes, 0);
    let text = assay::plan::text(&plan, &estimate(&plan));
    assert!(
        text.contains("b  there at 10.0.2.1:4000  start, load"),
        "{text}"
    );
}

#[test]
fn the_data_of_one_cluster_with_several_variants_is_loaded_once() {
    let other_way_round = ["10.0.1.2:4000", "10.0.1.1:4000"];
    let variants = json!({"a": {}, "b": {"addresses": other_way_round}});
    let plan = plan(&experiment(&external(variants)));
    let loads = |action: &Action| matches!(action, Action::Load(_));
    let loading = plan.deployments.iter().map(|deployment| {
        let steps = deployment.prepare.iter();
        steps.filter(|step| loads(&step.action)).count()
    });
    assert_eq!(Vec::from_iter(loading), [1, 0]);
}

#[test]
fn what_an_external_cluster_cannot_be_given_is_told() {
    assert_eq!(problems(&external(json!({"a": {}}))), [""; 0]);
    let mut wrong = external(json!({
        "a": {"variables": {"tidb_enable_1pc": 1}},
        "b": {"addresses": ["nowhere"], "config": {"tikv": {"log.level": "warn"}}},
        "c": {},
    }));
    wrong["cluster"] = json!({"system": "tidb", "tls": true});
    wrong["snapshot"] = json!({"restore": "each-round"});
    let there = "an external cluster is there already: nothing is deployed";
    let mut found = problems(&wrong);
    found.sort();
    assert_eq!(
        found,
        [
            &format!("cluster.tls: {there}"),
            "snapshot.restore: an external cluster is never stopped, so that its data cannot be put back",
            "variants.a.variables.tidb_enable_1pc: `tidb_enable_1pc` would stay set for `c`, which is the same cluster",
            "variants.b.addresses[0]: expected `HOST:PORT`, found `nowhere`",
            &format!("variants.b.config: {there}"),
        ]
    );
}

#[test]
fn addresses_of_a_variant_are_those_of_an_external_cluster() {
    let mut over = tiup_experiment(Path::new("tiup"));
    over["variants"] = json!({"a": {"addresses": ["10.0.1.1:4000"]}});
    let found = problems(&over);
    let told = "variants.a.addresses: `addresses` is a key of the engine `external`";
    assert_eq!(found, [told]);
}

/// Two variants, each with ports of its own, that TiUP deploys.
fn tiup_experiment(program: &Path) -> Value {
    let other = json!({
        "pd": [{"host": "db1", "client_port": 3379, "peer_port": 3380}],
        "tikv": [{"host": "db1", "port": 30160, "status_port": 30180}],
        "tidb": [{"host": "db1", "port": 5000, "status_port": 11080}],
    });
    json!({
        "deploy": {"engine": "tiup", "tiup": program},
        "cluster": {
            "system": "tidb",
            "version": "v7.5.0",
            "topology": {"pd": ["db1"], "tikv": ["db1"], "tidb": ["db1"]},
            "config": {
                "tikv": {"raftstore.apply-pool-size": 3},
                "pd": {"replication": {"location-labels": ["host"]}},
            },
            "packages": {"mirror": "/mirror"},
        },
        "variants": {"a": {}, "b": {"topology": other}},
    })
}

#[test]
fn what_tiup_refuses_or_assay_cannot_have_it_do_is_told() {
    let sound = tiup_experiment(Path::new("tiup"));
    assert_eq!(problems(&sound), [""; 0]);
    let mut same_ports = sound.clone();
    same_ports["variants"] = json!({"a": {}, "b": {}});
    let [found] = &problems(&same_ports)[..] else {
        panic!("one problem");
    };
    assert!(
        found.starts_with(
            "variants.b: TiUP refuses clusters that share a port: `a` and `b` would both have"
        ),
        "{found}"
    );
    let mut wrong = sound;
    wrong["cluster"]["tls"] = json!(true);
    wrong["cluster"]["packages"] = json!({"offline": "/tidb.tar.gz"});
    wrong["load_balancer"] = json!({"host": "db2"});
    let mut found = problems(&wrong);
    found.sort();
    assert_eq!(
        found,
        [
            "cluster.packages.offline: TiUP takes packages from a mirror only",
            "cluster.tls: with TiUP, assay cannot speak TLS: TiUP keeps the certificates",
            "load_balancer.host: TiUP deploys no such balancer",
        ]
    );
}

/// A stand-in of `tiup`: it writes down what it is told, and knows a cluster from `deploy` to `destroy`.
const TIUP: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$*" >> "$here/calls"
echo "${TIUP_MIRRORS-}" > "$here/mirror"
if [ -f "$here/refusal" ] && [ "$2" = "$(head -n 1 "$here/refusal")" ]; then
  tail -n +2 "$here/refusal" >&2
  exit 1
fi
if [ "$2" = deploy ]; then
  cp "$5" "$here/topology.yaml" && touch "$here/known"
elif ! [ -f "$here/known" ]; then
  echo "Error: Cluster $3 not found (a stand-in of tiup says so)" >&2
  exit 1
fi
case "$2" in
  display) cat "$here/display.json" ;;
  edit-config)
    if [ -f "$here/immutable" ]; then
      echo "New topology could not be saved: an immutable field changed, says a stand-in of tiup"
      exit
    fi
    cp "$5" "$here/topology.yaml" ;;
  destroy) rm "$here/known" ;;
esac
echo "$2 is done, says a stand-in of tiup"
"#;

/// TiUP's stand-in, and a fake host for the database.
struct Bench {
    folder: TempDir,
    plan: Plan,
    host: Arc<FakeHost>,
    hosts: Hosts,
}

impl Bench {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Value)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("tiup");
        fs::write(&program, TIUP).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut over = tiup_experiment(&program);
        change(&mut over);
        let plan = plan(&experiment(&over));
        let host = Arc::new(scripted());
        let mut hosts = Hosts::new();
        for name in plan.hosts() {
            hosts.insert(name, Arc::clone(&host) as Arc<dyn Host>);
        }
        let bench = Self {
            folder,
            plan,
            host,
            hosts,
        };
        bench.shows("v7.5.0", "Down", "/srv/assay/engines/a");
        bench
    }

    /// What `display` prints: the instances of the first variant below a folder.
    fn shows(&self, version: &str, status: &str, base: &str) {
        let instances = self.plan.deployments[0].instances.iter().map(|instance| {
            let folder = format!("{base}/deploy/{}-{}", instance.role, instance.port);
            json!({"id": format!("10.0.0.1:{}", instance.port), "status": status, "os_arch": "linux/x86_64",
                "deploy_dir": folder})
        });
        let shown = json!({
            "cluster_meta": {"cluster_name": "assay-engines-a", "cluster_version": version},
            "instances": Vec::from_iter(instances),
        });
        let text = serde_json::to_string_pretty(&shown).unwrap();
        fs::write(self.folder.path().join("display.json"), text).unwrap();
    }

    fn refuses(&self, command: &str, words: &str) {
        let text = format!("{command}\n{words}\n");
        fs::write(self.folder.path().join("refusal"), text).unwrap();
    }

    fn database(&self) -> Box<dyn Database> {
        let parts = Parts {
            experiment: &self.plan.experiment,
            deployment: &self.plan.deployments[0],
            packs: &Packs::built_in(),
            hosts: &self.hosts,
            packages: &self.folder.path().join("packages"),
            reveal: &str::to_owned,
        };
        database::of(parts).unwrap()
    }

    /// Does something with the database.
    async fn work<T>(
        &self,
        act: impl for<'w> AsyncFnOnce(&'w dyn Database, Work<'w>) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        let stop = CancellationToken::new();
        let bounds = Bounds {
            limit: Duration::from_secs(60),
            stop: &stop,
        };
        let work = Work {
            hosts: &self.hosts,
            bounds,
            say: &mut |_: &str| {},
        };
        act(&*self.database(), work).await
    }

    async fn deploy(&self, fresh: bool) -> Result<Value, DatabaseError> {
        self.work(async |database, work| database.deploy(fresh, work).await)
            .await
    }

    /// What TiUP was told since the last time, its paths without the folder.
    fn calls(&self) -> Vec<String> {
        let path = self.folder.path().join("calls");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        let folder = self.folder.path().display().to_string();
        let calls = text.lines();
        calls
            .map(|call| call.replace(&folder, "").replace("cluster ", ""))
            .collect()
    }
}

/// A host on which everything goes well and nothing runs.
fn scripted() -> FakeHost {
    let host = FakeHost::new("db1", "/srv/assay");
    let nothing = || Ok(json!({"units": [], "paths": [], "left": []}));
    host.on("service-install", |_, _| {
        Ok(json!({"paths": [], "units": [], "reloaded": false}))
    });
    host.on("service-remove", move |_, _| nothing());
    host.on("service-removal", move |_, _| nothing());
    host.on("service-status", |request, _| {
        let units = request["units"].as_array().unwrap().iter();
        let state = |unit: &Value| {
            json!({"name": unit, "activity": "inactive", "pid": null, "started": null, "uptime": null,
                "restarts": 0, "memory": null, "exit": null})
        };
        Ok(units.map(state).collect())
    });
    host.on("probe-until", |_, _| Ok(json!({"after": "0s"})));
    host.on("probe-http", |request, _| {
        let url = request["url"].as_str().unwrap();
        let body = match url.ends_with("/version") {
            true => json!({"version": "v7.5.0"}),
            false => json!({"raftstore": {"apply-pool-size": 3}, "replication": {"location-labels": ["host"]}}),
        };
        Ok(json!({"status": 200, "body": body.to_string()}))
    });
    host.on("probe-sql", |request, _| {
        let statements = request["statements"].as_array().unwrap().iter();
        let table = |statement: &Value| {
            let rows = match statement.as_str().unwrap().contains("tidb_version") {
                true => json!([["Release Version: v7.5.0"]]),
                false => json!([]),
            };
            json!({"columns": [], "rows": rows})
        };
        Ok(statements.map(table).collect())
    });
    host.on("service-run", |_, _| {
        Ok(json!({"status": 0, "stdout": "Release Version: 7.5.0", "stderr": ""}))
    });
    host
}

#[tokio::test]
async fn tiup_deploys_the_plan_as_it_stands_and_only_once() {
    let bench = Bench::new();
    let record = bench.deploy(true).await.unwrap();
    let deploy = "deploy assay-engines-a v7.5.0 /packages/tiup/assay-engines-a.yaml --yes --no-labels \
                  --user ops -i /keys/ops";
    assert_eq!(
        bench.calls(),
        ["display assay-engines-a --format json", deploy]
    );
    let mirror = fs::read_to_string(bench.folder.path().join("mirror")).unwrap();
    assert_eq!(mirror, "/mirror\n");
    let said = record["said"].as_array().unwrap().last().unwrap();
    assert_eq!(said, "deploy is done, says a stand-in of tiup");
    // Its folders are the deployment's before TiUP fills them, those of data afterwards.
    let names = bench.host.names();
    assert_eq!(
        names,
        ["service-remove", "service-install", "service-install"]
    );
    let marked = &bench.host.calls()[2].request["directories"];
    let data = "/srv/assay/engines/a/data/";
    let marked = marked.as_array().unwrap();
    assert!(marked.iter().all(|d| d["owner"] == "tidb"), "{marked:?}");
    let paths = marked.iter().map(|d| &d["path"]);
    assert_eq!(
        Vec::from_iter(paths),
        [&format!("{data}pd-2379"), &format!("{data}tikv-20160")]
    );
    // A second time, what is there gets the configuration.
    bench.deploy(false).await.unwrap();
    let edit =
        "edit-config assay-engines-a --topology-file /packages/tiup/assay-engines-a.yaml --yes";
    let reload = "reload assay-engines-a --yes --skip-restart";
    assert_eq!(
        bench.calls(),
        ["display assay-engines-a --format json", edit, reload]
    );
    bench.shows("v7.5.0", "Up", "/srv/assay/engines/a");
    bench.deploy(false).await.unwrap();
    assert_eq!(bench.calls()[2], "reload assay-engines-a --yes");
    // A fresh one takes its place.
    bench.deploy(true).await.unwrap();
    assert_eq!(
        bench.calls()[1..],
        ["destroy assay-engines-a --yes", deploy]
    );
}

#[tokio::test]
async fn the_topology_has_the_ports_folders_and_settings_of_the_plan() {
    let bench = Bench::new();
    bench.deploy(true).await.unwrap();
    let text = fs::read_to_string(bench.folder.path().join("topology.yaml")).unwrap();
    let options = tiup::Options {
        version: Some("v7.5.0".into()),
        no_labels: true,
    };
    let reading = tiup::read("topology.yaml", &text, &options);
    let cluster = reading
        .unwrap_or_else(|problems| panic!("{problems}"))
        .cluster;
    let folders = cluster.instances.iter().map(|instance| {
        (
            instance.role.name(),
            &*instance.deploy_dir,
            instance.data_dir.as_deref(),
        )
    });
    let below = "/srv/assay/engines/a";
    let deploy = |name: &str| format!("{below}/deploy/{name}");
    let data = |name: &str| format!("{below}/data/{name}");
    assert_eq!(
        Vec::from_iter(folders),
        [
            ("pd", &*deploy("pd-2379"), Some(&*data("pd-2379"))),
            ("tikv", &deploy("tikv-20160"), Some(&data("tikv-20160"))),
            ("tidb", &deploy("tidb-4000"), None),
        ]
    );
    assert!(
        cluster
            .instances
            .iter()
            .all(|i| i.host == "10.0.0.1" && !i.exporters)
    );
    let config = |component: &str| json!(cluster.config[component]).to_string();
    assert!(config("tikv").contains("apply-pool-size"), "{text}");
    assert!(config("pd").contains("location-labels"), "{text}");
}

#[tokio::test]
async fn tiup_starts_stops_and_destroys_and_a_cluster_that_it_does_not_know_is_stopped() {
    let bench = Bench::new();
    let stop = async |bench: &Bench| {
        bench
            .work(async |database, work| database.stop(work).await)
            .await
    };
    stop(&bench).await.unwrap();
    bench.deploy(true).await.unwrap();
    bench.calls();
    let started = bench
        .work(async |database, work| database.start(work).await)
        .await
        .unwrap();
    assert_eq!(started.version, "v7.5.0");
    assert_eq!(started.config["tikv"]["raftstore.apply-pool-size"], "3");
    stop(&bench).await.unwrap();
    let removed = async |dry_run: bool| {
        bench
            .work(async |database, work| database.remove(dry_run, true, work).await)
            .await
            .unwrap()
    };
    removed(true).await;
    removed(false).await;
    assert_eq!(
        bench.calls(),
        [
            "start assay-engines-a --yes --wait-timeout 60",
            "stop assay-engines-a --yes --wait-timeout 60",
            "display assay-engines-a --format json",
            "destroy assay-engines-a --yes --retain-role-data pd --retain-role-data tikv",
        ]
    );
    // The processes that a restart would change are those of TiUP's units.
    let asked = bench.host.calls();
    let asked = asked
        .iter()
        .rfind(|call| call.name == "service-status")
        .unwrap();
    let units = ["pd-2379.service", "tikv-20160.service", "tidb-4000.service"];
    assert_eq!(asked.request["units"], json!(units));
}

#[tokio::test]
async fn what_tiup_says_of_a_failure_is_told_with_what_to_do() {
    let bench = Bench::new();
    bench.refuses(
        "deploy",
        "Error: Deploy port conflicts to an existing cluster (spec.deploy.port_conflict)\n\n\
         The port you specified is 20160, says a stand-in of tiup",
    );
    let error = bench.deploy(true).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("cluster deploy assay-engines-a v7.5.0"),
        "{text}"
    );
    assert!(
        text.contains("ended with status 1: Error: Deploy port conflicts"),
        "{text}"
    );
    assert!(
        text.ends_with("The port you specified is 20160, says a stand-in of tiup"),
        "{text}"
    );
    let hint = error.hint().unwrap();
    assert!(hint.contains("`topology` with ports of its own"), "{hint}");
}

#[tokio::test]
async fn a_cluster_of_the_same_name_that_lies_elsewhere_is_left_alone() {
    let bench = Bench::new();
    bench.deploy(true).await.unwrap();
    bench.calls();
    bench.shows("v7.5.0", "Up", "/data/prod");
    let error = bench.deploy(true).await.unwrap_err().to_string();
    assert!(error.contains("that is another one"), "{error}");
    assert_eq!(bench.calls(), ["display assay-engines-a --format json"]);
}

#[tokio::test]
async fn another_version_is_not_put_over_a_cluster_that_is_there() {
    let bench = Bench::new();
    bench.deploy(true).await.unwrap();
    bench.shows("v6.5.0", "Down", "/srv/assay/engines/a");
    let error = bench.deploy(false).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "TiUP has deployed `assay-engines-a` as v6.5.0, not v7.5.0: destroy it first"
    );
}

#[tokio::test]
async fn a_change_that_tiup_does_not_take_is_a_failure_although_tiup_ends_well() {
    let bench = Bench::new();
    bench.deploy(true).await.unwrap();
    bench.deploy(false).await.unwrap();
    let text = fs::read_to_string(bench.folder.path().join("topology.yaml")).unwrap();
    assert!(text.contains("arch: amd64"), "{text}");
    fs::write(bench.folder.path().join("immutable"), "").unwrap();
    let error = bench.deploy(false).await.unwrap_err();
    assert!(
        error.to_string().contains("an immutable field changed"),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("deploy it anew"));
}

#[tokio::test]
async fn that_there_is_no_tiup_is_told() {
    let bench = Bench::with(|over| over["deploy"]["tiup"] = json!("/nowhere/tiup"));
    let error = bench.deploy(true).await.unwrap_err();
    assert!(error.to_string().contains("cannot be run"), "{error}");
    assert!(error.hint().unwrap().contains("`deploy.tiup`"));
}

/// An experiment on a server that is there.
fn on_a_server(port: u16) -> String {
    format!(
        "\
name: there
cluster:
  system: mariadb
  database: sbtest
  users:
    - {{name: admin, password: \"${{env:ADMIN}}\"}}
    - {{name: \"reader@127.0.0.1\", password: reader, grants: [SELECT]}}
deploy: {{engine: external, addresses: [\"127.0.0.1:{port}\"]}}
variants:
  few: {{variables: {{max_connections: 100}}}}
  many: {{variables: {{max_connections: 200}}}}
clients: [local]
dataset: {{driver: sysbench, tables: 1, table_size: 100, then: [analyze]}}
snapshot: {{restore: never}}
workloads:
  - {{driver: sysbench, script: oltp_read_write}}
sweep: {{threads: [1]}}
rounds: {{duration: 1s, repetitions: 1, settle: {{timeout: 1m}}}}
"
    )
}

/// Runs an experiment and asks it to stop while it is in a round. Returns the run's folder.
fn stopped_after_a_round(mut command: Command, runs: &Path) -> PathBuf {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let in_a_round = || {
        let mut runs = fs::read_dir(runs).ok()?.flatten().map(|entry| entry.path());
        runs.find(|run| {
            let events = fs::read_to_string(run.join("events.jsonl"));
            events.is_ok_and(|events| events.contains("\"round_started\""))
        })
    };
    let run = loop {
        if let Some(run) = in_a_round() {
            break run;
        }
        assert_eq!(child.try_wait().unwrap(), None, "it ended before any round");
        std::thread::yield_now();
    };
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    run
}

fn read(run: &Path, name: &str) -> Value {
    serde_json::from_slice(&fs::read(run.join(name)).unwrap()).unwrap()
}

#[test]
fn a_server_that_is_there_is_measured_and_keeps_running() {
    let Some(server) = MariaDb::start() else {
        return;
    };
    if Command::new("sysbench").arg("--version").output().is_err() {
        return skipped("there is no `sysbench`");
    }
    server
        .sql("CREATE USER admin@'127.0.0.1' IDENTIFIED BY '5up3r'; GRANT ALL ON *.* TO admin@'127.0.0.1' WITH GRANT OPTION")
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("there.yaml");
    fs::write(&file, on_a_server(server.port)).unwrap();
    let command = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
        command.args(args).current_dir(folder.path());
        command.env("ADMIN", "5up3r").env_remove("ASSAY_ARTIFACTS");
        command.stdin(Stdio::null());
        command
    };
    let assay = |args: &[&str]| {
        let output = command(args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = text(&output.stdout) + &text(&output.stderr);
        (output.status.code(), said)
    };
    let (code, said) = assay(&["check", "there.yaml"]);
    assert_eq!(code, Some(0), "{said}");
    let run = stopped_after_a_round(
        command(&["run", "there.yaml", "--ignore-preflight"]),
        &folder.path().join("artifacts/there"),
    );
    let (code, said) = assay(&["resume", run.to_str().unwrap(), "--ignore-preflight"]);
    assert_eq!(code, Some(0), "{said}");
    // What was loaded is not loaded again.
    assert!(!run.join("deployments/few+2").exists());
    let mut found = BTreeMap::new();
    for variant in ["few", "many"] {
        let started = read(&run, &format!("deployments/{variant}/0-start.json"));
        let variables = started["config"]["variables"].clone();
        found.insert(variant, variables["max_connections"].clone());
        assert!(
            started["version"].as_str().unwrap().contains('.'),
            "{started}"
        );
        let unasked = started["unasked"].as_array().unwrap();
        assert!(
            !unasked.is_empty() && started["whole"].is_object(),
            "{started}"
        );
    }
    assert_eq!(
        found,
        BTreeMap::from([("few", json!("100")), ("many", json!("200"))])
    );
    // The last round's value stays: nothing is taken back, and nothing was stopped.
    let left = server
        .sql("SELECT @@max_connections IN (100, 200)")
        .unwrap();
    assert_eq!(left, "1\n");
    let grants = server.sql("SHOW GRANTS FOR reader@'127.0.0.1'").unwrap();
    assert!(grants.contains("SELECT"), "{grants}");
    // A second run does not load over what is there.
    let (code, said) = assay(&["run", "there.yaml", "--ignore-preflight"]);
    assert_ne!(code, Some(0), "{said}");
    assert!(said.contains("already exists"), "{said}");
}
