//! Jobs: programs on a host that outlive the channel they were asked for over. Each has a name and a folder of that name with
//! what it was asked, what it printed and how it ended; a [supervisor](super::supervise) runs it, as a systemd unit where
//! there is systemd.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Read as _, Result, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::wire::{Ending, Order};

/// The folder of all jobs in a host's directory.
const FOLDER: &str = ".assay-jobs";
/// How long a supervisor may take to start.
const START: Duration = Duration::from_secs(30);
/// How long a stopped job may take to end: twice what its programs get.
const STOP: Duration = Duration::from_secs(20);
/// How often a job is looked at: at first, and when nothing has happened for a while.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));
/// Room that is kept for how a job ends, bytes; a longer text has to find its own.
const ROOM: u64 = 64 << 10;
/// How much of what a job printed is read at once.
const CHUNK: u64 = 256 << 10;

/// What a job's folder holds.
pub(super) mod file {
    /// What it was asked, with what it is to read; removed by the supervisor as soon as it has read it.
    pub(in super::super) const ORDER: &str = "order.json";
    /// For whom it works.
    pub(in super::super) const OWNER: &str = "owner";
    /// Locked while the supervisor lives; holds its process id.
    pub(in super::super) const LOCK: &str = "lock";
    /// There if it is to stop.
    pub(in super::super) const STOP: &str = "stop";
    /// Room for how it ends, kept from the start: it may fill the disk itself.
    pub(in super::super) const ROOM: &str = "room";
    /// What it printed.
    pub(in super::super) const OUT: &str = "out";
    /// How it ended.
    pub(in super::super) const END: &str = "end.json";
    /// All of them.
    pub(super) const ALL: [&str; 7] = [ORDER, OWNER, LOCK, STOP, ROOM, OUT, END];
}

/// The jobs of a host.
#[derive(Clone, Debug)]
pub(in crate::host) struct Jobs {
    folder: PathBuf,
}

impl Jobs {
    pub(in crate::host) fn of(directory: &Path) -> Self {
        Self {
            folder: directory.join(FOLDER),
        }
    }

