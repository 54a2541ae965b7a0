//! Uploads over connections that are cut.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use assay::host::transfer::{Source, upload};
use tempfile::TempDir;

use super::bench::{Cut, FolderHost, noise, retrying, send, sha256, text};

/// Bytes beside the contents: the list, the answers, the lengths of chunks.
const WORDS: u64 = 2048;

fn after(sent: u64) -> Cut {
    Cut {
        sent: Some(sent),
        received: None,
    }
}

#[tokio::test]
async fn an_upload_that_was_cut_anywhere_goes_on_from_there() {
    let here = TempDir::new().unwrap();
    let file = here.path().join("x");
    let content = noise(1, 600_000);
    fs::write(&file, &content).unwrap();
    let size = content.len() as u64;
    let early = (0..700).step_by(37);
    for cut in early
        .chain((1000..size).step_by(61_111))
        .chain([size - 1, size])
    {
        let host = FolderHost::cutting([after(cut)]);
        let error = send(&host, &file, "x").await.unwrap_err();
        assert!(error.is_repeatable(), "{cut}: {error}");
        assert!(host.names().is_empty(), "{cut}");
        assert!(host.cached().keys().all(|name| name.ends_with(".part")));
        send(&host, &file, "x").await.unwrap();
        assert_eq!(fs::read(host.path("x")).unwrap(), content, "{cut}");
        let sent = host.wire().0;
        assert!(sent <= size + WORDS, "cut after {cut}: {sent} bytes sent");
        let cached: Vec<_> = host.cached().into_keys().collect();
        assert_eq!(cached, [sha256(&content)], "no part is left");
    }
}

#[tokio::test]
async fn a_packed_upload_that_was_cut_goes_on_but_for_the_last_block() {
    let here = TempDir::new().unwrap();
    let file = here.path().join("x");
    let mixed: Vec<u8> = noise(1, 2_000_000).iter().map(|byte| byte & 0x0f).collect();
    fs::write(&file, &mixed).unwrap();
    let whole = {
        let host = FolderHost::new();
        send(&host, &file, "x").await.unwrap().sent
    };
    assert!(whole < 1_200_000, "it packs to about a half: {whole}");
    for cut in (1000..whole).step_by(171_717) {
        let host = FolderHost::cutting([after(cut)]);
        send(&host, &file, "x").await.unwrap_err();
        send(&host, &file, "x").await.unwrap();
        assert_eq!(fs::read(host.path("x")).unwrap(), mixed, "{cut}");
        let sent = host.wire().0;
        // A block of zstd is 128 KiB, packed to a half of it; a second stream begins without what the first one learnt.
        assert!(
            sent <= whole + (96 << 10) + WORDS,
            "cut after {cut}: {sent} of {whole}"
        );
    }
}

#[tokio::test]
async fn one_call_goes_on_over_several_lost_connections() {
    let here = TempDir::new().unwrap();
    for n in 0..20 {
        fs::write(here.path().join(format!("f{n}")), noise(n, 50_000)).unwrap();
    }
    let source = Source::read(here.path()).await.unwrap();
    let host = FolderHost::cutting([300_000, 10, 250_000, 250_000].map(after));
    let remote = host.path("x");
    let sent = upload(host.target(), &source, &remote, false, &retrying(1)).await;
    assert_eq!(sent.unwrap().bytes, 1_000_000);
    assert_eq!(host.opened(), 5);
    assert!(host.wire().0 <= 1_000_000 + 5 * 5000, "{}", host.wire().0);
    assert_eq!(fs::read(remote.join("f19")).unwrap(), noise(19, 50_000));
}

#[tokio::test]
async fn it_gives_up_after_as_many_lost_connections_in_a_row_as_it_may() {
    let here = TempDir::new().unwrap();
    fs::write(here.path().join("x"), "x").unwrap();
    let source = Source::read(here.path()).await.unwrap();
    let host = FolderHost::cutting([after(10); 9]);
    let result = upload(host.target(), &source, &host.path("x"), false, &retrying(2)).await;
    assert!(result.unwrap_err().is_repeatable());
    assert_eq!(host.opened(), 3);
}

