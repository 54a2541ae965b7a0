//! Downloads: what appears, what is refused, connections that are cut, files that change.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use assay::host::transfer::download;
use tempfile::TempDir;

use super::bench::{
    Cut, FolderHost, everything, names, noise, odd_tree, receive, retrying, said, text,
};

/// Bytes beside the contents.
const WORDS: u64 = 4096;

fn after(received: u64) -> Cut {
    Cut {
        sent: None,
        received: Some(received),
    }
}

#[tokio::test]
async fn a_tree_with_odd_names_comes_as_it_is() {
    let (host, here) = (FolderHost::new(), TempDir::new().unwrap());
    odd_tree(&host.path("tree"));
    let local = here.path().join("deep/below");
    let received = receive(&host, "tree", &local).await.unwrap();
    let mut wanted = everything(&host.path("tree"));
    // Its owner may always enter, read and remove what was downloaded.
    wanted.get_mut(Path::new("empty folder")).unwrap().0 |= 0o700;
    assert_eq!(everything(&local), wanted);
    assert_eq!((received.files, received.bytes), (8, 1_300_013));
    assert_eq!(names(&here.path().join("deep")), ["below"]);
}

#[tokio::test]
async fn a_single_file_comes_and_nothing_of_the_host_changes() {
    let (host, here) = (FolderHost::new(), TempDir::new().unwrap());
    fs::create_dir_all(&host.root).unwrap();
    fs::write(host.path("log"), text(1_000_000)).unwrap();
    receive(&host, "log", &here.path().join("log"))
        .await
        .unwrap();
    assert_eq!(fs::read(here.path().join("log")).unwrap(), text(1_000_000));
    assert!(host.wire().1 < 500_000, "it was packed: {}", host.wire().1);
    assert_eq!(host.names(), ["log"]);
}

#[tokio::test]
async fn a_marker_stays_behind_but_only_at_the_top() {
    let (host, here) = (FolderHost::new(), TempDir::new().unwrap());
    fs::create_dir_all(host.path("tree/a")).unwrap();
    fs::write(host.path("tree/.assay-marker"), "{}").unwrap();
    fs::write(host.path("tree/a/.assay-marker"), "x").unwrap();
    let local = here.path().join("tree");
    receive(&host, "tree", &local).await.unwrap();
    assert_eq!(names(&local), ["a"]);
    assert_eq!(fs::read(local.join("a/.assay-marker")).unwrap(), b"x");
}

#[tokio::test]
async fn a_link_in_its_place_a_fifo_and_nothing_at_all_are_refused() {
    let (host, here) = (FolderHost::new(), TempDir::new().unwrap());
    fs::create_dir_all(host.path("tree")).unwrap();
    symlink("tree", host.path("link")).unwrap();
    let fifo = host.path("tree/pipe");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let local = here.path().join("x");
    for (name, why) in [
        ("link", "is a symbolic link, which is not transferred"),
        ("tree", "is a fifo, which is not transferred"),
        ("none", "No such file or directory"),
    ] {
        let said = said(receive(&host, name, &local).await);
        assert!(said.contains(why), "{said}");
        assert!(said.contains("`kv1`"), "{said}");
    }
    assert!(names(here.path()).is_empty());
}

#[tokio::test]
async fn what_exists_here_is_left_alone() {
    let (host, here) = (FolderHost::new(), TempDir::new().unwrap());
    odd_tree(&host.path("tree"));
    let local = here.path().join("x");
    symlink("nowhere", &local).unwrap();
    let said = said(receive(&host, "tree", &local).await);
    assert_eq!(
        said,
        format!("`{}` exists and is something else", local.display())
    );
    assert_eq!(names(here.path()), ["x"]);
}

