//! Probes as the runner uses them: through agents, against servers that are really there.

mod certificates;
mod http;
mod mysql;
mod postgres;
mod server;

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use assay::host::{AgentError, LocalHost};
use assay::probe::{self, Address, Check, Http, Protocol, Server, Sql, Table, Tls, Until, Waiting};
use assay::units;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use certificates::Certificates;

/// A limit that nothing comes near that answers at all.
const LONG: units::Duration = units::Duration::from_secs(60);
/// A limit for what never comes, while all before it does, also on a busy machine.
const SHORT: units::Duration = units::Duration::from_secs(2);

const PASSWORD: &str = "geheim-wie-nie";

/// This machine, where the agents are.
fn here() -> LocalHost {
    LocalHost::new("here", "/nonexistent", env!("CARGO_BIN_EXE_assay"))
}

/// A port at which nobody listens.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A server that accepts connections, as its backlog does, and says nothing.
fn mute() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

fn request(server: &Server, statements: &[&str]) -> Sql {
    Sql {
        server: server.clone(),
        statements: statements.iter().map(|s| (*s).to_owned()).collect(),
        timeout: LONG,
    }
}

fn on_port(protocol: Protocol, port: u16) -> Server {
    Server {
        protocol,
        address: Address::Tcp {
            host: "127.0.0.1".into(),
            port,
        },
        user: "probe".into(),
        password: Some(PASSWORD.into()),
        database: None,
        tls: None,
    }
}

async fn send(request: &Sql) -> Result<Vec<Table>, AgentError> {
    probe::sql(&here(), request, &CancellationToken::new()).await
}

/// What statements come to.
async fn ask(server: &Server, statements: &[&str]) -> Vec<Table> {
    send(&request(server, statements)).await.unwrap()
}

/// Why a request fails; no failure tells the password.
async fn refusal(request: &Sql) -> String {
    let text = send(request).await.unwrap_err().to_string();
    assert!(!text.contains(PASSWORD), "{text}");
    text
}

/// Rows as they are compared: `-` for NULL.
fn rows(table: &Table) -> Vec<String> {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
    let row = |row: &Vec<Option<String>>| row.iter().map(value).collect::<Vec<_>>().join("|");
    table.rows.iter().map(row).collect()
}

/// What became of waiting, and the reasons that were told meanwhile.
async fn wait(what: Value, limit: units::Duration) -> (Result<(), String>, Vec<String>) {
    let what: Check = serde_json::from_value(what).unwrap();
    let mut told = Vec::new();
    let mut tell = |waiting: Waiting| told.push(waiting.reason);
    let request = Until::new(what, limit);
    let held = probe::until(&here(), &request, &CancellationToken::new(), &mut tell).await;
    (held.map(drop).map_err(|e| e.to_string()), told)
}

/// TLS of a client that shows its certificate.
fn known(certificates: &Certificates) -> Tls {
    let file = |name: &str| Some(certificates.path(name));
    Tls {
        cert: file("client.pem"),
        key: file("client.key"),
        ..Tls::of(certificates.path("ca.pem"))
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_from_one_that_says_nothing() {
    let (_listener, silent) = mute();
    let absent = free_port();
    for (protocol, name) in [(Protocol::Mysql, "mysql"), (Protocol::Postgres, "postgres")] {
        let refused = request(&on_port(protocol, absent), &["SELECT 1"]);
        let expected =
            format!("cannot connect to {name} at 127.0.0.1:{absent}: connection refused");
        assert_eq!(refusal(&refused).await, expected);
        let mut mute = request(&on_port(protocol, silent), &["SELECT 1"]);
        mute.timeout = SHORT;
        let expected =
            format!("cannot connect to {name} at 127.0.0.1:{silent}: no answer within 2s");
        assert_eq!(refusal(&mute).await, expected);
    }
    let mut get = Http::get(probe::url("127.0.0.1", silent, "/", false));
    get.timeout = SHORT;
    let error = probe::http(&here(), &get, &CancellationToken::new()).await;
    let expected = format!("cannot ask `http://127.0.0.1:{silent}/`: no answer within 2s");
    assert_eq!(error.unwrap_err().to_string(), expected);
}

#[tokio::test]
async fn a_socket_that_is_not_there_is_named() {
    for (protocol, name) in [(Protocol::Mysql, "mysql"), (Protocol::Postgres, "postgres")] {
        let mut server = on_port(protocol, 1);
        server.address = Address::Socket(PathBuf::from("/nonexistent/socket"));
        let text = refusal(&request(&server, &["SELECT 1"])).await;
        let expected =
            format!("cannot connect to {name} at /nonexistent/socket: no such file or directory");
        assert_eq!(text, expected);
    }
}

#[tokio::test]
async fn certificates_that_cannot_be_used_are_named() {
    let certificates = Certificates::make();
    let empty = certificates.path("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let other = Certificates::make();
    let with = |change: &dyn Fn(&mut Tls)| {
        let mut tls = known(&certificates);
        change(&mut tls);
        tls
    };
    let named = |what: &str, path: &Path, why: &str| {
        format!("cannot use the {what} `{}`: {why}", path.display())
    };
    let gone = PathBuf::from("/nonexistent/ca.pem");
    for (tls, expected) in [
        (
            Tls::of(&gone),
            named("certificate", &gone, "no such file or directory"),
        ),
        (
            Tls::of(&empty),
            named("certificate", &empty, "there is none in it"),
        ),
        (
            with(&|tls| tls.key = None),
            "cannot carry out the request: a certificate to show and its key go together".into(),
        ),
        (
            with(&|tls| tls.key = Some(other.path("client.key"))),
            named(
                "private key",
                &other.path("client.key"),
                "keys may not be consistent: KeyMismatch",
            ),
        ),
    ] {
        for protocol in [Protocol::Mysql, Protocol::Postgres] {
            let mut server = on_port(protocol, 1);
            server.tls = Some(tls.clone());
            assert_eq!(refusal(&request(&server, &[])).await, expected);
        }
        let mut get = Http::get("https://127.0.0.1:1/");
        get.tls = Some(tls);
        let error = probe::http(&here(), &get, &CancellationToken::new()).await;
        assert_eq!(error.unwrap_err().to_string(), expected);
    }
}
