//! The pack of TiDB: the files of the published study's cluster, and of clusters with everything in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use assay::database::{Cluster, Hosts, Parts, Rendered, check, tunables};
use assay::pack::Packs;
use assay::plan::{Plan, build};
use assay::spec::{Request, Spec, load};
use assay::template::{environment, render};
use minijinja::value::{Serde, Value};
use serde_json::json;

use crate::support::golden::{self, project};

const FIXTURES: &str = "packs/tidb";

/// Reading the catalogue of keys takes its time.
static PACKS: LazyLock<Packs> = LazyLock::new(Packs::built_in);

/// An experiment of the project.
fn spec(path: &str) -> Spec {
    changed(path, &[])
}

/// The same with overrides.
fn changed(path: &str, overrides: &[String]) -> Spec {
    let path = project().join(path);
    let request = Request {
        path: &path,
        inventory: None,
        overrides,
        environment: &|_| None,
        working_directory: Path::new("/"),
    };
    load(&request, &[]).unwrap_or_else(|problems| panic!("{problems}"))
}

fn plan(spec: &Spec) -> Plan {
    build(&spec.experiment, &spec.inventory, &PACKS, "").unwrap()
}

/// Every file of a variant.
fn rendered(spec: &Spec, variant: &str) -> Vec<Rendered> {
    let plan = plan(spec);
    let mut deployments = plan.deployments.iter();
    let parts = Parts {
        experiment: spec.experiment.name.as_str(),
        deployment: deployments.find(|d| d.id == variant).unwrap(),
        packs: &PACKS,
        hosts: &Hosts::new(),
        packages: Path::new("/packages"),
        reveal: &|text| text.to_owned(),
    };
    let hosts = spec.inventory.hosts.iter();
    let directories: BTreeMap<String, PathBuf> = hosts
        .map(|(name, host)| (name.to_string(), host.directory.clone().unwrap().into()))
        .collect();
    Cluster::on(parts, directories).unwrap().rendered().unwrap()
}

/// Asserts that these are the files of a case, that no other is kept, and that the programs that read them can.
fn assert_kept(case: &str, files: &[Rendered]) {
    let folder = project().join("tests/fixtures").join(FIXTURES).join(case);
    if std::env::var_os("ASSAY_BLESS").is_some() && folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    let mut made = BTreeSet::new();
    for file in files {
        let path = file.path.strip_prefix("/").unwrap();
        let path = Path::new(&file.host).join(path);
        assert!(made.insert(path.clone()), "twice: {}", path.display());
        golden::check(
            &format!("{FIXTURES}/{case}/{}", path.display()),
            &file.content,
        );
        assert_sound(&folder.join(path), file);
    }
    assert_eq!(kept(&folder, &folder), made, "of {case}");
}

/// The files below a folder, as paths in it.
fn kept(root: &Path, folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(kept(root, &path));
        } else {
            found.insert(path.strip_prefix(root).unwrap().to_owned());
        }
    }
    found
}

