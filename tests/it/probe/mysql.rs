//! SQL over MySQL's protocol, of a real MariaDB.

use assay::probe::{Address, Protocol, Server, Tls};
use serde_json::json;

use super::certificates::Certificates;
use super::server::{Running, mariadb};
use super::{LONG, PASSWORD, SHORT, ask, known, on_port, refusal, request, rows, wait};
use crate::support::skipped;

#[tokio::test]
async fn mariadb_is_asked_anything_over_its_port_its_socket_and_tls() {
    let running = match mariadb() {
        Ok(running) => running,
        Err(why) => return skipped(&why),
    };
    let server = on_port(Protocol::Mysql, running.port);
    running.answers(&server).await;
    values_come_as_texts(&server).await;
    of_several_results_the_first_counts(&server).await;
    failures_keep_what_the_server_says(&server).await;
    the_socket_and_a_database(&running, &server).await;
    encryption(&running, &server).await;
    rows_are_waited_for(&server).await;
}

async fn rows_are_waited_for(server: &Server) {
    let check = |statement: &str| {
        let condition = json!({"pointer": "/*/0", "is": {"at_least": 1}});
        json!({"sql": {"request": request(server, &["DO 0", statement]), "conditions": [condition]}})
    };
    let (outcome, told) = wait(check("SELECT 1 UNION SELECT 2"), LONG).await;
    assert_eq!((outcome, told.len()), (Ok(()), 0));
    let (outcome, told) = wait(check("SELECT '7' UNION SELECT NULL"), SHORT).await;
    let found = "/1/0 is null, wanted at least 1";
    assert_eq!(told, [found]);
    let wanted = format!("`SELECT '7' UNION SELECT NULL` on {server}: every /*/0 is at least 1");
    assert_eq!(
        outcome.unwrap_err(),
        format!("{wanted}: not within 2s; last: {found}")
    );
    let mut wrong = server.clone();
    wrong.password = Some("wrong-password".into());
    let check = json!({"sql": {"request": request(&wrong, &["SELECT 1"])}});
    let text = wait(check, SHORT).await.0.unwrap_err();
    assert!(
        text.contains(": succeeds: not within 2s; last: 1045 (28000)"),
        "{text}"
    );
}

async fn values_come_as_texts(server: &Server) {
    let statements = [
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE t (id INT, name VARCHAR(20) CHARACTER SET utf8mb4, raw VARBINARY(4), f DOUBLE, at DATETIME(6), d DECIMAL(20,2))",
        "INSERT INTO t VALUES (1, 'größer 🦀', x'00FF10', 0.1, '2026-03-01 10:00:00.5', 12345678901234567.89), (2, '', '', NULL, NULL, NULL)",
        "SELECT * FROM t ORDER BY id",
        "SELECT 1 AS `ein s` FROM t WHERE false",
    ];
    let tables = ask(server, &statements).await;
    assert_eq!(tables.len(), statements.len());
    assert!(tables[3].columns.is_empty() && tables[3].rows.is_empty());
    assert_eq!(tables[4].columns, ["id", "name", "raw", "f", "at", "d"]);
    let expected = [
        "1|größer 🦀|0x00FF10|0.1|2026-03-01 10:00:00.500000|12345678901234567.89",
        "2|||-|-|-",
    ];
    assert_eq!(rows(&tables[4]), expected);
    assert_eq!(tables[5].columns, ["ein s"]);
    assert!(tables[5].rows.is_empty());
}

async fn of_several_results_the_first_counts(server: &Server) {
    let tables = ask(
        server,
        &["SELECT 1; SELECT 2, 3", "DO 0; SELECT 2", "SELECT 4"],
    )
    .await;
    let all: Vec<_> = tables.iter().map(rows).collect();
    assert_eq!(all, [vec!["1".to_owned()], vec![], vec!["4".to_owned()]]);
    let text = refusal(&request(server, &["SELECT 1; SELECT nothing"])).await;
    assert!(
        text.contains("1054 (42S22): Unknown column 'nothing'"),
        "{text}"
    );
}

async fn failures_keep_what_the_server_says(server: &Server) {
    let at = format!("mysql at 127.0.0.1:{}", server_port(server));
    let text = refusal(&request(
        server,
        &["SELECT 1", "SELECT * FROM d.nil", "SELECT 2"],
    ))
    .await;
    let said = "1146 (42S02): Table 'd.nil' doesn't exist";
    assert_eq!(text, format!("statement 2 of 3 failed at {at}: {said}"));
    // The server quotes what it does not understand.
    let text = refusal(&request(server, &[&format!("SELEKT '{PASSWORD}'")])).await;
    assert!(
        text.contains("1064 (42000)") && text.contains("'***'"),
        "{text}"
    );
    let mut slow = request(server, &["SELECT SLEEP(600)"]);
    slow.timeout = SHORT;
    let expected = format!("statement 1 of 1 failed at {at}: no answer within 2s");
    assert_eq!(refusal(&slow).await, expected);
    for password in [Some("wrong-password"), None] {
        let mut wrong = server.clone();
        wrong.password = password.map(Into::into);
        let text = refusal(&request(&wrong, &["SELECT 1"])).await;
        let expected = format!(
            "cannot connect to {at}: 1045 (28000): Access denied for user 'probe'@'127.0.0.1'"
        );
        assert!(text.starts_with(&expected), "{text}");
        assert!(!text.contains("wrong-password"));
    }
    let mut nowhere = server.clone();
    nowhere.database = Some("nil".into());
    let text = refusal(&request(&nowhere, &["SELECT 1"])).await;
    assert!(
        text.ends_with("1049 (42000): Unknown database 'nil'"),
        "{text}"
    );
}

fn server_port(server: &Server) -> u16 {
    match server.address {
        Address::Tcp { port, .. } => port,
        Address::Socket(_) => panic!("{server} has no port"),
    }
}

async fn the_socket_and_a_database(running: &Running, server: &Server) {
    let mut local = server.clone();
    local.address = Address::Socket(running.path("socket"));
    local.database = Some("d".into());
    let asked = ask(
        &local,
        &["SELECT DATABASE(), SUBSTRING_INDEX(USER(), '@', -1)"],
    )
    .await;
    assert_eq!(rows(&asked[0]), ["d|localhost"]);
    // A port is asked over the port, also where the server is on this host.
    let asked = ask(server, &["SELECT SUBSTRING_INDEX(USER(), '@', -1)"]).await;
    assert_eq!(rows(&asked[0]), ["127.0.0.1"]);
}

async fn encryption(running: &Running, server: &Server) {
    let cipher = "SHOW STATUS LIKE 'Ssl_version'";
    assert_eq!(rows(&ask(server, &[cipher]).await[0]), ["Ssl_version|"]);
    let mut secure = server.clone();
    secure.tls = Some(Tls::of(running.certificates.path("ca.pem")));
    let found = rows(&ask(&secure, &[cipher]).await[0]);
    assert!(found[0].starts_with("Ssl_version|TLSv1"), "{found:?}");
    secure.user = "certified".into();
    let text = refusal(&request(&secure, &["SELECT 1"])).await;
    assert!(text.contains("1045 (28000)"), "{text}");
    secure.tls = Some(known(&running.certificates));
    assert_eq!(rows(&ask(&secure, &["SELECT 1"]).await[0]), ["1"]);
    let other = Certificates::make();
    secure.tls = Some(Tls::of(other.path("ca.pem")));
    let text = refusal(&request(&secure, &["SELECT 1"])).await;
    assert!(text.contains(": invalid peer certificate"), "{text}");
}
