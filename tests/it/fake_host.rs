//! The fake host keeps the promises of a host, so that what is tested with it holds with others.

use std::sync::Arc;
use std::time::Duration;

use assay::host::Claim;
use assay::host::{AgentError, Bounds, FakeHost, Fault, Hearing, Host, HostError, ask, call};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const MINUTE: Duration = Duration::from_secs(60);

fn fake() -> FakeHost {
    FakeHost::new("fake", "/srv/bench/assay")
}

async fn question(host: &FakeHost, name: &str) -> Result<Value, AgentError> {
    let stop = CancellationToken::new();
    let bounds = Bounds {
        limit: MINUTE,
        stop: &stop,
    };
    ask(host, name, &json!({"n": 1}), bounds).await
}

#[tokio::test(start_paused = true)]
async fn an_agent_answers_as_scripted_and_each_call_is_noted_in_order() {
    let host = fake();
    let mut round = 0;
    host.on("load", move |request, _| {
        round += 1;
        Ok(json!({"saw": request, "round": round}))
    });
    let lease = host.lease(Claim::of("me")).await.unwrap();
    assert_eq!(
        question(&host, "load").await.unwrap(),
        json!({"saw": {"n": 1}, "round": 1})
    );
    assert_eq!(
        question(&host, "load").await.unwrap(),
        json!({"saw": {"n": 1}, "round": 2})
    );
    drop(lease);
    assert_eq!(host.names(), ["lease", "load", "load", "release"]);
    assert_eq!(host.calls()[1].request, json!({"n": 1}));
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_a_script_fails_and_says_so() {
    let error = question(&fake(), "load").await.unwrap_err();
    assert_eq!(error.to_string(), "the fake host has no script for `load`");
}

#[tokio::test(start_paused = true)]
async fn the_nth_call_goes_wrong_as_ordered_and_the_others_go_well() {
    let host = fake();
    host.on("load", |_, _| Ok(Value::Null));
    host.fail("load", 2, Fault::Fails(vec!["disk".into(), "full".into()]));
    host.fail("load", 3, Fault::Dies(Some(9)));
    host.fail("load", 4, Fault::Unreachable);
    assert!(question(&host, "load").await.is_ok());
    let said = |e: Result<Value, AgentError>| e.unwrap_err().to_string();
    assert_eq!(said(question(&host, "load").await), "disk: full");
    assert_eq!(
        said(question(&host, "load").await),
        "`assay agent load` on `fake` ended with status 9 without an outcome"
    );
    assert_eq!(
        said(question(&host, "load").await),
        "cannot connect on `fake`"
    );
    assert!(question(&host, "load").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_hanging_agent_ends_at_its_limit() {
    let host = fake();
    host.fail("load", 1, Fault::Hangs);
    let start = Instant::now();
    let error = question(&host, "load").await.unwrap_err();
    assert!(matches!(error, AgentError::Host(HostError::Limit { .. })));
    assert_eq!(start.elapsed(), MINUTE);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_agent_ends_when_stopped() {
    let host = fake();
    host.fail("load", 1, Fault::Hangs);
    let stop = CancellationToken::new();
    let mut quiet = |_: Value| {};
    let bounds = Bounds {
        limit: MINUTE,
        stop: &stop,
    };
    let hearing = Hearing {
        progress: &mut quiet,
        log: &mut |_| {},
    };
    let work = call::<_, _, Value>(&host, "load", &Value::Null, bounds, hearing);
    let (outcome, ()) = tokio::join!(work, async { stop.cancel() });
    let error = outcome.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`assay agent load` on `fake` was stopped"
    );
}

#[tokio::test(start_paused = true)]
async fn progress_is_spread_over_the_time_that_an_agent_takes() {
    let host = fake();
    host.on("load", |_, progress| {
        progress(json!(1));
        progress(json!(2));
        Ok(Value::Null)
    });
    host.takes("load", Duration::from_secs(30));
    let stop = CancellationToken::new();
    let start = Instant::now();
    let mut seen = Vec::new();
    let mut note = |n: u64| seen.push((n, start.elapsed().as_secs()));
    let bounds = Bounds {
        limit: MINUTE,
        stop: &stop,
    };
    let hearing = Hearing {
        progress: &mut note,
        log: &mut |_| {},
    };
    let work = call::<_, _, Value>(&host, "load", &Value::Null, bounds, hearing);
    work.await.unwrap();
    assert_eq!(seen, [(1, 10), (2, 20)]);
    assert_eq!(start.elapsed(), Duration::from_secs(30));
}

#[tokio::test]
async fn the_files_that_an_agent_writes_can_be_fetched() {
    let host = Arc::new(fake());
    let files = host.files();
    host.on("load", move |_, _| {
        files.put("/srv/bench/out/a/result.json", "{}");
        files.put("/srv/bench/out/.assay-marker", "{}");
        files.put("/srv/bench/other", "no");
        Ok(Value::Null)
    });
    question(&host, "load").await.unwrap();
    let folder = tempfile::TempDir::new().unwrap();
    let local = folder.path().join("out");
    host.fetch("/srv/bench/out".as_ref(), &local).await.unwrap();
    let read = std::fs::read_to_string(local.join("a/result.json"));
    assert_eq!(read.unwrap(), "{}");
    assert_eq!(std::fs::read_dir(&local).unwrap().count(), 1);
    let again = host.fetch("/srv/bench/out".as_ref(), &local).await;
    assert!(again.is_err(), "a folder that is there is not written into");
}

#[tokio::test(start_paused = true)]
async fn a_held_fake_host_names_its_holder_and_is_free_afterwards() {
    let host = fake();
    host.hold(Some("another run"));
    let error = host.lease(Claim::of("me")).await.err().unwrap();
    assert_eq!(error.to_string(), "host `fake` is held by another run");
    host.hold(None);
    let lease = host.lease(Claim::of("me")).await.unwrap();
    let error = host.lease(Claim::of("you")).await.err().unwrap();
    assert_eq!(error.to_string(), "host `fake` is held by me");
    drop(lease);
    assert!(host.lease(Claim::of("you")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_a_fake_host_is_lost_when_ordered_and_stays_lost() {
    let host = fake();
    host.fail("check", 2, Fault::Unreachable);
    let lease = host.lease(Claim::of("me")).await.unwrap();
    lease.check().unwrap();
    for _ in 0..2 {
        let error = lease.check().unwrap_err();
        assert_eq!(error.to_string(), "cannot keep the lease on `fake`");
    }
    assert_eq!(host.names(), ["lease"]);
}

#[tokio::test(start_paused = true)]
async fn a_fake_host_that_another_run_took_over_stays_taken() {
    let host = fake();
    let lease = host.lease(Claim::of("me")).await.unwrap();
    host.hold(Some("another run"));
    assert!(lease.check().is_err());
    drop(lease);
    let error = host.lease(Claim::of("me")).await.err().unwrap();
    assert_eq!(error.to_string(), "host `fake` is held by another run");
}
