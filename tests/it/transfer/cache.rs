//! The cache on a host: several callers, damage, tidying.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use assay::host::transfer::{Fault, Source, Tidied, TransferError, provide, tidy_cache, upload};
use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

use super::bench::{FolderHost, noise, retrying, send, sha256};

#[tokio::test]
async fn two_callers_with_the_same_contents_send_each_once() {
    let here = TempDir::new().unwrap();
    for n in 0..30 {
        fs::write(here.path().join(format!("{n:02}")), noise(n, 100_000)).unwrap();
    }
    fs::write(here.path().join("large"), noise(99, 20 << 20)).unwrap();
    let source = Source::read(here.path()).await.unwrap();
    let host = FolderHost::new();
    let (one, two) = (host.path("one"), host.path("two"));
    let options = retrying(0);
    let (first, second) = tokio::join!(
        upload(host.target(), &source, &one, false, &options),
        upload(host.target(), &source, &two, false, &options),
    );
    let sent = first.unwrap().sent + second.unwrap().sent;
    assert_eq!(sent, source.bytes());
    for root in [one, two] {
        assert!(fs::read(root.join("large")).unwrap() == noise(99, 20 << 20));
        assert!(fs::read(root.join("07")).unwrap() == noise(7, 100_000));
    }
    let cached = host.cached();
    assert_eq!(cached.len(), 31);
    assert!(cached.keys().all(|name| !name.ends_with(".part")));
}

#[tokio::test]
async fn a_content_that_went_bad_is_sent_again() {
    let (host, here) = (FolderHost::new(), TempDir::new().unwrap());
    let file = here.path().join("x");
    let content = noise(1, 50_000);
    fs::write(&file, &content).unwrap();
    send(&host, &file, "one").await.unwrap();
    let cached = host.content(&sha256(&content));
    let mut wrong = content.clone();
    wrong[20_000] ^= 4;
    for bad in [wrong, content[..49_999].to_vec(), Vec::new()] {
        fs::remove_file(&cached).unwrap();
        fs::write(&cached, bad).unwrap();
        let (path, sent) = {
            let source = Source::read(&file).await.unwrap();
            provide(host.target(), &source, &retrying(0)).await.unwrap()
        };
        assert_eq!((path.as_path(), sent.sent), (cached.as_path(), 50_000));
        assert_eq!(fs::read(path).unwrap(), content);
    }
}

#[tokio::test]
async fn a_content_is_taken_over_from_a_process_that_is_stuck_in_it() {
    let (host, here) = (FolderHost::new(), TempDir::new().unwrap());
    let file = here.path().join("x");
    let content = noise(1, 200_000);
    fs::write(&file, &content).unwrap();
    let part = host.content(&sha256(&content)).with_extension("part");
    fs::create_dir_all(part.parent().unwrap()).unwrap();
    fs::write(&part, &content[..120_000]).unwrap();
    let stuck = File::options().write(true).open(&part).unwrap();
    flock(&stuck, FlockOperation::LockExclusive).unwrap();
    let sent = send(&host, &file, "x").await.unwrap();
    assert_eq!(sent.sent, 80_000, "what had come counts");
    assert_eq!(fs::read(host.path("x")).unwrap(), content);
}

async fn put(host: &FolderHost, seed: u64, used: u64) -> String {
    let here = TempDir::new().unwrap();
    let file = here.path().join("x");
    fs::write(&file, noise(seed, 1000)).unwrap();
    let source = Source::read(&file).await.unwrap();
    let (path, _) = provide(host.target(), &source, &retrying(0)).await.unwrap();
    set_used(&path, used);
    sha256(&noise(seed, 1000))
}

fn set_used(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    File::open(path).unwrap().set_modified(time).unwrap();
}

#[tokio::test]
async fn tidying_removes_what_was_used_longest_ago() {
    let host = FolderHost::new();
    let old = put(&host, 1, 1000).await;
    let new = put(&host, 2, 3000).await;
    let middle = put(&host, 3, 2000).await;
    // A part that nobody went on with.
    let part = host.content(&old).with_extension("part");
    fs::write(&part, noise(9, 300)).unwrap();
    set_used(&part, 500);
    let nothing = part.with_extension("x.part");
    fs::write(&nothing, "").unwrap();
    let tidied = tidy_cache(host.target(), 2500, &retrying(0)).await.unwrap();
    let wanted = Tidied {
        removed: 1300,
        left: 2000,
    };
    assert_eq!(tidied, wanted);
    let mut left = [new, middle.clone()];
    left.sort();
    assert_eq!(host.cached().into_keys().collect::<Vec<_>>(), left);
    // Use counts, not age.
    put(&host, 3, 9000).await;
    tidy_cache(host.target(), 1000, &retrying(0)).await.unwrap();
    assert_eq!(host.cached().into_keys().collect::<Vec<_>>(), [middle]);
}

#[tokio::test]
async fn a_content_that_is_used_again_is_young_again() {
    let host = FolderHost::new();
    let used = put(&host, 1, 1000).await;
    put(&host, 2, 2000).await;
    let here = TempDir::new().unwrap();
    fs::write(here.path().join("x"), noise(1, 1000)).unwrap();
    send(&host, here.path(), "x").await.unwrap();
    tidy_cache(host.target(), 1000, &retrying(0)).await.unwrap();
    assert_eq!(host.cached().into_keys().collect::<Vec<_>>(), [used]);
}

#[tokio::test]
async fn a_cache_in_use_is_not_tidied() {
    let host = FolderHost::new();
    put(&host, 1, 1000).await;
    let lock = File::open(host.path(".assay-cache/lock")).unwrap();
    flock(&lock, FlockOperation::LockShared).unwrap();
    let result = tidy_cache(host.target(), 0, &retrying(0)).await;
    assert!(matches!(
        result,
        Err(TransferError::OnHost {
            source: Fault::Busy { .. },
            ..
        })
    ));
    assert_eq!(host.cached().len(), 1);
}
