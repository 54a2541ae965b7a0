//! What the engine's tests share: orders without a database, and a session that remembers what it was asked.

use std::borrow::Cow;

use indexmap::IndexMap;

use super::backend::{Access, ErrorKind, Failure, Session, Value};
use crate::plan::LoadRun;
use crate::spec::{Dataset, Driver, Kind, Workload};
use crate::units::Duration;

/// A run of `kind` with all parameters at their defaults.
pub(super) fn order(kind: Kind) -> LoadRun {
    LoadRun {
        workload: Workload {
            name: None,
            driver: Driver::Native,
            workload: Some(kind),
            script: None,
            distribution: None,
            max_scan_length: None,
            range_size: None,
            skip_trx: None,
            options: IndexMap::new(),
        },
        dataset: Dataset {
            driver: Driver::Native,
            schema: Some(kind.schema()),
            records: None,
            fields: None,
            field_length: None,
            tables: None,
            table_size: None,
            threads: None,
            then: Vec::new(),
            options: IndexMap::new(),
        },
        threads: 1,
        rate: None,
        warmup: Duration::default(),
        duration: Duration::default(),
        output: std::path::PathBuf::new(),
    }
}

/// A failure of a kind.
pub(super) fn failure(kind: ErrorKind) -> Failure {
    Failure {
        kind,
        message: Cow::Borrowed("made up"),
    }
}

/// A session that remembers its statements with their parameters.
pub(super) struct Recording {
    statements: Vec<String>,
    /// What was run.
    pub(super) said: Vec<String>,
    /// Rows that every statement finds.
    pub(super) rows: u64,
    /// What statements fail with.
    pub(super) failing: Option<ErrorKind>,
    /// How many statements succeed before.
    pub(super) succeeding: usize,
}

impl Recording {
    /// A session with these statements prepared.
    pub(super) fn of(statements: Vec<String>) -> Self {
        Self {
            statements,
            said: Vec::new(),
            rows: 1,
            failing: None,
            succeeding: 0,
        }
    }

    fn answer(&mut self, said: String) -> Result<u64, Failure> {
        self.said.push(said);
        match self.failing {
            Some(kind) if self.said.len() > self.succeeding => Err(failure(kind)),
            _ => Ok(self.rows),
        }
    }
}

impl Session for Recording {
    fn query(&mut self, statement: usize, values: &[Value<'_>]) -> Result<u64, Failure> {
        let shown = |value: &Value<'_>| match value {
            Value::Integer(number) => number.to_string(),
            Value::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
        };
        let values: Vec<String> = values.iter().map(shown).collect();
        self.answer(format!(
            "{} [{}]",
            self.statements[statement],
            values.join(", ")
        ))
    }

    fn execute(&mut self, statement: usize, values: &[Value<'_>]) -> Result<u64, Failure> {
        self.query(statement, values)
    }

    fn begin(&mut self, access: Access) -> Result<(), Failure> {
        self.answer(format!("BEGIN {access:?}")).map(drop)
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.answer("COMMIT".into()).map(drop)
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        self.said.push("ROLLBACK".into());
        Ok(())
    }
}
