//! Mirrors and tarballs of servers that work.

use std::collections::BTreeMap;
use std::fs;

use assay::package::{Network, Origin, PackageError, Proxy};
use serde_json::json;

use super::made::{Made, Shelf, TIKV, network, noise, program, sha256, wanted};
use super::server::{Fault, Server};

#[tokio::test]
async fn a_package_of_a_mirror_is_checked_unpacked_and_recorded() {
    let made = Made::with_tikv();
    let tarball = &made.files[TIKV];
    let server = Server::new(made.files.clone()).await;
    let shelf = Shelf::new();
    let with_password = server.url.replace("http://", "http://me:secret@");
    let origin = Origin::Mirror(with_password);
    let package = shelf.tikv(&origin).await.unwrap();
    assert_eq!(
        (package.component.as_str(), package.version.as_str()),
        ("tikv", "v6.1.2")
    );
    assert_eq!(package.platform, "linux/amd64");
    assert_eq!(package.sha256, sha256(tarball));
    assert_eq!(package.origin, format!("{}/{TIKV}", server.url));
    assert!(package.verified);
    assert!(package.folder.ends_with(&package.sha256));
    assert_eq!(
        fs::read(package.folder.join("tikv-server")).unwrap(),
        noise(1, 300_000)
    );
    assert_eq!(shelf.names(), [package.sha256.as_str()]);
    let asked = server.asked(TIKV);
    assert_eq!(asked[0].headers["authorization"], "Basic bWU6c2VjcmV0");
    let seen = shelf.seen.lock().unwrap();
    let last = seen.last().unwrap();
    assert_eq!(
        (last.file.as_str(), last.bytes, last.total),
        (TIKV, tarball.len() as u64, Some(tarball.len() as u64))
    );
    assert!(seen.windows(2).all(|two| two[0].bytes < two[1].bytes));
}

#[tokio::test]
async fn what_is_in_the_store_is_not_downloaded_again() {
    let server = Server::new(Made::with_tikv().files).await;
    let shelf = Shelf::new();
    let origin = Origin::Mirror(format!("{}/", server.url));
    let first = shelf.tikv(&origin).await.unwrap();
    let second = shelf.tikv(&origin).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(server.asked(TIKV).len(), 1);
}

#[tokio::test]
async fn two_at_once_download_it_once() {
    let server = Server::new(Made::with_tikv().files).await;
    let shelf = Shelf::new();
    let origin = Origin::Mirror(server.url.clone());
    let (first, second) = tokio::join!(shelf.tikv(&origin), shelf.tikv(&origin));
    assert_eq!(first.unwrap(), second.unwrap());
    assert_eq!(server.asked(TIKV).len(), 1);
}

#[tokio::test]
async fn nightly_is_the_newest_daily_build() {
    let mut made = Made::default();
    let version = "v8.5.0-alpha-nightly-20240101";
    made.add("pd", version, "linux/amd64", program("pd-server", b"x"));
    made.change("pd", "/signed/nightly", json!(version));
    let server = Server::new(made.files).await;
    let shelf = Shelf::new();
    let origin = Origin::Mirror(server.url.clone());
    let package = shelf
        .obtain(&origin, &wanted("pd", "nightly"))
        .await
        .unwrap();
    assert_eq!(package.version, version);
}

#[tokio::test]
async fn what_a_mirror_lacks_is_told_with_what_it_has() {
    let mut made = Made::with_tikv();
    made.add(
        "tikv",
        "v6.5.0",
        "linux/arm64",
        program("tikv-server", b"x"),
    );
    made.change(
        "tikv",
        "/signed/platforms/linux~1amd64/v6.1.2/yanked",
        json!(true),
    );
    made.add(
        "tikv",
        "v6.1.1",
        "linux/amd64",
        program("tikv-server", b"y"),
    );
    let server = Server::new(made.files).await;
    let shelf = Shelf::new();
    let origin = Origin::Mirror(server.url.clone());
    for (component, version, message) in [
        (
            "tkv",
            "v6.1.1",
            "`URL/` has no component `tkv`; the closest is `tikv`",
        ),
        (
            "tikv",
            "v6.1.7",
            "`URL/` has no version `v6.1.7` of `tikv`; the closest is `v6.1.1`",
        ),
        (
            "tikv",
            "v6.5.0",
            "`tikv` v6.5.0 is not for linux/amd64; there is `linux/arm64`",
        ),
        (
            "tikv",
            "v6.1.2",
            "`URL/` has withdrawn `tikv` v6.1.2: its manifest says that it is yanked",
        ),
        ("../tikv", "v6.1.2", "`../tikv` is no name of a component"),
    ] {
        let error = shelf
            .obtain(&origin, &wanted(component, version))
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), message.replace("URL", &server.url));
    }
}