#[tokio::test]
async fn a_download_that_is_cut_anywhere_goes_on_from_there() {
    for content in [noise(1, 500_000), text(900_000)] {
        let whole = {
            let (host, here) = (FolderHost::new(), TempDir::new().unwrap());
            fs::create_dir_all(&host.root).unwrap();
            fs::write(host.path("x"), &content).unwrap();
            receive(&host, "x", &here.path().join("x")).await.unwrap();
            host.wire().1
        };
        let cuts = (0..500)
            .step_by(61)
            .chain((1000..whole - 200).step_by(41_111));
        // The list's length depends on the digits of times.
        for cut in cuts.chain([whole - 200]) {
            let host = FolderHost::cutting([after(cut)]);
            fs::create_dir_all(&host.root).unwrap();
            fs::write(host.path("x"), &content).unwrap();
            let here = TempDir::new().unwrap();
            let local = here.path().join("x");
            download(host.target(), &host.path("x"), &local, &retrying(1))
                .await
                .unwrap();
            assert_eq!(fs::read(&local).unwrap(), content, "{cut}");
            assert_eq!(host.opened(), 2, "{cut}");
            // A block of zstd at the most is lost, and a stream begins again without what the first one learnt.
            let came = host.wire().1;
            assert!(
                came <= whole + (128 << 10) + WORDS,
                "cut after {cut}: {came} of {whole}"
            );
        }
    }
}

#[tokio::test]
async fn a_tree_comes_over_many_cut_connections() {
    let host = FolderHost::cutting([400_000, 200_000, 300_000, 100].map(after));
    let here = TempDir::new().unwrap();
    odd_tree(&host.path("tree"));
    let local = here.path().join("tree");
    download(host.target(), &host.path("tree"), &local, &retrying(1))
        .await
        .unwrap();
    let contents = |root: &Path| {
        let all = everything(root).into_iter();
        all.map(|(path, (_, content))| (path, content))
            .collect::<Vec<_>>()
    };
    assert_eq!(contents(&local), contents(&host.path("tree")));
}

#[tokio::test]
async fn nothing_is_left_when_it_gives_up() {
    let host = FolderHost::cutting([after(100_000), after(10), after(10)]);
    let here = TempDir::new().unwrap();
    fs::create_dir_all(&host.root).unwrap();
    fs::write(host.path("x"), noise(1, 300_000)).unwrap();
    let local = here.path().join("x");
    let result = download(host.target(), &host.path("x"), &local, &retrying(1)).await;
    assert!(result.unwrap_err().is_repeatable());
    assert_eq!(host.opened(), 3);
    assert!(names(here.path()).is_empty());
}

/// A host whose file is changed before the second connection.
fn changing(content: &[u8], change: impl Fn(&Path) + Send + Sync + 'static) -> FolderHost {
    let mut host = FolderHost::cutting([after(100_000)]);
    fs::create_dir_all(&host.root).unwrap();
    let path = host.path("log");
    fs::write(&path, content).unwrap();
    host.on_open = Box::new(move |number| {
        if number == 2 {
            change(&path);
        }
    });
    host
}

#[tokio::test]
async fn of_a_file_that_grows_meanwhile_counts_what_was_listed() {
    let content = noise(1, 300_000);
    let host = changing(&content, |path| {
        let mut grown = fs::read(path).unwrap();
        grown.extend_from_slice(b"another line\n");
        fs::write(path, grown).unwrap();
    });
    let here = TempDir::new().unwrap();
    let local = here.path().join("log");
    download(host.target(), &host.path("log"), &local, &retrying(1))
        .await
        .unwrap();
    assert!(fs::read(&local).unwrap() == content);
}

#[tokio::test]
async fn a_file_that_becomes_another_one_meanwhile_is_named() {
    let changes: [fn(&Path); 4] = [
        |path| fs::write(path, noise(2, 300_000)).unwrap(),
        // Another beginning, and grown.
        |path| fs::write(path, noise(2, 300_001)).unwrap(),
        |path| fs::write(path, noise(1, 200_000)).unwrap(),
        |path| fs::remove_file(path).unwrap(),
    ];
    for change in changes {
        let host = changing(&noise(1, 300_000), change);
        let here = TempDir::new().unwrap();
        let local = here.path().join("log");
        let remote = host.path("log");
        let result = download(host.target(), &remote, &local, &retrying(5)).await;
        let wanted = format!(
            "cannot transfer files to or from `kv1`: `{}` changed while it was sent",
            remote.display()
        );
        assert_eq!(said(result), wanted);
        assert!(names(here.path()).is_empty());
    }
}
