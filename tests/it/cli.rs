//! The program as its users meet it: real SQLite, real files, real processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use assay::artifacts::{Event, Run, Status, read_events};
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;

/// A folder with a short experiment: two variants, one workload, two thread counts, two repetitions.
struct Place(tempfile::TempDir);

const EXPERIMENT: &str = "\
name: short
seed: 7
cluster:
  system: sqlite
  topology: {sqlite: [local]}
variants:
  delete: {config: {sqlite: {journal_mode: delete, synchronous: off}}}
  wal: {config: {sqlite: {journal_mode: wal, synchronous: off}}}
dataset: {driver: native, schema: ycsb, records: 200, fields: 2}
workloads:
  - {driver: native, workload: ycsb_a}
sweep: {threads: [1, 2]}
rounds: {warmup: 10ms, duration: 60ms, repetitions: 2}
";

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::write(place.path().join("short.yaml"), EXPERIMENT).unwrap();
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

    /// Runs a command that must succeed; its standard output.
    fn fine(&self, args: &[&str]) -> String {
        let output = self.assay(args);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{args:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// Runs a command that must fail so; its standard error.
    fn fails(&self, code: i32, args: &[&str]) -> String {
        let output = self.assay(args);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{args:?}: {}",
            text(&output.stderr)
        );
        text(&output.stderr)
    }

    fn runs(&self) -> Vec<PathBuf> {
        let mut runs: Vec<PathBuf> = fs::read_dir(self.path().join("artifacts/short"))
            .map(|entries| entries.map(|e| e.unwrap().path()).collect())
            .unwrap_or_default();
        runs.retain(|r| r.join("manifest.json").exists());
        runs.sort();
        runs
    }

    fn only_run(&self) -> PathBuf {
        let runs = self.runs();
        assert_eq!(runs.len(), 1);
        runs[0].clone()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits until `ready` gives something; a minute without it is a failure.
fn wait_for<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "waited a minute for {what}"
        );
        std::thread::yield_now();
    }
}

#[test]
fn a_run_leaves_a_whole_archive_and_every_command_reads_it() {
    let place = Place::new();
    let printed = place.fine(&["run", "short.yaml"]);
    let run = place.only_run();
    assert!(printed.contains("report: artifacts/short/"), "{printed}");
    for file in [
        "manifest.json",
        "experiment.yaml",
        "inventory.yaml",
        "plan.json",
        "events.jsonl",
        "results.csv",
        "report.html",
        "report.md",
        "results.json",
        "SHA256SUMS",
    ] {
        assert!(run.join(file).is_file(), "{file}");
    }
    assert!(place.fine(&["verify"]).contains("files are as they were"));
    assert!(place.fine(&["list"]).contains("finished"));
    assert!(place.fine(&["status"]).contains("8 of 8 done, 0 failed"));
    assert!(place.fine(&["show"]).contains("ycsb_a"));
    for (format, sign) in [
        ("html", "<!doctype html>"),
        ("markdown", "# "),
        ("csv", ","),
        ("json", "{"),
    ] {
        assert!(
            place
                .fine(&["report", "--format", format])
                .to_lowercase()
                .contains(sign),
            "{format}"
        );
    }
    let status: Value = serde_json::from_str(&place.fine(&["status", "--json"])).unwrap();
    assert_eq!(status["state"], "finished");
    assert_eq!(status["rounds"]["ok"], 8);
    let sums = Command::new("sha256sum")
        .args(["--check", "--quiet", "SHA256SUMS"])
        .current_dir(&run)
        .status();
    assert!(sums.unwrap().success());
}

#[test]
fn verify_names_a_file_that_changed() {
    let place = Place::new();
    place.fine(&["run", "short.yaml", "-q"]);
    fs::write(place.only_run().join("plan.json"), "{}").unwrap();
    let output = place.assay(&["verify"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stdout).contains("changed  plan.json"));
}

#[test]
fn the_same_experiment_and_seed_have_the_same_plan_byte_for_byte() {
    let place = Place::new();
    place.fine(&["run", "short.yaml", "-q"]);
    place.fine(&["run", "short.yaml", "-q"]);
    let plans: Vec<_> = place
        .runs()
        .iter()
        .map(|r| fs::read(r.join("plan.json")).unwrap())
        .collect();
    assert_eq!(plans.len(), 2);
    assert_eq!(plans[0], plans[1]);
    let other = place.fine(&["plan", "short.yaml", "--json", "--set", "seed=8"]);
    assert_ne!(other, place.fine(&["plan", "short.yaml", "--json"]));
}

#[test]
fn rounds_begin_with_identical_data() {
    // A run that wrote and one that did not begin from the same snapshot: what the last round left must be gone.
    let place = Place::new();
    place.fine(&[
        "run",
        "short.yaml",
        "-q",
        "--set",
        "workloads[0].workload=ycsb_d",
    ]);
    let run = Run::open(&place.only_run()).unwrap();
    let errors: u64 = run
        .results
        .values()
        .map(|r| r.measured.as_ref().unwrap().errors)
        .sum();
    // D inserts above the loaded keys: without a restore the second round would insert keys that are there already.
    assert_eq!(errors, 0);
}