#[tokio::test(start_paused = true)]
async fn it_waits_longer_before_each_connection() {
    let here = TempDir::new().unwrap();
    fs::write(here.path().join("x"), "x").unwrap();
    let source = Source::read(here.path()).await.unwrap();
    let host = FolderHost::cutting([after(10); 3]);
    let start = tokio::time::Instant::now();
    let mut options = retrying(0);
    options.retry = assay::host::Retry::some(1);
    // Time stands still for real processes: only the pauses may end by themselves.
    options.silence = std::time::Duration::from_secs(86_400);
    upload(host.target(), &source, &host.path("x"), false, &options)
        .await
        .unwrap();
    let waited = start.elapsed().as_secs_f64();
    assert!((3.5..).contains(&waited), "{waited}");
    assert_eq!(host.opened(), 4);
}

#[tokio::test]
async fn a_part_that_is_wrong_is_thrown_away_and_sent_whole_once() {
    let here = TempDir::new().unwrap();
    let file = here.path().join("x");
    let content = noise(1, 300_000);
    fs::write(&file, &content).unwrap();
    let mut half = content[..150_000].to_vec();
    half[7] ^= 1;
    let mut whole = content.clone();
    whole[299_999] ^= 1;
    let too_long = [&content[..], b"more"].concat();
    // What was wrong costs the rest of it and then the whole.
    let cases = [(half, 450_000), (whole, 300_000), (too_long, 300_000)];
    for (part, most) in cases {
        let host = FolderHost::new();
        let place = host.content(&sha256(&content)).with_extension("part");
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, part).unwrap();
        let sent = send(&host, &file, "x").await.unwrap();
        assert_eq!(sent.sent, most);
        assert_eq!(fs::read(host.path("x")).unwrap(), content);
        assert!(!place.exists());
    }
}

#[tokio::test]
async fn a_future_that_is_dropped_leaves_only_a_part_and_no_agent() {
    let here = TempDir::new().unwrap();
    let file = here.path().join("x");
    fs::write(&file, noise(1, 8 << 20)).unwrap();
    let source = Source::read(&file).await.unwrap();
    let host = FolderHost::new();
    let (begun, seen) = (Arc::new(tokio::sync::Notify::new()), AtomicBool::new(false));
    let mut options = retrying(5);
    let tell = Arc::clone(&begun);
    let (go_on, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    options.progress = Arc::new(move |_| {
        if !seen.swap(true, Ordering::SeqCst) {
            tell.notify_one();
            // Until the future is gone.
            let _ = held.lock().unwrap().recv();
        }
    });
    let remote = host.path("x");
    let sending = upload(host.target(), &source, &remote, false, &options);
    tokio::select! {
        result = sending => panic!("{result:?}"),
        () = begun.notified() => {}
    }
    drop(go_on);
    assert!(host.names().is_empty());
    // The same content again: the agent of the first call has let go of it.
    let sent = send(&host, &file, "x").await.unwrap();
    assert!(sent.sent <= 8 << 20);
    assert_eq!(fs::read(remote).unwrap(), noise(1, 8 << 20));
    assert_eq!(host.opened(), 2);
}

#[tokio::test]
async fn an_empty_tree_and_an_empty_file_survive_a_cut() {
    let here = TempDir::new().unwrap();
    fs::create_dir(here.path().join("tree")).unwrap();
    fs::write(here.path().join("file"), "").unwrap();
    fs::write(here.path().join("text"), text(10_000)).unwrap();
    for name in ["tree", "file", "text"] {
        for cut in (0..600).step_by(23) {
            let host = FolderHost::cutting([after(cut)]);
            let source = Source::read(&here.path().join(name)).await.unwrap();
            let remote = host.path("x");
            upload(host.target(), &source, &remote, false, &retrying(1))
                .await
                .unwrap();
            assert!(remote.exists(), "{name} cut after {cut}");
        }
    }
}
