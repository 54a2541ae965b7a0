//! The lease of a host: a file in its directory that names the holder.
//!
//! A holder on this machine keeps it locked. The system frees it when the holder and all that it started here are dead:
//! programs inherit the lock, so that one which outlives a killed run for a moment still keeps others out.
//!
//! A holder on another machine may lose its connection and come back, so that no lock can stand for it. It has a token and lets
//! its heart beat: the time of the file. When that is old the holder seems dead, and the lease can be broken; it is never
//! taken for dead without being told so.

use std::fs::{File, Metadata, TryLockError};
use std::io::Error;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

/// The lock file's name.
pub(super) const NAME: &str = ".assay-lease";
/// How long what a dead holder started may still take, and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(20);
/// No lock file is larger.
const LIMIT: usize = 64 << 10;
/// How often a holder on another machine says that it lives, and after how long a silence it seems dead.
pub(super) const BEAT: Duration = Duration::from_secs(5);
pub(super) const DEAD: Duration = Duration::from_secs(30);

/// Who wants to hold a host.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// For whom, as others are told.
    pub owner: &'a str,
    /// Whether to take it from a holder that seems dead.
    pub break_dead: bool,
}

impl<'a> Claim<'a> {
    /// A claim that breaks nobody's lease.
    #[must_use]
    pub fn of(owner: &'a str) -> Self {
        Self {
            owner,
            break_dead: false,
        }
    }
}

/// Who holds a host; the content of the lease's file, which is empty when nobody does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Holder {
    pub(super) owner: String,
    pub(super) pid: u32,
    pub(super) since: jiff::Timestamp,
    /// Where it is, if it is on another machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) control: Option<Control>,
}

/// The machine of a holder that is not on the host itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Control {
    /// Its name.
    pub(super) machine: String,
    /// What tells its present uptime, and the process numbers that its pid is one of, from any other.
    pub(super) boot: String,
    /// Which lease it is.
    pub(super) token: String,
}

impl Holder {
    /// This process.
    pub(super) fn here(owner: &str) -> Self {
        Self {
            owner: owner.to_owned(),
            pid: std::process::id(),
            since: jiff::Timestamp::now(),
            control: None,
        }
    }

    /// This process, to hold other machines.
    pub(super) fn elsewhere(owner: &str, token: String) -> Self {
        let read = |path| super::facts::text(Path::new(path)).unwrap_or_default();
        Self {
            control: Some(Control {
                machine: read("/proc/sys/kernel/hostname"),
                boot: format!(
                    "{} {}",
                    read("/proc/sys/kernel/random/boot_id"),
                    pid_namespace()
                ),
                token,
            }),
            ..Self::here(owner)
        }
    }

    /// Whether it was a process of this machine that is there no more.
    pub(super) fn is_known_dead(&self) -> bool {
        let here = Self::elsewhere("", String::new()).control;
        let boot = |control: &Option<Control>| control.as_ref().map(|c| c.boot.clone());
        let is_here = boot(&here) == boot(&self.control);
        is_here && is_dead(self.pid)
    }

    fn token(&self) -> Option<&str> {
        self.control.as_ref().map(|control| control.token.as_str())
    }

    /// Who it is and since when, on one line.
    pub(super) fn text(&self) -> String {
        let owner = self.owner.replace(char::is_control, " ");
        let machine = match &self.control {
            Some(control) => format!(" on {}", control.machine.replace(char::is_control, " ")),
            None => String::new(),
        };
        format!(
            "{owner} (process {}{machine}) since {:.0}",
            self.pid, self.since
        )
    }
}

/// The namespace of this process's number: in another one, as in each container, the same number is another process's.
fn pid_namespace() -> String {
    let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().into_owned()
}

/// Why a host is not held.
#[derive(Debug)]
pub(super) enum Refusal {
    /// Another holds it.
    Held(Box<Other>),
    /// The lock file cannot be used.
    Io(Error),
}

