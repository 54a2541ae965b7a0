//! HTTP: requests, waiting, metrics, TLS.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::Arc;

use assay::host::AgentError;
use assay::probe::{self, Answer, Http, Login, Method, Metrics, Sample, Tls};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::certificates::Certificates;
use super::{LONG, SHORT, free_port, here, known, wait};

/// A request as a server sees it: its head, and its body.
struct Seen {
    head: String,
    body: String,
}

/// Serves on a port of its own, one connection after another, until the test's process ends.
fn serve(
    tls: Option<Arc<ServerConfig>>,
    mut answer: impl FnMut(&Seen) -> (u16, String) + Send + 'static,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let socket = socket.unwrap();
            // What a client breaks off is no concern of the server's.
            let _ = match &tls {
                None => exchange(socket, &mut answer),
                Some(config) => {
                    let session = ServerConnection::new(config.clone()).unwrap();
                    exchange(StreamOwned::new(session, socket), &mut answer)
                }
            };
        }
    });
    port
}

fn exchange(
    stream: impl Read + Write,
    answer: &mut impl FnMut(&Seen) -> (u16, String),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_it = name.eq_ignore_ascii_case("content-length");
        is_it.then(|| value.trim().parse().unwrap())
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8(body).unwrap();
    let (status, text) = answer(&Seen { head, body });
    let head = format!(
        "HTTP/1.1 {status} x\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    let stream = reader.get_mut();
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())?;
    stream.flush()
}

fn get(port: u16, path: &str) -> Http {
    Http {
        timeout: LONG,
        ..Http::get(probe::url("127.0.0.1", port, path, false))
    }
}

async fn send(request: &Http) -> Result<Answer, AgentError> {
    probe::http(&here(), request, &CancellationToken::new()).await
}

async fn refusal(request: &Http) -> String {
    send(request).await.unwrap_err().to_string()
}

#[tokio::test]
async fn any_status_is_an_answer_and_its_body_is_text() {
    let port = serve(None, |seen| {
        assert!(
            seen.head.starts_with("GET /pd/api/v1/ä%20b?x=1 HTTP/1.1")
                || seen.head.contains("%C3%A4")
        );
        (404, "nicht da: ü".to_owned())
    });
    let answer = send(&get(port, "/pd/api/v1/ä b?x=1")).await.unwrap();
    assert_eq!((answer.status, &*answer.body), (404, "nicht da: ü"));
    assert!(!answer.is_success());
}

