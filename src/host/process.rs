//! One program on this machine: its own process group, its streams read as they come, ended in time.

use std::borrow::Cow;
use std::future::Future;
use std::path::Path;
use std::pin::{Pin, pin};
use std::process::Stdio;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::process::Child;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::Command;

/// How long a process group may take after SIGTERM, and the kernel after SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
/// How long the streams are read after the program's end: a process that it left behind may hold them open.
const DRAIN: Duration = Duration::from_secs(2);
/// The longest line that is handed on; the rest of it is left out.
const LINE: usize = 1 << 20;
/// How much of the end of standard error is kept.
const TAIL: usize = 64 << 10;

/// What ended a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It ended by itself; the exit status is `None` after a signal.
    Itself(Option<i32>),
    /// It outlived its limit.
    Limit,
    /// It printed nothing for too long.
    Silence,
    /// It was stopped on request.
    Stopped,
}

/// Runs a program; returns what ended it, and the end of its standard error.
///
/// # Errors
/// It could not be started.
pub(super) async fn run(
    program: &Path,
    command: &Command,
    stop: &CancellationToken,
    line: &mut (dyn FnMut(&str) + Send),
) -> std::io::Result<(End, String)> {
    let mut child = spawn(program, &command.args)?;
    let group = Group::of(&child);
    let mut ended = group.leader_ended()?;
    let mut stdin = child.stdin.take().expect("it is piped");
    let stdout = child.stdout.take().expect("it is piped");
    let stderr = child.stderr.take().expect("it is piped");
    let mut tail = Tail::default();
    let heard = Heard::now();
    let mut streams = Streams::new(async {
        tokio::join!(
            feed(&mut stdin, &command.stdin),
            each_line(stdout, &heard, line),
            tail.fill(stderr, &heard)
        );
    });
    let end = streams
        .read_until(first(&mut ended, command, &heard, stop))
        .await;
    if end.is_some() {
        let deadline = Instant::now() + GRACE;
        group.signal(Signal::TERM);
        let _ = streams.read_until(timeout_at(deadline, &mut ended)).await;
        // The leader's children get what is left of the time, as long as they hold its streams.
        streams.read_to_end(deadline - Instant::now()).await;
        group.signal(Signal::KILL);
    }
    streams.read_to_end(DRAIN).await;
    drop(streams);
    let status = timeout(GRACE, child.wait()).await;
    group.reaped();
    let status = status.ok().and_then(Result::ok).and_then(|s| s.code());
    Ok((end.unwrap_or(End::Itself(status)), tail.text()))
}

fn spawn(program: &Path, args: &[String]) -> std::io::Result<Child> {
    tokio::process::Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
}

/// Waits until the program ends (`None`), its limit is over, it is silent for too long, or it is to stop.
async fn first(
    ended: &mut oneshot::Receiver<()>,
    command: &Command,
    heard: &Heard,
    stop: &CancellationToken,
) -> Option<End> {
    tokio::select! {
        biased;
        _ = ended => None,
        () = stop.cancelled() => Some(End::Stopped),
        () = sleep(command.limit) => Some(End::Limit),
        () = heard.nothing_for(command.silence) => Some(End::Silence),
    }
}

/// When a program last printed something.
pub(super) struct Heard {
    start: Instant,
    last_ms: AtomicU64,
}

impl Heard {
    pub(super) fn now() -> Self {
        Self {
            start: Instant::now(),
            last_ms: AtomicU64::new(0),
        }
    }

    fn again(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(now, Relaxed);
    }

    /// Ends when nothing was heard for so long; never, if silence is not limited.
    async fn nothing_for(&self, silence: Option<Duration>) {
        let Some(silence) = silence else {
            return std::future::pending().await;
        };
        loop {
            let last = self.start + Duration::from_millis(self.last_ms.load(Relaxed));
            if last.elapsed() >= silence {
                return;
            }
            sleep_until(last + silence).await;
        }
    }
}

