//! The event log on disk: append only, each event flushed to disk; a torn last line is dropped.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::reader::read_file;
use super::{ArchiveError, Entry, Event};

/// How long a lock that is no writer's may last, and how often it is tried.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);

/// An event log open for writing. It is locked, so that one process at a time writes.
#[derive(Debug)]
pub struct EventLog {
    file: File,
    path: PathBuf,
}

impl EventLog {
    /// Opens the log at `path`, making it if it is not there, and cuts off a torn last line.
    ///
    /// # Errors
    /// The log is written by another process, or cannot be opened.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        let io = |source| ArchiveError::io("open", path, source);
        if path.exists() && !path.is_file() {
            return Err(ArchiveError::Damaged {
                path: path.to_owned(),
                why: "it is no regular file".to_owned(),
            });
        }
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(io)?;
        lock(&file, path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io)?;
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64).map_err(io)?;
            file.seek(SeekFrom::End(0)).map_err(io)?;
            file.sync_all().map_err(io)?;
        }
        Ok(Self {
            file,
            path: path.to_owned(),
        })
    }

    /// The same log, after its run's folder got its final name.
    pub(super) fn at(self, path: PathBuf) -> Self {
        Self { path, ..self }
    }

    /// Appends one event; when this returns it is on disk.
    ///
    /// # Errors
    /// The disk refuses. A line that was written in part is taken back.
    pub fn append(&mut self, at: jiff::Timestamp, event: Event) -> Result<Entry, ArchiveError> {
        let entry = Entry { at, event };
        let mut line = serde_json::to_vec(&entry).expect("events are plain data");
        line.push(b'\n');
        self.is_there()?;
        let before = self.file.metadata().map_err(|e| self.error(e))?.len();
        let written = self
            .file
            .write_all(&line)
            .and_then(|()| self.file.sync_data());
        if let Err(source) = written {
            // Best effort: a torn line is tolerated by every reader anyway.
            let _ = self.file.set_len(before);
            return Err(self.error(source));
        }
        Ok(entry)
    }

    /// A log that was removed or moved away with its run takes no more events: nobody would ever find them.
    fn is_there(&self) -> Result<(), ArchiveError> {
        let id = |meta: &std::fs::Metadata| (meta.dev(), meta.ino());
        let opened = self.file.metadata().map_err(|e| self.error(e))?;
        match std::fs::symlink_metadata(&self.path) {
            Ok(found) if id(&found) == id(&opened) => Ok(()),
            _ => Err(ArchiveError::Gone(self.path.clone())),
        }
    }

    fn error(&self, source: std::io::Error) -> ArchiveError {
        ArchiveError::io("write", &self.path, source)
    }
}

/// Locks the log for writing. A lock that is gone after a moment is no writer's: a reader looks whether there is one, or a
/// killed writer's child still has its descriptors, between its birth and its first instruction.
fn lock(file: &File, path: &Path) -> Result<(), ArchiveError> {
    let patience = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(source)) => return Err(ArchiveError::io("open", path, source)),
            Err(TryLockError::WouldBlock) if Instant::now() < patience => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return Err(ArchiveError::Busy(path.to_owned())),
        }
    }
}

/// Reads a log; a last line without its end is left out.
///
/// # Errors
/// The log cannot be read, or a whole line is no event.
pub fn read_events(path: &Path) -> Result<Vec<Entry>, ArchiveError> {
    let bytes = read_file(path)?;
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
    bytes[..whole]
        .split(|b| *b == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
        .map(|(n, line)| {
            serde_json::from_slice(line).map_err(|source| ArchiveError::Json {
                path: path.to_owned(),
                line: n + 1,
                source,
            })
        })
        .collect()
}

/// Whether a process is writing the log now.
#[must_use]
pub fn is_written(path: &Path) -> bool {
    path.is_file()
        && File::open(path)
            .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> jiff::Timestamp {
        jiff::Timestamp::from_second(1_700_000_000).unwrap()
    }

    fn stopped(reason: &str) -> Event {
        Event::RunStopped {
            reason: reason.into(),
        }
    }

    #[test]
    fn a_torn_last_line_is_dropped_and_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        EventLog::open(&path)
            .unwrap()
            .append(now(), stopped("a"))
            .unwrap();
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&whole[..], &whole[..whole.len() / 2]].concat()).unwrap();
        assert_eq!(read_events(&path).unwrap().len(), 1);
        EventLog::open(&path)
            .unwrap()
            .append(now(), stopped("b"))
            .unwrap();
        let events = read_events(&path).unwrap();
        assert_eq!(events.len(), 2);
        assert_eq!(events[1].event, stopped("b"));
    }

    #[test]
    fn a_whole_line_that_is_no_event_is_an_error_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        EventLog::open(&path)
            .unwrap()
            .append(now(), stopped("a"))
            .unwrap();
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"at\":1}\n");
        std::fs::write(&path, text).unwrap();
        assert!(matches!(
            read_events(&path),
            Err(ArchiveError::Json { line: 2, .. })
        ));
    }

    #[test]
    fn a_log_that_was_removed_or_replaced_takes_no_more_events() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let mut log = EventLog::open(&path).unwrap();
        log.append(now(), stopped("a")).unwrap();
        std::fs::rename(&path, folder.path().join("away")).unwrap();
        assert!(matches!(
            log.append(now(), stopped("b")),
            Err(ArchiveError::Gone(_))
        ));
        std::fs::write(&path, "").unwrap();
        assert!(matches!(
            log.append(now(), stopped("c")),
            Err(ArchiveError::Gone(_))
        ));
    }

    #[test]
    fn a_fifo_in_its_place_hangs_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        assert!(!is_written(&path));
        assert!(matches!(
            read_events(&path),
            Err(ArchiveError::Damaged { .. })
        ));
        assert!(matches!(
            EventLog::open(&path),
            Err(ArchiveError::Damaged { .. })
        ));
    }

    #[test]
    fn two_writers_at_once_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let first = EventLog::open(&path).unwrap();
        assert!(is_written(&path));
        assert!(matches!(EventLog::open(&path), Err(ArchiveError::Busy(_))));
        drop(first);
        assert!(!is_written(&path));
        assert!(EventLog::open(&path).is_ok());
    }
}
