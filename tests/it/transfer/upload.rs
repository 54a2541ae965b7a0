//! Uploads: what appears, what is refused, what is not sent again.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use assay::host::transfer::{Fault, Source, TransferError, provide, upload};
use tempfile::TempDir;

use super::bench::{FolderHost, everything, noise, odd_tree, retrying, said, send, text};

#[tokio::test]
async fn a_tree_with_odd_names_arrives_as_it_is() {
    let (host, here) = (FolderHost::new(), TempDir::new().unwrap());
    odd_tree(here.path());
    let sent = send(&host, here.path(), "deep below/tree").await.unwrap();
    let (there, wanted) = (
        everything(&host.path("deep below/tree")),
        everything(here.path()),
    );
    assert_eq!(there, wanted);
    assert_eq!(sent.files, 8);
    assert_eq!(sent.bytes, 300_000 * 2 + 700_000 + 1 + 4 + 1 + 7);
    assert_eq!(host.names(), ["deep below"], "nothing else is left");
}

#[tokio::test]
async fn a_single_file_arrives_with_its_mode() {
    let (host, here) = (FolderHost::new(), TempDir::new().unwrap());
    let file = here.path().join("assay");
    fs::write(&file, noise(1, 1000)).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o4751)).unwrap();
    send(&host, &file, "bin/assay").await.unwrap();
    let there = host.path("bin/assay");
    assert_eq!(fs::read(&there).unwrap(), noise(1, 1000));
    let mode = fs::metadata(there).unwrap().mode() & 0o7777;
    assert_eq!(mode, 0o751, "without the set-id bit");
}

#[tokio::test]
async fn nothing_is_sent_twice() {
    let (host, here) = (FolderHost::new(), TempDir::new().unwrap());
    odd_tree(here.path());
    let first = send(&host, here.path(), "one").await.unwrap();
    // 300,000 bytes are there twice.
    assert!(first.sent > 300_000 && first.sent < 600_000, "{first:?}");
    let again = send(&host, here.path(), "two").await.unwrap();
    assert_eq!((again.sent, again.bytes), (0, first.bytes));
    assert_eq!(everything(&host.path("two")), everything(here.path()));
    let same = send(&host, here.path(), "one").await.unwrap();
    assert_eq!((same.sent, same.bytes), (0, first.bytes));
}

#[tokio::test]
async fn a_written_copy_does_not_change_the_cache() {
    let (host, here) = (FolderHost::new(), TempDir::new().unwrap());
    let file = here.path().join("conf");
    fs::write(&file, "kept").unwrap();
    send(&host, &file, "conf").await.unwrap();
    fs::write(host.path("conf"), "lost").unwrap();
    let again = send(&host, &file, "other").await.unwrap();
    assert_eq!(again.sent, 0);
    assert_eq!(fs::read(host.path("other")).unwrap(), b"kept");
}

#[tokio::test]
async fn files_that_pack_well_are_packed_and_others_are_not() {
    let (host, here) = (FolderHost::new(), TempDir::new().unwrap());
    let (log, noisy) = (here.path().join("log"), here.path().join("noise"));
    fs::write(&log, text(3_000_000)).unwrap();
    fs::write(&noisy, noise(2, 3_000_000)).unwrap();
    let packed = send(&host, &log, "log").await.unwrap();
    assert!(packed.sent < 1_000_000, "{packed:?}");
    let plain = send(&host, &noisy, "noise").await.unwrap();
    assert_eq!(plain.sent, 3_000_000);
    assert_eq!(fs::read(host.path("log")).unwrap(), text(3_000_000));
}

#[tokio::test]
async fn something_else_in_the_place_is_refused_before_anything_is_sent() {
    let (host, here) = (FolderHost::new(), TempDir::new().unwrap());
    let file = here.path().join("x");
    fs::write(&file, "new").unwrap();
    fs::create_dir_all(host.path("folder")).unwrap();
    fs::write(host.path("file"), "old").unwrap();
    symlink(host.path("file"), host.path("link")).unwrap();
    for name in ["folder", "file", "link"] {
        let said = said(send(&host, &file, name).await);
        let path = host.path(name);
        let wanted = format!(
            "cannot transfer files to or from `kv1`: `{}` exists and is something else",
            path.display()
        );
        assert_eq!(said, wanted);
    }
    assert!(host.cached().is_empty());
    assert_eq!(fs::read(host.path("file")).unwrap(), b"old");
}

