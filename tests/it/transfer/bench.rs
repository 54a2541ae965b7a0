//! A host made of child processes, whose connections can be cut, and trees to transfer.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use assay::host::transfer::{
    Options, Received, Sent, Source, Target, TransferError, download, upload,
};
use assay::host::{Channel, Channels, HostError, Output, Pending};
use rand::{Rng as _, SeedableRng};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// Where a connection is cut.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cut {
    /// After so many bytes to the host.
    pub(super) sent: Option<u64>,
    /// After so many bytes from the host.
    pub(super) received: Option<u64>,
}

/// A host: a folder, and agents that are processes of this machine.
pub(super) struct FolderHost {
    _folder: TempDir,
    pub(super) root: PathBuf,
    /// Of the next connections; those after them hold.
    pub(super) cuts: Mutex<VecDeque<Cut>>,
    /// Called with the number of each connection before it is made.
    pub(super) on_open: Box<dyn Fn(usize) + Send + Sync>,
    /// The user that agents run as.
    pub(super) uid: Option<u32>,
    opened: Mutex<usize>,
    /// All bytes to and from it, of lists as well.
    pub(super) sent: Arc<AtomicU64>,
    pub(super) received: Arc<AtomicU64>,
}

impl FolderHost {
    pub(super) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        Self {
            root: folder.path().join("host"),
            _folder: folder,
            cuts: Mutex::default(),
            on_open: Box::new(|_| {}),
            uid: None,
            opened: Mutex::new(0),
            sent: Arc::default(),
            received: Arc::default(),
        }
    }

    pub(super) fn cutting(cuts: impl IntoIterator<Item = Cut>) -> Self {
        let host = Self::new();
        *host.cuts.lock().unwrap() = cuts.into_iter().collect();
        host
    }

    pub(super) fn target(&self) -> Target<'_> {
        Target {
            channels: self,
            directory: &self.root,
        }
    }

    /// A path on it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(super) fn opened(&self) -> usize {
        *self.opened.lock().unwrap()
    }

    pub(super) fn wire(&self) -> (u64, u64) {
        let of = |bytes: &AtomicU64| bytes.load(Ordering::Relaxed);
        (of(&self.sent), of(&self.received))
    }

    /// The cache's files by their names, without those for locking.
    pub(super) fn cached(&self) -> BTreeMap<String, u64> {
        let all = walkdir::WalkDir::new(self.root.join(".assay-cache/sha256"));
        let files = all.into_iter().filter_map(Result::ok);
        let files = files.filter(|entry| entry.file_type().is_file());
        files
            .map(|file| {
                let name = file.file_name().to_str().unwrap().to_owned();
                (name, file.metadata().unwrap().len())
            })
            .collect()
    }

    pub(super) fn content(&self, sha256: &str) -> PathBuf {
        let folder = self.root.join(".assay-cache/sha256").join(&sha256[..2]);
        folder.join(sha256)
    }

    /// Names beside what was transferred, without the cache.
    pub(super) fn names(&self) -> Vec<String> {
        names(&self.root)
    }
}

impl Channels for FolderHost {
    fn host(&self) -> &'static str {
        "kv1"
    }

    fn open<'a>(&'a self, agent: &'a str) -> Pending<'a, Result<Channel, HostError>> {
        Box::pin(async move {
            let number = {
                let mut opened = self.opened.lock().unwrap();
                *opened += 1;
                *opened
            };
            (self.on_open)(number);
            let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_assay"));
            command.args(["agent", agent]).stdin(Stdio::piped());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            if let Some(uid) = self.uid {
                command.uid(uid);
            }
            let mut child = command.spawn().unwrap();
            let cut = self.cuts.lock().unwrap().pop_front().unwrap_or_default();
            let lost = Arc::new(AtomicBool::new(false));
            let stream = |limit, total: &Arc<AtomicU64>| Link {
                left: limit,
                lost: Arc::clone(&lost),
                total: Arc::clone(total),
            };
            let (to, from) = (
                stream(cut.sent, &self.sent),
                stream(cut.received, &self.received),
            );
            let stdin = child.stdin.take();
            let stdout = child.stdout.take();
            Ok(Channel {
                stdin: Box::new(Cable(stdin, to)),
                stdout: Box::new(Cable(stdout, from)),
                ended: Box::pin(async move {
                    let mut stderr = String::new();
                    let mut stream = child.stderr.take().unwrap();
                    stream.read_to_string(&mut stderr).await.unwrap();
                    let status = child.wait().await.unwrap().code();
                    match lost.load(Ordering::SeqCst) {
                        true => Err(lost_connection()),
                        false => Ok(Output { status, stderr }),
                    }
                }),
            })
        })
    }
}

pub(super) fn lost_connection() -> HostError {
    HostError::Lost {
        host: "kv1".into(),
        what: "assay agent store".into(),
    }
}

/// What the two directions of a connection share, and how long this one holds.
struct Link {
    left: Option<u64>,
    lost: Arc<AtomicBool>,
    total: Arc<AtomicU64>,
}