#[test]
fn a_run_that_is_interrupted_ends_its_round_and_is_resumed() {
    let place = Place::new();
    let mut child = spawn(&place, &["run", "short.yaml"]);
    wait_for("the first round", || started(&place));
    send(&child, rustix::process::Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(place.fine(&["status"]).contains("stopped"));
    place.fine(&["resume"]);
    assert_every_round_exactly_once(&place.only_run());
    assert!(place.fine(&["verify"]).contains("as they were"));
    let again = place.assay(&["resume"]);
    assert_eq!(again.status.code(), Some(0));
    assert!(text(&again.stderr).contains("nothing is missing"));
}

#[test]
fn a_second_interrupt_kills_the_round_at_once() {
    let place = Place::new();
    let mut child = spawn(
        &place,
        &["run", "short.yaml", "--set", "rounds.duration=10m"],
    );
    wait_for("the first round", || started(&place));
    let before = Instant::now();
    send(&child, rustix::process::Signal::INT);
    // The second signal must not overtake the first's handling, or both count as one.
    wait_for("the answer to the first", || {
        stderr_has(&place, "stopping:").then_some(())
    });
    send(&child, rustix::process::Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(before.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_changed_experiment_is_refused_on_resume_unless_accepted() {
    let place = Place::new();
    let mut child = spawn(&place, &["run", "short.yaml"]);
    wait_for("the first round", || started(&place));
    send(&child, rustix::process::Signal::INT);
    child.wait().unwrap();
    fs::write(
        place.path().join("short.yaml"),
        EXPERIMENT.replace("repetitions: 2", "repetitions: 3"),
    )
    .unwrap();
    let refused = place.fails(2, &["resume"]);
    assert!(refused.contains("has changed since"), "{refused}");
    assert!(refused.contains("--accept-changed-spec"), "{refused}");
    place.fine(&["resume", "--accept-changed-spec"]);
    let run = Run::open(&place.only_run()).unwrap();
    assert_eq!(run.plan.rounds.len(), 12);
    assert_every_round_exactly_once(&place.only_run());
    assert!(
        run.events
            .iter()
            .any(|e| matches!(e.event, Event::SpecChanged { revision: 2, .. }))
    );
}

#[test]
fn killed_at_thirty_random_moments_every_planned_round_is_there_exactly_once() {
    let mut random = rand_pcg::Pcg64::seed_from_u64(20_260_301);
    // Two kills a run: of the run itself, and of its first resume.
    for trial in 0..15 {
        let place = Place::new();
        kill_after(
            &place,
            &["run", "short.yaml"],
            random.random_range(0..70),
            random.random_range(0..40),
        );
        if place.runs().is_empty() {
            // Killed before the run's folder appeared: nothing may be left but the unfinished folder.
            place.fine(&["run", "short.yaml", "-q"]);
        } else {
            kill_after(
                &place,
                &["resume"],
                random.random_range(0..40),
                random.random_range(0..40),
            );
            place.fine(&["resume"]);
        }
        let run = place.only_run();
        assert_every_round_exactly_once(&run);
        assert!(
            place.fine(&["verify"]).contains("as they were"),
            "trial {trial}"
        );
    }
}

/// Starts a command and kills it by SIGKILL after so many further events and milliseconds, or lets it end.
fn kill_after(place: &Place, args: &[&str], events: usize, milliseconds: u64) {
    let before = event_count(place);
    let mut child = spawn(place, args);
    wait_for("the moment to kill", || {
        let ended = child.try_wait().unwrap().is_some();
        (ended || event_count(place) >= before + events).then_some(())
    });
    // The moment within an event's work is random too.
    let moment = Instant::now() + Duration::from_millis(milliseconds);
    wait_for("that moment", || (Instant::now() >= moment).then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
}

fn event_count(place: &Place) -> usize {
    let run = place.runs().pop();
    run.and_then(|r| fs::read_to_string(r.join("events.jsonl")).ok())
        .map_or(0, |t| t.lines().count())
}

fn spawn(place: &Place, args: &[&str]) -> Child {
    let stderr = fs::File::create(place.path().join("stderr")).unwrap();
    place
        .command(args)
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .unwrap()
}

fn stderr_has(place: &Place, what: &str) -> bool {
    fs::read_to_string(place.path().join("stderr")).is_ok_and(|t| t.contains(what))
}

fn send(child: &Child, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).unwrap();
}

/// Whether a round of the only run measures now.
fn started(place: &Place) -> Option<()> {
    let run = place.runs().pop()?;
    let events = read_events(&run.join("events.jsonl")).ok()?;
    events
        .iter()
        .any(|e| matches!(&e.event, Event::StepStarted { name, .. } if name == "measure"))
        .then_some(())
}

fn assert_every_round_exactly_once(folder: &Path) {
    let run = Run::open(folder).unwrap();
    let mut endings: BTreeMap<String, usize> = BTreeMap::new();
    for entry in &run.events {
        if let Event::RoundFinished {
            round,
            status: Status::Ok,
            retry: false,
            ..
        } = &entry.event
        {
            *endings.entry(round.clone()).or_default() += 1;
        }
    }
    let planned: BTreeMap<String, usize> =
        run.plan.rounds.iter().map(|r| (r.id.clone(), 1)).collect();
    assert_eq!(endings, planned);
    assert_eq!(run.results.len(), planned.len());
}

#[test]
fn wrong_usage_and_wrong_specs_have_exit_code_2_and_change_nothing() {
    let place = Place::new();
    assert!(
        place
            .fails(2, &["frobnicate"])
            .contains("unrecognized subcommand")
    );
    assert!(place.fails(2, &["run"]).contains("required"));
    assert!(
        place
            .fails(2, &["run", "missing.yaml"])
            .contains("missing.yaml")
    );
    fs::write(
        place.path().join("bad.yaml"),
        EXPERIMENT.replace("sweep", "swep"),
    )
    .unwrap();
    let shown = place.fails(2, &["run", "bad.yaml"]);
    assert!(
        shown.contains("bad.yaml:") && shown.contains("sweep"),
        "{shown}"
    );
    assert!(place.fails(2, &["show"]).contains("there are no runs"));
    fs::create_dir(place.path().join("folder")).unwrap();
    assert!(place.fails(2, &["show", "folder"]).contains("is no run"));
    assert!(place.fails(2, &["resume", "nothing"]).contains("no run"));
    assert!(!place.path().join("artifacts").exists());
    assert!(!place.path().join(".assay").exists());
}

#[test]
fn a_deployment_that_cannot_start_has_exit_code_3() {
    let place = Place::new();
    for variant in ["delete", "wal"] {
        let deployment = place.path().join(".assay/short").join(variant);
        fs::create_dir_all(&deployment).unwrap();
        fs::write(deployment.join("data"), "a file where the folder would be").unwrap();
    }
    let stderr = place.fails(3, &["run", "short.yaml"]);
    assert!(stderr.contains("data"), "{stderr}");
}

#[test]
fn a_second_run_is_refused_while_the_first_holds_the_host() {
    let place = Place::new();
    let mut first = spawn(
        &place,
        &["run", "short.yaml", "--set", "rounds.duration=10m"],
    );
    wait_for("the first round", || started(&place));
    let refused = place.fails(3, &["run", "short.yaml"]);
    assert!(refused.contains("host `local` is held by"), "{refused}");
    let busy = place.fails(2, &["resume", place.runs()[0].to_str().unwrap()]);
    assert!(busy.contains("written by another assay process"), "{busy}");
    assert!(
        place
            .fine(&["status", place.runs()[0].to_str().unwrap()])
            .contains("running")
    );
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn init_writes_an_experiment_that_checks_and_never_overwrites() {
    let place = Place::new();
    place.fine(&["init"]);
    place.fine(&["check", "experiment.yaml"]);
    let refused = place.fails(2, &["init"]);
    assert!(refused.contains("is there already"), "{refused}");
}

#[test]
fn check_prints_all_problems_as_json() {
    let place = Place::new();
    fs::write(
        place.path().join("bad.yaml"),
        EXPERIMENT
            .replace("sweep", "swep")
            .replace("seed: 7", "seed: x"),
    )
    .unwrap();
    let output = place.assay(&["check", "bad.yaml", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let problems = answer["problems"].as_array().unwrap();
    assert!(problems.len() >= 2, "{problems:?}");
    assert!(
        problems
            .iter()
            .all(|p| p["line"].is_u64() && p["message"].is_string())
    );
}

#[test]
fn a_secret_from_the_environment_is_nowhere_in_the_archive() {
    let place = Place::new();
    let experiment = EXPERIMENT.replace(
        "synchronous: off}",
        "cache_size: \"${env:ASSAY_TEST_SECRET}\"}",
    );
    fs::write(place.path().join("secret.yaml"), experiment).unwrap();
    let mut command = place.command(&["run", "secret.yaml", "-v"]);
    let output = command
        .env("ASSAY_TEST_SECRET", "-31415926")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for shown in [text(&output.stdout), text(&output.stderr)] {
        assert!(!shown.contains("31415926"));
    }
    for entry in walkdir::WalkDir::new(place.path().join("artifacts")) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            let content = text(&fs::read(entry.path()).unwrap());
            assert!(!content.contains("31415926"), "{}", entry.path().display());
        }
    }
    let missing = place.fails(2, &["run", "secret.yaml"]);
    assert!(missing.contains("ASSAY_TEST_SECRET"), "{missing}");
}
