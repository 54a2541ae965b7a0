//! The texts that a spec is read from: files with their limits, `--set` arguments, and places in them.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::units::Bytes;

/// The largest file that is read. The largest sensible spec is a hundredth of it.
const LIMIT: u64 = 1024 * 1024;

/// The name of the source of a `--set` argument.
pub(super) const ARGUMENT: &str = "--set";

/// A text with a name, and the folder that relative paths in it start from.
pub(super) struct Source {
    /// The place in the order of reading; problems are shown in it.
    pub(super) order: usize,
    /// The path as the user would write it, or `--set`.
    pub(super) name: String,
    /// The folder of the file, from the working directory.
    pub(super) folder: PathBuf,
    /// The text, without a byte order mark.
    pub(super) text: String,
    /// The `extends` that it was read because of.
    pub(super) because: Option<Place>,
}

/// A part of a source, in bytes.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) source: Arc<Source>,
    pub(super) range: Range<usize>,
}

/// Why a file cannot be used as a spec.
pub(super) struct ReadError {
    /// What is wrong, to follow the file's name.
    pub(super) message: String,
    /// What to do about it.
    pub(super) help: Option<String>,
    /// The text as far as it can be shown, and the offset of the offence in it.
    pub(super) at: Option<(String, usize)>,
}

impl Place {
    /// The part of its text.
    pub(super) fn text(&self) -> &str {
        self.source.text.get(self.range.clone()).unwrap_or("")
    }

    /// Line and column, both from 1, the column in characters.
    pub(super) fn position(&self) -> (usize, usize) {
        let before = &self.source.text[..self.range.start];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        (line, before[line_start..].chars().count() + 1)
    }

    /// The part that lies on its first line.
    pub(super) fn first_line(&self) -> Self {
        let text = self.text();
        let length = text.find(['\r', '\n']).unwrap_or(text.len());
        self.part(0..length)
    }

    /// A part of this part.
    pub(super) fn part(&self, range: Range<usize>) -> Self {
        Self {
            source: Arc::clone(&self.source),
            range: self.range.start + range.start..self.range.start + range.end,
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.position();
        write!(f, "{}:{line}:{column}", self.source.name)
    }
}

/// The path with `.` and `..` taken out as far as names alone allow.
pub(super) fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => match cleaned.components().next_back() {
                Some(Component::Normal(_)) => {
                    cleaned.pop();
                }
                Some(Component::RootDir) => {}
                _ => cleaned.push(component),
            },
            _ => cleaned.push(component),
        }
    }
    cleaned
}

/// Reads a small text file. Anything but a regular file is refused, and never more than the limit is read.
pub(super) fn read(path: &Path) -> Result<String, ReadError> {
    let mut bytes = Vec::new();
    open(path)?
        .take(LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| refusal(path, &error))?;
    if bytes.len() as u64 > LIMIT {
        return Err(too_large(None));
    }
    decode(bytes)
}

fn open(path: &Path) -> Result<File, ReadError> {
    // The kind is looked at before the file is opened: to open a device can be an action.
    check_kind(&std::fs::metadata(path).map_err(|error| refusal(path, &error))?)?;
    let flags = rustix::fs::OFlags::NONBLOCK.bits();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags).unwrap_or(0))
        .open(path)
        .map_err(|error| refusal(path, &error))?;
    check_kind(&file.metadata().map_err(|error| refusal(path, &error))?)?;
    Ok(file)
}

fn check_kind(metadata: &std::fs::Metadata) -> Result<(), ReadError> {
    if metadata.is_dir() {
        Err(plain("is a folder, not a file"))
    } else if !metadata.is_file() {
        Err(plain("is not a regular file"))
    } else if metadata.len() > LIMIT {
        Err(too_large(Some(metadata.len())))
    } else {
        Ok(())
    }
}

fn plain(message: &str) -> ReadError {
    ReadError {
        message: message.to_owned(),
        help: None,
        at: None,
    }
}

fn too_large(size: Option<u64>) -> ReadError {
    let limit = Bytes(LIMIT);
    plain(&match size {
        Some(size) => format!("is {}; a spec file may have at most {limit}", Bytes(size)),
        None => format!("is larger than {limit}, the most that a spec file may have"),
    })
}

fn refusal(path: &Path, error: &io::Error) -> ReadError {
    let mut refusal = plain(&match error.kind() {
        io::ErrorKind::NotFound => "does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => "cannot be read: permission denied".to_owned(),
        io::ErrorKind::NotADirectory => {
            "does not exist: a part of its path is no folder".to_owned()
        }
        _ => format!("cannot be read: {error}"),
    });
    if error.kind() == io::ErrorKind::NotFound {
        refusal.help = neighbour(path).map(|name| format!("did you mean `{name}`?"));
    }
    refusal
}

/// The file beside `path` that its name was likely meant to be.
fn neighbour(path: &Path) -> Option<String> {
    let wanted = path.file_stem()?.to_str()?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    let names: Vec<String> = std::fs::read_dir(folder.unwrap_or(Path::new(".")))
        .ok()?
        .take(1000)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| stem(name).is_some())
        .collect();
    // Endings are all alike: only what stands before them tells names apart.
    let stems = names.iter().filter_map(|name| stem(name));
    let close = super::suggest::closest(wanted, stems)?;
    let close = names.iter().find(|name| stem(name) == Some(close));
    close.cloned()
}

/// The name of a YAML file without its ending.
fn stem(name: &str) -> Option<&str> {
    name.strip_suffix(".yaml")
        .or_else(|| name.strip_suffix(".yml"))
}

fn decode(mut bytes: Vec<u8>) -> Result<String, ReadError> {
    if bytes.starts_with(&[0xEF, 0xBB, 0xBF]) {
        bytes.drain(..3);
    }
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        return Err(ReadError {
            help: Some("save it as UTF-8".to_owned()),
            ..plain("is UTF-16, not UTF-8")
        });
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let shown = String::from_utf8_lossy(error.as_bytes()).into_owned();
        ReadError {
            help: Some("save it as UTF-8".to_owned()),
            at: Some((shown, offset)),
            ..plain(&format!("is not UTF-8 from byte {} on", offset + 1))
        }
    })?;
    match control_character(&text) {
        Some((offset, c)) => Err(ReadError {
            at: Some((text, offset)),
            ..plain(&match c {
                '\r' => "has a carriage return that no line feed follows".to_owned(),
                _ => format!("has the control character U+{:04X}", u32::from(c)),
            })
        }),
        None => Ok(text),
    }
}

/// The first character that no YAML text may hold, or that would change how it looks on a terminal.
pub(super) fn control_character(text: &str) -> Option<(usize, char)> {
    text.char_indices().find(|(offset, c)| match c {
        '\t' | '\n' => false,
        '\r' => !text[offset + 1..].starts_with('\n'),
        _ => c.is_control(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lose_their_detours() {
        for (path, cleaned) in [
            ("experiments/../base.yaml", "base.yaml"),
            ("./a/./b.yaml", "a/b.yaml"),
            ("../a/../../b", "../../b"),
            ("/../a", "/a"),
        ] {
            assert_eq!(clean(Path::new(path)), Path::new(cleaned));
        }
    }

    #[test]
    fn columns_count_characters() {
        let text = "a: b\nä: ö x".to_owned();
        let start = text.find('x').unwrap();
        let source = Arc::new(Source {
            order: 0,
            name: "f".into(),
            folder: PathBuf::new(),
            text,
            because: None,
        });
        let place = Place {
            source,
            range: start..start + 1,
        };
        assert_eq!(place.position(), (2, 6));
    }
}
