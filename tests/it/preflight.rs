//! Facts, calibration and pre-flight as users and runs meet them: the agents on this machine, the commands, the manifest.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use assay::artifacts::Run;
use assay::host::preflight::{Applied, Directory, Done, Leftovers, Looked, Reverted, Status};
use assay::host::{Bounds, Calibration, Facts, Host, LocalHost, Measure, ask, clock_offset};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const MINUTE: Duration = Duration::from_secs(60);

const EXPERIMENT: &str = "\
name: short
cluster:
  system: sqlite
  topology: {sqlite: [local]}
variants:
  wal: {config: {sqlite: {journal_mode: wal, synchronous: off}}}
dataset: {driver: native, schema: ycsb, records: 200, fields: 2}
workloads:
  - {driver: native, workload: ycsb_c}
sweep: {threads: [2]}
rounds: {duration: 50ms, repetitions: 1}
";

/// More rows than any disk holds.
fn too_large() -> String {
    EXPERIMENT.replace("records: 200, fields: 2", "records: 10000000000")
}

/// A folder in which assay is run.
struct Place(TempDir);

impl Place {
    fn new(experiment: &str) -> Self {
        let place = Self(TempDir::new().unwrap());
        fs::write(place.path().join("short.yaml"), experiment).unwrap();
        place
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
        command
            .args(args)
            .current_dir(self.path())
            .stdin(Stdio::null())
            .env_remove("ASSAY_ARTIFACTS");
        command
    }

    fn assay(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a command that must end so; its standard output and its standard error.
    fn ends(&self, code: i32, args: &[&str]) -> (String, String) {
        let output = self.assay(args);
        let [out, err] = [output.stdout, output.stderr].map(|b| String::from_utf8(b).unwrap());
        assert_eq!(output.status.code(), Some(code), "{args:?}: {out}{err}");
        (out, err)
    }

    fn host(&self) -> LocalHost {
        LocalHost::new(
            "local",
            self.path().join(".assay"),
            env!("CARGO_BIN_EXE_assay"),
        )
    }

    async fn agent<T: DeserializeOwned + Send>(&self, name: &str, request: Value) -> T {
        let stop = CancellationToken::new();
        let bounds = Bounds {
            limit: MINUTE,
            stop: &stop,
        };
        ask(&self.host(), name, &request, bounds).await.unwrap()
    }

    fn run(&self) -> Option<Run> {
        let runs = fs::read_dir(self.path().join("artifacts/short")).ok()?;
        let run = runs.flatten().next()?;
        Run::open(&run.path()).ok()
    }
}

#[tokio::test]
async fn the_agents_tell_what_this_machine_is_and_how_fast() {
    let place = Place::new(EXPERIMENT);
    let directory = place.host().directory().to_owned();
    let facts: Facts = place
        .agent("facts", json!({ "directory": directory }))
        .await;
    assert!(facts.file_system.unwrap().reflink.is_some());
    assert!(facts.listening.is_some() && facts.limits.is_some() && !facts.sysctls.is_empty());
    assert!(
        facts.packages.contains_key("sysbench"),
        "{:?}",
        facts.packages
    );
    let found: Calibration = place
        .agent("calibrate", json!({ "directory": directory, "peers": {} }))
        .await;
    for measure in [Measure::Cpu, Measure::Memory, Measure::Fsync] {
        assert!(measure.of(&found).is_some(), "{measure:?}: {found:?}");
    }
    let looked: Looked = place
        .agent("preflight-look", json!({ "directory": directory }))
        .await;
    let fine = Looked {
        leftovers: Leftovers::default(),
        directory: Directory {
            path: directory,
            refusal: None,
        },
    };
    assert_eq!(looked, fine);
}

#[tokio::test]
async fn this_machines_clock_is_its_own() {
    let place = Place::new(EXPERIMENT);
    let found = clock_offset(&place.host()).await.unwrap();
    assert!(found.round_trip_ms > 0.0);
    // The truth, 0, lies within half of the round trip.
    assert!(
        found.offset_ms.abs() <= found.round_trip_ms / 2.0 + 1.0,
        "{found:?}"
    );
}

#[tokio::test]
async fn the_agent_makes_only_safe_fixes_and_tells_what_the_kernel_refuses() {
    let place = Place::new(EXPERIMENT);
    let directory = place.host().directory().to_owned();
    fs::create_dir(&directory).unwrap();
    let fixes = json!([
        {"kind": "write_sysctl", "key": "vm.no_such_setting", "value": "1"},
        {"kind": "swap_off"},
        {"kind": "stop_service", "name": "no-such-service"},
        {"kind": "write_file", "path": "/etc/hostname", "value": "x"},
    ]);
    let request = json!({ "directory": directory, "fixes": fixes });
    let applied: Vec<Applied> = place.agent("preflight-apply", request).await;
    assert_eq!(applied.len(), 1, "{applied:?}");
    assert!(matches!(applied[0].done, Done::Refused(_)));
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    let request = json!({ "directory": directory });
    let reverted: Vec<Reverted> = place.agent("preflight-revert", request).await;
    assert_eq!(reverted, []);
}

#[test]
fn a_run_records_what_its_host_was_how_fast_and_what_pre_flight_found() {
    let place = Place::new(EXPERIMENT);
    place.ends(0, &["run", "short.yaml"]);
    let run = place.run().unwrap();
    let record = &run.manifest.hosts["local"];
    assert!(record.facts.boot_id.is_some() && !record.facts.sysctls.is_empty());
    assert!(record.clock.is_some());
    assert!(record.calibration.as_ref().unwrap().fsync_p50_ms > 0.0);
    let items: Vec<&str> = record.preflight.iter().map(|f| f.item.as_str()).collect();
    assert_eq!(
        items,
        [
            "clock_offset",
            "governor",
            "directory",
            "free_disk",
            "leftovers"
        ]
    );
    let report = fs::read_to_string(run.layout.folder().join("report.html")).unwrap();
    assert!(report.contains("CPU loop") && report.contains("Memory copy"));
    // What is in the manifest reads back as it was written.
    let text = fs::read_to_string(run.layout.folder().join("manifest.json")).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_value(&run.manifest).unwrap(), json);
}

