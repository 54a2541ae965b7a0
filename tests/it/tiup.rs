//! Topologies of TiUP: what becomes of each of those in `tests/fixtures/tiup`, and that what is written reads back.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use assay::spec::{self, Name, Setting, load_inventory};
use assay::tiup::{self, Cluster, Names, Options, Reading, Role};
use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::support::golden;

const FOLDER: &str = "tests/fixtures/tiup";

/// The topologies by name.
fn fixtures() -> BTreeMap<String, String> {
    let folder = golden::project().join(FOLDER);
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let topologies = entries.filter(|path| path.extension().is_some_and(|e| e == "yaml"));
    topologies
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

fn fixture(name: &str) -> String {
    fixtures().remove(name).unwrap()
}

/// The options in the first line of a topology.
fn options(text: &str) -> Options {
    let first = text.lines().next().unwrap();
    let words: Vec<&str> = first.split_whitespace().collect();
    let version = words.iter().position(|word| *word == "--version");
    Options {
        version: version.map(|at| words[at + 1].to_owned()),
        no_labels: words.contains(&"--no-labels"),
    }
}

/// What is imported is an experiment that can be deployed.
#[test]
fn every_experiment_that_is_imported_passes_its_check() {
    let mut checked = 0;
    for (name, text) in fixtures() {
        let (file, inventory) = (format!("{name}.yaml"), format!("{name}-hosts.yaml"));
        let options = options(&text);
        let names = Names {
            source: &file,
            experiment: &Name::of(&name),
            inventory: &inventory,
            identity_file: None,
        };
        let Ok(import) = tiup::import(&names, &text, &options) else {
            continue;
        };
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(&file), &import.experiment).unwrap();
        fs::write(folder.path().join(&inventory), &import.inventory).unwrap();
        // A topology does not say the version.
        let version = ["cluster.version=v7.5.0".to_owned()];
        let request = spec::Request {
            path: &folder.path().join(&file),
            inventory: None,
            overrides: if import.version.is_none() {
                &version
            } else {
                &[]
            },
            environment: &|_| None,
            working_directory: folder.path(),
        };
        let packs = assay::pack::Packs::built_in();
        let check = |experiment: &spec::Experiment, inventory: &spec::Inventory| {
            assay::database::check(experiment, inventory, &packs)
        };
        let loaded = spec::load(&request, &[&check]);
        loaded.unwrap_or_else(|problems| panic!("{name}: {problems}"));
        checked += 1;
    }
    assert!(checked > 15, "{checked}");
}

fn read(name: &str) -> Reading {
    let text = fixture(name);
    let reading = tiup::read(&format!("{name}.yaml"), &text, &options(&text));
    reading.unwrap_or_else(|problems| panic!("{name}: {problems}"))
}

/// What becomes of a topology, as it is kept.
fn outcome(name: &str, text: &str) -> String {
    let options = options(text);
    let file = format!("{name}.yaml");
    let names = Names {
        source: &file,
        experiment: &Name::of(name),
        inventory: &format!("{name}-hosts.yaml"),
        identity_file: None,
    };
    let import = match tiup::import(&names, text, &options) {
        Ok(import) => import,
        Err(problems) => return format!("{problems}\n"),
    };
    let cluster = tiup::read(&file, text, &options).unwrap().cluster;
    format!(
        "=== instances\n{}\n=== experiment\n{}\n=== inventory\n{}",
        instances(&cluster),
        import.experiment,
        import.inventory
    )
}

/// The instances with their ports and directories.
fn instances(cluster: &Cluster) -> String {
    let mut text = String::new();
    for instance in &cluster.instances {
        let ports: Vec<String> = instance
            .ports
            .iter()
            .map(|(k, p)| format!("{k}={p}"))
            .collect();
        let _ = writeln!(
            text,
            "{} {} {}",
            instance.role,
            instance.host,
            ports.join(" ")
        );
        let directories = [
            Some(&instance.deploy_dir),
            instance.data_dir.as_ref(),
            instance.log_dir.as_ref(),
        ];
        for directory in directories.into_iter().flatten() {
            let _ = writeln!(text, "  {directory}");
        }
    }
    let monitored = &cluster.monitored;
    let _ = writeln!(
        text,
        "exporters node={} blackbox={}\n  {}\n  {}\n  {}",
        monitored.node_exporter_port,
        monitored.blackbox_exporter_port,
        monitored.deploy_dir,
        monitored.data_dir,
        monitored.log_dir
    );
    text
}

