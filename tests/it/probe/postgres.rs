//! SQL over PostgreSQL's protocol, of a real PostgreSQL.

use assay::probe::{Address, Protocol, Server, Tls};

use super::certificates::Certificates;
use super::server::{Running, postgres};
use super::{PASSWORD, SHORT, ask, known, on_port, refusal, request, rows};
use crate::support::skipped;

#[tokio::test]
async fn postgresql_is_asked_anything_over_its_port_its_socket_and_tls() {
    let running = match postgres() {
        Ok(running) => running,
        Err(why) => return skipped(&why),
    };
    let mut server = on_port(Protocol::Postgres, running.port);
    server.database = Some("postgres".into());
    running.answers(&server).await;
    values_come_as_texts(&server).await;
    of_several_results_the_first_counts(&server).await;
    failures_keep_what_the_server_says(&server, running.port).await;
    the_socket(&running, &server).await;
    encryption(&running, &server).await;
}

async fn values_come_as_texts(server: &Server) {
    let statements = [
        "CREATE DATABASE d",
        "CREATE TABLE t (id int, name text, raw bytea, f float8, at timestamptz, yes bool)",
        "SET TIME ZONE 'UTC'",
        "INSERT INTO t VALUES (1, 'größer 🦀', '\\x00ff10', 0.1, '2026-03-01 10:00:00.5Z', true), (2, '', '', NULL, NULL, NULL)",
        "SELECT * FROM t ORDER BY id",
        "SELECT 1 AS \"ein s\" FROM t WHERE false",
    ];
    let tables = ask(server, &statements).await;
    assert_eq!(tables.len(), statements.len());
    assert!(tables[3].columns.is_empty() && tables[3].rows.is_empty());
    assert_eq!(tables[4].columns, ["id", "name", "raw", "f", "at", "yes"]);
    let expected = [
        "1|größer 🦀|\\x00ff10|0.1|2026-03-01 10:00:00.5+00|t",
        "2||\\x|-|-|-",
    ];
    assert_eq!(rows(&tables[4]), expected);
    assert_eq!(tables[5].columns, ["ein s"]);
    assert!(tables[5].rows.is_empty());
}

async fn of_several_results_the_first_counts(server: &Server) {
    let tables = ask(
        server,
        &["SELECT 1; SELECT 2, 3", "SET x.y = 1; SELECT 2", "SELECT 4"],
    )
    .await;
    let all: Vec<_> = tables.iter().map(rows).collect();
    assert_eq!(all, [vec!["1".to_owned()], vec![], vec!["4".to_owned()]]);
    let text = refusal(&request(server, &["SELECT 1; SELECT nothing"])).await;
    assert!(
        text.ends_with("42703: column \"nothing\" does not exist"),
        "{text}"
    );
}

async fn failures_keep_what_the_server_says(server: &Server, port: u16) {
    let at = format!("postgres at 127.0.0.1:{port}");
    let text = refusal(&request(
        server,
        &["SELECT 1", "SELECT * FROM nil", "SELECT 2"],
    ))
    .await;
    let said = "42P01: relation \"nil\" does not exist";
    assert_eq!(text, format!("statement 2 of 3 failed at {at}: {said}"));
    let text = refusal(&request(server, &[&format!("SELECT \"{PASSWORD}\"")])).await;
    assert!(
        text.ends_with("42703: column \"***\" does not exist"),
        "{text}"
    );
    let mut slow = request(server, &["SELECT pg_sleep(600)"]);
    slow.timeout = SHORT;
    let expected = format!("statement 1 of 1 failed at {at}: no answer within 2s");
    assert_eq!(refusal(&slow).await, expected);
    let mut wrong = server.clone();
    wrong.password = Some("wrong-password".into());
    let text = refusal(&request(&wrong, &["SELECT 1"])).await;
    let said = "28P01: password authentication failed for user \"probe\"";
    assert_eq!(text, format!("cannot connect to {at}: {said}"));
    wrong.password = None;
    let text = refusal(&request(&wrong, &["SELECT 1"])).await;
    assert_eq!(text, format!("cannot connect to {at}: password missing"));
    let mut nowhere = server.clone();
    nowhere.database = Some("nil".into());
    let text = refusal(&request(&nowhere, &["SELECT 1"])).await;
    assert!(
        text.ends_with("3D000: database \"nil\" does not exist"),
        "{text}"
    );
    // The connection of the statement that ends it is not the server's end.
    let text = refusal(&request(
        server,
        &["SELECT pg_terminate_backend(pg_backend_pid())"],
    ))
    .await;
    assert!(text.contains("57P01: terminating connection"), "{text}");
}

async fn the_socket(running: &Running, server: &Server) {
    let mut local = server.clone();
    local.address = Address::Socket(running.path(&format!(".s.PGSQL.{}", running.port)));
    let whence = "SELECT coalesce(host(inet_client_addr()), 'socket')";
    assert_eq!(rows(&ask(&local, &[whence]).await[0]), ["socket"]);
    assert_eq!(rows(&ask(server, &[whence]).await[0]), ["127.0.0.1"]);
}

async fn encryption(running: &Running, server: &Server) {
    let version = "SELECT coalesce(version, '-') FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    assert_eq!(rows(&ask(server, &[version]).await[0]), ["-"]);
    let mut secure = server.clone();
    secure.tls = Some(Tls::of(running.certificates.path("ca.pem")));
    // Much more than TLS takes at once, in both directions.
    let large = format!(
        "SELECT length('{}'), repeat('x', 3000000)",
        "y".repeat(2_000_000)
    );
    let tables = ask(&secure, &[version, &large, "SELECT 1"]).await;
    assert!(rows(&tables[0])[0].starts_with("TLSv1"), "{:?}", tables[0]);
    let found = &rows(&tables[1])[0];
    assert!(found.starts_with("2000000|xxx") && found.len() == 3_000_008);
    assert_eq!(rows(&tables[2]), ["1"]);
    secure.user = "certified".into();
    let text = refusal(&request(&secure, &["SELECT 1"])).await;
    assert!(text.contains("certificate"), "{text}");
    ask(server, &["CREATE USER certified"]).await;
    secure.tls = Some(known(&running.certificates));
    assert_eq!(
        rows(&ask(&secure, &["SELECT current_user"]).await[0]),
        ["certified"]
    );
    let other = Certificates::make();
    secure.tls = Some(Tls::of(other.path("ca.pem")));
    let text = refusal(&request(&secure, &["SELECT 1"])).await;
    assert!(text.contains(": invalid peer certificate"), "{text}");
}
