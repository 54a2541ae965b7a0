//! The serving side: carries out what is asked over one channel, each thing on a thread of its own. When the channel ends,
//! so does all that was run over it; jobs go on.

use std::collections::HashMap;
use std::io::{BufRead, Error, Result, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::process::{Resource, Rlimit};
use tokio_util::sync::CancellationToken;

use super::jobs::Jobs;
use super::wire::{Answer, Ask, Ending, HELLO, Hello, Order, line};
use crate::host::lease;
use crate::host::process::{self, End};

/// Serves the host until `input` ends. `assay` is this program, `home` the user's.
///
/// # Errors
/// The input cannot be read.
pub fn serve(
    input: impl BufRead,
    output: impl Write + Send + 'static,
    assay: PathBuf,
    home: Option<PathBuf>,
) -> Result<()> {
    raise_limit();
    let server = Arc::new(Server {
        output: Mutex::new(Box::new(output)),
        running: Mutex::default(),
        directory: Mutex::default(),
        closed: AtomicBool::new(false),
        assay,
        home,
    });
    server.hello();
    let mut threads = Vec::new();
    for text in input.lines() {
        let Ok(ask) = serde_json::from_str::<Ask>(&text?) else {
            continue;
        };
        threads.retain(|thread: &thread::JoinHandle<()>| !thread.is_finished());
        threads.extend(server.take(ask)?);
    }
    server.close();
    for thread in threads {
        let _ = thread.join();
    }
    Ok(())
}

/// Lets what is run here open as many files as it may: a login's own limit is often 1024, a load tool has a socket for
/// each of its threads.
pub(super) fn raise_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // It stays as it was where that is not allowed.
    let _ = rustix::process::setrlimit(Resource::Nofile, raised);
}

struct Server {
    output: Mutex<Box<dyn Write + Send>>,
    running: Mutex<HashMap<u64, Running>>,
    directory: Mutex<PathBuf>,
    closed: AtomicBool,
    assay: PathBuf,
    home: Option<PathBuf>,
}

/// Something that can be stopped.
enum Running {
    Command(CancellationToken),
    Job(String),
}

impl Server {
    fn hello(&self) {
        let hello = Hello {
            assay: env!("CARGO_PKG_VERSION").to_owned(),
            user: rustix::process::geteuid().as_raw(),
        };
        let mut text = HELLO.as_bytes().to_vec();
        text.extend(line(&hello));
        self.write(&text);
    }

    fn answer(&self, answer: &Answer) {
        self.write(&line(answer));
    }

    /// Blocks as long as nobody reads: what is printed waits where it is printed, not in memory.
    fn write(&self, bytes: &[u8]) {
        let mut output = lock(&self.output);
        // Nobody listens any more: the input ends, too.
        let _ = output.write_all(bytes).and_then(|()| output.flush());
    }

    /// Begins what is asked.
    fn take(self: &Arc<Self>, ask: Ask) -> Result<Option<thread::JoinHandle<()>>> {
        match ask {
            Ask::Enter { id, directory } => self.enter(id, &directory),
            Ask::Clock { id } => {
                let unix_us = jiff::Timestamp::now().as_microsecond();
                self.answer(&Answer::Clock { id, unix_us });
            }
            Ask::Stop { id } => self.stop(id),
            Ask::Forget { name } => {
                // What cannot be removed now is when the next run takes the host.
                let _ = self.jobs().job(&name).and_then(|job| job.forget());
            }
            Ask::Take {
                id,
                holder,
                dead,
                break_dead,
            } => {
                return self.thread(id, move |server| {
                    server.lend(id, &holder, dead.as_deref(), break_dead)
                });
            }
            Ask::Beat { id, token } => {
                return self.thread(id, move |server| {
                    server.done(id, "keep the lease", lease::beat(&server.place(), &token))
                });
            }
            Ask::Release { id, token } => {
                return self.thread(id, move |server| {
                    let released = lease::release(&server.place(), &token);
                    server.done(id, "give the lease back", released)
                });
            }
            Ask::Run { id, order } => {
                let stop = CancellationToken::new();
                lock(&self.running).insert(id, Running::Command(stop.clone()));
                return self.thread(id, move |server| server.run(id, &order, &stop));
            }
            Ask::Job {
                id,
                name,
                owner,
                order,
                from,
            } => {
                lock(&self.running).insert(id, Running::Job(name.clone()));
                return self.thread(id, move |server| {
                    server.job(id, &name, &owner, &order, from)
                });
            }
        }
        Ok(None)
    }

    fn thread(
        self: &Arc<Self>,
        id: u64,
        work: impl FnOnce(&Self) -> Option<Ending> + Send + 'static,
    ) -> Result<Option<thread::JoinHandle<()>>> {
        let server = Arc::clone(self);
        let work = move || {
            let end = work(&server);
            lock(&server.running).remove(&id);
            if let Some(end) = end {
                server.answer(&Answer::Ended { id, end });
            }
        };
        thread::Builder::new().spawn(work).map(Some)
    }

