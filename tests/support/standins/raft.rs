//! The log of Raft: in an engine of its own up to v6.0, in `raft-engine/` after that.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::engine::Engine;

/// Preallocated, as the real one does it with more.
const FILE_SIZE: u64 = 256 * 1024;
/// A line: a number and a line break.
const LINE: u64 = 21;

/// Where Raft's log is kept.
pub(crate) enum RaftLog {
    Engine(Box<Engine>),
    Files(Files),
}

impl RaftLog {
    /// Opens the log in a data directory; a log of the other kind is taken over, as on an upgrade.
    pub(crate) fn open(data: &Path, with_files: bool) -> Result<Self, Failure> {
        let (engine, files) = (data.join("raft"), data.join("raft-engine"));
        let (has_engine, has_files) = (engine.join("CURRENT").exists(), Files::exist(&files)?);
        if has_engine && has_files {
            return Err("multiple raft data: both raft and raft-engine hold some".into());
        }
        if with_files {
            let mut log = Files::open(&files)?;
            if has_engine {
                log.catch_up(Engine::open(&engine)?.last())?;
                fs::remove_dir_all(&engine)?;
            }
            return Ok(Self::Files(log));
        }
        let mut log = Engine::open(&engine)?;
        if has_files {
            let last = Files::open(&files)?.last;
            while log.last() < last {
                log.append()?;
            }
            fs::remove_dir_all(&files)?;
        }
        Ok(Self::Engine(Box::new(log)))
    }

    pub(crate) fn last(&self) -> u64 {
        match self {
            Self::Engine(engine) => engine.last(),
            Self::Files(files) => files.last,
        }
    }

    pub(crate) fn append(&mut self) -> Result<(), Failure> {
        match self {
            Self::Engine(engine) => engine.append(),
            Self::Files(files) => files.append(),
        }
    }

    /// Cuts off what was allocated in advance, as at a clean stop.
    pub(crate) fn close(&self) -> Result<(), Failure> {
        match self {
            Self::Engine(_) => Ok(()),
            Self::Files(files) => Ok(files.file.set_len(files.at)?),
        }
    }
}

/// `NNNNNNNNNNNNNNNN.raftlog` files: preallocated and written in place.
pub(crate) struct Files {
    folder: PathBuf,
    number: u64,
    file: File,
    at: u64,
    last: u64,
}

impl Files {
    fn exist(folder: &Path) -> Result<bool, Failure> {
        Ok(folder.exists() && !numbers(folder)?.is_empty())
    }

    fn open(folder: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(folder)?;
        let number = numbers(folder)?.last().copied().unwrap_or(1);
        let path = path(folder, number);
        let file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)?;
        let text = fs::read(&path)?;
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<u64> = text
            .lines()
            .map_while(|line| line.trim_matches('\0').trim().parse().ok())
            .collect();
        if lines.windows(2).any(|pair| pair[1] != pair[0] + 1) {
            return Err(format!("Corruption: entries are missing in {}", path.display()).into());
        }
        file.set_len(FILE_SIZE)?;
        let at = lines.len() as u64 * LINE;
        let log = Self {
            folder: folder.to_owned(),
            number,
            file,
            at,
            last: lines.last().copied().unwrap_or(0),
        };
        fs::write(log.folder.join(format!("{number:016}.rewrite")), "")?;
        Ok(log)
    }

    fn append(&mut self) -> Result<(), Failure> {
        self.last += 1;
        if self.at + LINE > FILE_SIZE {
            self.roll()?;
        }
        self.file
            .write_all_at(format!("{:020}\n", self.last).as_bytes(), self.at)?;
        self.at += LINE;
        Ok(())
    }

    fn roll(&mut self) -> Result<(), Failure> {
        let old = path(&self.folder, self.number);
        self.number += 1;
        self.file = File::create_new(path(&self.folder, self.number))?;
        self.file.set_len(FILE_SIZE)?;
        self.at = 0;
        Ok(fs::remove_file(old)?)
    }

    fn catch_up(&mut self, last: u64) -> Result<(), Failure> {
        while self.last < last {
            self.append()?;
        }
        Ok(())
    }
}

fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:016}.raftlog"))
}

fn numbers(folder: &Path) -> Result<Vec<u64>, Failure> {
    let names = fs::read_dir(folder)?
        .flatten()
        .map(|file| file.file_name().to_string_lossy().into_owned());
    let mut numbers: Vec<u64> = names
        .filter_map(|name| name.strip_suffix(".raftlog")?.parse().ok())
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}
