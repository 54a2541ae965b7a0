//! The ends of what a unit printed: its journal and its log files.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::Systemd;
use super::error::Printed;

/// How many lines of each are shown.
const LINES: usize = 20;
/// The most bytes of a log file that its last lines are looked for in.
const BYTES: u64 = 64 << 10;

/// The last lines of a unit's journal and of its log files. What cannot be read says why.
pub(super) fn of(systemd: &Systemd, unit: &str, logs: &[PathBuf]) -> Printed {
    let mut ends = vec![("its journal".to_owned(), systemd.journal(unit, LINES))];
    for log in logs {
        let end = file(log).unwrap_or_else(|error| format!("cannot be read: {error}"));
        ends.push((format!("`{}`", log.display()), end));
    }
    Printed(ends)
}

/// The last lines of a log file. A link is not followed: whoever runs the program could have it lead anywhere.
fn file(path: &Path) -> std::io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file: File = rustix::fs::open(path, flags, Mode::empty())?.into();
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(BYTES)))?;
    let mut end = Vec::new();
    file.take(BYTES).read_to_end(&mut end)?;
    Ok(last_lines(&String::from_utf8_lossy(&end), LINES))
}

/// The last lines of a text.
pub(super) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_twenty_lines_of_a_log_are_shown_however_long_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let text: String = (0..100_000).map(|n| format!("line {n}\n")).collect();
        std::fs::write(&path, text).unwrap();
        let end = file(&path).unwrap();
        let lines: Vec<&str> = end.lines().collect();
        assert_eq!(
            (lines.len(), lines[0], lines[19]),
            (20, "line 99980", "line 99999")
        );
        std::fs::write(&path, "one\ntwo").unwrap();
        assert_eq!(file(&path).unwrap(), "one\ntwo");
    }

    #[test]
    fn a_log_that_is_a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(file(&path).is_err());
    }
}
