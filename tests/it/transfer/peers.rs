//! Peers that lie, are silent or die.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use assay::host::transfer::{Fault, Source, Target, TransferError, download, upload};
use assay::host::{Channel, Channels, HostError, Output, Pending};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::bench::{names, retrying, said};

/// A host that says what it wants to.
struct Liar {
    words: Vec<u8>,
    /// It goes on listening after that, for ever.
    stays: bool,
    output: Output,
}

impl Liar {
    fn saying(words: impl AsRef<[u8]>) -> Self {
        Self {
            words: words.as_ref().to_vec(),
            stays: false,
            output: Output::default(),
        }
    }

    fn target(&self) -> Target<'_> {
        Target {
            channels: self,
            directory: Path::new("/srv/assay"),
        }
    }
}

impl Channels for Liar {
    fn host(&self) -> &'static str {
        "kv1"
    }

    fn open<'a>(&'a self, _: &'a str) -> Pending<'a, Result<Channel, HostError>> {
        Box::pin(async {
            let (mut near, far) = tokio::io::duplex(64 << 10);
            let words = self.words.clone();
            let stays = self.stays;
            tokio::spawn(async move {
                tokio::io::AsyncWriteExt::write_all(&mut near, &words)
                    .await
                    .unwrap();
                if stays {
                    let _near = near;
                    std::future::pending::<()>().await;
                }
            });
            let output = self.output.clone();
            Ok(Channel {
                stdin: Box::new(tokio::io::sink()),
                stdout: Box::new(far),
                ended: Box::pin(async move { Ok(output) }),
            })
        })
    }
}

fn listed(path: &str, kind: Value) -> Value {
    let size = kind["file"]["size"].as_u64().unwrap_or(0);
    json!({
        "entry": { "path": path, "mode": 0o755, "kind": kind },
        "stamp": { "device": 1, "inode": 1, "size": size, "modified": [0, 0] },
    })
}

fn file() -> Value {
    json!({ "file": { "size": 4, "sha256": "" } })
}

async fn fetch(words: &[u8], local: &Path) -> Result<(), TransferError> {
    let liar = Liar::saying(words);
    let got = download(liar.target(), Path::new("/srv/x"), local, &retrying(3)).await;
    got.map(drop)
}

#[tokio::test]
async fn a_host_cannot_write_outside_of_what_is_downloaded() {
    let here = TempDir::new().unwrap();
    let outside = here.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let local = here.path().join("inside/x");
    let to_outside = json!({ "link": { "to": outside } });
    let absolute = outside.join("y");
    let lists = [
        vec![
            listed("", json!("folder")),
            listed("../../outside/y", file()),
        ],
        vec![
            listed("", json!("folder")),
            listed(absolute.to_str().unwrap(), file()),
        ],
        vec![
            listed("", json!("folder")),
            listed("a", to_outside.clone()),
            listed("a/y", file()),
        ],
        vec![listed("", to_outside)],
        vec![listed("../y", file())],
        vec![listed("", file()), listed("", file())],
    ];
    for list in lists {
        let words = format!("{}\n", json!({ "list": list }));
        let result = fetch(words.as_bytes(), &local).await;
        assert!(
            matches!(result, Err(TransferError::Here(Fault::Refused { .. }))),
            "{result:?}"
        );
        assert!(names(&outside).is_empty());
        assert!(!local.exists());
    }
}

#[tokio::test]
async fn a_host_that_sends_more_or_other_bytes_than_it_said_leaves_nothing() {
    let here = TempDir::new().unwrap();
    let local = here.path().join("x");
    let list = format!(
        "{}\n{{\"content\":\"plain\"}}\n",
        json!({ "list": [listed("", file())] })
    );
    let content = |bytes: &[u8]| {
        let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
        [list.as_bytes(), &length[..], bytes, &[0; 4]].concat()
    };
    let more = fetch(&content(b"12345"), &local).await;
    assert!(
        matches!(more, Err(TransferError::Garbled { .. })),
        "{more:?}"
    );
    let less = fetch(&content(b"123"), &local).await;
    assert!(
        matches!(less, Err(TransferError::Garbled { .. })),
        "{less:?}"
    );
    let hash = format!("{{\"sha256\":\"{}\"}}\n", "00".repeat(32));
    let other = [content(b"1234"), hash.into_bytes()].concat();
    let other = fetch(&other, &local).await;
    let is_named = |fault: &Fault| {
        *fault
            == Fault::Changed {
                path: "/srv/x".into(),
            }
    };
    assert!(
        matches!(&other, Err(TransferError::OnHost { source, .. }) if is_named(source)),
        "{other:?}"
    );
    assert!(names(here.path()).is_empty());
}

