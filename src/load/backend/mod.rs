//! Databases as the native driver reaches them: a connection for each thread, statements prepared once, transactions.
//! Another database is another file here: SQL comes with `?` for parameters, and the dialect's differences are asked for.

mod null;
mod sqlite;

use std::borrow::Cow;
use std::fmt;

pub(super) use self::null::Null;
pub(super) use self::sqlite::Sqlite;

/// A database that connections are opened to, from any thread.
pub(super) trait Backend: Sync {
    /// Opens a connection and applies the settings that every connection has.
    ///
    /// # Errors
    /// The database cannot be reached, or refuses a setting.
    fn connect(&self) -> Result<Box<dyn Connection>, Failure>;

    /// The definition of a primary key column that numbers rows by itself when it is left out of an INSERT.
    fn serial_key(&self) -> &'static str;
}

/// One connection, used by one thread.
pub(super) trait Connection {
    /// Whether a table of this name exists.
    ///
    /// # Errors
    /// The database cannot tell.
    fn has_table(&mut self, table: &str) -> Result<bool, Failure>;

    /// Runs one statement without parameters, such as CREATE TABLE.
    ///
    /// # Errors
    /// The statement failed.
    fn run(&mut self, sql: &str) -> Result<(), Failure>;

    /// The whole number that a query yields; `None` where there are no data to ask.
    ///
    /// # Errors
    /// The query failed.
    fn number(&mut self, sql: &str, values: &[Value<'_>]) -> Result<Option<i64>, Failure>;

    /// Prepares `statements`, which the session then runs by their position.
    ///
    /// # Errors
    /// A statement cannot be prepared.
    fn session(&mut self, statements: &[String]) -> Result<Box<dyn Session + '_>, Failure>;
}

/// A connection's prepared statements, ready to run.
pub(super) trait Session {
    /// Runs a query, reads every column of every row, and gives the number of rows.
    ///
    /// # Errors
    /// The statement failed.
    fn query(&mut self, statement: usize, values: &[Value<'_>]) -> Result<u64, Failure>;

    /// Runs a statement that changes rows and gives their number.
    ///
    /// # Errors
    /// The statement failed.
    fn execute(&mut self, statement: usize, values: &[Value<'_>]) -> Result<u64, Failure>;

    /// Begins a transaction.
    ///
    /// # Errors
    /// It cannot begin now.
    fn begin(&mut self, access: Access) -> Result<(), Failure>;

    /// Ends the transaction and keeps its changes.
    ///
    /// # Errors
    /// The changes are not kept; the transaction may still be open.
    fn commit(&mut self) -> Result<(), Failure>;

    /// Ends the transaction, if one is open, and drops its changes.
    ///
    /// # Errors
    /// The session cannot be used any more.
    fn rollback(&mut self) -> Result<(), Failure>;
}

/// What a transaction is going to do; it may choose its locks by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// It reads only.
    Read,
    /// It writes at some point.
    Write,
}

/// A statement's parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// A whole number.
    Integer(i64),
    /// Text in UTF-8.
    Text(&'a [u8]),
}

/// A statement that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What it counts as.
    pub kind: ErrorKind,
    /// What the database said.
    pub message: Cow<'static, str>,
}

impl Failure {
    /// A row that should be there is not.
    pub(super) const NO_ROW: Self = Self {
        kind: ErrorKind::NotFound,
        message: Cow::Borrowed("no row has this key"),
    };
}

/// The kinds that errors are counted by, the same for all databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// Another connection held the lock for longer than the busy timeout.
    Busy,
    /// A lock conflict that waiting does not solve, such as a deadlock.
    Locked,
    /// A key that exists already, or another constraint.
    Constraint,
    /// A row that should be there is not.
    NotFound,
    /// The database may only be read.
    ReadOnly,
    /// Reading or writing a file failed.
    Io,
    /// The disk is full.
    Full,
    /// The file is damaged or no database.
    Corrupt,
    /// The database cannot be opened.
    CannotOpen,
    /// Anything else, with the database's code.
    Other(i32),
}

impl ErrorKind {
    /// Whether no later operation can succeed, so that going on would measure nothing.
    #[must_use]
    pub const fn is_fatal(self) -> bool {
        match self {
            Self::Full | Self::Corrupt | Self::CannotOpen => true,
            Self::Busy
            | Self::Locked
            | Self::Constraint
            | Self::NotFound
            | Self::ReadOnly
            | Self::Io
            | Self::Other(_) => false,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "busy",
            Self::Locked => "locked",
            Self::Constraint => "constraint",
            Self::NotFound => "not_found",
            Self::ReadOnly => "read_only",
            Self::Io => "io",
            Self::Full => "full",
            Self::Corrupt => "corrupt",
            Self::CannotOpen => "cannot_open",
            Self::Other(code) => return write!(f, "other:{code}"),
        })
    }
}

/// Runs `work` in a transaction: committed when all of it succeeded, else rolled back.
///
/// # Errors
/// What failed first. When the rollback fails too, that is the error, since the session is lost.
pub(super) fn transaction(
    session: &mut dyn Session,
    access: Access,
    work: impl FnOnce(&mut dyn Session) -> Result<(), Failure>,
) -> Result<(), Failure> {
    session.begin(access)?;
    let done = work(session).and_then(|()| session.commit());
    if done.is_err() {
        session.rollback()?;
    }
    done
}