#[test]
fn a_plan_that_the_disk_cannot_hold_fails_before_anything_is_made() {
    let place = Place::new(&too_large());
    let (shown, _) = place.ends(3, &["hosts", "check", "short.yaml"]);
    assert!(
        shown.contains("FAIL") && shown.contains("free_disk"),
        "{shown}"
    );
    let (_, errors) = place.ends(3, &["run", "short.yaml"]);
    assert!(
        errors.contains("FAIL") && errors.contains("free_disk"),
        "{errors}"
    );
    assert!(errors.contains("--ignore-preflight"), "{errors}");
    assert!(place.run().is_none());
    assert!(!place.path().join("artifacts").exists());
    let (json, _) = place.ends(3, &["run", "short.yaml", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(
        json["causes"][0]
            .as_str()
            .unwrap()
            .starts_with("local: free_disk: "),
        "{json}"
    );
}

#[test]
fn what_pre_flight_found_can_be_ignored_and_is_recorded() {
    let place = Place::new(&too_large());
    let args = ["run", "short.yaml", "--ignore-preflight"];
    let mut child = place.command(&args).stderr(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    let run = loop {
        if let Some(run) = place.run() {
            break run;
        }
        assert!(
            start.elapsed() < MINUTE,
            "waited a minute for the run to begin"
        );
        std::thread::yield_now();
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let found = &run.manifest.hosts["local"].preflight;
    let disk = found.iter().find(|f| f.item == "free_disk").unwrap();
    assert_eq!(disk.status, Status::Fail);
}

#[test]
fn a_warning_is_one_line_and_stops_nothing() {
    let place = Place::new(EXPERIMENT);
    let folder = place.path().join(".assay/other/wal/data.incoming");
    fs::create_dir_all(&folder).unwrap();
    let (shown, _) = place.ends(0, &["hosts", "check"]);
    assert!(
        shown.contains("warn") && shown.contains("data.incoming"),
        "{shown}"
    );
    let (_, errors) = place.ends(0, &["run", "short.yaml"]);
    let lines: Vec<&str> = errors.lines().filter(|l| l.contains("leftovers")).collect();
    assert_eq!(lines.len(), 1, "{errors}");
    assert!(lines[0].contains("data.incoming"), "{errors}");
}

#[test]
fn hosts_check_says_for_machines_and_people_what_it_found() {
    let place = Place::new(EXPERIMENT);
    let (shown, _) = place.ends(0, &["hosts", "check", "short.yaml", "local"]);
    let fine = shown.lines().find(|l| l.starts_with("fine: ")).unwrap();
    assert!(
        fine.contains("clock_offset") && fine.contains("free_disk"),
        "{shown}"
    );
    let (json, _) = place.ends(0, &["hosts", "check", "short.yaml", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["exit"], 0);
    assert_eq!(json["hosts"]["local"][0]["item"], "clock_offset");
    let output = place.assay(&["hosts", "check", "--system", "tidb", "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = json["hosts"]["local"].as_array().unwrap();
    let thp = found.iter().find(|f| f["item"] == "thp").unwrap();
    assert_eq!(thp["wanted"], "never");
    let failed = found.iter().any(|f| f["status"] == "fail");
    assert_eq!(output.status.code(), Some(if failed { 3 } else { 0 }));
    assert_eq!(json["exit"], if failed { 3 } else { 0 });
}

#[test]
fn hosts_facts_prints_what_hosts_are() {
    let place = Place::new(EXPERIMENT);
    let (shown, _) = place.ends(0, &["hosts", "facts"]);
    assert!(
        !place.path().join(".assay").exists(),
        "to look makes nothing"
    );
    assert!(
        shown.starts_with("local\n") && shown.contains("Kernel"),
        "{shown}"
    );
    assert!(!shown.contains("CPU loop"), "{shown}");
    let (json, _) = place.ends(0, &["hosts", "facts", "--calibrate", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let host = &json["hosts"]["local"];
    assert!(host["calibration"]["cpu_ms"].as_f64().unwrap() > 0.0);
    assert!(host["clock"]["round_trip_ms"].as_f64().unwrap() > 0.0);
}

/// A folder that its user may look into and not write, and the commands of that user: root may write everywhere.
fn without_rights(place: &Place) -> impl Fn(&[&str]) -> Output {
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    let is_root = rustix::process::geteuid().is_root();
    let program = place.path().join("assay");
    fs::copy(env!("CARGO_BIN_EXE_assay"), &program).unwrap();
    let closed = place.path().join("closed");
    fs::create_dir(&closed).unwrap();
    mode(&closed, 0o555).unwrap();
    mode(&program, 0o755).unwrap();
    mode(place.path(), 0o755).unwrap();
    let folder = place.path().to_owned();
    move |args| {
        let mut command = match is_root {
            true => Command::new("setpriv"),
            false => Command::new(&program),
        };
        if is_root {
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
            command.arg(&program);
        }
        command.args(args).current_dir(&folder);
        command.stdin(Stdio::null()).output().unwrap()
    }
}

#[test]
fn a_directory_that_cannot_be_written_by_who_works_there_fails() {
    let place = Place::new(EXPERIMENT);
    let assay = without_rights(&place);
    let check = |directory: &str| -> (Option<i32>, Value) {
        let hosts = format!("hosts: {{local: {{connection: local, directory: {directory}}}}}\n");
        fs::write(place.path().join("hosts.yaml"), hosts).unwrap();
        let output = assay(&["hosts", "check", "-i", "hosts.yaml", "--json"]);
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let found = json["hosts"]["local"].as_array().unwrap();
        let of = found.iter().find(|f| f["item"] == "directory");
        (output.status.code(), of.unwrap().clone())
    };
    let closed = place.path().join("closed");
    let made = format!("cannot be made in {}: Permission denied", closed.display());
    for (directory, found) in [
        ("closed", "cannot be written: Permission denied"),
        ("closed/a/b", &made),
    ] {
        let (code, item) = check(directory);
        assert_eq!((code, item["status"].as_str()), (Some(3), Some("fail")));
        assert_eq!(item["found"], *found);
        assert!(
            item["fix"]["what"]
                .as_str()
                .unwrap()
                .contains("`directory`")
        );
    }
    let open = place.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let (_, item) = check("open/a/b");
    assert_eq!(item["status"], "ok", "{item}");
    for folder in [&closed, &open] {
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn what_a_holder_that_lives_has_there_is_no_leftover() {
    let place = Place::new(EXPERIMENT);
    fs::create_dir_all(place.path().join(".assay/other/wal/data.incoming")).unwrap();
    let check = || {
        let (json, _) = place.ends(0, &["hosts", "check", "--json"]);
        let json: Value = serde_json::from_str(&json).unwrap();
        let found = json["hosts"]["local"].as_array().unwrap().clone();
        let of = found.into_iter().filter(|f| f["item"] == "leftovers");
        of.collect::<Vec<_>>()
    };
    let claim = assay::host::Claim::of("run x");
    let lease = place.host().lease(claim).await.unwrap();
    let found = check();
    assert_eq!(found.len(), 1, "{found:?}");
    let text = found[0]["found"].as_str().unwrap();
    assert!(
        text.starts_with("held by run x ") && text.contains(" since "),
        "{text}"
    );
    assert_eq!(found[0]["status"], "warn");
    assert_eq!(found[0]["fix"], Value::Null);
    drop(lease);
    let found = check();
    let text = found[0]["found"].as_str().unwrap();
    assert!(text.ends_with("data.incoming"), "{text}");
}

/// Settings of the network belong to a namespace of their own here; those of the whole machine are made read-only.
const IN_A_NAMESPACE: &str = r#"
set -e
for folder in /proc/sys/vm /proc/sys/fs /proc/sys/kernel /sys; do
    mount --bind $folder $folder
    mount -o remount,ro,bind $folder
done
for file in /proc/sys/vm/swappiness /sys/kernel/mm/transparent_hugepage/enabled; do
    if [ -w $file ]; then exit 1; fi
done
echo "ready" >&2
before=$(cat /proc/sys/net/core/somaxconn)
"$0" hosts check --system tidb --apply || [ $? = 3 ]
echo "then $before $(cat /proc/sys/net/core/somaxconn)"
"$0" hosts check --revert
echo "last $(cat /proc/sys/net/core/somaxconn)"
"#;

#[test]
fn settings_are_made_and_put_back_and_read_only_ones_are_told() {
    let place = Place::new(EXPERIMENT);
    let output = Command::new("unshare")
        .args([
            "--mount",
            "--net",
            "--propagation",
            "private",
            "sh",
            "-c",
            IN_A_NAMESPACE,
        ])
        .arg(env!("CARGO_BIN_EXE_assay"))
        .current_dir(place.path())
        .stdin(Stdio::null())
        .output();
    let output = match output {
        Ok(output) if String::from_utf8_lossy(&output.stderr).contains("ready\n") => output,
        other => {
            let why = other.map(|o| String::from_utf8_lossy(&o.stderr).trim().to_owned());
            return skipped("settings_are_made_and_put_back", &format!("{why:?}"));
        }
    };
    let shown = String::from_utf8(output.stdout).unwrap();
    let line = |start: &str| {
        shown
            .lines()
            .find(|l| l.starts_with(start))
            .unwrap_or(&shown)
    };
    let made = line("local: /proc/sys/net/core/somaxconn: ");
    let values = |line: &str| line.rsplit(' ').next().unwrap().to_owned();
    assert_eq!(values(made), "32768", "{shown}");
    let then: Vec<&str> = line("then ").split(' ').collect();
    let [_, before, changed] = then[..] else {
        panic!("{shown}")
    };
    assert_eq!(changed, "32768");
    assert_eq!(line("last "), format!("last {before}"));
    assert!(
        shown.contains(&format!("somaxconn: 32768 -> {before}")),
        "{shown}"
    );
    // Whatever the machine's own values are, none of those that are read-only was changed.
    let refused = shown
        .lines()
        .filter(|l| l.contains("cannot apply: read-only"));
    assert!(refused.clone().all(|l| !l.contains("/net/")), "{shown}");
    let swappiness = fs::read_to_string("/proc/sys/vm/swappiness").unwrap();
    let is_told = refused.clone().any(|l| l.contains("vm/swappiness"));
    assert_eq!(is_told, swappiness.trim() != "0", "{shown}");
    assert!(!place.path().join(".assay/.assay-preflight.json").exists());
}

/// Says so straight to the terminal: the harness swallows what a test that passes prints.
fn skipped(test: &str, why: &str) {
    let text = format!("skipped: {test}: {why}\n");
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}

#[test]
fn what_nobody_has_is_a_mistake_of_the_user() {
    let place = Place::new(EXPERIMENT);
    let wrong: [(&[&str], &str); 5] = [
        (
            &["hosts", "check", "elsewhere"],
            "there is no host or group `elsewhere`",
        ),
        (
            &["hosts", "check", "--system", "oracle"],
            "there is no system `oracle`",
        ),
        (
            &["hosts", "check", "short.yaml", "other.yml"],
            "one experiment is enough",
        ),
        (
            &["hosts", "check", "--apply", "--revert"],
            "cannot be used with",
        ),
        (&["hosts", "facts", "missing.yaml"], "missing.yaml"),
    ];
    for (args, message) in wrong {
        let (_, errors) = place.ends(2, args);
        assert!(errors.contains(message), "{args:?}: {errors}");
    }
}

#[tokio::test]
async fn a_host_that_a_run_holds_is_neither_changed_nor_calibrated() {
    let place = Place::new(EXPERIMENT);
    let lease = place
        .host()
        .lease(assay::host::Claim::of("run x"))
        .await
        .unwrap();
    for args in [
        ["check", "--apply"],
        ["check", "--revert"],
        ["facts", "--calibrate"],
    ] {
        let (_, errors) = place.ends(3, &["hosts", args[0], args[1]]);
        assert!(errors.contains("is held by run x"), "{args:?}: {errors}");
    }
    place.ends(0, &["hosts", "check"]);
    drop(lease);
    let (shown, _) = place.ends(0, &["hosts", "check", "--revert"]);
    assert_eq!(shown, "local: there is nothing to undo\n");
}
