//! SQLite through `rusqlite`. Transactions that write begin IMMEDIATE: a deferred one that reads first and then writes
//! fails at once with SQLITE_BUSY when another connection wrote in between, however long the busy timeout is.

use std::path::PathBuf;
use std::time::Duration;

use rusqlite::ffi::ErrorCode;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{OpenFlags, Rows, Statement};

use super::{Access, Backend, Connection, ErrorKind, Failure, Session, Value};

/// How long a statement waits for another connection's lock when no `busy_timeout` pragma says otherwise.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// A SQLite file and the pragmas that every connection sets, in order.
pub(in crate::load) struct Sqlite {
    /// The database file.
    pub(in crate::load) path: PathBuf,
    /// Pragma names and values.
    pub(in crate::load) pragmas: Vec<(String, String)>,
    /// Whether a missing file is made.
    pub(in crate::load) create: bool,
}

impl Backend for Sqlite {
    fn connect(&self) -> Result<Box<dyn Connection>, Failure> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if self.create {
            flags |= OpenFlags::SQLITE_OPEN_CREATE;
        }
        let connection = rusqlite::Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        for (name, value) in &self.pragmas {
            set_pragma(&connection, name, value)?;
        }
        Ok(Box::new(SqliteConnection(connection)))
    }

    fn serial_key(&self) -> &'static str {
        "INTEGER PRIMARY KEY"
    }
}

/// Sets a pragma. SQLite passes over a name that it does not know, and keeps the old journal mode when it cannot change
/// it; either would measure something else than was asked for.
fn set_pragma(connection: &rusqlite::Connection, name: &str, value: &str) -> Result<(), Failure> {
    let known = "SELECT count(*) FROM pragma_pragma_list WHERE name = lower(?)";
    let known: i64 = connection.query_row(known, [name], |row| row.get(0))?;
    if known == 0 {
        return Err(refused(format!("SQLite knows no pragma `{name}`")));
    }
    match value.parse::<i64>() {
        Ok(number) => connection.pragma_update(None, name, number)?,
        Err(_) => connection.pragma_update(None, name, value)?,
    }
    if name.eq_ignore_ascii_case("journal_mode") {
        let now: String = connection.pragma_query_value(None, name, |row| row.get(0))?;
        if !now.eq_ignore_ascii_case(value) {
            return Err(refused(format!(
                "SQLite keeps the journal mode `{now}` instead of `{value}`"
            )));
        }
    }
    Ok(())
}

fn refused(message: String) -> Failure {
    Failure {
        kind: ErrorKind::Other(rusqlite::ffi::SQLITE_ERROR),
        message: message.into(),
    }
}

struct SqliteConnection(rusqlite::Connection);

impl Connection for SqliteConnection {
    fn has_table(&mut self, table: &str) -> Result<bool, Failure> {
        Ok(self.0.table_exists(None, table)?)
    }

    fn run(&mut self, sql: &str) -> Result<(), Failure> {
        Ok(self.0.execute_batch(sql)?)
    }

    fn number(&mut self, sql: &str, values: &[Value<'_>]) -> Result<Option<i64>, Failure> {
        let values = rusqlite::params_from_iter(values);
        Ok(self.0.query_row(sql, values, |row| row.get(0))?)
    }

    fn session(&mut self, statements: &[String]) -> Result<Box<dyn Session + '_>, Failure> {
        let prepared: Result<_, _> = statements.iter().map(|sql| self.0.prepare(sql)).collect();
        Ok(Box::new(SqliteSession {
            connection: &self.0,
            statements: prepared?,
            begin_read: self.0.prepare("BEGIN")?,
            begin_write: self.0.prepare("BEGIN IMMEDIATE")?,
            commit: self.0.prepare("COMMIT")?,
            rollback: self.0.prepare("ROLLBACK")?,
        }))
    }
}

struct SqliteSession<'a> {
    connection: &'a rusqlite::Connection,
    statements: Vec<Statement<'a>>,
    begin_read: Statement<'a>,
    begin_write: Statement<'a>,
    commit: Statement<'a>,
    rollback: Statement<'a>,
}

impl Session for SqliteSession<'_> {
    fn query(&mut self, statement: usize, values: &[Value<'_>]) -> Result<u64, Failure> {
        let statement = bound(&mut self.statements[statement], values)?;
        let columns = statement.column_count();
        Ok(read_all(statement.raw_query(), columns)?)
    }

    fn execute(&mut self, statement: usize, values: &[Value<'_>]) -> Result<u64, Failure> {
        let statement = bound(&mut self.statements[statement], values)?;
        Ok(statement.raw_execute()? as u64)
    }

    fn begin(&mut self, access: Access) -> Result<(), Failure> {
        let begin = match access {
            Access::Read => &mut self.begin_read,
            Access::Write => &mut self.begin_write,
        };
        begin.raw_execute()?;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.commit.raw_execute()?;
        Ok(())
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        // Some errors (disk full, I/O) make SQLite roll back by itself.
        if !self.connection.is_autocommit() {
            self.rollback.raw_execute()?;
        }
        Ok(())
    }
}

fn bound<'s, 'c>(
    statement: &'s mut Statement<'c>,
    values: &[Value<'_>],
) -> Result<&'s mut Statement<'c>, Failure> {
    for (n, value) in values.iter().enumerate() {
        statement.raw_bind_parameter(n + 1, value)?;
    }
    Ok(statement)
}

/// Columns are fetched too: SQLite reads overflow pages only for columns that someone wants.
fn read_all(mut rows: Rows<'_>, columns: usize) -> rusqlite::Result<u64> {
    let mut count = 0;
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            std::hint::black_box(row.get_ref(column)?);
        }
        count += 1;
    }
    Ok(count)
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text),
        }))
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        let kind = match &error {
            rusqlite::Error::SqliteFailure(error, _)
            | rusqlite::Error::SqlInputError { error, .. } => kind_of(error),
            _ => ErrorKind::Other(rusqlite::ffi::SQLITE_ERROR),
        };
        Self {
            kind,
            message: error.to_string().into(),
        }
    }
}

