//! The asking side of a channel: many things at once, each answered by its number.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::wire::{Answer, Ask, Ending, Order, line};
use crate::host::Command;
use crate::host::lease::{Holder, Other};

/// Answers that wait for their reader; then the channel waits.
const WAITING: usize = 256;
/// No answer is longer: a line of output is at most 1 MiB, and six bytes a byte in JSON.
const LONGEST: u64 = 8 << 20;

/// The channel is at its end, and with it all that was asked over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) struct Lost;

/// Something to do, and what hears of it.
pub(in crate::host) struct Task<'a> {
    /// What is run.
    pub command: &'a Command,
    /// The job that it is, if it is to outlive the channel.
    pub job: Option<Survivor<'a>>,
    /// Ends it when cancelled.
    pub stop: &'a CancellationToken,
    /// Hears each line that it prints.
    pub line: &'a mut (dyn FnMut(&str) + Send),
}

/// Why a lease was not given.
pub(in crate::host) enum Refused {
    /// Another holds the host.
    Held(Box<Other>),
    /// It cannot be given.
    Ended(Ending),
}

/// A command that outlives channels.
pub(in crate::host) struct Survivor<'a> {
    /// Its name on the host.
    pub name: &'a str,
    /// For whom it works.
    pub owner: &'a str,
    /// How many bytes of its output were heard over earlier channels; counted on.
    pub heard: &'a mut u64,
}

type Pending = Arc<Mutex<HashMap<u64, mpsc::Sender<Answer>>>>;

/// A channel to a serving host.
pub(in crate::host) struct Link {
    asks: mpsc::UnboundedSender<Vec<u8>>,
    pending: Pending,
    next: AtomicU64,
    lost: CancellationToken,
}

impl Link {
    /// Speaks over the two ends of a channel, whose host has said its hello.
    pub(in crate::host) fn new(
        stdin: impl AsyncWrite + Send + Unpin + 'static,
        stdout: impl AsyncBufRead + Send + Unpin + 'static,
    ) -> Self {
        let (asks, from) = mpsc::unbounded_channel();
        let pending = Pending::default();
        let lost = CancellationToken::new();
        tokio::spawn(write(stdin, from, lost.clone()));
        tokio::spawn(read(stdout, Arc::clone(&pending), lost.clone()));
        Self {
            asks,
            pending,
            next: AtomicU64::new(1),
            lost,
        }
    }

    /// Whether the channel is at its end.
    pub(in crate::host) fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    /// Makes `directory` there and says where it is.
    pub(in crate::host) async fn enter(
        &self,
        directory: &str,
    ) -> Result<Result<PathBuf, Ending>, Lost> {
        let mut asked = self.ask(|id| Ask::Enter {
            id,
            directory: directory.to_owned(),
        });
        loop {
            match asked.answer().await? {
                Answer::Directory { path, .. } => return Ok(Ok(path)),
                Answer::Ended { end, .. } => return Ok(Err(end)),
                Answer::Line { .. }
                | Answer::Clock { .. }
                | Answer::Done { .. }
                | Answer::Held { .. } => {}
            }
        }
    }

    /// Takes the host's lease; the other holder's, if it has one.
    pub(in crate::host) async fn take(
        &self,
        holder: &Holder,
        dead: Option<&str>,
        break_dead: bool,
    ) -> Result<Result<(), Refused>, Lost> {
        let mut asked = self.ask(|id| Ask::Take {
            id,
            holder: holder.clone(),
            dead: dead.map(str::to_owned),
            break_dead,
        });
        loop {
            match asked.answer().await? {
                Answer::Done { .. } => return Ok(Ok(())),
                Answer::Held { other, .. } => return Ok(Err(Refused::Held(Box::new(other)))),
                Answer::Ended { end, .. } => return Ok(Err(Refused::Ended(end))),
                Answer::Directory { .. } | Answer::Line { .. } | Answer::Clock { .. } => {}
            }
        }
    }

    /// Says that the holder of the lease with this token lives.
    pub(in crate::host) async fn beat(&self, token: &str) -> Result<Result<(), Ending>, Lost> {
        let token = token.to_owned();
        self.done(|id| Ask::Beat { id, token }).await
    }

    /// Gives the lease with this token back.
    pub(in crate::host) async fn release(&self, token: &str) -> Result<Result<(), Ending>, Lost> {
        let token = token.to_owned();
        self.done(|id| Ask::Release { id, token }).await
    }

    async fn done(&self, ask: impl FnOnce(u64) -> Ask) -> Result<Result<(), Ending>, Lost> {
        let mut asked = self.ask(ask);
        loop {
            match asked.answer().await? {
                Answer::Done { .. } => return Ok(Ok(())),
                Answer::Ended { end, .. } => return Ok(Err(end)),
                Answer::Directory { .. }
                | Answer::Line { .. }
                | Answer::Clock { .. }
                | Answer::Held { .. } => {}
            }
        }
    }