fn assert_sound(path: &Path, file: &Rendered) {
    let name = path.display();
    let kind = file.path.extension().and_then(|e| e.to_str());
    match kind.unwrap_or_default() {
        "toml" => {
            toml::from_str::<toml::Table>(&file.content).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
        "yml" => {
            let read = serde_saphyr::from_str::<serde_json::Value>(&file.content);
            let read = read.unwrap_or_else(|e| panic!("{name}: {e}"));
            let jobs = read["scrape_configs"].as_array();
            let targets = |job: &serde_json::Value| job["static_configs"][0]["targets"].is_array();
            assert!(jobs.is_none_or(|jobs| jobs.iter().all(targets)), "{name}");
            assert!(read.get("relabel_configs").is_none(), "{name}");
        }
        "sh" => {
            assert!(file.executable, "{name} cannot be run");
            let read = Command::new("bash").arg("-n").arg(path).output().unwrap();
            let said = String::from_utf8_lossy(&read.stderr);
            assert!(read.status.success(), "{name}: {said}");
        }
        _ => {}
    }
}

#[test]
fn the_files_of_the_published_study_are_as_they_were_reviewed() {
    let spec = spec("experiments/tidb-5.4.3-vs-6.1.2.yaml");
    for version in ["v5.4.3", "v6.1.2"] {
        assert_kept(&format!("study-{version}"), &rendered(&spec, version));
    }
}

#[test]
fn the_files_of_a_cluster_with_everything_are_as_they_were_reviewed() {
    let spec = spec("tests/fixtures/packs/tidb/mixed.yaml");
    for version in ["v4.0.16", "v6.5.0", "v7.5.0", "v8.5.0"] {
        assert_kept(&format!("mixed-{version}"), &rendered(&spec, version));
    }
}

#[test]
fn the_files_of_a_cluster_with_tls_are_as_they_were_reviewed() {
    let spec = spec("tests/fixtures/packs/tidb/tls.yaml");
    assert_kept("tls", &rendered(&spec, "secure"));
}

#[test]
fn the_experiments_that_are_rendered_are_sound() {
    for path in [
        "experiments/tidb-5.4.3-vs-6.1.2.yaml",
        "tests/fixtures/packs/tidb/mixed.yaml",
        "tests/fixtures/packs/tidb/tls.yaml",
    ] {
        let spec = spec(path);
        let found = check(&spec.experiment, &spec.inventory, &PACKS);
        let found: Vec<_> = found.iter().map(|p| (&*p.path, &*p.message)).collect();
        assert_eq!(found, [], "of {path}");
    }
}

#[test]
fn no_tunable_of_the_published_study_is_without_effect_where_it_is_set() {
    let spec = spec("experiments/tidb-5.4.3-vs-6.1.2.yaml");
    let judged = tunables(&spec.experiment, &plan(&spec), &PACKS, &|_| {
        (Some(16), None)
    });
    let errors: Vec<_> = judged.iter().filter(|judged| judged.is_error).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let idle = judged
        .iter()
        .find(|j| j.problem.message.contains("no effect"));
    assert!(idle.is_none(), "{idle:#?}");
}

#[test]
fn no_file_has_a_template_left_in_it() {
    let spec = spec("tests/fixtures/packs/tidb/mixed.yaml");
    for file in rendered(&spec, "v8.5.0") {
        let left = ["{{", "{%", "undefined", "none"];
        let found = left.iter().find(|left| file.content.contains(**left));
        assert_eq!(found, None, "in {}", file.path.display());
    }
}

/// All that ends in `name`, in one text.
fn texts(files: &[Rendered], name: &str) -> String {
    let named = files.iter().filter(|file| file.path.ends_with(name));
    let texts: Vec<&str> = named.map(|file| &*file.content).collect();
    assert!(!texts.is_empty(), "no {name}");
    texts.concat()
}

#[test]
fn flags_and_keys_come_and_go_with_the_versions_that_know_them() {
    let of = |version: &str| {
        let path = "tests/fixtures/packs/tidb/mixed.yaml";
        let spec = changed(path, &[format!("variants.v4.0.16.version={version}")]);
        rendered(&spec, "v4.0.16")
    };
    let known = |file: &str, text: &str, versions: [(&str, bool); 2]| {
        for (version, known) in versions {
            let found = texts(&of(version), file).contains(text);
            assert_eq!(found, known, "{text} in {file} of {version}");
        }
    };
    let (from, until) = ([false, true], [true, false]);
    let at = |a, b, is: [bool; 2]| [(a, is[0]), (b, is[1])];
    known(
        "run_tikv.sh",
        "--advertise-status-addr",
        at("v4.0.0", "v4.0.1", from),
    );
    known(
        "run_tidb.sh",
        "--initialize-insecure",
        at("v5.2.4", "v5.3.0", from),
    );
    known(
        "run_prometheus.sh",
        "ng-monitoring",
        at("v5.3.4", "v5.4.0", from),
    );
    let learner = "tiflash-learner.toml";
    known(
        learner,
        "advertise-status-addr",
        at("v4.0.4", "v4.0.5", from),
    );
    known(
        "tiflash.toml",
        "[storage.main]",
        at("v4.0.8", "v4.0.9", from),
    );
    known(
        "tiflash.toml",
        "[users.default]",
        at("v4.0.11", "v4.0.12", until),
    );
    known("tiflash.toml", "runAsDaemon", at("v5.3.4", "v5.4.0", until));
    known("tiflash.toml", "tcp_port", at("v7.0.0", "v7.1.0", until));
    known(
        "tiflash.toml",
        "http_port",
        at("v7.1.0", "nightly", [false, false]),
    );
}

#[test]
fn what_is_asked_of_pd_before_a_round_can_be_asked() {
    let pack = PACKS.get("tidb").unwrap();
    let context = json!({
        "scheme": "http", "address": "::1", "client_port": 2379,
        "cluster": {"tikv": [1, 2, 3], "tiflash": [4]},
    });
    for condition in &pack.form.settle {
        let url = rendered_text(condition.http.as_deref().unwrap(), &context);
        assert!(url.starts_with("http://[::1]:2379/pd/api/v"), "{url}");
        for most in condition
            .r#where
            .iter()
            .filter_map(|test| test.at_least.as_deref())
        {
            assert_eq!(rendered_text(most, &context), "4");
        }
    }
}

#[test]
fn a_grant_that_names_nothing_is_on_everything() {
    let pack = PACKS.get("tidb").unwrap();
    let grant = pack.form.sql.grant.clone().unwrap();
    let of = |grant_of: &str| {
        let context = json!({"grant": grant_of, "user": "o'k", "from": "10.%"});
        rendered_text(&grant, &context)
    };
    assert_eq!(of("ALL"), "GRANT ALL ON *.* TO 'o''k'@'10.%'");
    assert_eq!(of("Select on a.*"), "GRANT Select on a.* TO 'o''k'@'10.%'");
}

fn rendered_text(text: &str, context: &serde_json::Value) -> String {
    let context = Value::from(Serde(context));
    render(&environment(), "text", text, &context).unwrap()
}