    fn enter(&self, id: u64, directory: &str) {
        let path = match (directory.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => Ok(home.join(rest)),
            (Some(_), None) => Err(Error::other("the user has no home")),
            (None, _) => Ok(PathBuf::from(directory)),
        };
        let made = path.and_then(|path| std::fs::create_dir_all(&path).map(|()| path));
        match made {
            Ok(path) => {
                lock(&self.directory).clone_from(&path);
                self.answer(&Answer::Directory { id, path });
            }
            Err(error) => {
                let end = Ending::refused(&format!("make the directory `{directory}`"), &error);
                self.answer(&Answer::Ended { id, end });
            }
        }
    }

    fn stop(&self, id: u64) {
        match lock(&self.running).get(&id) {
            Some(Running::Command(stop)) => stop.cancel(),
            Some(Running::Job(name)) => {
                // One that is not there any more has ended, and says so itself.
                let _ = self.jobs().job(name).and_then(|job| job.stop());
            }
            None => {}
        }
    }

    fn place(&self) -> PathBuf {
        lock(&self.directory).clone()
    }

    fn jobs(&self) -> Jobs {
        Jobs::of(&self.place())
    }

    /// Lends the host. What earlier holders left at work is ended: whoever holds the host is alone there.
    fn lend(
        &self,
        id: u64,
        holder: &lease::Holder,
        dead: Option<&str>,
        break_dead: bool,
    ) -> Option<Ending> {
        match lease::take_for(&self.place(), holder, dead, break_dead) {
            Ok(()) => {
                let cleared = self.jobs().clear();
                if cleared.is_err()
                    && let Some(control) = &holder.control
                {
                    // What is not given here is not kept from others.
                    let _ = lease::release(&self.place(), &control.token);
                }
                self.done(id, "end what an earlier run left at work", cleared)
            }
            Err(lease::Refusal::Held(other)) => {
                self.answer(&Answer::Held { id, other: *other });
                None
            }
            Err(lease::Refusal::Io(error)) => Some(Ending::refused("take the lease", &error)),
        }
    }

    /// Says that something was done, or why not.
    fn done<T>(&self, id: u64, what: &str, result: Result<T>) -> Option<Ending> {
        match result {
            Ok(_) => {
                self.answer(&Answer::Done { id });
                None
            }
            Err(error) => Some(Ending::refused(what, &error)),
        }
    }

    fn run(&self, id: u64, order: &Order, stop: &CancellationToken) -> Option<Ending> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => return Some(Ending::refused("start a runtime", &error)),
        };
        let program = order.program.as_deref().unwrap_or(&self.assay);
        let mut print = |text: &str| {
            let text = text.to_owned();
            self.answer(&Answer::Line { id, text, next: 0 });
        };
        let end = runtime.block_on(process::run(program, &order.command(), stop, &mut print));
        Some(ended(program, end))
    }

    fn job(&self, id: u64, name: &str, owner: &str, order: &Order, from: u64) -> Option<Ending> {
        let job = match self.jobs().start(name, owner, order, &self.assay) {
            Ok(job) => job,
            Err(error) => return Some(Ending::refused(&format!("start job `{name}`"), &error)),
        };
        let mut print = |text: &str, next: u64| {
            let text = text.to_owned();
            self.answer(&Answer::Line { id, text, next });
        };
        match job.follow(from, &|| self.closed.load(Relaxed), &mut print) {
            Ok(end) => end,
            Err(error) => Some(Ending::refused(&format!("follow job `{name}`"), &error)),
        }
    }

    /// Ends all that was run over the channel.
    fn close(&self) {
        self.closed.store(true, Relaxed);
        for running in lock(&self.running).values() {
            if let Running::Command(stop) = running {
                stop.cancel();
            }
        }
    }
}

impl Ending {
    pub(super) fn refused(what: &str, error: &Error) -> Self {
        Self::Refused {
            what: what.to_owned(),
            errno: errno(error),
            text: error.to_string(),
        }
    }
}

/// The system's number for an error, also of one that another text was put around.
fn errno(error: &Error) -> Option<i32> {
    error.raw_os_error().or_else(|| {
        let inner = error.get_ref()?.source()?;
        inner.downcast_ref::<Error>()?.raw_os_error()
    })
}

/// What became of a program, as it travels.
pub(super) fn ended(program: &Path, end: Result<(End, String)>) -> Ending {
    match end {
        Ok((End::Itself(status), stderr)) => Ending::Itself { status, stderr },
        Ok((End::Limit, stderr)) => Ending::Limit { stderr },
        Ok((End::Silence, stderr)) => Ending::Silence { stderr },
        Ok((End::Stopped, stderr)) => Ending::Stopped { stderr },
        Err(error) => Ending::refused(&format!("run `{}`", program.display()), &error),
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
