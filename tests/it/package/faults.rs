//! Servers that break off, stall or send what is wrong.

use std::sync::Arc;
use std::time::Duration;

use assay::package::{Origin, PackageError};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use super::made::{Made, Shelf, TIKV, network, noise, program, sha256, whole};
use super::server::{Fault, Server};

fn at(server: &Server) -> Origin {
    Origin::Mirror(server.url.clone())
}

#[tokio::test]
async fn a_download_goes_on_where_it_broke_off() {
    let made = Made::with_tikv();
    let server = Server::new(made.files.clone()).await;
    server.fails(
        TIKV,
        [Fault::Cut(100_000), Fault::Close, Fault::Cut(50_000)],
    );
    let shelf = Shelf::new();
    let package = shelf.tikv(&at(&server)).await.unwrap();
    assert_eq!(package.sha256, sha256(&made.files[TIKV]));
    let from = |bytes: u64| Some(format!("bytes={bytes}-"));
    assert_eq!(
        server.ranges(TIKV),
        [None, from(100_000), from(100_000), from(150_000)]
    );
    assert_eq!(server.asked(TIKV)[1].headers["if-range"], "\"1\"");
}

#[tokio::test]
async fn a_later_attempt_goes_on_as_well() {
    let server = Server::new(Made::with_tikv().files).await;
    server.fails(TIKV, [Fault::Cut(100_000)]);
    let shelf = Shelf::with(network(0));
    let error = shelf.tikv(&at(&server)).await.unwrap_err();
    let url = format!("{}/{TIKV}", server.url);
    assert_eq!(error.to_string(), format!("cannot download {url}"));
    assert!(error.hint().unwrap().contains(&format!(
        "download {url} where it can be reached and give its path"
    )));
    shelf.tikv(&at(&server)).await.unwrap();
    assert_eq!(
        server.ranges(TIKV),
        [None, Some("bytes=100000-".to_owned())]
    );
}

#[tokio::test]
async fn a_server_that_ignores_ranges_sends_all_again() {
    let server = Server::new(Made::with_tikv().files).await;
    server.fails(
        TIKV,
        [
            Fault::Cut(100_000),
            Fault::WholeThenCut(150_000),
            Fault::WholeThenCut(usize::MAX),
        ],
    );
    let shelf = Shelf::new();
    shelf.tikv(&at(&server)).await.unwrap();
    assert_eq!(server.asked(TIKV).len(), 3);
}

#[tokio::test]
async fn a_file_that_changes_meanwhile_is_downloaded_anew() {
    // With a tag the server sees it; without one the sum shows it, since the manifest is that of the new one.
    for etag in [Some("\"2\""), None] {
        let old = Made::with_tikv();
        let mut new = Made::default();
        new.add(
            "tikv",
            "v6.1.2",
            "linux/amd64",
            program("tikv-server", &noise(2, 300_000)),
        );
        let mut files = new.files.clone();
        files.insert(TIKV.to_owned(), old.files[TIKV].clone());
        let server = Server::new(files).await;
        server.state.lock().unwrap().etag = etag.map(|_| "\"1\"".to_owned());
        server.fails(TIKV, [Fault::Cut(100_000)]);
        let shelf = Shelf::with(network(0));
        shelf.tikv(&at(&server)).await.unwrap_err();
        {
            let mut state = server.state.lock().unwrap();
            state.files = new.files.clone();
            state.etag = etag.map(str::to_owned);
        }
        let package = shelf.tikv(&at(&server)).await.unwrap();
        assert_eq!(package.sha256, sha256(&new.files[TIKV]));
    }
}

#[tokio::test]
async fn without_a_sum_and_a_tag_nothing_is_gone_on_with() {
    let server = Server::new(Made::with_tikv().flat().files).await;
    server.state.lock().unwrap().etag = None;
    server.fails(TIKV, [Fault::Cut(100_000)]);
    let shelf = Shelf::new();
    shelf.tikv(&at(&server)).await.unwrap();
    assert_eq!(server.ranges(TIKV), [None, None]);
}

#[tokio::test]
async fn a_wrong_sum_or_length_is_an_error_that_leaves_nothing() {
    let wrong_sum = json!("ab".repeat(32));
    for (key, value, message) in [
        (
            "hashes/sha256",
            wrong_sum,
            "has the sha256 FOUND, but the mirror's manifest says abab",
        ),
        (
            "length",
            json!(5),
            "has LENGTH bytes, but the mirror's manifest says 5",
        ),
        (
            "length",
            json!(5_000_000),
            "has LENGTH bytes, but the mirror's manifest says 5000000",
        ),
    ] {
        let mut made = Made::with_tikv();
        made.change(
            "tikv",
            &format!("/signed/platforms/linux~1amd64/v6.1.2/{key}"),
            value,
        );
        let server = Server::new(made.files.clone()).await;
        let shelf = Shelf::new();
        let error = shelf.tikv(&at(&server)).await.unwrap_err().to_string();
        let tarball = &made.files[TIKV];
        let message = message
            .replace("FOUND", &sha256(tarball))
            .replace("LENGTH", &tarball.len().to_string());
        assert!(error.contains(&message), "{error}");
        assert_eq!(server.asked(TIKV).len(), 1);
        assert_eq!(shelf.names(), [""; 0]);
    }
}