#[tokio::test]
async fn a_mirror_without_manifests_has_tarballs_by_name_that_nothing_verifies() {
    let mut made = Made::with_tikv();
    made.add("rules", "v1.0.0", "any/any", program("rules.yml", b"x"));
    let server = Server::new(made.flat().files).await;
    let shelf = Shelf::new();
    let origin = Origin::Mirror(server.url.clone());
    let package = shelf.tikv(&origin).await.unwrap();
    assert!(!package.verified);
    assert_eq!(shelf.tikv(&origin).await.unwrap(), package);
    let asked = server.asked(TIKV);
    assert_eq!(asked.len(), 2);
    // The second time, it is only asked whether it is still the same.
    assert_eq!(asked[1].headers["if-none-match"], "\"1\"");
    let any = shelf
        .obtain(&origin, &wanted("rules", "v1.0.0"))
        .await
        .unwrap();
    assert_eq!(any.platform, "any/any");
    let error = shelf
        .obtain(&origin, &wanted("tikv", "v9.9.9"))
        .await
        .unwrap_err();
    let url = format!("{}/tikv-v9.9.9-linux-amd64.tar.gz", server.url);
    assert_eq!(error.to_string(), format!("there is no `{url}`"));
}

#[tokio::test]
async fn a_tarball_by_url_is_replaced_when_it_changes_there() {
    let files = BTreeMap::from([("tikv.tar.gz".to_owned(), program("tikv-server", b"one"))]);
    let server = Server::new(files).await;
    let shelf = Shelf::new();
    let origin = Origin::Tarball(format!("{}/a/tikv.tar.gz?token=secret", server.url));
    let first = shelf.tikv(&origin).await.unwrap();
    assert_eq!(first.origin, format!("{}/a/tikv.tar.gz?...", server.url));
    {
        let mut state = server.state.lock().unwrap();
        state.etag = Some("\"2\"".to_owned());
        state
            .files
            .insert("tikv.tar.gz".to_owned(), program("tikv-server", b"two"));
    }
    let second = shelf.tikv(&origin).await.unwrap();
    assert_eq!(fs::read(first.folder.join("tikv-server")).unwrap(), b"one");
    assert_eq!(fs::read(second.folder.join("tikv-server")).unwrap(), b"two");
}

#[tokio::test]
async fn a_redirect_is_followed() {
    let made = Made::with_tikv();
    let other = Server::new(made.files.clone()).await;
    let server = Server::new(made.files).await;
    server.fails(TIKV, [Fault::Redirect(format!("{}/cdn/{TIKV}", other.url))]);
    let shelf = Shelf::new();
    let package = shelf
        .tikv(&Origin::Mirror(server.url.clone()))
        .await
        .unwrap();
    assert_eq!(package.origin, format!("{}/{TIKV}", server.url));
    assert_eq!(other.asked(TIKV).len(), 1);
}

#[tokio::test]
async fn a_proxy_is_asked_instead_of_the_server() {
    let proxy = Server::new(Made::with_tikv().files).await;
    let shelf = Shelf::with(Network {
        proxy: Proxy::At(proxy.url.clone()),
        ..network(0)
    });
    let origin = Origin::Mirror("http://mirror.invalid/tidb".to_owned());
    let package = shelf.tikv(&origin).await.unwrap();
    assert_eq!(package.origin, format!("http://mirror.invalid/tidb/{TIKV}"));
    let asked = proxy.asked(TIKV);
    assert_eq!(
        asked[0].target,
        format!("http://mirror.invalid/tidb/{TIKV}")
    );
}

#[tokio::test]
async fn without_the_server_what_was_obtained_before_is_used_but_no_daily_build() {
    let mut made = Made::with_tikv();
    made.change("tikv", "/signed/nightly", json!("v6.1.2"));
    let server = Server::new(made.files).await;
    let shelf = Shelf::new();
    let origin = Origin::Mirror(server.url.clone());
    let package = shelf.tikv(&origin).await.unwrap();
    let nightly = wanted("tikv", "nightly");
    shelf.obtain(&origin, &nightly).await.unwrap();
    server.fails("snapshot.json", vec![Fault::Close; 20]);
    assert_eq!(shelf.tikv(&origin).await.unwrap(), package);
    let error = shelf.obtain(&origin, &nightly).await.unwrap_err();
    assert!(matches!(error, PackageError::Unreachable { .. }), "{error}");
    let hint = error.hint().unwrap();
    assert!(
        hint.contains(&format!(
            "download {}/snapshot.json where it can be reached",
            server.url
        )),
        "{hint}"
    );
}