#[test]
fn each_topology_becomes_what_is_kept() {
    let fixtures = fixtures();
    assert!(fixtures.len() >= 20);
    for (name, text) in fixtures {
        golden::assert_kept(&format!("{FOLDER}/{name}.golden"), &outcome(&name, &text));
    }
}

#[test]
fn every_inventory_is_one_and_holds_the_hosts_of_its_experiment() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in fixtures() {
        let options = options(&text);
        let names = Names {
            source: "topology.yaml",
            experiment: &Name::of(&name),
            inventory: "hosts.yaml",
            identity_file: Some("~/.ssh/id_rsa"),
        };
        let Ok(import) = tiup::import(&names, &text, &options) else {
            continue;
        };
        let path = folder.path().join("hosts.yaml");
        fs::write(&path, &import.inventory).unwrap();
        let inventory = load_inventory(&path, &|_| None, folder.path());
        let inventory = inventory
            .unwrap_or_else(|p| panic!("{name}: {p}"))
            .inventory;
        assert_eq!(inventory.hosts.len(), import.hosts, "{name}");
        let experiment: IndexMap<String, Setting> =
            spec::read("experiment.yaml", &import.experiment).unwrap();
        let topology = &experiment["cluster"].0["topology"];
        for instance in topology
            .as_object()
            .unwrap()
            .values()
            .flat_map(|i| i.as_array().unwrap())
        {
            let host = instance.as_str().or_else(|| instance["host"].as_str());
            assert!(
                inventory.hosts.contains_key(host.unwrap()),
                "{name}: {instance}"
            );
        }
    }
}

#[test]
fn a_written_topology_reads_back_as_the_same_cluster() {
    let mut checked = 0;
    for (name, text) in fixtures() {
        let options = options(&text);
        let Ok(reading) = tiup::read(&name, &text, &options) else {
            continue;
        };
        let written = tiup::topology(&reading.cluster);
        let version = reading.cluster.version.clone();
        let options = Options {
            version,
            no_labels: true,
        };
        let again = tiup::read("written.yaml", &written, &options);
        let again = again.unwrap_or_else(|problems| panic!("{name}: {problems}\n{written}"));
        assert_eq!(again.cluster, reading.cluster, "{name}:\n{written}");
        checked += 1;
    }
    assert!(checked >= 15, "{checked}");
}

/// The directories of the instances of a role, `deploy data log` each.
fn directories(cluster: &Cluster, role: Role) -> Vec<String> {
    let instances = cluster.instances.iter().filter(|i| i.role == role);
    instances
        .map(|i| {
            let directories = [Some(&i.deploy_dir), i.data_dir.as_ref(), i.log_dir.as_ref()];
            let directories: Vec<&str> = directories
                .into_iter()
                .flatten()
                .map(String::as_str)
                .collect();
            directories.join(" ")
        })
        .collect()
}