#[tokio::test]
async fn words_that_are_none_and_an_agent_that_dies_are_told_apart() {
    let here = TempDir::new().unwrap();
    let local = here.path().join("x");
    let result = fetch(b"Welcome to kv1!\n", &local).await;
    assert!(said(result).starts_with("`assay agent store-send` on `kv1` sent what is no part"));
    let mut liar = Liar::saying("");
    liar.output = Output {
        status: Some(127),
        stderr: "assay: not found\n".into(),
    };
    let result = download(liar.target(), Path::new("/srv/x"), &local, &retrying(3)).await;
    let wanted = "`assay agent store-send` on `kv1` ended with status 127 in the middle of a transfer: assay: not found";
    assert_eq!(said(result), wanted);
}

#[tokio::test]
async fn a_host_that_is_silent_counts_as_lost() {
    let here = TempDir::new().unwrap();
    fs::write(here.path().join("x"), "x").unwrap();
    let source = Source::read(here.path()).await.unwrap();
    let mut liar = Liar::saying("\"alive\"\n");
    liar.stays = true;
    let mut options = retrying(0);
    options.silence = Duration::from_millis(200);
    options.retry = assay::host::Retry::NEVER;
    let remote = Path::new("/srv/x");
    // What a lost connection does to the agent nobody knows: it ends whenever it likes.
    let result = upload(liar.target(), &source, remote, false, &options).await;
    let error = result.unwrap_err();
    assert!(matches!(error, TransferError::Silent { .. }), "{error:?}");
    assert!(error.is_repeatable());
}

/// What the agent answers to a caller that lies.
fn answers(request: &Value) -> Value {
    let mut agent = Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(["agent", "store-receive"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = agent.stdin.take().unwrap();
    writeln!(input, "{request}").unwrap();
    let output = agent.wait_with_output().unwrap();
    drop(input);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_caller_cannot_write_outside_of_the_place_that_it_named() {
    let folder = TempDir::new().unwrap();
    let directory = folder.path().join("host");
    let entry = |path: &str, kind: Value| json!({ "path": path, "mode": 0o755, "kind": kind });
    let hash = "ab".repeat(32);
    let file = |sha256: &str| json!({ "file": { "size": 4, "sha256": sha256 } });
    let root = entry("", json!("folder"));
    let link = entry("a", json!({ "link": { "to": folder.path() } }));
    let lists = [
        json!([root, entry("../y", file(&hash))]),
        json!([root, entry("/tmp/y", file(&hash))]),
        json!([root, link, entry("a/y", file(&hash))]),
        json!([root, entry("y", file("../../../../y"))]),
        json!([root, entry("y", file(""))]),
        json!([root, entry(".assay-marker", file(&hash))]),
    ];
    for entries in lists {
        let place = json!({ "path": { "path": directory.join("x"), "replace": false } });
        let request = json!({ "directory": directory, "place": place, "entries": entries });
        let answer = answers(&request);
        assert!(answer["failed"]["refused"]["why"].is_string(), "{answer}");
        assert!(names(&directory).is_empty());
        assert_eq!(names(folder.path()), ["host"]);
    }
    let place = json!({ "path": { "path": "x", "replace": false } });
    let list = json!([entry("", json!("folder"))]);
    let request = json!({ "directory": directory, "place": place, "entries": list });
    let answer = answers(&request);
    assert_eq!(answer["failed"]["refused"]["why"], "it is not absolute");
}
