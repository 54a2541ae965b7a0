//! Statements sent to a MySQL or PostgreSQL server as texts, and the tables that come back.

mod mysql;
mod postgres;

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::http::place;
use super::{Cause, ProbeError, Secret, Tls, within, words};
use crate::units::Duration;

/// Statements for one connection.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sql {
    /// The server.
    pub server: Server,
    /// The statements, in their order; the first that fails is the last.
    pub statements: Vec<String>,
    /// How long connecting may take, and each statement with its whole result. A statement that takes longer may go on at the
    /// server.
    #[serde(default = "super::timeout")]
    pub timeout: Duration,
}

/// A database server and who asks it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// What it speaks.
    pub protocol: Protocol,
    /// Where it listens.
    pub address: Address,
    /// The user.
    pub user: String,
    /// The user's password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// The database to be in. Without one, PostgreSQL takes the user's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Encryption of a TCP connection, which is then required. A socket goes without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

/// A protocol that database servers speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// MySQL's: MySQL, MariaDB, TiDB, and proxies before them.
    Mysql,
    /// PostgreSQL's.
    Postgres,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Address {
    /// A port.
    Tcp {
        /// A name or an address, an IPv6 one without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// A socket of this host: the file itself, for PostgreSQL as well (`/run/postgresql/.s.PGSQL.5432`).
    Socket(PathBuf),
}

/// The result of a statement: without columns if it gives no rows. Of several results it is the first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows: each value as the server writes it as text, `None` for NULL. Of MySQL, what is no UTF-8 stands as `0x` and
    /// hexadecimal digits.
    pub rows: Vec<Vec<Option<String>>>,
}

impl Server {
    /// The error that has no password in it, whatever the server says.
    fn hide(&self, cause: Cause) -> Cause {
        let Some(password) = &self.password else {
            return cause;
        };
        match cause {
            Cause::Server { code, text } => Cause::Server {
                code,
                text: password.hide(&text),
            },
            Cause::Connection(text) => Cause::Connection(password.hide(&text)),
            Cause::Silent(_) | Cause::Long(_) => cause,
        }
    }
}

impl fmt::Display for Server {
    /// `mysql at db1:4000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            Protocol::Mysql => f.write_str("mysql at ")?,
            Protocol::Postgres => f.write_str("postgres at ")?,
        }
        match &self.address {
            Address::Tcp { host, port } => f.write_str(&place(host, *port)),
            Address::Socket(path) => write!(f, "{}", path.display()),
        }
    }
}

impl fmt::Display for Sql {
    /// The last statement and the server: `` `SELECT 1` on mysql at db1:4000 ``.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statement = self.statements.last().map_or("", String::as_str);
        let statement = match &self.server.password {
            Some(password) => password.hide(statement),
            None => statement.to_owned(),
        };
        write!(f, "`{}` on {}", words::cut(&statement), self.server)
    }
}

impl fmt::Debug for Sql {
    /// Statements may have passwords in them, so they are only counted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sql")
            .field("server", &self.server)
            .field("statements", &self.statements.len())
            .field("timeout", &self.timeout)
            .finish()
    }
}

/// Sends the statements, one after another, over one connection.
pub(super) async fn send(request: &Sql) -> Result<Vec<Table>, ProbeError> {
    match request.server.protocol {
        Protocol::Mysql => mysql::send(request).await,
        Protocol::Postgres => postgres::send(request).await,
    }
}

/// Connects, within the request's limit.
async fn connected<T>(
    request: &Sql,
    work: impl Future<Output = Result<T, Cause>>,
) -> Result<T, ProbeError> {
    let connected = within(request.timeout, work).await;
    connected.map_err(|cause| ProbeError::Connect {
        server: request.server.to_string(),
        source: request.server.hide(cause),
    })
}

/// Runs the statement of this index, within the request's limit.
async fn executed<T>(
    request: &Sql,
    index: usize,
    work: impl Future<Output = Result<T, Cause>>,
) -> Result<T, ProbeError> {
    let executed = within(request.timeout, work).await;
    executed.map_err(|cause| ProbeError::Statement {
        number: index + 1,
        of: request.statements.len(),
        server: request.server.to_string(),
        source: request.server.hide(cause),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Sql {
        Sql {
            server: Server {
                protocol: Protocol::Mysql,
                address: Address::Tcp {
                    host: "fd00::1".into(),
                    port: 4000,
                },
                user: "root".into(),
                password: Some("geheim".into()),
                database: None,
                tls: None,
            },
            statements: vec!["SELECT 1".into(), "SET PASSWORD = 'geheim'".into()],
            timeout: Duration::from_secs(1),
        }
    }

    #[test]
    fn a_password_is_in_no_text() {
        let request = request();
        for text in [
            format!("{request:?} {:?}", request.server),
            request.to_string(),
        ] {
            assert!(!text.contains("geheim"), "{text}");
        }
        let cause = Cause::Server {
            code: "1064 (42000)".into(),
            text: "near 'geheim'".into(),
        };
        let hidden = request.server.hide(cause).to_string();
        assert_eq!(hidden, "1064 (42000): near '***'");
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let text = serde_json::to_string(&request()).unwrap();
        assert!(
            text.contains(r#""address":{"tcp":{"host":"fd00::1","port":4000}}"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Sql>(&text).unwrap(), request());
        assert_eq!(request().server.to_string(), "mysql at [fd00::1]:4000");
    }
}
