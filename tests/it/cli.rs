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
    let mut kills = 0;
    while kills < 30 {
        let place = Place::new();
        kills += kill_after(&place, &["run", "short.yaml"], &mut random);
        if place.runs().is_empty() {
            // Killed before the run appeared: nothing of it may be in the way.
            place.fine(&["run", "short.yaml", "-q"]);
        } else {
            kills += kill_after(&place, &["resume"], &mut random);
            let output = place.assay(&["resume"]);
            let events = fs::read_to_string(place.only_run().join("events.jsonl")).unwrap();
            let failures: Vec<&str> = events
                .lines()
                .filter(|l| l.contains("failed") || l.contains("error"))
                .collect();
            assert_eq!(
                output.status.code(),
                Some(0),
                "{}\n{failures:#?}",
                text(&output.stderr)
            );
        }
        let run = place.only_run();
        assert_every_round_exactly_once(&run);
        assert!(
            place.fine(&["verify"]).contains("as they were"),
            "after {kills} kills"
        );
    }
}

/// Starts a command and kills it by SIGKILL at a random moment, or lets it end. Returns the number of kills.
fn kill_after(place: &Place, args: &[&str], random: &mut rand_pcg::Pcg64) -> u32 {
    let (events, milliseconds) = (random.random_range(0..70), random.random_range(0..40));
    let before = event_count(place);
    let mut child = spawn(place, args);
    wait_for("the moment to kill", || {
        let ended = child.try_wait().unwrap().is_some();
        (ended || event_count(place) >= before + events).then_some(())
    });
    // The moment within an event's work is random too.
    let moment = Instant::now() + Duration::from_millis(milliseconds);
    wait_for("that moment", || (Instant::now() >= moment).then_some(()));
    let ended = child.try_wait().unwrap().is_some();
    child.kill().unwrap();
    child.wait().unwrap();
    u32::from(!ended)
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
    // What was refused left nothing behind.
    assert_eq!(place.runs().len(), 1);
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

#[test]
fn a_reader_that_leaves_ends_no_command_and_no_run() {
    let place = Place::new();
    // Its standard error is a pipe that nobody reads any more, as after a closed terminal.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let (out, out_writer) = std::io::pipe().unwrap();
    drop(out);
    let status = place
        .command(&["run", "short.yaml"])
        .stderr(writer)
        .stdout(out_writer)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    assert_every_round_exactly_once(&place.only_run());
    for args in [
        &["show"][..],
        &["list"],
        &["status"],
        &["report", "--format", "html"],
        &["schema"],
        &["man"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = place
            .command(args)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(
            (output.status.code(), text(&output.stderr).as_str()),
            (Some(0), ""),
            "{args:?}"
        );
    }
}

#[test]
fn a_full_disk_under_standard_output_is_an_error_and_no_panic() {
    let place = Place::new();
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = place
        .command(&["schema"])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).starts_with("error: cannot write to standard output"),
        "{}",
        text(&output.stderr)
    );
}

