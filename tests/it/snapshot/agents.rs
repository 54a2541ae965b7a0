//! The agents by name, and the choice of a method.

use std::path::Path;
use std::time::Duration;

use assay::host::FakeHost;
use assay::snapshot::{
    Attention, Choice, ChoiceError, MarkedDirectory, Order, Progress, agent, choose,
};
use assay::spec::Method;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Bench, marker};

/// Asks an agent of this process; returns its outcome and its progress.
fn ask(name: &str, request: Value) -> (Value, Vec<Value>) {
    let mut seen = Vec::new();
    let outcome = agent(name, request, &mut |progress| seen.push(progress));
    (outcome.unwrap().unwrap(), seen)
}

#[test]
fn each_agent_does_its_work_by_name() {
    let bench = Bench::new();
    let work = json!({ "order": bench.order, "cloning": "copy" });
    let of = |directory: &Path| {
        json!(MarkedDirectory {
            directory: directory.to_owned(),
            marker: marker()
        })
    };
    ask("deploy", of(bench.data()));
    bench.write("table", "1234");
    let done = json!({ "files": 1, "bytes": 4, "cloning": "copy" });
    let (taken, seen) = ask("snapshot-take", work.clone());
    assert_eq!(taken, done);
    let stages: Vec<_> = seen.iter().map(|p| p["stage"].as_str().unwrap()).collect();
    let expected = [
        "tidying",
        "counting",
        "copying",
        "flushing",
        "comparing",
        "switching",
    ];
    assert_eq!(stages, expected);
    let (verified, _) = ask("snapshot-verify", of(bench.snapshot()));
    assert_eq!(verified, json!({ "files": 1, "bytes": 4 }));
    bench.write("table", "other");
    assert_eq!(ask("snapshot-restore", work).0, done);
    assert_eq!(bench.read("table"), "1234");
    let probe = json!({ "directory": bench.data() });
    assert!(ask("snapshot-probe", probe).0["reflink"].is_boolean());
    ask("remove", of(bench.data()));
    assert!(!bench.data().exists());
}

#[test]
fn an_agent_of_another_module_is_not_known_here() {
    assert!(agent("load", Value::Null, &mut |_| {}).is_none());
}

#[test]
fn a_request_that_is_none_is_an_error() {
    let outcome = agent("deploy", json!({ "directory": "/a/b/c" }), &mut |_| {});
    let error = outcome.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot understand the request to `deploy`"
    );
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "missing field `marker`");
}

/// A host whose file system can or cannot share blocks.
fn host(reflink: bool) -> FakeHost {
    let host = FakeHost::new("kv1", "/srv/bench/assay");
    host.on("snapshot-probe", move |request, _| {
        assert_eq!(*request, json!({ "directory": "/srv/bench/assay" }));
        Ok(match reflink {
            true => json!({ "file_system": "xfs", "reflink": true }),
            false => json!({ "file_system": "ext4", "reflink": false, "why": "not supported" }),
        })
    });
    host
}

async fn chosen(host: &FakeHost, method: Method) -> Result<(&'static str, String), ChoiceError> {
    let attention = Attention {
        limit: Duration::from_secs(1),
        stop: CancellationToken::new(),
        progress: &mut |_| {},
    };
    let chosen = choose(host, method, Path::new("/srv/bench/assay"), attention).await;
    chosen.map(|Choice { method, why }| (method.name(), why))
}

#[tokio::test(start_paused = true)]
async fn auto_shares_blocks_where_it_can_and_copies_where_it_cannot_and_says_why() {
    let (method, why) = chosen(&host(true), Method::Auto).await.unwrap();
    assert_eq!(
        (method, why.as_str()),
        ("reflink", "xfs at `/srv/bench/assay` shares blocks")
    );
    let (method, why) = chosen(&host(false), Method::Auto).await.unwrap();
    let cannot = "ext4 at `/srv/bench/assay` cannot share blocks: not supported";
    assert_eq!((method, why.as_str()), ("copy", cannot));
}

#[tokio::test(start_paused = true)]
async fn reflink_where_blocks_cannot_be_shared_is_an_error() {
    let error = chosen(&host(false), Method::Reflink).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "files in `/srv/bench/assay` on `kv1` (ext4) cannot share blocks: not supported"
    );
}

#[tokio::test(start_paused = true)]
async fn copy_asks_the_host_nothing() {
    let host = host(true);
    assert_eq!(chosen(&host, Method::Copy).await.unwrap().0, "copy");
    assert!(host.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_method_sends_its_order_and_passes_on_the_progress() {
    let host = host(true);
    host.on("snapshot-take", |_, progress| {
        progress(
            json!({ "stage": "copying", "files": 1, "of_files": 2, "bytes": 3, "of_bytes": 4 }),
        );
        Ok(json!({ "files": 2, "bytes": 4, "cloning": "reflink" }))
    });
    let order = Order {
        data: "/srv/bench/data".into(),
        snapshot: "/srv/bench/t0".into(),
        marker: marker(),
    };
    let mut seen: Vec<Progress> = Vec::new();
    let attention = Attention {
        limit: Duration::from_secs(1),
        stop: CancellationToken::new(),
        progress: &mut |progress| seen.push(progress),
    };
    let done =
        assay::snapshot::SnapshotMethod::take(&assay::snapshot::Reflink, &host, &order, attention);
    assert_eq!(done.await.unwrap().files, 2);
    assert_eq!((seen[0].files, seen[0].of_bytes), (1, 4));
    let request = &host.calls()[0].request;
    assert_eq!(request["cloning"], "reflink");
    assert_eq!(request["order"]["data"], "/srv/bench/data");
    assert_eq!(request["order"]["marker"]["deployment"], "wal");
}
