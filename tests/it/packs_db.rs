//! The packs of HAProxy, MariaDB and PostgreSQL: their files as they were reviewed, and as the real programs take them.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use assay::database::{self, Cluster, Hosts, Parts, Rendered};
use assay::pack::Packs;
use assay::plan;
use assay::spec::{Experiment, Inventory, Request, Spec};

use crate::support::{golden, skipped};

const UNITS: &str = "/etc/systemd/system";

/// A checked experiment on hosts that nobody reaches.
fn spec(experiment: &str, overrides: &[&str], packs: &Packs) -> Spec {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    let request = Request {
        path: &golden::project().join(experiment),
        inventory: Some(&golden::project().join("tests/fixtures/packs/inventory.yaml")),
        overrides: &overrides,
        environment: &|_| None,
        working_directory: Path::new("/"),
    };
    let check = |experiment: &Experiment, inventory: &Inventory| {
        database::check(experiment, inventory, packs)
    };
    assay::spec::load(&request, &[&check]).unwrap_or_else(|problems| panic!("{problems}"))
}

/// The files of all instances of an experiment's only variant, whose hosts have this folder for assay.
fn rendered(experiment: &str, overrides: &[&str], folder: &Path) -> Vec<Rendered> {
    let packs = Packs::beside(golden::project().join(experiment).parent().unwrap());
    let spec = spec(experiment, overrides, &packs);
    let plan = plan::build(&spec.experiment, &spec.inventory, &packs, "0123").unwrap();
    let deployment = &plan.deployments[0];
    let hosts = deployment.instances.iter().map(|i| i.host.clone());
    let directories: BTreeMap<String, PathBuf> = hosts.map(|h| (h, folder.to_owned())).collect();
    let parts = Parts {
        experiment: &plan.experiment,
        deployment,
        packs: &packs,
        hosts: &Hosts::new(),
        packages: Path::new("/nowhere"),
        reveal: &str::to_owned,
    };
    Cluster::on(parts, directories).unwrap().rendered().unwrap()
}

fn shown(files: &[Rendered]) -> String {
    let shown = files.iter().map(|file| {
        let mode = if file.executable { ", executable" } else { "" };
        let path = file.path.display();
        format!("==== {}: {path}{mode}\n{}\n", file.host, file.content)
    });
    shown.collect()
}

/// Writes the files, units left out, to where they say they lie.
fn laid_out(files: &[Rendered]) {
    for file in files.iter().filter(|file| !file.path.starts_with(UNITS)) {
        std::fs::create_dir_all(file.path.parent().unwrap()).unwrap();
        std::fs::write(&file.path, &file.content).unwrap();
        let mode = if file.executable { 0o755 } else { 0o640 };
        std::fs::set_permissions(&file.path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
}

fn named<'a>(files: &'a [Rendered], name: &str) -> Vec<&'a Path> {
    let files = files.iter().map(|file| &*file.path);
    files.filter(|path| path.ends_with(name)).collect()
}

/// Runs a program; where it is not installed, says that the test is skipped.
fn ran(program: &str, args: &[&str], file: &str) -> Option<Output> {
    let program = Path::new(program);
    if !program.exists() {
        skipped(&format!("`{}` is not installed", program.display()));
        return None;
    }
    Some(Command::new(program).args(args).arg(file).output().unwrap())
}

#[track_caller]
fn assert_taken(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[track_caller]
fn assert_refused(output: &Output, why: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(why), "{said}");
}

#[test]
fn every_file_is_as_it_was_reviewed() {
    for name in [
        "haproxy/plain",
        "haproxy/own",
        "mariadb/single",
        "mariadb/replicas",
        "postgresql/single",
        "postgresql/replicas",
    ] {
        let experiment = format!("tests/fixtures/packs/{name}.yaml");
        let files = rendered(&experiment, &[], Path::new("/data/assay"));
        golden::check(&format!("packs/{name}.txt"), &shown(&files));
    }
}