/// A run that was stopped in its first round.
fn stopped_run(place: &Place, args: &[&str], environment: &[(&str, &str)]) -> PathBuf {
    let mut command = place.command(args);
    command
        .envs(environment.iter().copied())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    wait_for("the first round", || started(place));
    send(&child, rustix::process::Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    place.only_run()
}

#[test]
fn a_resume_from_another_folder_goes_on_with_the_same_data() {
    let place = Place::new();
    let run = stopped_run(&place, &["run", "short.yaml"], &[]);
    let elsewhere = tempfile::tempdir().unwrap();
    let output = place
        .command(&["resume", run.to_str().unwrap()])
        .current_dir(elsewhere.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!elsewhere.path().join(".assay").exists());
    // Nothing was prepared again.
    let prepared = Run::open(&run).unwrap().state.preparations;
    assert!(prepared.values().all(|n| *n == 1), "{prepared:?}");
}

#[test]
fn another_program_is_refused_on_resume_unless_accepted() {
    let place = Place::new();
    let run = stopped_run(&place, &["run", "short.yaml"], &[]);
    let other = place.path().join("assay");
    fs::copy(env!("CARGO_BIN_EXE_assay"), &other).unwrap();
    let mut bytes = fs::OpenOptions::new().append(true).open(&other).unwrap();
    std::io::Write::write_all(&mut bytes, b"x").unwrap();
    drop(bytes);
    let resume = |args: &[&str]| {
        Command::new(&other)
            .args(args)
            .arg(&run)
            .current_dir(place.path())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let refused = resume(&["resume"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("program assay: "),
        "{}",
        text(&refused.stderr)
    );
    let accepted = resume(&["resume", "--accept-changed-host"]);
    assert_eq!(
        accepted.status.code(),
        Some(0),
        "{}",
        text(&accepted.stderr)
    );
    let events = Run::open(&run).unwrap().events;
    assert!(
        events
            .iter()
            .any(|e| matches!(e.event, Event::HostChanged { .. }))
    );
}

#[test]
fn another_value_of_a_secret_is_refused_on_resume() {
    let place = Place::new();
    let secret = EXPERIMENT.replace(
        "journal_mode: wal",
        "journal_mode: \"${env:ASSAY_TEST_MODE}\"",
    );
    fs::write(place.path().join("short.yaml"), secret).unwrap();
    let run = stopped_run(
        &place,
        &["run", "short.yaml"],
        &[("ASSAY_TEST_MODE", "truncate")],
    );
    let with = |value: &str| {
        place
            .command(&["resume", run.to_str().unwrap()])
            .env("ASSAY_TEST_MODE", value)
            .output()
            .unwrap()
    };
    let refused = with("persist");
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("`${env:ASSAY_TEST_MODE}` has another value"),
        "{}",
        text(&refused.stderr)
    );
    assert_eq!(with("truncate").status.code(), Some(0));
}

#[test]
fn a_resume_that_was_killed_while_it_accepted_a_change_can_be_repeated() {
    let place = Place::new();
    let run = stopped_run(&place, &["run", "short.yaml"], &[]);
    fs::write(
        place.path().join("short.yaml"),
        EXPERIMENT.replace("repetitions: 2", "repetitions: 3"),
    )
    .unwrap();
    // As after a kill between the files of the revision and its event.
    fs::write(run.join("experiment.2.yaml"), "half").unwrap();
    place.fine(&["resume", "--accept-changed-spec"]);
    assert_every_round_exactly_once(&run);
    assert_eq!(Run::open(&run).unwrap().state.revision, 3);
}

#[test]
fn a_changed_experiment_is_told_by_path_even_when_values_were_only_swapped() {
    let place = Place::new();
    stopped_run(&place, &["run", "short.yaml"], &[]);
    let swapped = EXPERIMENT
        .replace("journal_mode: wal", "journal_mode: x")
        .replace("journal_mode: delete", "journal_mode: wal")
        .replace("journal_mode: x", "journal_mode: delete");
    fs::write(place.path().join("short.yaml"), swapped).unwrap();
    let refused = place.fails(2, &["resume"]);
    assert!(
        refused.contains("variants.wal.config.sqlite.journal_mode: wal -> delete"),
        "{refused}"
    );
}

#[test]
fn more_words_are_said_when_asked_for() {
    let place = Place::new();
    let said = |args: &[&str]| text(&place.assay(args).stderr).lines().count();
    let plain = said(&["run", "short.yaml"]);
    assert!(said(&["run", "short.yaml", "-v"]) > plain + 8);
    assert!(said(&["run", "short.yaml", "-q"]) == 0);
}

#[test]
fn errors_are_json_too_when_asked_for() {
    let place = Place::new();
    let output = place.assay(&["show", "--json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["exit"], 2);
    assert!(
        answer["error"]
            .as_str()
            .unwrap()
            .contains("there are no runs")
    );
    assert_eq!(place.fine(&["list", "--json"]).trim(), "[]");
}

#[test]
fn a_variant_without_any_tunable_gets_its_report() {
    let place = Place::new();
    let experiment = EXPERIMENT.replace(
        "{config: {sqlite: {journal_mode: delete, synchronous: off}}}",
        "{}",
    );
    fs::write(place.path().join("short.yaml"), experiment).unwrap();
    place.fine(&["run", "short.yaml", "-q"]);
    assert!(place.fine(&["verify"]).contains("as they were"));
}

#[test]
fn what_a_killed_run_left_working_is_waited_for() {
    let place = Place::new();
    let mut child = spawn(
        &place,
        &["run", "short.yaml", "--set", "rounds.duration=10m"],
    );
    wait_for("the first round", || started(&place));
    let agent = wait_for("the driver", || agent_of(&child));
    // The driver cannot end by itself: it is stopped in its tracks, and so still at work on the data.
    rustix::process::kill_process(agent, rustix::process::Signal::STOP).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let mut second = spawn(&place, &["run", "short.yaml", "--artifacts", "others"]);
    wait_for("the second run to come as far as the lease", || {
        lease_waiter(&second)
    });
    assert!(
        !place.path().join("others").exists(),
        "it began while the first one's driver was there"
    );
    rustix::process::kill_process(agent, rustix::process::Signal::CONT).unwrap();
    assert_eq!(second.wait().unwrap().code(), Some(0));
}

/// The driver that a run has started.
fn agent_of(run: &Child) -> Option<rustix::process::Pid> {
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", run.id())).ok()?;
    let is_driver = |pid: &&str| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|c| text(&c).contains("load"))
    };
    let pid = children.split_whitespace().find(is_driver)?;
    rustix::process::Pid::from_raw(pid.parse().ok()?)
}

/// Whether a run has the lease's file open: it waits for it, or has it.
fn lease_waiter(run: &Child) -> Option<()> {
    let open = fs::read_dir(format!("/proc/{}/fd", run.id())).ok()?;
    let mut targets = open.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
    targets.any(|t| t.ends_with(".assay-lease")).then_some(())
}

#[test]
fn rounds_of_a_variant_that_was_changed_are_run_again_and_the_others_are_kept() {
    let place = Place::new();
    let run = stopped_run(&place, &["run", "short.yaml"], &[]);
    let changed = EXPERIMENT.replace(
        "journal_mode: wal, synchronous: off",
        "journal_mode: wal, synchronous: normal",
    );
    fs::write(place.path().join("short.yaml"), changed).unwrap();
    let before = Run::open(&run).unwrap();
    place.fine(&["resume", "--accept-changed-spec"]);
    let after = Run::open(&run).unwrap();
    assert_eq!(after.results.len(), 8);
    for (id, result) in &before.results {
        let is_other = result.variant == "wal";
        assert_eq!(after.results[id].attempt > result.attempt, is_other, "{id}");
    }
    assert!(place.fine(&["verify"]).contains("as they were"));
}

#[test]
fn a_report_is_never_written_into_a_run_nor_through_a_link() {
    let place = Place::new();
    place.fine(&["run", "short.yaml", "-q"]);
    let run = place.only_run();
    for inside in ["", "rounds", "new/sub"] {
        let refused = place.fails(2, &["report", "-o", run.join(inside).to_str().unwrap()]);
        assert!(
            refused.contains("is a run, which is never changed"),
            "{refused}"
        );
    }
    fs::create_dir(place.path().join("out")).unwrap();
    fs::write(place.path().join("precious"), "precious").unwrap();
    std::os::unix::fs::symlink("../precious", place.path().join("out/results.csv")).unwrap();
    place.fine(&["report", "-o", "out", "-f", "csv"]);
    assert_eq!(
        fs::read_to_string(place.path().join("precious")).unwrap(),
        "precious"
    );
    assert!(place.fine(&["verify"]).contains("as they were"));
}

#[test]
fn a_run_whose_folder_goes_away_stops_and_does_not_come_back_in_parts() {
    let place = Place::new();
    let mut child = spawn(
        &place,
        &["run", "short.yaml", "--set", "rounds.repetitions=20"],
    );
    wait_for("the first round", || started(&place));
    fs::rename(place.path().join("artifacts"), place.path().join("moved")).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(stderr_has(
        &place,
        "was removed or replaced while the run went on"
    ));
    assert!(!place.path().join("artifacts").exists());
    fs::rename(place.path().join("moved"), place.path().join("artifacts")).unwrap();
    place.fine(&["resume"]);
    assert_every_round_exactly_once(&place.only_run());
}