#[test]
fn directories_follow_the_rules_of_tiup() {
    let minimal = read("minimal").cluster;
    let home = "/home/tidb/deploy";
    assert_eq!(
        directories(&minimal, Role::Pd),
        [format!(
            "{home}/pd-2379 {home}/pd-2379/data {home}/pd-2379/log"
        )]
    );
    assert_eq!(
        directories(&minimal, Role::Tidb),
        [format!("{home}/tidb-4000 {home}/tidb-4000/log")]
    );
    let disks = read("multi-disk").cluster;
    assert_eq!(
        directories(&disks, Role::Pd),
        ["/tidb-deploy/pd-2379 /nvme0/pd-2379 /tidb-log/pd-2379"]
    );
    assert_eq!(
        directories(&disks, Role::Tikv),
        [
            "/nvme1/tidb-deploy/tikv-20160 /nvme1/tidb-data/tikv-20160 /nvme1/tidb-deploy/tikv-20160/log",
            "/nvme2/tidb-deploy/tikv-20161 /nvme2/tidb-deploy/tikv-20161/data /tidb-log/tikv-20161",
            "/home/tidb/kv3 /home/tidb/d3 /home/tidb/kv3/logs/tikv",
        ]
    );
    let relative = read("users").cluster;
    let home = "/home/bench_1/clusters/a/tikv-20160";
    assert_eq!(
        directories(&relative, Role::Tikv),
        [format!("{home} {home}/store {home}/logs")]
    );
    let old = read("tiflash-old").cluster;
    assert_eq!(
        directories(&old, Role::Tiflash),
        [
            "/deploy/tiflash-9001 /ssd1/tiflash,/ssd2/tiflash /deploy/tiflash-9001/log",
            "/deploy/tiflash-9000 /data/tiflash-9000 /deploy/tiflash-9000/log",
        ]
    );
    let new = read("tiflash-new").cluster;
    assert_eq!(
        directories(&new, Role::Tiflash),
        [
            "/deploy/tiflash-9000 /ssd1/tiflash /deploy/tiflash-9000/log",
            "/deploy/tiflash-9000 /hdd1/tiflash /deploy/tiflash-9000/log",
        ]
    );
}

#[test]
fn default_ports_are_those_of_the_version() {
    let ports = |name: &str, role: Role| -> Vec<u16> {
        let cluster = read(name).cluster;
        let mut instances = cluster.instances.iter().filter(|i| i.role == role);
        instances
            .next_back()
            .unwrap()
            .ports
            .values()
            .copied()
            .collect()
    };
    assert_eq!(ports("minimal", Role::Pd), [2379, 2380]);
    assert_eq!(ports("minimal", Role::Tikv), [20160, 20180]);
    assert_eq!(ports("minimal", Role::Tidb), [4000, 10080]);
    assert_eq!(
        ports("tiflash-old", Role::Tiflash),
        [9000, 8123, 3930, 20170, 20292, 8234]
    );
    assert_eq!(
        ports("tiflash-new", Role::Tiflash),
        [9000, 3930, 20170, 20292, 8234]
    );
    assert_eq!(ports("monitoring", Role::Prometheus), [9091, 12020]);
    assert_eq!(ports("mixed", Role::Grafana), [3000]);
    assert_eq!(ports("mixed", Role::Alertmanager), [9093, 9094]);
    let old = Cluster::new(Some("v5.3.0".to_owned()), "tidb").instance(Role::Prometheus, "a");
    assert_eq!(old.ports.values().copied().collect::<Vec<_>>(), [9090]);
}

#[test]
fn a_cluster_that_is_made_here_is_written_whole() {
    let mut cluster = Cluster::new(Some("v6.1.2".to_owned()), "bench");
    cluster.deploy_dir = "/srv/assay/x/deploy".to_owned();
    cluster.data_dir = "/srv/assay/x/data".to_owned();
    cluster.place_exporters();
    let setting = Setting(json!({"unified": {"max-thread-count": 8}}));
    let config = IndexMap::from([("readpool".to_owned(), setting)]);
    cluster.config.insert("tikv".to_owned(), config);
    let own = IndexMap::from([
        ("port".to_owned(), 30160),
        ("status_port".to_owned(), 30180),
    ]);
    cluster.instances = vec![
        cluster.instance(Role::Pd, "fd00::1"),
        cluster.instance_at(Role::Tikv, "10.0.0.2", &own),
        cluster.instance(Role::Tidb, "10.0.0.3"),
    ];
    golden::assert_kept(
        &format!("{FOLDER}/written.topology"),
        &tiup::topology(&cluster),
    );
}

