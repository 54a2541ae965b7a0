//! The real runner with a fake host, on tokio's clock.

mod clusters;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use assay::artifacts::{Entry, Event, EventLog, Layout, Run, State, Status, read_events};
use assay::host::{Claim, FakeHost, Fault, Host};
use assay::measurement::{Latency, LoadResult, OperationResult};
use assay::pack::Packs;
use assay::plan::{Plan, build};
use assay::runner::{self, Context, Control, Notice, Outcome, RunError};
use assay::spec::{Experiment, Inventory};
use serde_json::{Value, json};

use crate::support::bare_run::bare_run;

/// A run on a fake host.
struct Bench {
    folder: tempfile::TempDir,
    plan: Plan,
    host: Arc<FakeHost>,
    layout: Layout,
    packs: Packs,
    control: Control,
    clock: AtomicI64,
}

/// Two variants, two workloads, one thread count, two repetitions: eight rounds.
fn experiment() -> Value {
    json!({
        "name": "fake",
        "cluster": {"system": "sqlite", "topology": {"sqlite": ["local"]}},
        "variants": {
            "a": {"config": {"sqlite": {"cache_size": "${env:SECRET}"}}},
            "b": {"config": {"sqlite": {"journal_mode": "wal"}}},
        },
        "dataset": {"driver": "native", "schema": "ycsb", "records": 10},
        "workloads": [
            {"driver": "native", "workload": "ycsb_a"},
            {"driver": "native", "workload": "ycsb_c"},
        ],
        "sweep": {"threads": [1]},
        "rounds": {"warmup": "1s", "duration": "10s", "repetitions": 2},
    })
}

impl Bench {
    fn new() -> Self {
        Self::with(&experiment())
    }

    fn with(experiment: &Value) -> Self {
        Self::with_packs(experiment, Packs::built_in())
    }

    fn with_packs(experiment: &Value, packs: Packs) -> Self {
        let experiment: Experiment = serde_json::from_value(experiment.clone()).unwrap();
        let plan = build(&experiment, &Inventory::this_machine(), &packs, "0123").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (layout, _) = bare_run(folder.path(), &plan);
        let host = Arc::new(scripted());
        Self {
            folder,
            plan,
            host,
            layout,
            packs,
            control: Control::new(),
            clock: AtomicI64::new(0),
        }
    }

    /// Begins the run, or goes on with it.
    async fn go(&self) -> Result<Outcome, RunError> {
        self.go_watching(&mut |_| {}).await
    }

    async fn go_and_stop_after_the_first_round(&self) {
        let control = self.control.clone();
        let mut ask = |notice: Notice<'_>| {
            if let Notice::Event(Entry {
                event: Event::RoundStarted { .. },
                ..
            }) = notice
            {
                control.ask();
            }
        };
        assert_eq!(
            self.go_watching(&mut ask).await.unwrap(),
            Outcome::Cancelled
        );
    }

    async fn go_watching(
        &self,
        observe: &mut (dyn FnMut(Notice<'_>) + Send),
    ) -> Result<Outcome, RunError> {
        let mut hosts: BTreeMap<String, Arc<dyn Host>> = BTreeMap::new();
        hosts.insert("local".into(), self.host.clone());
        let context = Context {
            plan: &self.plan,
            layout: &self.layout,
            packs: &self.packs,
            packages: self.folder.path(),
            hosts: &hosts,
            reveal: &|text| text.replace("${env:SECRET}", "-31415926"),
            hide: &|text| text.replace("-31415926", "${env:SECRET}"),
            clock: &|| {
                jiff::Timestamp::from_second(self.clock.fetch_add(1, Ordering::Relaxed)).unwrap()
            },
            control: &self.control,
        };
        let leases = runner::hold(&self.plan, &hosts, Claim::of("run `r`")).await?;
        let log = EventLog::open(&self.layout.events()).unwrap();
        let events = read_events(&self.layout.events()).unwrap();
        runner::run(&context, &leases, log, &events, observe).await
    }

    fn events(&self) -> Vec<Entry> {
        read_events(&self.layout.events()).unwrap()
    }

    fn run(&self) -> Run {
        Run::open(self.layout.folder()).unwrap()
    }

    /// Removes the folders that were made after the log's last event: events come first.
    fn remove_what_no_event_announced(&self) {
        let state = State::replay(&self.events());
        let known = |id: &str, n: u32| {
            let attempts = state.rounds.get(id).map(|r| r.attempts);
            n <= attempts
                .or_else(|| state.preparations.get(id).copied())
                .unwrap_or(0)
        };
        for part in ["rounds", "deployments"] {
            for entry in std::fs::read_dir(self.layout.folder().join(part)).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                let (id, n) = name
                    .split_once('+')
                    .map_or((&*name, 1), |(id, n)| (id, n.parse().unwrap()));
                if !known(id, n) {
                    std::fs::remove_dir_all(&path).unwrap();
                }
            }
        }
    }

    /// How often each round ended for good.
    fn endings(&self) -> BTreeMap<String, usize> {
        let mut endings = BTreeMap::new();
        for entry in self.events() {
            if let Event::RoundFinished {
                round,
                retry: false,
                ..
            } = entry.event
            {
                *endings.entry(round).or_default() += 1;
            }
        }
        endings
    }

    fn assert_every_round_ended_exactly_once(&self) {
        let planned: BTreeMap<String, usize> =
            self.plan.rounds.iter().map(|r| (r.id.clone(), 1)).collect();
        assert_eq!(self.endings(), planned);
    }
}

