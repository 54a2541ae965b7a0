//! The order that a client's native driver carries out, and what it says while it works.
//! It stands here because both sides of it, the driver that writes it and the engine that reads it, lie above.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::measurement::Phase;
use crate::spec::{Dataset, Workload};
use crate::units::Duration;

/// One job of the native driver on one client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The database to talk to.
    pub target: Target,
    /// What to do there.
    pub work: Work,
    /// The seed of all keys, values and operations.
    pub seed: u64,
}

/// A database as a driver reaches it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A SQLite file, with the pragmas that every connection sets, in order.
    Sqlite {
        /// The database file.
        path: PathBuf,
        /// Pragma names and values.
        pragmas: Vec<(String, String)>,
    },
    /// Nothing: every statement succeeds at once. Measures the driver itself.
    Null,
    /// A database that speaks a protocol of SQL servers.
    Sql(SqlTarget),
}

/// A database behind one or more addresses.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct SqlTarget {
    /// How it is spoken to.
    pub protocol: Protocol,
    /// Where it listens: clients spread over all of them.
    pub addresses: Vec<Address>,
    /// The user.
    pub user: String,
    /// The user's password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// The database, or schema, that holds the tables.
    pub database: String,
    /// How connections are encrypted; `None` is not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

/// All but the password.
impl fmt::Debug for SqlTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlTarget")
            .field("protocol", &self.protocol)
            .field("addresses", &self.addresses)
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "(hidden)"))
            .field("database", &self.database)
            .field("tls", &self.tls)
            .finish()
    }
}

/// How an SQL server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// MySQL's, as TiDB and MariaDB speak it too.
    Mysql,
    /// PostgreSQL's.
    Postgres,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mysql => "MySQL",
            Self::Postgres => "PostgreSQL",
        })
    }
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// Its host: a name, or an IP address without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// What encrypted connections need, as PEM texts.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tls {
    /// The certificates that the server's must be signed by; without them any is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
    /// The client's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// The client's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// All but the key.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("ca", &self.ca)
            .field("certificate", &self.certificate)
            .field("key", &self.key.as_ref().map(|_| "(hidden)"))
            .finish()
    }
}

/// What a job does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Creates and fills the tables of a dataset.
    Load(Dataset),
    /// Runs a workload and measures it.
    Run(LoadRun),
}

/// One measured run of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadRun {
    /// What is run.
    pub workload: Workload,
    /// The dataset that it works on, as loaded.
    pub dataset: Dataset,
    /// Client threads, each with its own connection.
    pub threads: u32,
    /// Target rate over all threads, operations/s; `None` is closed loop.
    pub rate: Option<f64>,
    /// Load that does not count.
    pub warmup: Duration,
    /// The measurement window.
    pub duration: Duration,
    /// The folder on the client that the result's files go to; it is made when needed.
    pub output: PathBuf,
}

/// What a job says while it works, one JSON object a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// Rows loaded so far, and in all.
    Loaded {
        /// Rows written.
        rows: u64,
        /// Rows wanted.
        of: u64,
    },
    /// A second of load went by.
    Second {
        /// Warm-up or window.
        phase: Phase,
        /// Seconds since the phase began.
        second: u64,
        /// Operations that succeeded in it.
        count: u64,
        /// Operations that failed in it.
        errors: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_of_a_target_is_in_its_debug_text() {
        let target = Target::Sql(SqlTarget {
            protocol: Protocol::Mysql,
            addresses: Vec::new(),
            user: "sbtest".into(),
            password: Some("5up3r".into()),
            database: "sbtest".into(),
            tls: Some(Tls {
                key: Some("PRIVATE".into()),
                ..Tls::default()
            }),
        });
        let text = format!("{target:?}");
        assert!(text.contains("sbtest") && text.contains("(hidden)"));
        assert!(!text.contains("5up3r") && !text.contains("PRIVATE"));
    }
}