#[tokio::test]
async fn a_method_a_body_and_a_login_reach_the_server() {
    let port = serve(None, |seen| {
        (200, format!("{}{}", seen.head.to_lowercase(), seen.body))
    });
    let request = Http {
        method: Method::Post,
        body: Some(r#"{"a":"ü"}"#.to_owned()),
        login: Some(Login {
            user: "Aladdin".to_owned(),
            password: "open sesame".into(),
        }),
        ..get(port, "/config")
    };
    let body = send(&request).await.unwrap().body;
    assert!(body.starts_with("post /config http/1.1\r\n"), "{body}");
    assert!(
        body.contains("content-type: application/json\r\n"),
        "{body}"
    );
    // The example of RFC 7617.
    let login = "authorization: basic qwxhzgrpbjpvcgvuihnlc2ftzq==\r\n";
    assert!(body.contains(login), "{body}");
    assert!(body.ends_with("\r\n\r\n{\"a\":\"ü\"}"), "{body}");
    assert!(!format!("{request:?}").contains("sesame"));
}

#[tokio::test]
async fn an_answer_may_be_large_but_not_endless() {
    let port = serve(None, |seen| {
        let large = seen.head.starts_with("GET /large ");
        (
            200,
            "x".repeat(if large { 16 << 20 } else { (16 << 20) + 1 }),
        )
    });
    assert_eq!(
        send(&get(port, "/large")).await.unwrap().body.len(),
        16 << 20
    );
    let text = refusal(&get(port, "/endless")).await;
    assert!(
        text.ends_with(": the answer is longer than 16.0 MiB"),
        "{text}"
    );
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused_without_its_password() {
    for (url, why) in [
        ("nonsense", "relative URL without a base"),
        ("ftp://a/", "it is neither `http` nor `https`"),
        ("https://a/", "no certificate authority is given"),
    ] {
        let expected = format!("cannot carry out the request: `{url}`: {why}");
        assert_eq!(refusal(&Http::get(url)).await, expected);
    }
    let text = refusal(&Http::get("http://a:geheim@b/c")).await;
    let expected =
        "cannot carry out the request: `http://b/c`: a name and a password go into `login`";
    assert_eq!(text, expected);
}

#[test]
fn no_proxy_stands_between_a_host_and_its_servers() {
    let port = serve(None, |_| (200, "direct".to_owned()));
    let proxy = format!("http://127.0.0.1:{}", free_port());
    let mut agent = std::process::Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(["agent", "probe-http"])
        .env("http_proxy", &proxy)
        .env("HTTP_PROXY", &proxy)
        .env("ALL_PROXY", &proxy)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Held to the end: an agent whose input ends is one that nobody listens to any more.
    let mut input = agent.stdin.take().unwrap();
    let request = serde_json::to_string(&get(port, "/")).unwrap();
    writeln!(input, "{request}").unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(agent.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    assert!(agent.wait().unwrap().success());
    let reply: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(reply, json!({"done": {"status": 200, "body": "direct"}}));
}

#[tokio::test]
async fn a_request_that_the_agent_does_not_know_is_refused() {
    let request = json!({"url": "http://a/", "tls": null, "metod": "GET"});
    let stop = CancellationToken::new();
    let bounds = assay::host::Bounds {
        limit: LONG.0,
        stop: &stop,
    };
    let asked: Result<Answer, AgentError> =
        assay::host::ask(&here(), "probe-http", &request, bounds).await;
    let text = asked.unwrap_err().to_string();
    let expected = "cannot understand the request to `probe-http`: unknown field `metod`";
    assert!(text.starts_with(expected), "{text}");
    let asked: Result<Answer, AgentError> =
        assay::host::ask(&here(), "probe-x", &request, bounds).await;
    assert_eq!(
        asked.unwrap_err().to_string(),
        "there is no agent `probe-x`"
    );
}

/// How a server proves what it is, and whether it wants that of its clients.
fn secured(certificates: &Certificates, wants_clients: bool) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let read = |name: &str| CertificateDer::from_pem_file(certificates.path(name)).unwrap();
    let key = PrivateKeyDer::from_pem_file(certificates.path("server.key")).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(read("ca.pem")).unwrap();
    let clients = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = if wants_clients {
        builder.with_client_cert_verifier(clients.build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let chain = vec![read("server.pem")];
    Arc::new(builder.with_single_cert(chain, key).unwrap())
}

#[tokio::test]
async fn tls_wants_the_right_authority_name_and_client() {
    let certificates = Certificates::make();
    let open = serve(Some(secured(&certificates, false)), |_| {
        (200, "open".into())
    });
    let closed = serve(Some(secured(&certificates, true)), |_| {
        (200, "closed".into())
    });
    let ask = async |host: &str, port: u16, tls: Tls| {
        let request = Http {
            tls: Some(tls),
            timeout: LONG,
            ..Http::get(probe::url(host, port, "/", true))
        };
        let answer = send(&request).await;
        answer.map(|answer| answer.body).map_err(|e| e.to_string())
    };
    let stranger = Tls::of(certificates.path("ca.pem"));
    assert_eq!(
        ask("127.0.0.1", open, stranger.clone()).await.unwrap(),
        "open"
    );
    assert_eq!(
        ask("127.0.0.1", closed, known(&certificates))
            .await
            .unwrap(),
        "closed"
    );
    let text = ask("127.0.0.1", closed, stranger.clone())
        .await
        .unwrap_err();
    assert!(text.contains("CertificateRequired"), "{text}");
    let text = ask("localhost", open, stranger).await.unwrap_err();
    assert!(text.contains("certificate not valid for name"), "{text}");
    let other = Certificates::make();
    let text = ask("127.0.0.1", open, Tls::of(other.path("ca.pem")))
        .await
        .unwrap_err();
    assert!(text.contains(": invalid peer certificate"), "{text}");
}

#[tokio::test]
async fn waiting_tells_each_new_reason_and_ends_when_all_is_well() {
    // As PD does: first not ready at all, then with a member that is not healthy yet.
    let mut answers = 0;
    let port = serve(None, move |_| {
        answers += 1;
        match answers {
            1 | 2 => (503, "starting".to_owned()),
            3 => (200, r#"[{"health": true}, {"health": false}]"#.to_owned()),
            _ => (200, r#"[{"health": true}, {"health": true}]"#.to_owned()),
        }
    });
    let health = json!({"pointer": "/*/health", "is": {"equals": true}});
    let check = json!({"http": {"request": get(port, "/"), "conditions": [health]}});
    let (outcome, told) = wait(check, LONG).await;
    assert_eq!(outcome, Ok(()));
    let expected = [
        "status 503, wanted success",
        "/1/health is false, wanted true",
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn at_the_limit_what_was_wanted_and_what_was_found_are_told() {
    let port = serve(None, |_| (200, r#"{"count": 3}"#.to_owned()));
    let condition = json!({"pointer": "/count", "is": {"below": 1}});
    let check = json!({"http": {"request": get(port, "/regions"), "conditions": [condition]}});
    let (outcome, _) = wait(check, SHORT).await;
    let expected = format!(
        "`http://127.0.0.1:{port}/regions`: /count is below 1: not within 2s; last: /count is 3, wanted below 1"
    );
    assert_eq!(outcome.unwrap_err(), expected);
}

#[tokio::test]
async fn a_port_is_waited_for_until_somebody_listens_or_the_limit_passes() {
    let absent = free_port();
    let check = |port: u16| json!({"listening": {"host": "127.0.0.1", "port": port}});
    let (outcome, told) = wait(check(absent), SHORT).await;
    let expected = format!(
        "`127.0.0.1:{absent}`: accepts connections: not within 2s; last: connection refused"
    );
    assert_eq!(
        (outcome.unwrap_err(), &*told),
        (expected, &["connection refused".to_owned()][..])
    );
    let (_listener, port) = super::mute();
    assert_eq!(wait(check(port), LONG).await.0, Ok(()));
}

#[tokio::test]
async fn what_can_never_be_is_not_waited_for() {
    let (outcome, told) = wait(json!({"command": {"program": "/nowhere/x"}}), LONG).await;
    let expected = "cannot run `/nowhere/x`: No such file or directory (os error 2)";
    assert_eq!(outcome.unwrap_err(), expected);
    assert!(told.is_empty());
}

#[tokio::test]
async fn metrics_are_picked_by_name() {
    let port = serve(None, |seen| match seen.head.starts_with("GET /metrics ") {
        true => (200, "a{b=\"c\"} 1\nab 2\nx 3\nx{y=\"\"} +Inf\n".to_owned()),
        false => (200, "x nothing".to_owned()),
    });
    let request = |path: &str| Metrics {
        url: probe::url("127.0.0.1", port, path, false),
        names: vec!["a".to_owned(), "x".to_owned()],
        tls: None,
        timeout: LONG,
    };
    let stop = CancellationToken::new();
    let found = probe::metrics(&here(), &request("/metrics"), &stop)
        .await
        .unwrap();
    let shown = |s: &Sample| format!("{} {:?} {}", s.name, s.labels, s.value);
    let expected = [r#"a {"b": "c"} 1"#, "x {} 3", r#"x {"y": ""} inf"#];
    assert_eq!(found.iter().map(shown).collect::<Vec<_>>(), expected);
    let broken = probe::metrics(&here(), &request("/other"), &stop).await;
    let expected =
        format!("line 1 of `http://127.0.0.1:{port}/other` is no metric: no number as its value");
    assert_eq!(broken.unwrap_err().to_string(), expected);
}