    /// The job `name`.
    pub(super) fn job(&self, name: &str) -> Result<Job> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !name.starts_with("assay-") || !name.chars().all(plain) || name.len() > 100 {
            let why = format!("`{name}` is no name of a job");
            return Err(Error::new(ErrorKind::InvalidInput, why));
        }
        Ok(Job {
            name: name.to_owned(),
            folder: self.folder.join(name),
        })
    }

    /// Ends and forgets every job: whoever wanted them is gone. Returns their names.
    pub(in crate::host) fn clear(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for name in self.names()? {
            let job = self.job(&name)?;
            match job.end().and_then(|()| job.forget()) {
                // Whoever wanted it has just forgotten it.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                result => result?,
            }
            names.push(name);
        }
        Ok(names)
    }

    /// The names of all jobs.
    pub(in crate::host) fn names(&self) -> Result<Vec<String>> {
        if !self.is_there()? {
            return Ok(Vec::new());
        }
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            // What has no owner, or is a link, is none of assay's jobs, and left alone.
            if self.job(&name).is_ok_and(|job| job.is_ours()) {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Whether the folder is there. What is no folder, a link to one as well, is refused: files are removed in it.
    fn is_there(&self) -> Result<bool> {
        match std::fs::symlink_metadata(&self.folder) {
            Ok(meta) if meta.is_dir() => Ok(true),
            Ok(_) => Err(Error::other(format!(
                "`{}` is left alone, for it is no folder of assay",
                self.folder.display()
            ))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Starts a job unless it was started before, so that asking twice is asking once.
    pub(super) fn start(
        &self,
        name: &str,
        owner: &str,
        order: &Order,
        assay: &Path,
    ) -> Result<Job> {
        let job = self.job(name)?;
        if !self.is_there()? {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.folder)?;
        }
        // It appears with all that belongs to it, or not at all.
        let new = tempfile::Builder::new()
            .prefix(".new-")
            .tempdir_in(&self.folder)?;
        let text = serde_json::to_vec(order)?;
        write_private(&new.path().join(file::ORDER), &text)?;
        write_private(&new.path().join(file::OWNER), owner.as_bytes())?;
        reserve(&new.path().join(file::ROOM))?;
        match std::fs::rename(new.path(), &job.folder) {
            Ok(()) => drop(new.keep()),
            Err(error) if is_taken(&error) => return Ok(job),
            Err(error) => return Err(error),
        }
        if let Err(error) = job.launch(owner, assay) {
            let _ = job.forget();
            return Err(error);
        }
        Ok(job)
    }
}

/// One job.
#[derive(Clone, Debug)]
pub(super) struct Job {
    name: String,
    folder: PathBuf,
}

/// Whether a job's supervisor is there.
enum Life {
    /// It has not come up yet.
    Unborn,
    /// It is at work; its process id, once it has written it.
    Alive(Option<Pid>),
    /// It is gone.
    Dead,
}

impl Job {
    /// Starts its supervisor, away from this process.
    fn launch(&self, owner: &str, assay: &Path) -> Result<()> {
        let is_root = rustix::process::geteuid().is_root();
        if is_root && Path::new("/run/systemd/system").is_dir() {
            match self.launch_unit(owner, assay) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                result => return result,
            }
        }
        let mut child = supervisor(Command::new(assay), &self.folder).spawn()?;
        // It outlives this process; but while that is there, somebody has to take note of its end.
        std::thread::spawn(move || child.wait());
        Ok(())
    }

    fn launch_unit(&self, owner: &str, assay: &Path) -> Result<()> {
        let mut run = Command::new("systemd-run");
        run.args(["--quiet", "--collect", "--property=KillMode=mixed"])
            .args([
                "--property=TimeoutStopSec=15",
                "--property=LimitNOFILE=1048576",
            ])
            .arg(format!("--unit={}", self.name))
            .arg(format!(
                "--description={}",
                owner.replace(char::is_control, " ")
            ))
            .arg("--")
            .arg(assay);
        let output = supervisor(run, &self.folder)
            .stderr(Stdio::piped())
            .output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Error::other(format!("systemd-run: {said}")))
    }

    /// Hands on the lines that it prints, from byte `from` on, until it ends or `given_up` says so.
    /// Each line comes with the byte after it.
    pub(super) fn follow(
        &self,
        from: u64,
        given_up: &dyn Fn() -> bool,
        line: &mut dyn FnMut(&str, u64),
    ) -> Result<Option<Ending>> {
        let start = Instant::now();
        let mut reader = Reader::at(self.folder.join(file::OUT), from);
        let mut pause = PAUSES.0;
        while !given_up() {
            // Asked before reading: what it printed before it ended is read after that.
            let life = self.life()?;
            let end = self.ending()?;
            if reader.read(line)? {
                pause = PAUSES.0;
                continue;
            }
            match (end, life) {
                (Some(end), _) => {
                    reader.rest(line);
                    return Ok(Some(end));
                }
                (None, Life::Dead) if self.ending()?.is_none() => return Ok(Some(Ending::Gone)),
                (None, Life::Unborn) if start.elapsed() > START => return Ok(Some(Ending::Gone)),
                (None, _) => {}
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSES.1);
        }
        Ok(None)
    }

    /// Asks it to stop; its supervisor ends the program and says so.
    pub(super) fn stop(&self) -> Result<()> {
        let noted = write_private(&self.folder.join(file::STOP), b"");
        if let Life::Alive(Some(pid)) = self.life()? {
            // It fails only when it has just ended. A disk that is full keeps nobody from it.
            let _ = kill_process(pid, Signal::TERM);
            return Ok(());
        }
        noted
    }

    /// Stops it and waits until it is gone.
    fn end(&self) -> Result<()> {
        let deadline = Instant::now() + STOP;
        loop {
            if self.ending()?.is_some() || matches!(self.life()?, Life::Dead) {
                return Ok(());
            }
            self.stop()?;
            if Instant::now() > deadline {
                let why = format!("job `{}` does not stop", self.name);
                return Err(Error::new(ErrorKind::TimedOut, why));
            }
            std::thread::sleep(PAUSES.1);
        }
    }

    /// Whether its folder is a job's: a folder, no link to one, with the file that names its owner.
    fn is_ours(&self) -> bool {
        let is_folder = std::fs::symlink_metadata(&self.folder).is_ok_and(|meta| meta.is_dir());
        let owner = std::fs::symlink_metadata(self.folder.join(file::OWNER));
        is_folder && owner.is_ok_and(|meta| meta.is_file())
    }

    /// Removes its folder. Only files that jobs have are removed, the owner last: without it nothing is.
    pub(super) fn forget(&self) -> Result<()> {
        if !self.is_ours() {
            return Err(ErrorKind::NotFound.into());
        }
        for entry in std::fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            let is_known = file::ALL.contains(&&*name) || name.starts_with(".tmp");
            if is_known && name != file::OWNER {
                std::fs::remove_file(self.folder.join(&*name))?;
            }
        }
        std::fs::remove_file(self.folder.join(file::OWNER))?;
        match std::fs::remove_dir(&self.folder) {
            // Somebody else's file is in it, and stays.
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
            result => result,
        }
    }

    fn ending(&self) -> Result<Option<Ending>> {
        match std::fs::read(self.folder.join(file::END)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn life(&self) -> Result<Life> {
        let mut lock = match File::open(self.folder.join(file::LOCK)) {
            Ok(lock) => lock,
            Err(error) if error.kind() == ErrorKind::NotFound && self.folder.is_dir() => {
                return Ok(Life::Unborn);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Life::Dead),
            Err(error) => return Err(error),
        };
        match lock.try_lock_shared() {
            Ok(()) => Ok(Life::Dead),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                lock.read_to_string(&mut text)?;
                let pid = text.trim().parse().ok().and_then(Pid::from_raw);
                Ok(Life::Alive(pid))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn supervisor(mut command: Command, folder: &Path) -> Command {
    command
        .args(["agent", "supervise"])
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn is_taken(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists
    )
}

fn write_private(path: &Path, text: &[u8]) -> Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(text)
}

fn reserve(path: &Path) -> Result<()> {
    match fallocate(File::create_new(path)?, FallocateFlags::empty(), 0, ROOM) {
        // Not every file system can; then the outcome takes its chance.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        result => Ok(result?),
    }
}

/// Reads a growing file line by line.
struct Reader {
    path: PathBuf,
    next: u64,
    begun: Vec<u8>,
}

impl Reader {
    fn at(path: PathBuf, next: u64) -> Self {
        Self {
            path,
            next,
            begun: Vec::new(),
        }
    }

    /// Hands on the lines that are complete by now; whether there was anything new.
    fn read(&mut self, line: &mut dyn FnMut(&str, u64)) -> Result<bool> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let from = self.next + self.begun.len() as u64;
        file.seek(SeekFrom::Start(from))?;
        let read = file.take(CHUNK).read_to_end(&mut self.begun)?;
        let mut rest = 0;
        while let Some(length) = self.begun[rest..].iter().position(|byte| *byte == b'\n') {
            self.next += length as u64 + 1;
            let text = String::from_utf8_lossy(&self.begun[rest..rest + length]);
            line(&text, self.next);
            rest += length + 1;
        }
        self.begun.drain(..rest);
        Ok(read > 0)
    }

    /// Hands on a last line without an end.
    fn rest(&mut self, line: &mut dyn FnMut(&str, u64)) {
        if !self.begun.is_empty() {
            self.next += self.begun.len() as u64;
            line(&String::from_utf8_lossy(&self.begun), self.next);
        }
    }
}
