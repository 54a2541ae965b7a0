//! YCSB's `usertable`: its shape, its rows, and loading it.

use super::write_key;
use crate::load::LoadError;
use crate::load::backend::{Backend, Connection, Failure, Value};
use crate::load::loading::{Filling, fill};
use crate::load::random::{Purpose, printable, stream};
use crate::spec::Dataset;

/// More records than any table holds; where the search for a free one ends.
const MOST_RECORDS: u64 = 1 << 40;

/// The shape of a `usertable`.
#[derive(Clone, Copy, Debug)]
pub(in crate::load) struct Table {
    /// Rows that were loaded.
    pub(super) records: u64,
    /// Fields of a row.
    pub(super) fields: u32,
    /// Characters of a field.
    pub(super) field_length: u32,
}

impl Table {
    /// The shape that `dataset` describes.
    pub(in crate::load) fn of(dataset: &Dataset) -> Self {
        let (records, fields, field_length) = dataset.ycsb_shape();
        Self {
            records,
            fields,
            field_length,
        }
    }

    /// Characters of a row without its key.
    pub(super) fn row_length(&self) -> usize {
        self.fields as usize * self.field_length as usize
    }

    /// The parameters of an INSERT: the key, and the fields that `values` holds one behind the other.
    pub(super) fn row<'a>(&self, key: &'a [u8], values: &'a [u8]) -> Vec<Value<'a>> {
        let fields = values.chunks_exact(self.field_length as usize);
        let key = std::iter::once(Value::Text(key));
        key.chain(fields.map(Value::Text)).collect()
    }

    /// The statement that inserts a row.
    pub(super) fn insert(&self) -> String {
        let marks = ", ?".repeat(self.fields as usize);
        format!("INSERT INTO usertable VALUES (?{marks})")
    }

    fn create(&self) -> String {
        let fields: String = (0..self.fields)
            .map(|n| format!(", field{n} TEXT"))
            .collect();
        format!("CREATE TABLE usertable (ycsb_key VARCHAR(255) PRIMARY KEY{fields})")
    }

    /// Creates and fills the table.
    ///
    /// # Errors
    /// It exists already, or a statement failed.
    pub(in crate::load) fn load(
        &self,
        backend: &dyn Backend,
        seed: u64,
        loaded: &mut dyn FnMut(u64),
    ) -> Result<(), LoadError> {
        let mut connection = backend.connect().map_err(LoadError::connect)?;
        if connection
            .has_table("usertable")
            .map_err(LoadError::loading)?
        {
            return Err(LoadError::Exists("usertable".into()));
        }
        connection.run(&self.create()).map_err(LoadError::loading)?;
        let mut rng = stream(seed, Purpose::Table(0));
        let (mut key, mut values) = (Vec::new(), Vec::new());
        let filling = Filling {
            insert: self.insert(),
            rows: self.records,
            row_bytes: self.row_length() as u64,
        };
        fill(connection.as_mut(), &filling, loaded, |record, insert| {
            write_key(record, &mut key);
            values.clear();
            printable(&mut rng, self.row_length(), &mut values);
            insert(&self.row(&key, &values))
        })
        .map_err(LoadError::loading)
    }

    /// The lowest record number behind the loaded ones that is not there: an earlier run may have inserted some.
    ///
    /// # Errors
    /// The table is missing or smaller than its dataset.
    pub(super) fn first_free_record(
        &self,
        connection: &mut dyn Connection,
    ) -> Result<u64, LoadError> {
        let Some(last) = has_record(connection, self.records - 1)? else {
            return Ok(self.records);
        };
        if !last {
            return Err(LoadError::Data(format!(
                "`usertable` has no record {}, though its dataset has {}",
                self.records - 1,
                self.records
            )));
        }
        // Runs insert without gaps: a growing step finds a free record, halving it finds the first.
        let (mut there, mut step) = (self.records - 1, 1);
        while there + step < MOST_RECORDS && has_record(connection, there + step)? == Some(true) {
            there += step;
            step *= 2;
        }
        while step > 1 {
            step /= 2;
            if has_record(connection, there + step)? == Some(true) {
                there += step;
            }
        }
        Ok(there + 1)
    }
}

fn has_record(connection: &mut dyn Connection, record: u64) -> Result<Option<bool>, LoadError> {
    let mut key = Vec::new();
    write_key(record, &mut key);
    let sql = "SELECT count(*) FROM usertable WHERE ycsb_key = ?";
    let count: Result<_, Failure> = connection.number(sql, &[Value::Text(&key)]);
    Ok(count.map_err(LoadError::data)?.map(|count| count > 0))
}