impl Link {
    /// How much of so many bytes still passes; `None` when the connection is cut.
    fn pass(&self, bytes: usize) -> Option<usize> {
        if self.left == Some(0) || self.lost.load(Ordering::SeqCst) {
            self.lost.store(true, Ordering::SeqCst);
            return None;
        }
        let most = self.left.map_or(u64::MAX, |left| left);
        Some(bytes.min(usize::try_from(most).unwrap_or(usize::MAX)))
    }

    fn passed(&mut self, bytes: usize) {
        self.left = self.left.map(|left| left - bytes as u64);
        self.total.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// One direction of a connection. When it is cut, the other end sees its stream end.
struct Cable<S>(Option<S>, Link);

impl<S: AsyncWrite + Unpin> AsyncWrite for Cable<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Some(most) = self.1.pass(bytes.len()) else {
            self.0 = None;
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let stream = Pin::new(self.0.as_mut().unwrap());
        let written = stream.poll_write(context, &bytes[..most]);
        if let Poll::Ready(Ok(written)) = written {
            self.1.passed(written);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Some(stream) => Pin::new(stream).poll_flush(context),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0 = None;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Cable<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(most) = self.1.pass(buffer.remaining()) else {
            self.0 = None;
            return Poll::Ready(Ok(()));
        };
        let mut part = vec![0; most];
        let mut part = ReadBuf::new(&mut part);
        let stream = Pin::new(self.0.as_mut().unwrap());
        let read = stream.poll_read(context, &mut part);
        if let Poll::Ready(Ok(())) = read {
            buffer.put_slice(part.filled());
            let length = part.filled().len();
            self.1.passed(length);
        }
        read
    }
}

/// Goes on at once, so often.
pub(super) fn retrying(times: u32) -> Options {
    Options::new(assay::host::Retry {
        times,
        ..assay::host::Retry::NEVER
    })
}

pub(super) async fn send(
    host: &FolderHost,
    local: &Path,
    remote: &str,
) -> Result<Sent, TransferError> {
    let source = Source::read(local).await?;
    let remote = host.path(remote);
    upload(host.target(), &source, &remote, false, &retrying(0)).await
}

pub(super) async fn receive(
    host: &FolderHost,
    remote: &str,
    local: &Path,
) -> Result<Received, TransferError> {
    let remote = host.path(remote);
    download(host.target(), &remote, local, &retrying(0)).await
}

/// Bytes that cannot be packed.
pub(super) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    rand_pcg::Pcg64::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes
}

/// Bytes that can.
pub(super) fn text(length: usize) -> Vec<u8> {
    let lines = (0..).flat_map(|n: u64| format!("{n} the next line\n").into_bytes());
    lines.take(length).collect()
}

/// A tree with all that a tree can have.
pub(super) fn odd_tree(root: &Path) {
    let file = |name: &OsStr, content: &[u8], mode| {
        let path = root.join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    };
    fs::create_dir_all(root.join("empty folder")).unwrap();
    fs::create_dir_all(root.join("a/b/c")).unwrap();
    file("a/b/c/deep".as_ref(), &noise(1, 300_000), 0o644);
    file("a/b/same".as_ref(), &noise(1, 300_000), 0o600);
    file("line\nbreak".as_ref(), b"x", 0o644);
    file("-rf".as_ref(), b"dash", 0o644);
    file(" two  spaces ".as_ref(), b"", 0o640);
    file("größe-数据".as_ref(), &text(700_000), 0o755);
    file("quote'\"$`\\".as_ref(), b"q", 0o444);
    file(OsStr::from_bytes(b"\xff\xfe.bin"), b"no text", 0o644);
    symlink("a/b/same", root.join("inside")).unwrap();
    symlink("/nowhere/at all", root.join("outside")).unwrap();
    symlink(
        std::ffi::OsString::from_vec(vec![0xfe]),
        root.join("odd link"),
    )
    .unwrap();
    fs::set_permissions(root.join("a/b"), Permissions::from_mode(0o750)).unwrap();
    fs::set_permissions(root.join("empty folder"), Permissions::from_mode(0o555)).unwrap();
}

/// Everything in a tree by path: mode, and content or where it leads.
pub(super) fn everything(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let entry = |entry: walkdir::DirEntry| {
        let meta = entry.metadata().unwrap();
        let (mode, content) = if meta.is_symlink() {
            let to = fs::read_link(entry.path()).unwrap();
            (0, to.into_os_string().into_vec())
        } else if meta.is_file() {
            (meta.mode(), fs::read(entry.path()).unwrap())
        } else {
            (meta.mode(), Vec::new())
        };
        let path = entry.path().strip_prefix(root).unwrap().to_owned();
        (path, (mode, content))
    };
    let all = walkdir::WalkDir::new(root).into_iter();
    all.map(|e| entry(e.unwrap())).collect()
}

pub(super) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name != ".assay-cache").collect();
    names.sort();
    names
}

pub(super) fn sha256(content: &[u8]) -> String {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(content);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The message of an error and of its cause.
pub(super) fn said<T: std::fmt::Debug>(result: Result<T, TransferError>) -> String {
    let error = result.unwrap_err();
    match std::error::Error::source(&error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