/// A host on which everything goes well; each round takes as long as it should.
fn scripted() -> FakeHost {
    let host = FakeHost::new("local", "/srv/assay");
    let files = host.files();
    host.on("deploy", |_, _| Ok(Value::Null));
    host.on("sqlite-start", |_, _| {
        Ok(json!({"version": "3", "config": {}}))
    });
    host.on("sqlite-stop", |_, _| Ok(Value::Null));
    host.on("snapshot-probe", |_, _| {
        Ok(json!({"reflink": false, "file_system": "ext4", "why": "it has none"}))
    });
    host.on("snapshot-take", |_, _| {
        Ok(json!({"files": 1, "bytes": 4096, "cloning": "copy"}))
    });
    host.on("snapshot-restore", |_, _| {
        Ok(json!({"files": 1, "bytes": 4096, "cloning": "copy"}))
    });
    host.on("snapshot-digest", |_, _| Ok(json!("d1")));
    host.on("snapshot-verify", |_, _| {
        Ok(json!({"files": 1, "bytes": 4096}))
    });
    host.on("disk-usage", |_, _| Ok(json!(10_000)));
    host.on("remove", |_, _| Ok(Value::Null));
    host.on("load", move |request, _| {
        if let Some(run) = request["work"]["run"].as_object() {
            let output = PathBuf::from(run["output"].as_str().unwrap());
            for (name, bytes) in load_result(100).to_files(SystemTime::UNIX_EPOCH) {
                files.put(output.join(name), bytes);
            }
        }
        Ok(json!({}))
    });
    host.takes("load", Duration::from_secs(11));
    host
}

fn load_result(count: u64) -> LoadResult {
    let mut latency = Latency::new();
    (0..count).for_each(|us| latency.record_us(us + 1));
    let errors = if count == 0 {
        BTreeMap::from([("busy".to_owned(), 7)])
    } else {
        BTreeMap::new()
    };
    let operations = vec![OperationResult {
        name: "read".into(),
        latency,
        errors,
        ..OperationResult::default()
    }];
    LoadResult {
        window_s: 10.0,
        operations,
        threads: 1,
        ..LoadResult::default()
    }
}

/// How often a data directory was made.
fn prepared(host: &FakeHost) -> usize {
    let is_data =
        |c: &&assay::host::Call| c.name == "deploy" && c.request.to_string().contains("/data\"");
    host.calls().iter().filter(is_data).count()
}