#[tokio::test]
async fn a_busy_server_is_asked_again_and_one_that_refuses_is_not() {
    let server = Server::new(Made::with_tikv().files).await;
    server.fails("snapshot.json", [Fault::Status(503), Fault::Close]);
    server.fails(TIKV, [Fault::Status(503), Fault::Status(429)]);
    let shelf = Shelf::new();
    shelf.tikv(&at(&server)).await.unwrap();
    assert_eq!(server.asked(TIKV).len(), 3);
    server.fails("7.tikv.json", [Fault::Status(403)]);
    let error = shelf.tikv(&at(&server)).await.unwrap_err();
    let text = format!(
        "cannot download {}/7.tikv.json: the server says 403 Forbidden",
        server.url
    );
    assert_eq!(error.to_string(), text);
    assert_eq!(server.asked("7.tikv.json").len(), 2);
}

#[tokio::test]
async fn a_server_that_sends_nothing_more_is_given_up_within_its_limit() {
    let server = Server::new(Made::with_tikv().files).await;
    server.fails(TIKV, [Fault::Stall(1000)]);
    server.fails(TIKV, vec![Fault::Stall(0); 5]);
    let mut shelf = Shelf::with(network(2));
    shelf.watch.stall = Duration::from_millis(500);
    let error = shelf.tikv(&at(&server)).await.unwrap_err();
    let url = format!("{}/{TIKV}", server.url);
    assert_eq!(
        error.to_string(),
        format!("cannot download {url}: no byte came for 500ms")
    );
}

#[tokio::test]
async fn a_download_is_stopped_on_request_and_gone_on_with_later() {
    let server = Server::new(Made::with_tikv().files).await;
    server.fails(TIKV, [Fault::Stall(100_000)]);
    let mut shelf = Shelf::new();
    let stop = shelf.watch.stop.clone();
    shelf.watch.progress = Arc::new(move |at| {
        if at.bytes == 100_000 {
            stop.cancel();
        }
    });
    let error = shelf.tikv(&at(&server)).await.unwrap_err();
    assert!(matches!(error, PackageError::Stopped), "{error}");
    shelf.watch.stop = tokio_util::sync::CancellationToken::new();
    shelf.tikv(&at(&server)).await.unwrap();
    assert_eq!(
        server.ranges(TIKV),
        [None, Some("bytes=100000-".to_owned())]
    );
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_told_without_its_password() {
    let shelf = Shelf::with(network(1));
    let origin = Origin::Mirror("http://me:secret@127.0.0.1:1/m?key=secret".to_owned());
    let error = shelf.tikv(&origin).await.unwrap_err();
    let text = whole(&error);
    assert!(
        text.starts_with("cannot download http://127.0.0.1:1/m/snapshot.json?...: "),
        "{text}"
    );
    assert!(!text.contains("secret"), "{text}");
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}

#[tokio::test]
async fn a_manifest_that_is_none_or_leads_elsewhere_is_named() {
    let mut made = Made::with_tikv();
    made.change(
        "tikv",
        "/signed/platforms/linux~1amd64/v6.1.2/url",
        json!("/../../secret"),
    );
    let server = Server::new(made.files).await;
    let shelf = Shelf::new();
    let text = whole(&shelf.tikv(&at(&server)).await.unwrap_err());
    assert_eq!(
        text,
        format!(
            "cannot read the manifest `{}/7.tikv.json`: `/../../secret` leads outside",
            server.url
        )
    );
    server
        .state
        .lock()
        .unwrap()
        .files
        .insert("snapshot.json".to_owned(), b"<html>".to_vec());
    let text = whole(&shelf.tikv(&at(&server)).await.unwrap_err());
    assert!(
        text.starts_with(&format!(
            "cannot read the manifest `{}/snapshot.json`: ",
            server.url
        )),
        "{text}"
    );
}

#[tokio::test]
async fn tls_that_fails_is_not_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = Origin::Mirror(format!("https://{}", listener.local_addr().unwrap()));
    let count = tokio::spawn(async move {
        for count in 1.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                .await
                .unwrap();
            assert_eq!(count, 1);
        }
    });
    let error = Shelf::new().tikv(&origin).await.unwrap_err();
    // A machine without certificates is told at once.
    let is_told = matches!(
        error,
        PackageError::Unreachable { .. } | PackageError::Client { .. }
    );
    assert!(is_told, "{error}");
    assert!(!count.is_finished());
    count.abort();
}
