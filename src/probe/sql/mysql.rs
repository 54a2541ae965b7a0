//! MySQL's protocol: statements go as texts, so that any statement may be sent.

use std::fmt::Write as _;

use mysql_async::prelude::Queryable as _;
use mysql_async::{ClientIdentity, Conn, Error, Opts, OptsBuilder, Row, SslOpts, Value};

use super::{Address, Server, Sql, Table, connected, executed};
use crate::probe::{Cause, ProbeError, tls};

/// Bytes that a packet may have. Said so that the server is not asked for its limit: it may not answer anything yet.
const PACKET: usize = 64 << 20;

/// Seconds that a connection may idle, for the same reason: the servers' own default.
const IDLE: usize = 28_800;

pub(super) async fn send(request: &Sql) -> Result<Vec<Table>, ProbeError> {
    let options = options(&request.server)?;
    let connecting = async { Conn::new(options).await.map_err(|e| cause(&e)) };
    let mut connection = connected(request, connecting).await?;
    let mut tables = Vec::with_capacity(request.statements.len());
    for (index, statement) in request.statements.iter().enumerate() {
        let work = async { ask(&mut connection, statement).await.map_err(|e| cause(&e)) };
        tables.push(executed(request, index, work).await?);
    }
    // The answers are there; a server that does not take the farewell loses the connection all the same.
    let _ = tokio::time::timeout(request.timeout.0, connection.disconnect()).await;
    Ok(tables)
}

fn options(server: &Server) -> Result<Opts, ProbeError> {
    let mut options = OptsBuilder::default()
        .user(Some(&server.user))
        .pass(server.password.as_ref().map(|p| p.reveal().to_owned()))
        .db_name(server.database.as_ref())
        // Otherwise a connection to a local port would be given up for the server's socket.
        .prefer_socket(false)
        .max_allowed_packet(Some(PACKET))
        .wait_timeout(Some(IDLE));
    match &server.address {
        Address::Tcp { host, port } => {
            options = options.ip_or_hostname(host).tcp_port(*port);
        }
        Address::Socket(path) => {
            let path = path.to_str().ok_or_else(|| {
                ProbeError::Impossible(format!("`{}` is no UTF-8", path.display()))
            })?;
            return Ok(options.socket(Some(path)).into());
        }
    }
    if let Some(tls) = &server.tls {
        // Says what is wrong with the files, which the library does not.
        tls::config(Some(tls))?;
        let identity = tls
            .identity()?
            .map(|(cert, key)| ClientIdentity::new(cert.to_owned().into(), key.to_owned().into()));
        let encrypted = SslOpts::default()
            .with_disable_built_in_roots(true)
            .with_root_certs(vec![tls.ca.clone().into()])
            .with_client_identity(identity);
        options = options.ssl_opts(encrypted);
    }
    Ok(options.into())
}

/// The first result of a statement; errors of further ones count.
async fn ask(connection: &mut Conn, statement: &str) -> Result<Table, Error> {
    let mut result = connection.query_iter(statement).await?;
    let columns = result.columns_ref().iter();
    let columns = columns.map(|c| c.name_str().into_owned()).collect();
    let rows: Vec<Row> = result.collect().await?;
    result.drop_result().await?;
    let row = |row: Row| row.unwrap().into_iter().map(text).collect();
    Ok(Table {
        columns,
        rows: rows.into_iter().map(row).collect(),
    })
}

/// A value as text; the text protocol has nothing but NULL and bytes.
fn text(value: Value) -> Option<String> {
    match value {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(String::from_utf8(bytes).unwrap_or_else(|e| hex(e.as_bytes()))),
        other => Some(other.as_sql(true)),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_owned(), |mut text, byte| {
        write!(text, "{byte:02X}").expect("a string takes everything");
        text
    })
}

fn cause(error: &Error) -> Cause {
    match error {
        Error::Server(said) => Cause::Server {
            code: format!("{} ({})", said.code, said.state),
            text: said.message.clone(),
        },
        Error::Driver(_) | Error::Io(_) | Error::Other(_) | Error::Url(_) => Cause::of(error),
    }
}
