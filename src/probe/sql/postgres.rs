//! PostgreSQL's protocol: simple queries, so that any statement may be sent and values come as texts.

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::TlsConnect;
use tokio_postgres::{Client, Config, Error, NoTls, SimpleQueryMessage};

use super::{Address, Server, Sql, Table, connected, executed};
use crate::probe::tls::{self, Connector};
use crate::probe::{Cause, ProbeError};

pub(super) async fn send(request: &Sql) -> Result<Vec<Table>, ProbeError> {
    let config = config(&request.server);
    let (client, connection) = match &request.server.address {
        Address::Socket(path) => {
            connected(request, async {
                let socket = UnixStream::connect(path).await.map_err(|e| Cause::of(&e))?;
                begin(&config, socket, NoTls).await
            })
            .await?
        }
        Address::Tcp { host, port } => {
            let secure = connector(&request.server, host)?;
            connected(request, async {
                let socket = TcpStream::connect((host.as_str(), *port)).await;
                let socket = socket.map_err(|e| Cause::of(&e))?;
                match secure {
                    Some(secure) => begin(&config, socket, secure).await,
                    None => begin(&config, socket, NoTls).await,
                }
            })
            .await?
        }
    };
    let mut tables = Vec::with_capacity(request.statements.len());
    for (index, statement) in request.statements.iter().enumerate() {
        tables.push(executed(request, index, ask(&client, statement)).await?);
    }
    drop(client);
    // The answers are there; a server that does not take the farewell loses the connection all the same.
    let _ = tokio::time::timeout(request.timeout.0, connection).await;
    Ok(tables)
}

fn config(server: &Server) -> Config {
    let mut config = Config::new();
    config.user(&server.user).application_name("assay");
    if let Some(password) = &server.password {
        config.password(password.reveal());
    }
    if let Some(database) = &server.database {
        config.dbname(database);
    }
    let is_tcp = matches!(server.address, Address::Tcp { .. });
    config.ssl_mode(match server.tls {
        Some(_) if is_tcp => SslMode::Require,
        Some(_) | None => SslMode::Disable,
    });
    config
}

fn connector(server: &Server, host: &str) -> Result<Option<Connector>, ProbeError> {
    let Some(tls) = &server.tls else {
        return Ok(None);
    };
    let config = tls::config(Some(tls))?;
    let name = ServerName::try_from(host.to_owned());
    let name = name.map_err(|e| ProbeError::Impossible(format!("`{host}`: {e}")))?;
    Ok(Some(Connector::new(config, name)))
}

/// Signs in. The connection lives in a task of its own, which ends when the client was dropped.
async fn begin<S, T>(
    config: &Config,
    socket: S,
    tls: T,
) -> Result<(Client, JoinHandle<Result<(), Error>>), Cause>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: TlsConnect<S>,
    T::Stream: Send + 'static,
{
    let (client, connection) = config
        .connect_raw(socket, tls)
        .await
        .map_err(|e| cause(&e))?;
    Ok((client, tokio::spawn(connection)))
}

/// The first result of a statement; errors of further ones count.
async fn ask(client: &Client, statement: &str) -> Result<Table, Cause> {
    let messages = client.simple_query(statement).await;
    let mut table = Table::default();
    for message in messages.map_err(|e| cause(&e))? {
        match message {
            SimpleQueryMessage::RowDescription(columns) => {
                table.columns = columns.iter().map(|c| c.name().to_owned()).collect();
            }
            SimpleQueryMessage::Row(row) => {
                let values = (0..row.len()).map(|at| row.try_get(at).map(|v| v.map(str::to_owned)));
                let values = values.collect::<Result<_, _>>();
                table.rows.push(values.map_err(|e| cause(&e))?);
            }
            // Also what the library may add one day.
            _ => break,
        }
    }
    Ok(table)
}

fn cause(error: &Error) -> Cause {
    match error.as_db_error() {
        Some(said) => Cause::Server {
            code: said.code().code().to_owned(),
            text: said.message().to_owned(),
        },
        None => Cause::of(error),
    }
}
