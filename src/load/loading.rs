//! Filling a table: rows go in by transactions of bounded size, since one for all would outgrow logs and caches.

use super::backend::{Access, Connection, Failure, Value, transaction};

/// The most rows of one transaction.
const BATCH_ROWS: u64 = 10_000;
/// The most bytes of rows in one transaction, as far as whole rows allow.
const BATCH_BYTES: u64 = 16 << 20;

/// A table to fill.
pub(super) struct Filling {
    /// The statement that inserts one row.
    pub(super) insert: String,
    /// Rows wanted.
    pub(super) rows: u64,
    /// About the bytes of a row.
    pub(super) row_bytes: u64,
}

/// Inserts a row's parameters.
pub(super) type Insert<'a> = dyn FnMut(&[Value<'_>]) -> Result<(), Failure> + 'a;

/// Inserts rows 0 to `rows - 1`, each made by `row`; says after every transaction how many are in.
///
/// # Errors
/// A statement failed; the transactions before it stay.
pub(super) fn fill(
    connection: &mut dyn Connection,
    filling: &Filling,
    loaded: &mut dyn FnMut(u64),
    mut row: impl FnMut(u64, &mut Insert<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let batch = (BATCH_BYTES / filling.row_bytes.max(1)).clamp(1, BATCH_ROWS);
    let mut session = connection.session(std::slice::from_ref(&filling.insert))?;
    let mut next = 0;
    while next < filling.rows {
        let end = filling.rows.min(next + batch);
        transaction(session.as_mut(), Access::Write, |session| {
            let mut insert = |values: &[Value<'_>]| session.execute(0, values).map(drop);
            (next..end).try_for_each(|number| row(number, &mut insert))
        })?;
        next = end;
        loaded(next);
    }
    Ok(())
}