fn kind_of(error: &rusqlite::ffi::Error) -> ErrorKind {
    match error.code {
        ErrorCode::DatabaseBusy => ErrorKind::Busy,
        ErrorCode::DatabaseLocked => ErrorKind::Locked,
        ErrorCode::ConstraintViolation => ErrorKind::Constraint,
        ErrorCode::ReadOnly => ErrorKind::ReadOnly,
        ErrorCode::SystemIoFailure => ErrorKind::Io,
        ErrorCode::DiskFull => ErrorKind::Full,
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => ErrorKind::Corrupt,
        ErrorCode::CannotOpen => ErrorKind::CannotOpen,
        _ => ErrorKind::Other(error.extended_code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(pragmas: &[(&str, &str)]) -> (tempfile::TempDir, Sqlite) {
        let folder = tempfile::tempdir().unwrap();
        let pragmas = pragmas
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        let backend = Sqlite {
            path: folder.path().join("test.db"),
            pragmas: pragmas.collect(),
            create: true,
        };
        (folder, backend)
    }

    fn pragma(connection: &mut dyn Connection, name: &str) -> i64 {
        let value = connection.number(&format!("PRAGMA {name}"), &[]).unwrap();
        value.unwrap()
    }

    #[test]
    fn pragmas_take_effect_in_their_order() {
        // The page size can be set before the journal mode writes the first page, and not after.
        let pragmas = [
            ("page_size", "8192"),
            ("journal_mode", "WAL"),
            ("synchronous", "normal"),
            ("cache_size", "-3000"),
            ("temp_store", "memory"),
        ];
        let (_folder, backend) = database(&pragmas);
        let mut connection = backend.connect().unwrap();
        for (name, value) in [
            ("page_size", 8192),
            ("synchronous", 1),
            ("cache_size", -3000),
            ("temp_store", 2),
            ("busy_timeout", 10_000),
        ] {
            assert_eq!(pragma(connection.as_mut(), name), value, "{name}");
        }
    }

    #[test]
    fn a_given_busy_timeout_replaces_the_default() {
        let (_folder, backend) = database(&[("busy_timeout", "7")]);
        let mut connection = backend.connect().unwrap();
        assert_eq!(pragma(connection.as_mut(), "busy_timeout"), 7);
    }

    #[test]
    fn a_journal_mode_that_does_not_take_is_refused() {
        let (_folder, backend) = database(&[("journal_mode", "wall")]);
        let failure = backend.connect().err().unwrap();
        assert_eq!(
            failure.message,
            "SQLite keeps the journal mode `delete` instead of `wall`"
        );
    }

    /// What the second connection's `statement` fails with while the first holds the write lock.
    fn against_a_writer(access: Access) -> Result<(), ErrorKind> {
        let (_folder, backend) = database(&[("journal_mode", "wal"), ("busy_timeout", "0")]);
        let mut first = backend.connect().unwrap();
        first
            .run("CREATE TABLE t (id INTEGER PRIMARY KEY)")
            .unwrap();
        let mut first = first.session(&[]).unwrap();
        first.begin(Access::Write).unwrap();
        let mut second = backend.connect().unwrap();
        let mut second = second.session(&["SELECT * FROM t".into()]).unwrap();
        second.begin(access).map_err(|failure| failure.kind)?;
        second.query(0, &[]).map_err(|failure| failure.kind)?;
        second.commit().map_err(|failure| failure.kind)
    }

    #[test]
    fn transactions_take_the_write_lock_at_once_only_when_they_write() {
        assert_eq!(against_a_writer(Access::Write), Err(ErrorKind::Busy));
        assert_eq!(against_a_writer(Access::Read), Ok(()));
    }

    #[test]
    fn failures_have_the_kind_of_their_code() {
        let (_folder, backend) = database(&[]);
        let mut connection = backend.connect().unwrap();
        connection
            .run("CREATE TABLE t (id INTEGER PRIMARY KEY)")
            .unwrap();
        let insert = "INSERT INTO t VALUES (?)".to_owned();
        let mut session = connection.session(&[insert]).unwrap();
        assert_eq!(session.execute(0, &[Value::Integer(1)]), Ok(1));
        let twice = session.execute(0, &[Value::Integer(1)]).unwrap_err();
        assert_eq!(twice.kind, ErrorKind::Constraint);
        drop(session);
        let unknown = connection
            .session(&["SELECT * FROM u".into()])
            .err()
            .unwrap();
        assert_eq!(unknown.kind, ErrorKind::Other(1));
        assert!(unknown.message.contains("no such table: u"));
    }

    #[test]
    fn a_missing_file_is_made_for_loading_only() {
        let (_folder, mut backend) = database(&[]);
        backend.create = false;
        let failure = backend.connect().err().unwrap();
        assert_eq!(failure.kind, ErrorKind::CannotOpen);
        assert!(!backend.path.exists());
        backend.create = true;
        assert!(backend.connect().is_ok());
    }

    #[test]
    fn queries_count_their_rows() {
        let (_folder, backend) = database(&[]);
        let mut connection = backend.connect().unwrap();
        let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) \
                    SELECT i, 'text' FROM n";
        let mut session = connection.session(&[rows.into()]).unwrap();
        assert_eq!(session.query(0, &[Value::Integer(7)]), Ok(7));
        assert_eq!(session.query(0, &[Value::Integer(3)]), Ok(3));
    }
}