#[tokio::test]
async fn a_file_is_replaced_on_request_but_a_folder_or_link_never() {
    let (host, here) = (FolderHost::new(), TempDir::new().unwrap());
    let file = here.path().join("x");
    fs::write(&file, "new").unwrap();
    fs::create_dir_all(host.path("folder")).unwrap();
    fs::write(host.path("file"), "old").unwrap();
    symlink("file", host.path("link")).unwrap();
    let source = Source::read(&file).await.unwrap();
    for (name, may) in [("folder", false), ("link", false), ("file", true)] {
        let remote = host.path(name);
        let result = upload(host.target(), &source, &remote, true, &retrying(0)).await;
        assert_eq!(result.is_ok(), may, "{name}");
    }
    assert_eq!(fs::read(host.path("file")).unwrap(), b"new");
    assert_eq!(host.names(), ["file", "folder", "link"]);
    let tree = Source::read(here.path()).await.unwrap();
    let over = upload(host.target(), &tree, &host.path("file"), true, &retrying(0)).await;
    assert!(matches!(
        over,
        Err(TransferError::OnHost {
            source: Fault::Exists { .. },
            ..
        })
    ));
}

#[tokio::test]
async fn the_marker_of_a_deployment_stays_where_it_is() {
    let (host, here) = (FolderHost::new(), TempDir::new().unwrap());
    fs::write(here.path().join(".assay-marker"), "{}").unwrap();
    fs::write(here.path().join("data"), "x").unwrap();
    send(&host, here.path(), "tree").await.unwrap();
    assert_eq!(super::bench::names(&host.path("tree")), ["data"]);
}

#[tokio::test]
async fn a_provided_file_lies_read_only_in_the_cache() {
    let (host, here) = (FolderHost::new(), TempDir::new().unwrap());
    let file = here.path().join("tidb.tar.gz");
    fs::write(&file, noise(3, 100_000)).unwrap();
    let source = Source::read(&file).await.unwrap();
    let (path, sent) = provide(host.target(), &source, &retrying(0)).await.unwrap();
    assert_eq!(sent.sent, 100_000);
    assert_eq!(fs::read(&path).unwrap(), noise(3, 100_000));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o400);
    let (again, sent) = provide(host.target(), &source, &retrying(0)).await.unwrap();
    assert_eq!((again, sent.sent), (path, 0));
    let folder = Source::read(here.path()).await.unwrap();
    let refused = provide(host.target(), &folder, &retrying(0)).await;
    assert!(matches!(
        refused,
        Err(TransferError::Here(Fault::Kind { .. }))
    ));
}

#[tokio::test]
async fn a_source_with_a_fifo_is_refused_by_its_name() {
    let here = TempDir::new().unwrap();
    let fifo = here.path().join("pipe");
    let made = std::process::Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .unwrap();
    assert!(made.success());
    let said = said(Source::read(here.path()).await.map(|source| source.files()));
    assert_eq!(
        said,
        format!("`{}` is a fifo, which is not transferred", fifo.display())
    );
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_named() {
    let (host, here) = (FolderHost::new(), TempDir::new().unwrap());
    fs::write(here.path().join("a"), "one").unwrap();
    fs::write(here.path().join("b"), "one more").unwrap();
    let source = Source::read(here.path()).await.unwrap();
    fs::write(here.path().join("b"), "another").unwrap();
    let result = upload(host.target(), &source, &host.path("x"), false, &retrying(3)).await;
    let path = here.path().join("b");
    assert_eq!(
        said(result),
        format!("`{}` changed while it was sent", path.display())
    );
    assert!(host.names().is_empty());
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_sent_is_named() {
    let (host, here) = (FolderHost::new(), TempDir::new().unwrap());
    let file = here.path().join("growing");
    fs::write(&file, noise(4, 2_000_000)).unwrap();
    let source = Source::read(&file).await.unwrap();
    let mut options = retrying(3);
    let growing = file.clone();
    options.progress = Arc::new(move |_| fs::write(&growing, noise(5, 2_000_000)).unwrap());
    let result = upload(host.target(), &source, &host.path("x"), false, &options).await;
    assert_eq!(
        said(result),
        format!("`{}` changed while it was sent", file.display())
    );
    assert!(host.names().is_empty());
}

#[tokio::test]
async fn one_reading_serves_many_hosts_and_progress_counts_every_byte() {
    let here = TempDir::new().unwrap();
    odd_tree(here.path());
    let hosts: Vec<_> = (0..5).map(|_| Arc::new(FolderHost::new())).collect();
    let source = Source::read(here.path()).await.unwrap();
    let seen = Arc::new(AtomicU64::new(0));
    let mut options = retrying(0);
    let counting = Arc::clone(&seen);
    options.progress = Arc::new(move |bytes| {
        counting.fetch_add(bytes, Ordering::Relaxed);
    });
    let source = Arc::new(source);
    let works: Vec<_> = hosts
        .iter()
        .map(|host| {
            let (host, source, options) = (Arc::clone(host), Arc::clone(&source), options.clone());
            async move { upload(host.target(), &source, &host.path("x"), false, &options).await }
        })
        .collect();
    let results = assay::host::fan_out(works, 2, |_, _| {}).await;
    for (host, result) in hosts.iter().zip(results) {
        result.unwrap();
        assert_eq!(everything(&host.path("x")), everything(here.path()));
    }
    // 300,000 bytes and one byte are there twice.
    let different = source.bytes() - 300_000;
    assert_eq!(seen.load(Ordering::Relaxed), 5 * different);
}