#[test]
fn every_script_is_one() {
    for name in ["haproxy/own", "mariadb/replicas", "postgresql/replicas"] {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("it's a folder");
        let files = rendered(&format!("tests/fixtures/packs/{name}.yaml"), &[], &odd);
        laid_out(&files);
        for file in files.iter().filter(|file| file.executable) {
            let path = file.path.to_str().unwrap();
            assert_taken(&ran("/bin/sh", &["-n"], path).unwrap());
        }
    }
}

#[test]
fn haproxy_takes_what_is_generated_and_refuses_what_it_no_longer_knows() {
    let check = |experiment: &str, overrides: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let experiment = format!("tests/fixtures/packs/haproxy/{experiment}.yaml");
        let files = rendered(&experiment, overrides, folder.path());
        laid_out(&files);
        let file = named(&files, "haproxy.cfg")[0].to_str().unwrap().to_owned();
        ran("/usr/sbin/haproxy", &["-c", "-f"], &file)
    };
    for experiment in ["plain", "own"] {
        let Some(output) = check(experiment, &[]) else {
            return;
        };
        assert_taken(&output);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("[WARNING]"), "{said}");
    }
    let output = check("plain", &["load_balancer.config={global: {nbproc: 4}}"]).unwrap();
    assert_refused(&output, "nbproc");
    let output = check("plain", &["load_balancer.config={blance: leastconn}"]).unwrap();
    assert_refused(&output, "blance");
}

#[test]
fn mariadb_takes_what_is_generated_and_refuses_an_option_that_it_does_not_know() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = "tests/fixtures/packs/mariadb/replicas.yaml";
    let check = |overrides: &[&str]| {
        let files = rendered(experiment, overrides, folder.path());
        laid_out(&files);
        let found = named(&files, "my.cnf");
        let found = found.iter().map(|path| {
            let file = format!("--defaults-file={}", path.display());
            let args = [&*file, "--verbose"];
            ran("/usr/sbin/mariadbd", &args, "--help")
        });
        found.collect::<Option<Vec<Output>>>()
    };
    let Some(outputs) = check(&[]) else { return };
    assert_eq!(outputs.len(), 3);
    for (output, wanted) in outputs.iter().zip(["port 3306", "port 3306", "port 3307"]) {
        assert_taken(output);
        let said = String::from_utf8_lossy(&output.stdout);
        let line: Vec<String> = said
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        for wanted in [wanted, "innodb-buffer-pool-size 1073741824"] {
            assert!(line.iter().any(|line| line == wanted), "{wanted}");
        }
    }
    let outputs = check(&["cluster.config.mariadb.innodb_bufer_pool_size=1G"]).unwrap();
    assert_refused(&outputs[0], "innodb_bufer_pool_size");
}

#[test]
fn postgresql_takes_what_is_generated_and_refuses_a_tunable_that_it_does_not_know() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = "tests/fixtures/packs/postgresql/replicas.yaml";
    let check = |overrides: &[&str]| {
        let files = rendered(experiment, overrides, folder.path());
        laid_out(&files);
        let file = named(&files, "postgresql.conf")[0];
        let file = format!("config_file={}", file.display());
        let args = ["-C", "shared_buffers", "-c"];
        ran("/usr/lib/postgresql/15/bin/postgres", &args, &file)
    };
    let Some(output) = check(&[]) else { return };
    assert_taken(&output);
    let pages = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(pages.trim(), "131072");
    let output = check(&["cluster.config.postgresql.shared_bufers=1GB"]).unwrap();
    assert_refused(&output, "shared_bufers");
}

#[test]
fn the_experiments_for_the_lab_are_sound() {
    for experiment in ["mariadb-haproxy", "postgresql"] {
        let experiment = format!("experiments/lab/{experiment}.yaml");
        let packs = Packs::beside(&golden::project().join("experiments/lab"));
        let spec = spec(&experiment, &[], &packs);
        let plan = plan::build(&spec.experiment, &spec.inventory, &packs, "0123").unwrap();
        assert_eq!(plan.deployments.len(), 2);
    }
}
