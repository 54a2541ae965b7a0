//! YCSB's core workloads A to F. Read-modify-write is one transaction and one operation; keys are hashed record numbers.

mod keys;
mod mix;
mod table;

use std::io::Write as _;

use rand::RngExt;

use self::keys::Inserts;
use self::mix::{Mix, Operation};
pub(super) use self::table::Table;
use super::LoadError;
use super::backend::{Access, Connection, Failure, Session, Value, transaction};
use super::distribution::{Records, fnv64};
use super::random::{Purpose, Rng, printable, stream};
use super::workload::{Client, Workload};
use crate::plan::LoadRun;
use crate::spec::{Distribution, Kind};

/// YCSB's `maxscanlength` in workload E.
const MAX_SCAN_LENGTH: u32 = 100;

/// One of the workloads on a loaded table.
pub(super) struct Ycsb {
    table: Table,
    mix: &'static Mix,
    records: Records,
    max_scan: u32,
    inserts: Inserts,
}

impl Ycsb {
    /// The workload of `run`; inserts go on behind the last key that is there.
    pub(super) fn open(run: &LoadRun, connection: &mut dyn Connection) -> Result<Self, LoadError> {
        let kind = run.workload.kind();
        let records = match (run.workload.distribution, kind) {
            (Some(Distribution::Uniform), _) => Records::Uniform,
            (Some(Distribution::Latest), _) | (None, Kind::YcsbD) => Records::latest(),
            (Some(Distribution::Zipfian) | None, _) => Records::scrambled(),
            (Some(Distribution::Special), _) => {
                let why = "distribution `special` is one of oltp workloads";
                return Err(LoadError::Job(why.into()));
            }
        };
        let table = Table::of(&run.dataset);
        let first = table.first_free_record(connection)?;
        Ok(Self {
            mix: mix::of(kind),
            records,
            max_scan: run.workload.max_scan_length.unwrap_or(MAX_SCAN_LENGTH),
            inserts: Inserts::from(first),
            table,
        })
    }
}

impl Workload for Ycsb {
    fn operations(&self) -> &'static [&'static str] {
        self.mix.names
    }

    fn statements(&self) -> Vec<String> {
        let mut statements = vec![
            "SELECT * FROM usertable WHERE ycsb_key = ?".into(),
            self.table.insert(),
            "SELECT * FROM usertable WHERE ycsb_key >= ? ORDER BY ycsb_key LIMIT ?".into(),
        ];
        statements.extend(
            (0..self.table.fields)
                .map(|n| format!("UPDATE usertable SET field{n} = ? WHERE ycsb_key = ?")),
        );
        statements
    }

    fn client(&self, seed: u64, thread: u32) -> Box<dyn Client + '_> {
        Box::new(YcsbClient {
            workload: self,
            records: self.records.clone(),
            rng: stream(seed, Purpose::Thread(thread)),
            operation: Operation::Read,
            key: Vec::new(),
            values: Vec::new(),
            field: 0,
            scan: 0,
            inserting: None,
        })
    }
}

/// The positions of the statements.
const READ: usize = 0;
const INSERT: usize = 1;
const SCAN: usize = 2;
const FIRST_UPDATE: usize = 3;

/// One thread's operation and its buffers.
struct YcsbClient<'a> {
    workload: &'a Ycsb,
    records: Records,
    rng: Rng,
    operation: Operation,
    key: Vec<u8>,
    values: Vec<u8>,
    field: usize,
    scan: i64,
    /// The record being inserted; it stays until it is in, so that the keys have no holes.
    inserting: Option<u64>,
}

impl Client for YcsbClient<'_> {
    fn draw(&mut self) -> usize {
        let (position, operation) = self.workload.mix.draw(&mut self.rng);
        self.operation = operation;
        match operation {
            Operation::Read => self.draw_key(),
            Operation::Insert => self.draw_row(),
            Operation::Scan => {
                self.draw_key();
                self.scan = i64::from(self.rng.random_range(1..=self.workload.max_scan));
            }
            Operation::Update | Operation::ReadModifyWrite => {
                self.draw_key();
                self.field = self
                    .rng
                    .random_range(0..self.workload.table.fields as usize);
                self.values.clear();
                let length = self.workload.table.field_length as usize;
                printable(&mut self.rng, length, &mut self.values);
            }
        }
        position
    }

    fn execute(&mut self, session: &mut dyn Session) -> Result<(), Failure> {
        match self.operation {
            Operation::Read => self.read(session),
            Operation::Update => self.update(session),
            Operation::Insert => self.insert(session),
            Operation::Scan => self.scan(session),
            Operation::ReadModifyWrite => transaction(session, Access::Write, |session| {
                self.read(session)?;
                self.update(session)
            }),
        }
    }
}

impl YcsbClient<'_> {
    fn draw_key(&mut self) {
        let newest = || self.workload.inserts.newest();
        let loaded = self.workload.table.records;
        let record = self.records.draw(&mut self.rng, loaded, newest);
        write_key(record, &mut self.key);
    }

    fn draw_row(&mut self) {
        let take = || self.workload.inserts.take();
        let record = *self.inserting.get_or_insert_with(take);
        write_key(record, &mut self.key);
        self.values.clear();
        let length = self.workload.table.row_length();
        printable(&mut self.rng, length, &mut self.values);
    }

    fn read(&self, session: &mut dyn Session) -> Result<(), Failure> {
        found(session.query(READ, &[Value::Text(&self.key)])?)
    }

    fn update(&self, session: &mut dyn Session) -> Result<(), Failure> {
        let values = [Value::Text(&self.values), Value::Text(&self.key)];
        found(session.execute(FIRST_UPDATE + self.field, &values)?)
    }

    /// A scan from the last keys may find fewer rows than asked for, but it finds its first.
    fn scan(&self, session: &mut dyn Session) -> Result<(), Failure> {
        let values = [Value::Text(&self.key), Value::Integer(self.scan)];
        found(session.query(SCAN, &values)?)
    }

    fn insert(&mut self, session: &mut dyn Session) -> Result<(), Failure> {
        let row = self.workload.table.row(&self.key, &self.values);
        let done = session.execute(INSERT, &row);
        let there = match &done {
            Ok(_) => true,
            // Somebody else's row has this key: it is there, and trying again would fail for ever.
            Err(failure) => failure.kind == super::backend::ErrorKind::Constraint,
        };
        if there && let Some(record) = self.inserting.take() {
            self.workload.inserts.acknowledge(record);
        }
        done.map(drop)
    }
}

fn found(rows: u64) -> Result<(), Failure> {
    if rows == 0 {
        Err(Failure::NO_ROW)
    } else {
        Ok(())
    }
}

/// Writes the key of record `number`: `user` and the number's hash, as YCSB's `insertorder=hashed`.
fn write_key(number: u64, key: &mut Vec<u8>) {
    key.clear();
    write!(key, "user{}", fnv64(number)).expect("writing to memory cannot fail");
}

#[cfg(test)]
mod tests;