/// Another holder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Other {
    /// Who it is and since when.
    pub(super) text: String,
    /// What it says of itself, if it is on another machine.
    pub(super) holder: Option<Holder>,
    /// Whether its heart has not beaten for too long.
    pub(super) seems_dead: bool,
}

/// The lease's file, locked for as long as this is there.
#[derive(Debug)]
pub(super) struct Locked {
    file: File,
    path: PathBuf,
}

/// A lease that is kept by the lock; the file is emptied when it ends.
#[derive(Debug)]
pub(super) struct Held(Locked);

/// Takes the lease of the host whose directory is `directory`, which is made when it is missing, for this process.
/// What is not assay's own file is neither followed nor changed.
pub(super) fn take(directory: &Path, claim: Claim<'_>) -> Result<Held, Refusal> {
    // It stays open in programs that are started from here, and so does the lock.
    let locked = Locked::open(directory, OFlags::empty())?;
    locked.make_free(|other| claim.break_dead && other.seems_dead)?;
    locked
        .write(&Holder::here(claim.owner))
        .map_err(Refusal::Io)?;
    Ok(Held(locked))
}

/// Takes the lease for a holder on another machine. `dead` is the token of a lease whose holder is known to be dead; one
/// that seems dead is broken as well if `break_dead`.
pub(super) fn take_for(
    directory: &Path,
    holder: &Holder,
    dead: Option<&str>,
    break_dead: bool,
) -> Result<(), Refusal> {
    let locked = Locked::open(directory, OFlags::CLOEXEC)?;
    locked.make_free(|other| {
        let token = other.holder.as_ref().and_then(Holder::token);
        (break_dead && other.seems_dead) || (token.is_some() && token == dead)
    })?;
    locked.write(holder).map_err(Refusal::Io)
}

/// Says that the holder with this token lives.
pub(super) fn beat(directory: &Path, token: &str) -> Result<(), Error> {
    let locked = Locked::of(directory, token)?;
    locked.file.set_modified(SystemTime::now())
}

/// Gives the lease with this token back.
pub(super) fn release(directory: &Path, token: &str) -> Result<(), Error> {
    Locked::of(directory, token)?.file.set_len(0)
}

impl Locked {
    /// The file, which is made when it is missing.
    fn open(directory: &Path, flags: OFlags) -> Result<Self, Refusal> {
        std::fs::create_dir_all(directory).map_err(Refusal::Io)?;
        let path = directory.join(NAME);
        let file = open(&path, flags).map_err(Refusal::Io)?;
        lock(&file)?;
        let locked = Self { file, path };
        // Between the opening and the lock, somebody may have removed it, and another may have locked a new one.
        locked.check().map_err(Refusal::Io)?;
        Ok(locked)
    }

    /// The file of the lease with this token.
    fn of(directory: &Path, token: &str) -> Result<Self, Error> {
        let locked = Self::open(directory, OFlags::CLOEXEC).map_err(|refusal| match refusal {
            Refusal::Io(error) => error,
            Refusal::Held(other) => Error::other(format!("it is held by {}", other.text)),
        })?;
        match locked.holder()? {
            Some(holder) if holder.token() == Some(token) => Ok(locked),
            Some(holder) => Err(Error::other(format!("it is held by {}", holder.text()))),
            None => Err(Error::other("it was removed")),
        }
    }

    /// Who holds the host by the file's content. A file of another kind is not assay's.
    fn holder(&self) -> Result<Option<Holder>, Error> {
        let known = content(&self.file)?;
        if known.is_empty() {
            return Ok(None);
        }
        let holder = serde_json::from_slice(&known);
        holder
            .map(Some)
            .map_err(|_| foreign(&self.path, "it names no holder"))
    }

