//! The real runner on this machine, with real files: what a round begins with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay::artifacts::{Entry, Event};
use assay::host::{Claim, Host, LocalHost};
use assay::pack::Packs;
use assay::plan::build;
use assay::runner::{self, Context, Control, Notice, Outcome};
use assay::spec::{Experiment, Inventory};
use serde_json::json;

use crate::support::bare_run::bare_run;

/// Two variants and a workload that inserts, so that a round that saw another's rows would see more than were loaded.
fn experiment(restore: &str) -> Experiment {
    serde_json::from_value(json!({
        "name": "local",
        "cluster": {"system": "sqlite", "topology": {"sqlite": ["local"]}},
        "variants": {
            "delete": {"config": {"sqlite": {"journal_mode": "delete", "synchronous": "off"}}},
            "wal": {"config": {"sqlite": {"journal_mode": "wal", "synchronous": "off"}}},
        },
        "dataset": {"driver": "native", "schema": "ycsb", "records": 100},
        "snapshot": {"restore": restore},
        "workloads": [{"driver": "native", "workload": "ycsb_d"}],
        "sweep": {"threads": [2]},
        "rounds": {"duration": "50ms", "repetitions": 3},
    }))
    .unwrap()
}

/// The rows that each round found before it began, by variant.
async fn rows_at_the_start(restore: &str) -> BTreeMap<String, Vec<i64>> {
    let folder = tempfile::tempdir().unwrap();
    let packs = Packs::built_in();
    let plan = build(
        &experiment(restore),
        &Inventory::this_machine(),
        &packs,
        "0123",
    )
    .unwrap();
    let (layout, log) = bare_run(&folder.path().join("artifacts"), &plan);
    let work = folder.path().join("work");
    let host: Arc<dyn Host> = Arc::new(LocalHost::new("local", &work, env!("CARGO_BIN_EXE_assay")));
    let hosts = BTreeMap::from([("local".to_owned(), host)]);
    let context = Context {
        plan: &plan,
        layout: &layout,
        packs: &packs,
        packages: &folder.path().join("packages"),
        hosts: &hosts,
        reveal: &str::to_owned,
        hide: &str::to_owned,
        clock: &jiff::Timestamp::now,
        control: &Control::new(),
    };
    let leases = runner::hold(&plan, &hosts, Claim::of("a test"))
        .await
        .unwrap();
    let mut found: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    let mut observe = |notice: Notice<'_>| {
        // The event is told before its step begins: the restore is over, the start is still to come.
        if let Notice::Event(Entry {
            event: Event::StepStarted { round, name },
            ..
        }) = notice
            && name == "start"
        {
            let variant = plan
                .rounds
                .iter()
                .find(|r| r.id == *round)
                .unwrap()
                .deployment
                .clone();
            let rows = rows(&work.join("local").join(&variant).join("data"));
            found.entry(variant).or_default().push(rows);
        }
    };
    let outcome = runner::run(&context, &leases, log, &[], &mut observe)
        .await
        .unwrap();
    assert!(
        matches!(outcome, Outcome::Finished { failed: 0, .. }),
        "{outcome:?}"
    );
    found
}

fn rows(data: &Path) -> i64 {
    let file: PathBuf = data.join("database.sqlite");
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = rusqlite::Connection::open_with_flags(file, flags).unwrap();
    connection
        .query_row("select count(*) from usertable", [], |row| row.get(0))
        .unwrap()
}

#[tokio::test]
async fn every_round_begins_with_the_rows_that_were_loaded() {
    let found = rows_at_the_start("each-round").await;
    assert_eq!(found.len(), 2);
    for (variant, rows) in found {
        assert_eq!(rows, [100, 100, 100], "{variant}");
    }
}

#[tokio::test]
async fn without_a_restore_rounds_go_on_with_what_the_last_one_left() {
    for (variant, rows) in rows_at_the_start("never").await {
        assert!(
            rows[0] == 100 && rows[1] > 100 && rows[2] > rows[1],
            "{variant}: {rows:?}"
        );
    }
}
