//! sysbench's tables `sbtest1` and on: their shape and loading them. The index comes after the rows, as in sysbench.

use rand::RngExt;

use crate::load::LoadError;
use crate::load::backend::{Backend, Connection, Failure, Value};
use crate::load::loading::{Filling, fill};
use crate::load::random::{Purpose, digits, stream};
use crate::spec::Dataset;

/// About the bytes of a row: two numbers and texts of 119 and 59 characters.
const ROW_BYTES: u64 = 190;

/// The shape of the tables.
#[derive(Clone, Copy, Debug)]
pub(in crate::load) struct Tables {
    /// How many there are.
    pub(super) count: u32,
    /// Rows of each.
    pub(super) size: u64,
}

impl Tables {
    /// The shape that `dataset` describes.
    pub(in crate::load) fn of(dataset: &Dataset) -> Self {
        let (count, size) = dataset.sysbench_shape();
        Self { count, size }
    }

    /// Creates and fills the tables, one after the other.
    ///
    /// # Errors
    /// One of them exists already (then none is made), or a statement failed.
    pub(in crate::load) fn load(
        &self,
        backend: &dyn Backend,
        seed: u64,
        loaded: &mut dyn FnMut(u64),
    ) -> Result<(), LoadError> {
        let mut connection = backend.connect().map_err(LoadError::connect)?;
        for table in (1..=self.count).map(|n| format!("sbtest{n}")) {
            if connection.has_table(&table).map_err(LoadError::loading)? {
                return Err(LoadError::Exists(table));
            }
        }
        for n in 1..=self.count {
            let before = u64::from(n - 1) * self.size;
            let mut loaded = |rows| loaded(before + rows);
            self.load_one(
                n,
                connection.as_mut(),
                backend.serial_key(),
                seed,
                &mut loaded,
            )
            .map_err(LoadError::loading)?;
        }
        Ok(())
    }

    fn load_one(
        &self,
        n: u32,
        connection: &mut dyn Connection,
        serial_key: &str,
        seed: u64,
        loaded: &mut dyn FnMut(u64),
    ) -> Result<(), Failure> {
        connection.run(&format!(
            "CREATE TABLE sbtest{n} (id {serial_key}, k INTEGER DEFAULT 0 NOT NULL, \
             c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL)"
        ))?;
        let mut rng = stream(seed, Purpose::Table(n));
        let (mut c, mut pad) = (Vec::new(), Vec::new());
        let filling = Filling {
            insert: format!("INSERT INTO sbtest{n} (id, k, c, pad) VALUES (?, ?, ?, ?)"),
            rows: self.size,
            row_bytes: ROW_BYTES,
        };
        fill(connection, &filling, loaded, |row, insert| {
            let k = rng.random_range(1..=self.size).cast_signed();
            c.clear();
            digits(&mut rng, 10, &mut c);
            pad.clear();
            digits(&mut rng, 5, &mut pad);
            let id = (row + 1).cast_signed();
            insert(&[
                Value::Integer(id),
                Value::Integer(k),
                Value::Text(&c),
                Value::Text(&pad),
            ])
        })?;
        connection.run(&format!("CREATE INDEX k_{n} ON sbtest{n}(k)"))
    }

    /// Looks whether every table reaches up to its size. A table that is too small answers fast, with nothing.
    /// The last tenth may be missing: earlier rounds may have deleted rows.
    ///
    /// # Errors
    /// A table is missing or too small.
    pub(super) fn check(&self, connection: &mut dyn Connection) -> Result<(), LoadError> {
        for n in 1..=self.count {
            let sql = format!("SELECT coalesce(max(id), 0) FROM sbtest{n}");
            let last = connection.number(&sql, &[]).map_err(LoadError::data)?;
            if let Some(last) = last
                && last < (self.size - self.size / 10).cast_signed()
            {
                return Err(LoadError::Data(format!(
                    "the ids of `sbtest{n}` end at {last}, though its dataset has {}",
                    self.size
                )));
            }
        }
        Ok(())
    }
}
