//! The work on a SQLite file, done on its own host.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::super::Effective;
use super::COMPONENT;
use super::tunables::{TUNABLES, Tunable, tunable};

/// A SQLite database, its pragmas in the order in which they are set, and the version it must have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SqliteFile {
    /// The database file.
    pub path: PathBuf,
    /// The pragmas to set.
    pub pragmas: Vec<Pragma>,
    /// The version it must report.
    pub version: Option<String>,
}

/// A pragma and its value.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Pragma {
    /// Its name.
    pub name: String,
    /// Its value, secrets revealed.
    pub value: String,
    /// What is shown and kept in place of a value that came from the environment: the text with the variable's name.
    pub placeholder: Option<String>,
}

impl Pragma {
    /// The name and the value.
    pub(super) fn pair(&self) -> (String, String) {
        (self.name.clone(), self.value.clone())
    }

    /// The value as it may be shown.
    fn shown(&self) -> &str {
        self.placeholder.as_deref().unwrap_or(&self.value)
    }
}

impl fmt::Debug for Pragma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={:?}", self.name, self.shown())
    }
}

/// Why a SQLite file cannot be started or stopped.
#[derive(Debug, thiserror::Error)]
pub enum SqliteError {
    /// SQLite refuses.
    #[error("cannot {what} `{}`", path.display())]
    Sqlite {
        /// What was tried.
        what: String,
        /// The database file.
        path: PathBuf,
        /// Why it failed.
        source: rusqlite::Error,
    },
    /// A pragma was set and did not take.
    #[error("`{name}` was set to `{wanted}` but reads back `{found}`")]
    NotApplied {
        /// The pragma.
        name: String,
        /// What was set.
        wanted: String,
        /// What is in force.
        found: String,
    },
    /// A pragma was set to a value from the environment and did not take.
    #[error("`{name}` was set to `{wanted}` but reads back another value")]
    SecretNotApplied {
        /// The pragma.
        name: String,
        /// What was set, with the variable's name in place of its value.
        wanted: String,
    },
    /// The version is another one.
    #[error("version {wanted} is wanted, this is SQLite {found}")]
    Version {
        /// What the experiment asks for.
        wanted: String,
        /// What is built in.
        found: String,
    },
    /// Some process still uses the database.
    #[error("`{}` is still in use by another process", .0.display())]
    InUse(PathBuf),
}

/// The version of SQLite that is built in.
#[must_use]
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

/// Whether a version, which may begin with a `v`, is the one that is built in.
pub(super) fn is_built_in(version: &str) -> bool {
    version.strip_prefix('v').unwrap_or(version) == sqlite_version()
}

/// Applies the pragmas and reads every tunable back.
///
/// # Errors
/// The file cannot be opened, the version differs, or a pragma does not take.
pub fn agent_start(file: &SqliteFile) -> Result<Effective, SqliteError> {
    let version = sqlite_version().to_owned();
    if let Some(wanted) = file.version.as_ref().filter(|v| !is_built_in(v)) {
        return Err(SqliteError::Version {
            wanted: wanted.clone(),
            found: version,
        });
    }
    let connection = open(file)?;
    for pragma in &file.pragmas {
        set(&connection, file, pragma)?;
    }
    let mut found = BTreeMap::new();
    for known in TUNABLES {
        if let Some(value) = read(&connection, file, known)? {
            found.insert(known.name.to_owned(), value);
        }
    }
    prove_applied(file, &found)?;
    for pragma in &file.pragmas {
        if let (Some(found), Some(placeholder)) = (found.get_mut(&pragma.name), &pragma.placeholder)
        {
            found.clone_from(placeholder);
        }
    }
    Ok(Effective {
        version,
        config: BTreeMap::from([(COMPONENT.to_owned(), found)]),
        ..Effective::default()
    })
}

