//! Mixes, scan lengths and fields against YCSB's definitions, and what a client does when things fail.

use super::*;
use crate::load::backend::{Backend, ErrorKind, Null};
use crate::load::goodness::{distance, tally};
use crate::load::testing::{Recording, order};

const DRAWS: usize = 1_000_000;

fn open(kind: Kind) -> Ycsb {
    let mut run = order(kind);
    run.dataset.field_length = Some(1);
    Ycsb::open(&run, Null.connect().unwrap().as_mut()).unwrap()
}

fn client(workload: &Ycsb) -> YcsbClient<'_> {
    YcsbClient {
        workload,
        records: workload.records.clone(),
        rng: stream(5, Purpose::Thread(0)),
        operation: Operation::Read,
        key: Vec::new(),
        values: Vec::new(),
        field: 0,
        scan: 0,
        inserting: None,
    }
}

#[test]
fn the_mixes_are_those_of_ycsbs_workload_files() {
    // readproportion, updateproportion, ... of workloads/workloada to workloadf.
    for (kind, names, shares) in [
        (Kind::YcsbA, ["read", "update"], [0.5, 0.5]),
        (Kind::YcsbB, ["read", "update"], [0.95, 0.05]),
        (Kind::YcsbD, ["insert", "read"], [0.05, 0.95]),
        (Kind::YcsbE, ["insert", "scan"], [0.05, 0.95]),
        (Kind::YcsbF, ["read", "read_modify_write"], [0.5, 0.5]),
    ] {
        let workload = open(kind);
        assert_eq!(workload.operations(), names);
        let mut client = client(&workload);
        let observed = tally(2, DRAWS, || client.draw());
        assert!(distance(&observed, &shares) < 1.0, "{kind}: {observed:?}");
    }
    let workload = open(Kind::YcsbC);
    assert_eq!(workload.operations(), ["read"]);
    let mut client = client(&workload);
    assert!((0..DRAWS).all(|_| client.draw() == 0));
}

#[test]
fn scan_lengths_are_uniform_from_one() {
    let workload = open(Kind::YcsbE);
    let mut client = client(&workload);
    let observed = tally(100, DRAWS, || {
        client.draw();
        while client.operation != Operation::Scan {
            client.draw();
        }
        client.scan as usize - 1
    });
    assert!(distance(&observed, &[0.01; 100]) < 1.0);
}

#[test]
fn every_field_is_updated_alike() {
    let workload = open(Kind::YcsbA);
    let mut client = client(&workload);
    let observed = tally(10, DRAWS, || {
        client.draw();
        while client.operation != Operation::Update {
            client.draw();
        }
        client.field
    });
    assert!(distance(&observed, &[0.1; 10]) < 1.0);
}

/// The client of `kind` after it drew `operation`.
fn drawn(workload: &Ycsb, operation: Operation) -> YcsbClient<'_> {
    let mut client = client(workload);
    while client.operation != operation || client.key.is_empty() {
        client.draw();
    }
    client
}

#[test]
fn a_read_modify_write_is_one_transaction_on_one_row() {
    let workload = open(Kind::YcsbF);
    let mut client = drawn(&workload, Operation::ReadModifyWrite);
    let key = String::from_utf8(client.key.clone()).unwrap();
    let value = String::from_utf8(client.values.clone()).unwrap();
    let update = format!(
        "UPDATE usertable SET field{} = ? WHERE ycsb_key = ?",
        client.field
    );
    let mut session = Recording::of(workload.statements());
    client.execute(&mut session).unwrap();
    assert_eq!(
        session.said,
        [
            "BEGIN Write".to_owned(),
            format!("SELECT * FROM usertable WHERE ycsb_key = ? [{key}]"),
            format!("{update} [{value}, {key}]"),
            "COMMIT".to_owned(),
        ]
    );
}

#[test]
fn a_row_that_is_missing_is_an_error_and_rolls_back() {
    for (kind, operation) in [
        (Kind::YcsbC, Operation::Read),
        (Kind::YcsbA, Operation::Update),
        (Kind::YcsbE, Operation::Scan),
        (Kind::YcsbF, Operation::ReadModifyWrite),
    ] {
        let workload = open(kind);
        let mut client = drawn(&workload, operation);
        let mut session = Recording::of(workload.statements());
        session.rows = 0;
        let failure = client.execute(&mut session).unwrap_err();
        assert_eq!(failure.kind, ErrorKind::NotFound);
        let rolled_back = session.said.last().is_some_and(|said| said == "ROLLBACK");
        assert_eq!(rolled_back, kind == Kind::YcsbF);
    }
}

#[test]
fn an_insert_that_failed_is_tried_again_before_its_key_counts_as_there() {
    let workload = open(Kind::YcsbD);
    let loaded = workload.table.records;
    let mut client = drawn(&workload, Operation::Insert);
    let mut session = Recording::of(workload.statements());
    session.failing = Some(ErrorKind::Busy);
    let first = client.key.clone();
    client.execute(&mut session).unwrap_err();
    assert_eq!(workload.inserts.newest(), loaded - 1);
    session.failing = None;
    client.draw_row();
    assert_eq!(client.key, first);
    client.execute(&mut session).unwrap();
    assert_eq!(workload.inserts.newest(), loaded);
}

#[test]
fn a_key_that_somebody_else_inserted_is_passed_over() {
    let workload = open(Kind::YcsbD);
    let mut client = drawn(&workload, Operation::Insert);
    let mut session = Recording::of(workload.statements());
    session.failing = Some(ErrorKind::Constraint);
    let first = client.key.clone();
    client.execute(&mut session).unwrap_err();
    assert_eq!(workload.inserts.newest(), workload.table.records);
    client.draw_row();
    assert_ne!(client.key, first);
}

#[test]
fn threads_draw_their_own_operations_whatever_their_number() {
    let workload = open(Kind::YcsbA);
    let keys = |thread| {
        let mut client = client(&workload);
        client.rng = stream(5, Purpose::Thread(thread));
        let draw = |_| {
            client.draw();
            client.key.clone()
        };
        (0..20).map(draw).collect::<Vec<_>>()
    };
    assert_eq!(keys(1), keys(1));
    assert_ne!(keys(0), keys(1));
}