fn names(host: &FakeHost) -> Vec<String> {
    host.names()
        .into_iter()
        .filter(|n| {
            ![
                "snapshot-probe",
                "snapshot-digest",
                "snapshot-verify",
                "disk-usage",
            ]
            .contains(&n.as_str())
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn every_deployment_is_prepared_once_and_every_round_restored_measured_stopped_and_collected()
{
    let bench = Bench::new();
    let outcome = bench.go().await.unwrap();
    assert_eq!(
        outcome,
        Outcome::Finished {
            ok: 8,
            failed: 0,
            invalid: 0
        }
    );
    let prepare = [
        "deploy",
        "sqlite-start",
        "load",
        "sqlite-stop",
        "snapshot-take",
    ];
    let round = [
        "snapshot-restore",
        "sqlite-start",
        "deploy",
        "load",
        "sqlite-stop",
        "fetch",
        "remove",
    ];
    let mut wanted = vec!["lease"];
    (0..2).for_each(|_| wanted.extend(prepare));
    (0..8).for_each(|_| wanted.extend(round));
    wanted.push("release");
    assert_eq!(names(&bench.host), wanted);
    bench.assert_every_round_ended_exactly_once();
    let run = bench.run();
    assert_eq!(run.results.len(), 8);
    let measured = run
        .results
        .values()
        .next()
        .unwrap()
        .measured
        .as_ref()
        .unwrap();
    assert!((measured.throughput - 10.0).abs() < 1e-9);
}

#[tokio::test(start_paused = true)]
async fn the_rounds_run_in_the_order_of_the_plan() {
    let bench = Bench::new();
    bench.go().await.unwrap();
    let begun: Vec<String> = bench
        .events()
        .into_iter()
        .filter_map(|e| {
            if let Event::RoundStarted { round, .. } = e.event {
                Some(round)
            } else {
                None
            }
        })
        .collect();
    let planned: Vec<String> = bench.plan.rounds.iter().map(|r| r.id.clone()).collect();
    assert_eq!(begun, planned);
}

#[tokio::test(start_paused = true)]
async fn a_failed_round_is_recorded_and_the_rest_go_on() {
    let bench = Bench::new();
    // The first two loads are those of the datasets; the fourth is the second round.
    bench.host.fail(
        "load",
        4,
        Fault::Fails(vec!["disk full".into(), "no space left".into()]),
    );
    let outcome = bench.go().await.unwrap();
    assert_eq!(
        outcome,
        Outcome::Finished {
            ok: 7,
            failed: 1,
            invalid: 0
        }
    );
    bench.assert_every_round_ended_exactly_once();
    let result = bench.run().results[&bench.plan.rounds[1].id].clone();
    assert_eq!(result.status, Status::Failed);
    assert_eq!(
        result.reason.as_deref(),
        Some("measure failed: disk full: no space left")
    );
    assert_eq!(result.measured, None);
}

#[tokio::test(start_paused = true)]
async fn teardown_follows_a_failure_and_does_not_hide_its_cause() {
    let bench = Bench::new();
    bench.host.fail("load", 3, Fault::Dies(None));
    // Stops 1 and 2 are those of preparation; 3 is the first round's.
    bench
        .host
        .fail("sqlite-stop", 3, Fault::Fails(vec!["still in use".into()]));
    bench.go().await.unwrap();
    let first = bench.plan.rounds[0].id.clone();
    let reason = bench.run().results[&first].reason.clone().unwrap();
    assert!(
        reason.starts_with("measure failed: `assay agent load` on `local` ended by a signal"),
        "{reason}"
    );
    let stop_error = bench.events().into_iter().find_map(|e| match e.event {
        Event::StepFinished {
            round, name, error, ..
        } if round == first && name == "stop" => error,
        _ => None,
    });
    assert_eq!(stop_error.as_deref(), Some("still in use"));
}

#[tokio::test(start_paused = true)]
async fn a_round_without_one_success_has_failed() {
    let bench = Bench::new();
    let files = bench.host.files();
    bench.host.on("load", move |request, _| {
        if let Some(output) = request["work"]["run"]["output"].as_str() {
            for (name, bytes) in load_result(0).to_files(SystemTime::UNIX_EPOCH) {
                files.put(Path::new(output).join(name), bytes);
            }
        }
        Ok(json!({}))
    });
    let outcome = bench.go().await.unwrap();
    assert_eq!(
        outcome,
        Outcome::Finished {
            ok: 0,
            failed: 8,
            invalid: 0
        }
    );
    let run = bench.run();
    let result = &run.results[&bench.plan.rounds[0].id];
    assert_eq!(
        result.reason.as_deref(),
        Some("collect failed: not one operation succeeded, 7 failed")
    );
    // What was measured is kept all the same.
    assert_eq!(result.measured.as_ref().unwrap().errors, 7);
}

#[tokio::test(start_paused = true)]
async fn a_failed_round_is_tried_again_as_often_as_the_experiment_says() {
    let mut spec = experiment();
    spec["rounds"]["on_failure"] = "retry 2".into();
    let bench = Bench::with(&spec);
    for nth in [3, 4] {
        bench
            .host
            .fail("load", nth, Fault::Fails(vec!["flaky".into()]));
    }
    let outcome = bench.go().await.unwrap();
    assert_eq!(
        outcome,
        Outcome::Finished {
            ok: 8,
            failed: 0,
            invalid: 0
        }
    );
    let first = &bench.plan.rounds[0].id;
    assert_eq!(bench.run().results[first].attempt, 3);
    for attempt in 1..=3 {
        assert!(
            bench
                .layout
                .round(first, attempt)
                .join("result.json")
                .is_file(),
            "attempt {attempt} is kept"
        );
    }
    bench.assert_every_round_ended_exactly_once();
}

#[tokio::test(start_paused = true)]
async fn retries_come_to_an_end() {
    let mut spec = experiment();
    spec["rounds"]["on_failure"] = "retry 2".into();
    let bench = Bench::with(&spec);
    for nth in [3, 4, 5] {
        bench
            .host
            .fail("load", nth, Fault::Fails(vec!["broken".into()]));
    }
    let outcome = bench.go().await.unwrap();
    assert_eq!(
        outcome,
        Outcome::Finished {
            ok: 7,
            failed: 1,
            invalid: 0
        }
    );
    bench.assert_every_round_ended_exactly_once();
}

#[tokio::test(start_paused = true)]
async fn a_failed_round_stops_the_run_when_the_experiment_says_so() {
    let mut spec = experiment();
    spec["rounds"]["on_failure"] = "stop".into();
    let bench = Bench::with(&spec);
    bench
        .host
        .fail("load", 3, Fault::Fails(vec!["broken".into()]));
    let outcome = bench.go().await.unwrap();
    assert!(
        matches!(outcome, Outcome::Stopped { reason } if reason.ends_with("measure failed: broken"))
    );
    assert_eq!(bench.endings().len(), 1);
    // The failed round is a result; the rest is finished on resume.
    assert_eq!(
        bench.go().await.unwrap(),
        Outcome::Finished {
            ok: 7,
            failed: 1,
            invalid: 0
        }
    );
    bench.assert_every_round_ended_exactly_once();
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_fails_skips_exactly_its_rounds() {
    let bench = Bench::new();
    bench
        .host
        .fail("load", 1, Fault::Fails(vec!["no space left".into()]));
    let outcome = bench.go().await.unwrap();
    assert_eq!(outcome, Outcome::Unprepared { skipped: 4 });
    let failed = &bench.plan.deployments[0].id;
    for entry in bench.events() {
        if let Event::RoundFinished {
            round,
            status,
            reason,
            ..
        } = entry.event
        {
            let of_failed = bench
                .plan
                .rounds
                .iter()
                .any(|r| r.id == round && r.deployment == *failed);
            assert_eq!(status == Status::Skipped, of_failed, "{round}");
            assert_eq!(
                reason.is_some_and(|r| r.contains("no space left")),
                of_failed
            );
        }
    }
    // Its database was stopped, and on resume it gets another chance.
    assert_eq!(
        bench.go().await.unwrap(),
        Outcome::Finished {
            ok: 8,
            failed: 0,
            invalid: 0
        }
    );
}

#[tokio::test(start_paused = true)]
async fn a_step_that_outlives_its_limit_is_killed_and_recorded() {
    let bench = Bench::new();
    bench.host.fail("load", 3, Fault::Hangs);
    bench.go().await.unwrap();
    let result = bench.run().results[&bench.plan.rounds[0].id].clone();
    // 1 s of warm-up, 10 s measured, 1 min of grace.
    let wanted = "measure failed: `assay agent load` on `local` took longer than its limit of 1m 11s and was killed";
    assert_eq!(result.reason.as_deref(), Some(wanted));
    let measure = result.steps.iter().find(|s| s.0 == "measure").unwrap();
    assert!((measure.1 - 71.0).abs() < 0.1, "{measure:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_request_to_stop_finishes_the_round_and_resume_does_the_rest() {
    let bench = Bench::new();
    let control = bench.control.clone();
    let outcome = bench
        .go_watching(&mut |notice| {
            if let Notice::Event(Entry {
                event: Event::StepStarted { name, .. },
                ..
            }) = notice
                && name == "measure"
                && !control.is_stopping()
            {
                control.ask();
            }
        })
        .await
        .unwrap();
    assert_eq!(outcome, Outcome::Cancelled);
    assert_eq!(
        bench.endings(),
        BTreeMap::from([(bench.plan.rounds[0].id.clone(), 1)])
    );
    assert_eq!(bench.host.names().last().unwrap(), "release");
    let resumed = Bench {
        control: Control::new(),
        ..bench
    };
    assert_eq!(
        resumed.go().await.unwrap(),
        Outcome::Finished {
            ok: 8,
            failed: 0,
            invalid: 0
        }
    );
    resumed.assert_every_round_ended_exactly_once();
    // Deployments that are ready are not prepared again.
    assert_eq!(prepared(&resumed.host), 2);
}

#[tokio::test(start_paused = true)]
async fn the_second_request_kills_the_round_stops_the_database_and_leaves_the_round_to_resume() {
    let bench = Bench::new();
    bench.host.fail("load", 3, Fault::Hangs);
    let control = bench.control.clone();
    let asked_twice = async {
        // The load hangs; the clock moves on by itself.
        tokio::time::sleep(Duration::from_secs(30)).await;
        control.ask();
        control.ask();
    };
    let (outcome, ()) = tokio::join!(bench.go(), asked_twice);
    let outcome = outcome.unwrap();
    assert_eq!(outcome, Outcome::Cancelled);
    assert!(bench.endings().is_empty());
    let names = names(&bench.host);
    assert_eq!(
        names[names.len() - 4..],
        ["load", "sqlite-stop", "remove", "release"]
    );
    let resumed = Bench {
        control: Control::new(),
        ..bench
    };
    assert_eq!(
        resumed.go().await.unwrap(),
        Outcome::Finished {
            ok: 8,
            failed: 0,
            invalid: 0
        }
    );
    resumed.assert_every_round_ended_exactly_once();
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_event_loses_and_repeats_no_finished_round() {
    let mut spec = experiment();
    spec["rounds"]["repetitions"] = 1.into();
    let whole = Bench::with(&spec);
    whole.go().await.unwrap();
    let events = whole.events().len();
    for kept in 0..events {
        let bench = Bench::with(&spec);
        bench.go().await.unwrap();
        let text = std::fs::read_to_string(bench.layout.events()).unwrap();
        let mut lines: Vec<&str> = text.lines().take(kept).collect();
        let torn = &text.lines().nth(kept).unwrap()[..20];
        lines.push(torn);
        std::fs::write(bench.layout.events(), lines.join("\n")).unwrap();
        let before = bench.endings();
        bench.remove_what_no_event_announced();
        assert!(
            matches!(bench.go().await.unwrap(), Outcome::Finished { ok: 4, .. }),
            "after event {kept}"
        );
        bench.assert_every_round_ended_exactly_once();
        assert!(
            before
                .keys()
                .all(|round| bench.endings().contains_key(round))
        );
    }
    assert!(events > 50, "{events}");
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_another_run_replaced_is_not_trusted() {
    let bench = Bench::new();
    bench.go_and_stop_after_the_first_round().await;
    bench
        .host
        .on("snapshot-digest", |_, _| Ok(json!("another")));
    let resumed = Bench {
        control: Control::new(),
        ..bench
    };
    resumed.go().await.unwrap();
    assert_eq!(prepared(&resumed.host), 4);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_was_damaged_is_made_anew_on_resume() {
    let bench = Bench::new();
    bench.go_and_stop_after_the_first_round().await;
    bench.host.on("snapshot-verify", |_, _| {
        Err(vec!["`database.sqlite` differs from its manifest".into()])
    });
    let resumed = Bench {
        control: Control::new(),
        ..bench
    };
    assert_eq!(
        resumed.go().await.unwrap(),
        Outcome::Finished {
            ok: 8,
            failed: 0,
            invalid: 0
        }
    );
    assert_eq!(prepared(&resumed.host), 4);
}

#[tokio::test(start_paused = true)]
async fn data_that_cannot_be_put_back_is_a_fault_of_the_deployment_and_costs_no_round() {
    let bench = Bench::new();
    bench.host.fail(
        "snapshot-restore",
        1,
        Fault::Fails(vec!["it differs from its manifest".into()]),
    );
    // The other variant's rounds go on; all of this one's wait for a resume.
    assert_eq!(
        bench.go().await.unwrap(),
        Outcome::Unprepared { skipped: 4 }
    );
    assert_eq!(
        bench.go().await.unwrap(),
        Outcome::Finished {
            ok: 8,
            failed: 0,
            invalid: 0
        }
    );
    let ok = bench
        .run()
        .results
        .values()
        .filter(|r| r.status == Status::Ok)
        .count();
    assert_eq!(ok, 8);
}

#[tokio::test(start_paused = true)]
async fn a_round_under_other_tunables_than_its_deployment_was_prepared_with_fails() {
    let bench = Bench::new();
    let mut starts = 0;
    bench.host.on("sqlite-start", move |_, _| {
        starts += 1;
        let mode = if starts == 4 { "delete" } else { "wal" };
        Ok(json!({"version": "3", "config": {"sqlite": {"journal_mode": mode}}}))
    });
    assert_eq!(
        bench.go().await.unwrap(),
        Outcome::Finished {
            ok: 7,
            failed: 1,
            invalid: 0
        }
    );
    let result = bench.run().results[&bench.plan.rounds[1].id].clone();
    let wanted = "start failed: `sqlite.journal_mode` was `wal` when the deployment was prepared and is `delete`";
    assert_eq!(result.reason.as_deref(), Some(wanted));
}

#[tokio::test(start_paused = true)]
async fn what_the_driver_said_is_kept_when_loading_fails() {
    let bench = Bench::new();
    bench.host.logs("load", "full: no space left\n");
    bench.host.fail("load", 1, Fault::Hangs);
    bench.go().await.unwrap();
    let log = bench.layout.deployment("a", 1).join("2-load.log");
    assert_eq!(
        std::fs::read_to_string(log).unwrap(),
        "full: no space left\n"
    );
}

#[tokio::test(start_paused = true)]
async fn a_lost_result_is_noticed() {
    let bench = Bench::new();
    bench.go().await.unwrap();
    let first = &bench.plan.rounds[0].id;
    std::fs::remove_file(bench.layout.round(first, 1).join("result.json")).unwrap();
    let error = Run::open(bench.layout.folder()).unwrap_err();
    assert!(error.to_string().contains("result.json"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_plan_of_another_run_is_refused() {
    let bench = Bench::new();
    let mut other = bench.plan.clone();
    other.spec = "beef".into();
    std::fs::write(bench.layout.plan(1), assay::artifacts::plan_text(&other)).unwrap();
    let error = Run::open(bench.layout.folder()).unwrap_err();
    assert!(
        error.to_string().contains("it is the plan of another run"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_restores_before_it_trusts_the_data() {
    let mut spec = experiment();
    spec["snapshot"] = json!({"restore": "after-writes"});
    spec["workloads"] = json!([{"driver": "native", "workload": "ycsb_c"}]);
    let bench = Bench::with(&spec);
    bench.go_and_stop_after_the_first_round().await;
    let restores = |bench: &Bench| {
        names(&bench.host)
            .iter()
            .filter(|n| *n == "snapshot-restore")
            .count()
    };
    // Reads only: nothing to put back.
    assert_eq!(restores(&bench), 0);
    let resumed = Bench {
        control: Control::new(),
        ..bench
    };
    resumed.go().await.unwrap();
    // Each deployment once, since nobody knows what happened to its data in between.
    assert_eq!(restores(&resumed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_another_run_holds_is_left_alone() {
    let bench = Bench::new();
    bench.host.hold(Some("run `elsewhere`"));
    let error = bench.go().await.unwrap_err();
    assert_eq!(error.to_string(), "host `local` is held by run `elsewhere`");
    assert_eq!(bench.host.names(), ["lease"]);
    assert!(bench.events().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_secret_reaches_the_database_and_nothing_that_is_kept() {
    let bench = Bench::new();
    bench.host.on("sqlite-start", |request, _| {
        if request["pragmas"][0][1] == "-31415926" {
            return Ok(json!({"version": "3", "config": {"sqlite": {"cache_size": "-31415926"}}}));
        }
        Ok(json!({"version": "3", "config": {}}))
    });
    bench.host.fail(
        "load",
        3,
        Fault::Fails(vec!["cannot set cache_size to -31415926".into()]),
    );
    bench.go().await.unwrap();
    let sent = bench
        .host
        .calls()
        .iter()
        .filter(|c| c.request.to_string().contains("-31415926"))
        .count();
    assert!(sent > 0);
    let mut kept = BTreeSet::new();
    collect_texts(bench.folder.path(), &mut kept);
    assert!(kept.iter().any(|text| text.contains("${env:SECRET}")));
    for text in kept {
        assert!(!text.contains("31415926"), "{text}");
    }
}

fn collect_texts(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_texts(&path, found);
        } else {
            found.insert(String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn estimate_and_real_time_are_kept_side_by_side() {
    let bench = Bench::new();
    bench.go().await.unwrap();
    let last = bench.events().pop().unwrap().event;
    let Event::RunFinished {
        estimated_s,
        actual_s,
        ..
    } = last
    else {
        panic!("{last:?}")
    };
    assert!((estimated_s - assay::plan::estimate(&bench.plan).total_s()).abs() < 1e-9);
    assert!(actual_s > 0.0);
}

#[tokio::test(start_paused = true)]
async fn what_the_driver_said_is_kept_whether_its_round_succeeded_or_not() {
    let bench = Bench::new();
    bench
        .host
        .logs("load", "busy: database is locked -31415926\n");
    bench.host.fail("load", 3, Fault::Hangs);
    bench.go().await.unwrap();
    for round in &bench.plan.rounds {
        let log = bench.layout.round(&round.id, 1).join("driver.log");
        assert_eq!(
            std::fs::read_to_string(log).unwrap(),
            "busy: database is locked ${env:SECRET}\n"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_archive_that_cannot_be_written_ends_the_run_with_its_database_stopped() {
    let bench = Bench::new();
    // A file where the deployment's folder should be: the record of its start cannot be written.
    std::fs::write(bench.layout.deployment("a", 1), "").unwrap();
    let error = bench.go().await.unwrap_err();
    assert!(matches!(error, RunError::Archive(_)), "{error}");
    assert_eq!(
        names(&bench.host),
        ["lease", "deploy", "sqlite-start", "sqlite-stop", "release"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_round_in_which_the_host_was_taken_by_another_run_does_not_count() {
    let bench = Bench::new();
    // The first check comes before the first round, the second at its end.
    bench.host.fail("check", 2, Fault::Unreachable);
    let error = bench.go().await.unwrap_err();
    assert!(matches!(error, RunError::Host(_)), "{error}");
    let events = bench.events();
    let finished =
        |entry: &&assay::artifacts::Entry| matches!(entry.event, Event::RoundFinished { .. });
    assert_eq!(events.iter().filter(finished).count(), 0);
}