fn set(connection: &Connection, file: &SqliteFile, pragma: &Pragma) -> Result<(), SqliteError> {
    connection
        .pragma_update_and_check(None, &pragma.name, &pragma.value, |_| Ok(()))
        .or_else(no_rows)
        .map_err(|cause| {
            let cause = match pragma.placeholder {
                Some(_) => without_text(&cause),
                None => cause,
            };
            let what = format!("set `{}` to `{}` in", pragma.name, pragma.shown());
            error(file, what, cause)
        })
}

/// The error without its words, which may quote the statement and with it a secret.
fn without_text(error: &rusqlite::Error) -> rusqlite::Error {
    let code = error.sqlite_error().copied();
    let unknown = || rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ERROR);
    rusqlite::Error::SqliteFailure(code.unwrap_or_else(unknown), None)
}

fn prove_applied(file: &SqliteFile, found: &BTreeMap<String, String>) -> Result<(), SqliteError> {
    for pragma in &file.pragmas {
        let values = &tunable(&pragma.name)
            .expect("pragmas come from the table of tunables")
            .values;
        let (name, wanted) = (pragma.name.clone(), pragma.shown().to_owned());
        match found.get(&pragma.name) {
            Some(found) if values.normal(found) != values.normal(&pragma.value) => {
                return Err(match pragma.placeholder {
                    Some(_) => SqliteError::SecretNotApplied { name, wanted },
                    None => SqliteError::NotApplied {
                        name,
                        wanted,
                        found: found.clone(),
                    },
                });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Moves what is in the write-ahead log into the database, so that the file alone is complete.
/// A database that is not there is stopped already.
///
/// # Errors
/// The file cannot be opened, or another process uses it.
pub fn agent_stop(file: &SqliteFile) -> Result<(), SqliteError> {
    if !file.path.exists() {
        return Ok(());
    }
    let connection = open(file)?;
    // One row: whether it was blocked, frames in the log, frames moved. Other journal modes give 0, -1, -1.
    let blocked: i64 = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .map_err(|e| error(file, "empty the log of".to_owned(), e))?;
    if blocked != 0 {
        return Err(SqliteError::InUse(file.path.clone()));
    }
    connection
        .close()
        .map_err(|(_, e)| error(file, "close".to_owned(), e))
}

fn open(file: &SqliteFile) -> Result<Connection, SqliteError> {
    let connection = Connection::open(&file.path).map_err(|e| error(file, "open".to_owned(), e))?;
    connection
        .busy_timeout(std::time::Duration::from_secs(10))
        .map_err(|e| error(file, "open".to_owned(), e))?;
    Ok(connection)
}

fn read(
    connection: &Connection,
    file: &SqliteFile,
    known: &Tunable,
) -> Result<Option<String>, SqliteError> {
    let value = connection
        .pragma_query_value(None, known.name, |row| {
            row.get::<_, rusqlite::types::Value>(0)
        })
        .map(Some)
        .or_else(|e| {
            if e == rusqlite::Error::QueryReturnedNoRows {
                Ok(None)
            } else {
                Err(e)
            }
        })
        .map_err(|e| error(file, format!("read `{}` of", known.name), e))?;
    Ok(value.map(|value| {
        let text = match value {
            rusqlite::types::Value::Integer(n) => n.to_string(),
            rusqlite::types::Value::Text(text) => text,
            rusqlite::types::Value::Real(number) => number.to_string(),
            rusqlite::types::Value::Null | rusqlite::types::Value::Blob(_) => String::new(),
        };
        known.values.normal(&text)
    }))
}

/// Some pragmas answer with their new value, others with nothing.
fn no_rows(e: rusqlite::Error) -> rusqlite::Result<()> {
    if e == rusqlite::Error::QueryReturnedNoRows {
        Ok(())
    } else {
        Err(e)
    }
}

fn error(file: &SqliteFile, what: String, source: rusqlite::Error) -> SqliteError {
    SqliteError::Sqlite {
        what,
        path: file.path.clone(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &tempfile::TempDir, pragmas: &[(&str, &str)]) -> SqliteFile {
        SqliteFile {
            path: folder.path().join("database.sqlite"),
            pragmas: pragmas
                .iter()
                .map(|(name, value)| Pragma {
                    name: (*name).to_owned(),
                    value: (*value).to_owned(),
                    placeholder: None,
                })
                .collect(),
            version: None,
        }
    }

    #[test]
    fn every_tunable_takes_and_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let pragmas = [
            ("page_size", "8192"),
            ("auto_vacuum", "full"),
            ("busy_timeout", "1234"),
            ("locking_mode", "normal"),
            ("journal_mode", "wal"),
            ("synchronous", "normal"),
            ("cache_size", "-4000"),
            ("mmap_size", "1048576"),
            ("temp_store", "memory"),
            ("wal_autocheckpoint", "500"),
            ("journal_size_limit", "65536"),
            ("secure_delete", "on"),
            ("automatic_index", "off"),
            ("cell_size_check", "on"),
            ("threads", "2"),
        ];
        assert_eq!(pragmas.len(), TUNABLES.len());
        let effective = agent_start(&file(&folder, &pragmas)).unwrap();
        for (name, value) in pragmas {
            assert_eq!(effective.config["sqlite"][name], value, "{name}");
        }
    }

    #[test]
    fn a_tunable_that_does_not_take_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let made = agent_start(&file(&folder, &[("page_size", "4096")])).unwrap();
        assert_eq!(made.config["sqlite"]["page_size"], "4096");
        Connection::open(folder.path().join("database.sqlite"))
            .unwrap()
            .execute("create table t (a)", [])
            .unwrap();
        // The page size of a database with tables stays what it is.
        let error = agent_start(&file(&folder, &[("page_size", "8192")])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`page_size` was set to `8192` but reads back `4096`"
        );
    }

    #[test]
    fn a_value_from_the_environment_is_in_no_answer() {
        for (name, value, applied) in [
            ("cache_size", "-4321", true),
            ("synchronous", "extra", true),
            ("cache_size", "abc", false),
            ("journal_mode", "w'al", false),
            ("temp_store", "7", false),
            ("mmap_size", "", false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let mut secret = file(&folder, &[(name, value)]);
            secret.pragmas[0].placeholder = Some("${env:SECRET}".to_owned());
            let answer = match agent_start(&secret) {
                Ok(effective) => {
                    assert!(applied, "{name}={value}");
                    assert_eq!(effective.config["sqlite"][name], "${env:SECRET}");
                    serde_json::to_string(&effective).unwrap()
                }
                Err(error) => {
                    assert!(!applied, "{name}={value}: {error}");
                    assert!(error.to_string().contains("to `${env:SECRET}`"), "{error}");
                    format!("{error} {error:?}")
                }
            };
            let answer =
                format!("{answer} {secret:?}").replace(folder.path().to_str().unwrap(), "");
            assert!(value.is_empty() || !answer.contains(value), "{answer}");
        }
    }

    #[test]
    fn another_version_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = SqliteFile {
            version: Some("6.10".into()),
            ..file(&folder, &[])
        };
        assert!(matches!(
            agent_start(&wanted),
            Err(SqliteError::Version { .. })
        ));
    }

    #[test]
    fn stopping_moves_the_log_into_the_database() {
        let folder = tempfile::tempdir().unwrap();
        let file = file(&folder, &[("journal_mode", "wal")]);
        agent_start(&file).unwrap();
        let writer = Connection::open(&file.path).unwrap();
        writer.execute("create table t (a)", []).unwrap();
        // As after a kill: the connection never closes and its log stays behind.
        std::mem::forget(writer);
        assert!(
            std::fs::metadata(folder.path().join("database.sqlite-wal"))
                .unwrap()
                .len()
                > 0
        );
        agent_stop(&file).unwrap();
        let log = std::fs::metadata(folder.path().join("database.sqlite-wal"));
        assert!(log.map_or(0, |m| m.len()) == 0);
    }

    #[test]
    fn stopping_what_is_not_there_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(agent_stop(&file(&folder, &[])).is_ok());
    }
}