/// The process group of a child that is not yet reaped, so that its number cannot name another group.
/// Dropped before that, it kills the group: a future that nobody awaits any more leaves nothing behind.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        Self(pid.and_then(Pid::from_raw))
    }

    /// Ends when the leader has ended; it stays to be reaped.
    /// The thread is a free one: the runtime would wait for one of its own, should the leader be beyond killing.
    fn leader_ended(&self) -> std::io::Result<oneshot::Receiver<()>> {
        let (tell, ended) = oneshot::channel();
        let leader = self.0;
        std::thread::Builder::new().spawn(move || {
            if let Some(leader) = leader {
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                while matches!(waitid(WaitId::Pid(leader), options), Err(Errno::INTR)) {}
            }
            let _ = tell.send(());
        })?;
        Ok(ended)
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.0 {
            // It fails only when nothing is left to be signalled.
            let _ = kill_process_group(leader, signal);
        }
    }

    /// The leader was reaped: its number is free for others.
    fn reaped(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// The work on a program's streams, which goes on while something else is waited for.
struct Streams<'a> {
    work: Pin<Box<dyn Future<Output = ()> + Send + 'a>>,
    ended: bool,
}

impl<'a> Streams<'a> {
    fn new(work: impl Future<Output = ()> + Send + 'a) -> Self {
        Self {
            work: Box::pin(work),
            ended: false,
        }
    }

    async fn read_until<T>(&mut self, event: impl Future<Output = T>) -> T {
        let mut event = pin!(event);
        loop {
            tokio::select! {
                biased;
                value = &mut event => return value,
                () = &mut self.work, if !self.ended => self.ended = true,
            }
        }
    }

    async fn read_to_end(&mut self, limit: Duration) {
        if !self.ended {
            self.ended = timeout(limit, &mut self.work).await.is_ok();
        }
    }
}

/// Writes `bytes` and leaves the stream open. A program that does not read them is free not to.
async fn feed(stdin: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) {
    if stdin.write_all(bytes).await.is_ok() {
        let _ = stdin.flush().await;
    }
}

/// Hands on each line of `stream` without its end; what is no UTF-8 is replaced. A line of more than [`LINE`] bytes is cut, and
/// says how many are missing.
async fn each_line(
    stream: impl AsyncRead + Unpin,
    heard: &Heard,
    line: &mut (dyn FnMut(&str) + Send),
) {
    let mut stream = BufReader::new(stream);
    let (mut text, mut missing) = (Vec::new(), 0);
    loop {
        let chunk = match stream.fill_buf().await {
            Ok(chunk) if !chunk.is_empty() => chunk,
            _ => break,
        };
        heard.again();
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        let room = part.len().min(LINE - text.len());
        text.extend_from_slice(&part[..room]);
        missing += part.len() - room;
        let taken = part.len() + usize::from(end.is_some());
        stream.consume(taken);
        if end.is_some() {
            line(&whole(&text, missing));
            text.clear();
            missing = 0;
        }
    }
    if !text.is_empty() {
        line(&whole(&text, missing));
    }
}

/// A line as text, with a note if bytes of it are missing.
fn whole(text: &[u8], missing: usize) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(text);
    match missing {
        0 => text,
        n => format!("{text} [{n} more bytes of this line are left out]").into(),
    }
}

/// The end of a stream.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    async fn fill(&mut self, mut stream: impl AsyncRead + Unpin, heard: &Heard) {
        let mut chunk = [0; 8 << 10];
        while let Ok(n @ 1..) = stream.read(&mut chunk).await {
            heard.again();
            self.0.extend_from_slice(&chunk[..n]);
            if self.0.len() > 2 * TAIL {
                self.0.drain(..self.0.len() - TAIL);
            }
        }
    }

    /// The last [`TAIL`] bytes as text; what is no UTF-8 is replaced.
    fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.0);
        let start = text.len().saturating_sub(TAIL);
        let start = (start..=text.len())
            .find(|i| text.is_char_boundary(*i))
            .expect("the end of a text is a boundary");
        text[start..].to_owned()
    }
}