fn assay(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(args)
        .current_dir(folder)
        .env_remove("ASSAY_ARTIFACTS")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn an_import_writes_two_files_and_never_over_others() {
    let place = tempfile::tempdir().unwrap();
    let cluster = place.path().join("clusters/prod");
    fs::create_dir_all(cluster.join("ssh")).unwrap();
    fs::write(cluster.join("ssh/id_rsa"), "key").unwrap();
    fs::write(cluster.join("meta.yaml"), fixture("meta")).unwrap();
    let args = ["import", "tiup", "clusters/prod/meta.yaml"];
    let output = assay(place.path(), &[&args[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        told["wrote"],
        json!({"experiment": "prod.yaml", "inventory": "prod-hosts.yaml"})
    );
    assert_eq!((&told["hosts"], &told["instances"]), (&json!(4), &json!(6)));
    assert_eq!(told["version"], "v6.1.2");
    assert!(text(&output.stderr).contains("left out: monitored: blackbox_exporter"));
    let hosts = fs::read_to_string(place.path().join("prod-hosts.yaml")).unwrap();
    assert!(hosts.contains("clusters/prod/ssh/id_rsa"), "{hosts}");

    let output = assay(place.path(), &args);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("`prod-hosts.yaml` is there already; nothing was changed")
    );
    fs::remove_file(place.path().join("prod-hosts.yaml")).unwrap();
    let output = assay(place.path(), &args);
    assert!(text(&output.stderr).contains("`prod.yaml` is there already; nothing was changed"));
    assert!(!place.path().join("prod-hosts.yaml").exists());
    let output = assay(
        place.path(),
        &[&args[..], &["--output", "clusters/b.yaml"]].concat(),
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let experiment = fs::read_to_string(place.path().join("clusters/b.yaml")).unwrap();
    assert!(
        experiment.contains("\nname: b\ninventory: b-hosts.yaml\n"),
        "{experiment}"
    );
}

#[test]
fn a_topology_that_is_refused_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("topology.yaml"), fixture("port-clash")).unwrap();
    let output = assay(place.path(), &["import", "tiup", "topology.yaml", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let first = &told["problems"][0];
    assert_eq!(
        (&first["line"], &first["path"]),
        (&json!(5), &json!("pd_servers[1].client_port"))
    );
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    let output = assay(place.path(), &["import", "tiup", "nowhere.yaml"]);
    assert!(text(&output.stderr).contains("`nowhere.yaml` does not exist"));
}

/// An import of a text that is fine.
fn imported(text: &str) -> tiup::Import {
    let names = Names {
        source: "a\nb.yaml",
        experiment: &Name::of("x"),
        inventory: "x-hosts.yaml",
        identity_file: None,
    };
    tiup::import(&names, text, &Options::default()).unwrap_or_else(|problems| panic!("{problems}"))
}

const SMALL: &str =
    "pd_servers: [{host: a}]\ntikv_servers: [{host: b}]\ntidb_servers: [{host: a}]\n";

#[test]
fn texts_of_a_topology_stay_texts() {
    let text = format!(
        "{SMALL}component_sources: {{tidb: \"a\\nevil: 1\"}}\nserver_configs: {{tidb: {{\"x ${{y}}\": \"${{env:HOME}}\", v: \"1.0\", w: 1.50, n: \"null\"}}}}\n"
    );
    let import = imported(&text);
    let experiment: IndexMap<String, Setting> =
        spec::read("experiment.yaml", &import.experiment).unwrap();
    assert!(!experiment.contains_key("evil"));
    let config = json!({"x ${y}": "$${env:HOME}", "v": "1.0", "w": 1.5, "n": "null"});
    assert_eq!(experiment["cluster"].0["config"]["tidb"], config);
    let reading = tiup::read("topology.yaml", &text, &Options::default()).unwrap();
    let written = tiup::topology(&reading.cluster);
    assert!(written.contains(": \"${env:HOME}\"\n"), "{written}");
}

#[test]
fn what_is_deprecated_or_empty_in_a_key_is_told_only_if_it_says_something() {
    let text = SMALL.replace(
        "{host: b}",
        "{host: b, imported: false, patched: true, source: \"\"}",
    );
    let left_out: Vec<String> = imported(&text)
        .left_out
        .into_iter()
        .map(|l| l.path)
        .collect();
    assert_eq!(
        left_out,
        ["tikv_servers[0].patched", "monitored", "version"]
    );
}

#[test]
fn a_torn_topology_is_refused_or_read_and_never_more() {
    for (name, text) in fixtures() {
        let ends = text.match_indices('\n').map(|(at, _)| at).step_by(7);
        for end in ends {
            let torn = &text[..end + 1];
            let _ = tiup::read(&name, torn, &options(&text));
            if let Some(torn) = text.get(..end.saturating_sub(3)) {
                let _ = tiup::read(&name, torn, &options(&text));
            }
        }
    }
}