    /// What time it is there, µs of Unix time.
    pub(in crate::host) async fn time(&self) -> Result<i64, Lost> {
        let mut asked = self.ask(|id| Ask::Clock { id });
        loop {
            if let Answer::Clock { unix_us, .. } = asked.answer().await? {
                return Ok(unix_us);
            }
        }
    }

    /// Runs a command, or starts and follows a job, to its end.
    pub(in crate::host) async fn carry_out(&self, task: Task<'_>) -> Result<Ending, Lost> {
        let Task {
            command,
            mut job,
            stop,
            line,
        } = task;
        let order = Order::of(command);
        let mut asked = self.ask(|id| match &job {
            None => Ask::Run { id, order },
            Some(job) => Ask::Job {
                id,
                name: job.name.to_owned(),
                owner: job.owner.to_owned(),
                order,
                from: *job.heard,
            },
        });
        let mut told = false;
        loop {
            let answer = tokio::select! {
                biased;
                answer = asked.answer() => answer?,
                () = stop.cancelled(), if !told => {
                    asked.stop();
                    told = true;
                    continue;
                }
            };
            match answer {
                Answer::Line { text, next, .. } => {
                    if let Some(job) = &mut job {
                        *job.heard = next;
                    }
                    line(&text);
                }
                Answer::Ended { end, .. } => {
                    asked.done = true;
                    return Ok(end);
                }
                Answer::Directory { .. }
                | Answer::Clock { .. }
                | Answer::Done { .. }
                | Answer::Held { .. } => {}
            }
        }
    }

    /// The outcome of a job has arrived.
    pub(in crate::host) fn forget(&self, name: &str) {
        let name = name.to_owned();
        let _ = self.asks.send(line(&Ask::Forget { name }));
    }

    fn ask(&self, ask: impl FnOnce(u64) -> Ask) -> Asked<'_> {
        let id = self.next.fetch_add(1, Relaxed);
        let (answers, from) = mpsc::channel(WAITING);
        lock(&self.pending).insert(id, answers);
        // A reader that has ended drops no sender that comes after it.
        if self.is_lost() {
            lock(&self.pending).clear();
        }
        let _ = self.asks.send(line(&ask(id)));
        Asked {
            link: self,
            id,
            answers: from,
            done: false,
        }
    }
}

/// Something that was asked. Dropped before its end, it is stopped.
struct Asked<'a> {
    link: &'a Link,
    id: u64,
    answers: mpsc::Receiver<Answer>,
    done: bool,
}

impl Asked<'_> {
    async fn answer(&mut self) -> Result<Answer, Lost> {
        self.answers.recv().await.ok_or(Lost)
    }

    fn stop(&self) {
        let _ = self.link.asks.send(line(&Ask::Stop { id: self.id }));
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        lock(&self.link.pending).remove(&self.id);
        if !self.done {
            self.stop();
        }
    }
}

async fn write(
    mut stdin: impl AsyncWrite + Unpin,
    mut asks: mpsc::UnboundedReceiver<Vec<u8>>,
    lost: CancellationToken,
) {
    loop {
        let ask = tokio::select! {
            biased;
            () = lost.cancelled() => return,
            ask = asks.recv() => ask,
        };
        // Without askers the channel is closed: the host ends what is left of its work.
        let Some(ask) = ask else { return };
        if stdin.write_all(&ask).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

async fn read(mut stdout: impl AsyncBufRead + Unpin, pending: Pending, lost: CancellationToken) {
    let mut text = Vec::new();
    loop {
        text.clear();
        let mut bounded = (&mut stdout).take(LONGEST);
        match bounded.read_until(b'\n', &mut text).await {
            Ok(1..) if text.ends_with(b"\n") => {}
            _ => break,
        }
        let Ok(answer) = serde_json::from_slice::<Answer>(&text) else {
            tracing::debug!(text = %String::from_utf8_lossy(&text), "unexpected answer");
            continue;
        };
        let asker = lock(&pending).get(&answer.id()).cloned();
        if let Some(asker) = asker {
            // One that has left needs no answer.
            let _ = asker.send(answer).await;
        }
    }
    lost.cancel();
    lock(&pending).clear();
}

impl Answer {
    fn id(&self) -> u64 {
        match self {
            Self::Directory { id, .. }
            | Self::Line { id, .. }
            | Self::Ended { id, .. }
            | Self::Clock { id, .. }
            | Self::Done { id }
            | Self::Held { id, .. } => *id,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
