//! Events against the scripts of sysbench 1.0.20 (`oltp_common.lua` and those that require it).

use super::*;
use crate::load::backend::{Backend, ErrorKind, Null};
use crate::load::goodness::{distance, tally};
use crate::load::testing::{Recording, order};
use crate::spec::Kind;

const POINT: &str = "SELECT c FROM sbtest WHERE id=?";
const READS: [&str; 4] = [
    "SELECT c FROM sbtest WHERE id BETWEEN ? AND ?",
    "SELECT SUM(k) FROM sbtest WHERE id BETWEEN ? AND ?",
    "SELECT c FROM sbtest WHERE id BETWEEN ? AND ? ORDER BY c",
    "SELECT DISTINCT c FROM sbtest WHERE id BETWEEN ? AND ? ORDER BY c",
];
const WRITES: [&str; 4] = [
    "UPDATE sbtest SET k=k+1 WHERE id=?",
    "UPDATE sbtest SET c=? WHERE id=?",
    "DELETE FROM sbtest WHERE id=?",
    "INSERT INTO sbtest (id, k, c, pad) VALUES (?, ?, ?, ?)",
];

fn open(kind: Kind, skip_trx: bool) -> Oltp {
    let mut run = order(kind);
    run.dataset.tables = Some(10);
    run.workload.skip_trx = Some(skip_trx);
    Oltp::open(&run, Null.connect().unwrap().as_mut()).unwrap()
}

/// A statement's text without its table's number, that number, and its parameters.
fn parts(said: &str) -> (String, usize, Vec<String>) {
    let (sql, values) = said.split_once(" [").unwrap();
    let at = sql.find("sbtest").unwrap() + "sbtest".len();
    let digits = sql[at..].bytes().take_while(u8::is_ascii_digit).count();
    let table = sql[at..at + digits].parse().unwrap();
    let values = values.trim_end_matches(']').split(", ").map(str::to_owned);
    (
        format!("{}{}", &sql[..at], &sql[at + digits..]),
        table,
        values.collect(),
    )
}

fn event_of(workload: &Oltp) -> Vec<String> {
    let mut session = Recording::of(workload.statements());
    workload.client(3, 0).execute(&mut session).unwrap();
    session.said
}

#[test]
fn events_run_the_statements_of_sysbenchs_scripts_in_their_order() {
    let reads: Vec<&str> = [POINT; 10].into_iter().chain(READS).collect();
    let both: Vec<&str> = reads.iter().copied().chain(WRITES).collect();
    let insert = "INSERT INTO sbtest (k, c, pad) VALUES (?, ?, ?)";
    for (kind, begin, statements) in [
        (Kind::OltpPointSelect, None, vec![POINT]),
        (Kind::OltpReadOnly, Some("BEGIN Read"), reads),
        (Kind::OltpReadWrite, Some("BEGIN Write"), both),
        (Kind::OltpWriteOnly, Some("BEGIN Write"), WRITES.to_vec()),
        (Kind::OltpUpdateIndex, None, vec![WRITES[0]]),
        (Kind::OltpUpdateNonIndex, None, vec![WRITES[1]]),
        (Kind::OltpInsert, None, vec![insert]),
        (Kind::OltpDelete, None, vec![WRITES[2]]),
    ] {
        for skip_trx in [false, true] {
            let mut said = event_of(&open(kind, skip_trx));
            if let Some(begin) = begin.filter(|_| !skip_trx) {
                assert_eq!(said.remove(0), begin);
                assert_eq!(said.pop().unwrap(), "COMMIT");
            }
            let said: Vec<String> = said.iter().map(|said| parts(said).0).collect();
            assert_eq!(said, statements, "{kind}");
        }
    }
}

#[test]
fn statements_get_the_parameters_that_sysbench_gives_them() {
    let said = event_of(&open(Kind::OltpReadWrite, true));
    let said: Vec<_> = said.iter().map(|said| parts(said)).collect();
    // Each kind of statement draws its table once.
    assert!(said[..10].iter().all(|(_, table, _)| *table == said[0].1));
    for (_, _, between) in &said[10..14] {
        let [first, last] = &between[..] else {
            panic!()
        };
        let (first, last): (i64, i64) = (first.parse().unwrap(), last.parse().unwrap());
        assert!(last - first == 99 && (1..=10_000).contains(&first));
    }
    assert_eq!(said[15].2[0].len(), 119);
    let (delete, insert) = (&said[16], &said[17]);
    assert_eq!((delete.1, &delete.2[0]), (insert.1, &insert.2[0]));
    assert_eq!((insert.2[2].len(), insert.2[3].len()), (119, 59));
}

/// A session that keeps the last statement's position and first parameter.
struct Last(usize, i64);

impl Session for Last {
    fn query(&mut self, statement: usize, values: &[Value<'_>]) -> Result<u64, Failure> {
        let Value::Integer(id) = values[0] else {
            panic!()
        };
        *self = Self(statement, id);
        Ok(1)
    }

    fn execute(&mut self, _: usize, _: &[Value<'_>]) -> Result<u64, Failure> {
        unreachable!("point selects only query")
    }

    fn begin(&mut self, _: Access) -> Result<(), Failure> {
        unreachable!("point selects have no transaction")
    }

    fn commit(&mut self) -> Result<(), Failure> {
        unreachable!("point selects have no transaction")
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        unreachable!("point selects have no transaction")
    }
}

#[test]
fn tables_and_ids_are_drawn_alike() {
    let workload = open(Kind::OltpPointSelect, false);
    let mut client = workload.client(4, 0);
    let mut last = Last(0, 0);
    let mut ids = vec![0; 100];
    let tables = tally(10, 1_000_000, || {
        client.execute(&mut last).unwrap();
        ids[(last.1 as usize - 1) / 100] += 1;
        last.0
    });
    assert!(distance(&tables, &[0.1; 10]) < 1.0);
    assert!(distance(&ids, &[0.01; 100]) < 1.0);
}

#[test]
fn a_failed_statement_rolls_its_transaction_back() {
    let workload = open(Kind::OltpReadWrite, false);
    let mut session = Recording::of(workload.statements());
    session.failing = Some(ErrorKind::Locked);
    session.succeeding = 3;
    let failure = workload.client(3, 0).execute(&mut session).unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Locked);
    assert_eq!(session.said.len(), 5, "{:?}", session.said);
    assert_eq!(session.said[4], "ROLLBACK");
}

#[test]
fn deleting_a_row_that_is_gone_is_no_error() {
    let workload = open(Kind::OltpDelete, false);
    let mut session = Recording::of(workload.statements());
    session.rows = 0;
    workload.client(3, 0).execute(&mut session).unwrap();
}