    /// Whether nobody holds the host: one of this machine does so by the lock, which is ours now; one of another machine by
    /// what the file says, unless that may be broken.
    fn make_free(&self, may_break: impl Fn(&Other) -> bool) -> Result<(), Refusal> {
        let holder = self.holder().map_err(Refusal::Io)?;
        let Some(holder) = holder.filter(|holder| holder.control.is_some()) else {
            return Ok(());
        };
        let beat = self.file.metadata().and_then(|meta| meta.modified());
        // A heart that beats has set the time to this clock's within seconds: one that is far ahead is from before the clock was
        // set back, and as old as one that is far behind.
        let silence = beat.map(|beat| beat.elapsed().unwrap_or_else(|ahead| ahead.duration()));
        let silence = silence.map_err(Refusal::Io)?;
        let whole = Duration::from_secs(silence.as_secs());
        let other = Other {
            text: format!(
                "{}, last heard of {} ago",
                holder.text(),
                humantime::format_duration(whole)
            ),
            seems_dead: silence > DEAD || holder.is_known_dead(),
            holder: Some(holder),
        };
        let dead = other.holder.as_ref().is_some_and(Holder::is_known_dead);
        if dead || may_break(&other) {
            return Ok(());
        }
        Err(Refusal::Held(Box::new(other)))
    }

    /// In one piece: a death leaves the file empty or complete.
    fn write(&self, holder: &Holder) -> Result<(), Error> {
        let mut text = serde_json::to_vec(holder)?;
        text.push(b'\n');
        self.file.set_len(0)?;
        self.file.write_all_at(&text, 0)?;
        self.file.sync_data()
    }

    /// Whether the file by the lease's name is still the one that is locked: removed or replaced, with its directory or
    /// alone, it keeps nobody else from taking a new one.
    fn check(&self) -> Result<(), Error> {
        let id = |meta: &Metadata| (meta.dev(), meta.ino());
        let why = match std::fs::symlink_metadata(&self.path) {
            Ok(meta) if id(&meta) == id(&self.file.metadata()?) => return Ok(()),
            Ok(_) => "it was replaced".to_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                "it was removed".to_owned()
            }
            Err(error) => error.to_string(),
        };
        Err(Error::other(why))
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Unlocked by name: a child that is being spawned just now may have a copy of the descriptor for a moment.
        let _ = self.file.unlock();
    }
}

impl Held {
    /// Whether it still keeps others out.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.0.check()
    }

    pub(super) fn path(&self) -> &Path {
        &self.0.path
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.file.set_len(0);
    }
}

/// Locks the file. A lock that cannot last is waited for: that of a dead holder, whose programs end by themselves, and the one
/// that is taken for a moment on behalf of another machine.
fn lock(file: &File) -> Result<(), Refusal> {
    let patience = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(Refusal::Io(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        let bytes = content(file).unwrap_or_default();
        let holder = serde_json::from_slice::<Holder>(&bytes).ok();
        let passes = match &holder {
            Some(holder) => holder.control.is_some() || is_dead(holder.pid),
            None => bytes.is_empty(),
        };
        if !passes || Instant::now() > patience {
            return Err(Refusal::Held(Box::new(Other {
                text: holder
                    .as_ref()
                    .map_or("another run".to_owned(), Holder::text),
                holder: None,
                seems_dead: false,
            })));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether a process of this machine is there no more.
fn is_dead(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// Opens the lock file, which is made when it is missing. A fifo by its name does not hang.
fn open(path: &Path, flags: OFlags) -> Result<File, Error> {
    let flags = flags | OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mode = Mode::from_raw_mode(0o644);
    let file: File = match rustix::fs::open(path, flags, mode) {
        Ok(file) => file.into(),
        Err(Errno::LOOP) => return Err(foreign(path, "it is a symbolic link")),
        Err(Errno::ISDIR | Errno::NXIO | Errno::NODEV) => {
            return Err(foreign(path, "it is no file"));
        }
        Err(error) => return Err(error.into()),
    };
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(foreign(path, "it is no file"));
    }
    if meta.nlink() > 1 {
        return Err(foreign(path, "it has another name"));
    }
    Ok(file)
}

fn foreign(path: &Path, why: &str) -> Error {
    Error::other(format!(
        "`{}` is left alone, for it is no lease of assay: {why}",
        path.display()
    ))
}

fn content(file: &File) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; LIMIT];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}
