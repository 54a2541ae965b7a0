//! Problems of a spec: found by many checks, shown together with their lines, or listed for machines.

use std::fmt;

use annotate_snippets::Renderer;
use serde::Serialize;

use super::render::render;
use super::source::Place;
use super::tree::Point;

/// Something wrong with a value of the experiment or, where the path begins with `hosts` or `groups`, of the inventory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The value: `variants.wal.config.sqlite.journal_mode`, `workloads[0].name`.
    pub path: String,
    /// What is wrong with it, without the path.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// Whether it is the key that is to blame, not what stands after it.
    pub key: bool,
}

/// All problems of a spec, in the order of the files and their lines. Never empty.
#[derive(Clone)]
pub struct Problems {
    found: Vec<Diagnostic>,
    /// How many there are, also those that are not kept.
    all: usize,
}

/// A problem for machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Located {
    /// The file as the user named it, or `--set`.
    pub file: String,
    /// The line, from 1; none when the file could not be read at all.
    pub line: Option<usize>,
    /// The column in characters, from 1.
    pub column: Option<usize>,
    /// The value's path; empty when the problem is the file's.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// A problem and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Diagnostic {
    pub(super) path: String,
    pub(super) message: String,
    pub(super) help: Option<String>,
    pub(super) spot: Spot,
}

#[derive(Clone, Debug)]
pub(super) enum Spot {
    /// A place in a source.
    At(Point),
    /// A file that could not be read.
    File(String),
}

/// What is printed at most; a broken generator can make thousands. No "did you mean" is looked for after them.
pub(super) const SHOWN: usize = 100;

/// What is kept at most.
const MANY: usize = 1000;

impl Diagnostic {
    pub(super) fn at(place: Place, path: impl Into<String>, message: impl Into<String>) -> Self {
        let point = Point {
            place,
            context: None,
        };
        Self::point(point, path, message)
    }

    pub(super) fn point(point: Point, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
            help: None,
            spot: Spot::At(point),
        }
    }

    /// A problem with a file as a whole.
    pub(super) fn file(name: &str, message: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            message: message.into(),
            help: None,
            spot: Spot::File(annotate_snippets::normalize_untrusted_str(name)),
        }
    }

    pub(super) fn help(mut self, help: impl Into<Option<String>>) -> Self {
        self.help = help.into();
        self
    }

    fn order(&self) -> (usize, usize) {
        match &self.spot {
            Spot::At(point) => (point.place.source.order, point.place.range.start),
            Spot::File(_) => (0, 0),
        }
    }

    fn located(&self) -> Located {
        let (file, line, column) = match &self.spot {
            Spot::File(file) => (file.clone(), None, None),
            Spot::At(point) => {
                let (line, column) = point.place.position();
                (point.place.source.name.clone(), Some(line), Some(column))
            }
        };
        Located {
            file,
            line,
            column,
            path: self.path.clone(),
            message: self.message.clone(),
            help: self.help.clone(),
        }
    }
}

impl Problems {
    /// The problems in the order of their places; `None` when there are none.
    pub(super) fn sorted(mut found: Vec<Diagnostic>) -> Option<Self> {
        found.sort_by_key(Diagnostic::order);
        let all = found.len();
        found.truncate(MANY);
        (all > 0).then_some(Self { found, all })
    }

    /// How many there are.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is always at least one")]
    pub fn len(&self) -> usize {
        self.all
    }

    /// All of them with their lines, for people; the first hundred if there are more.
    #[must_use]
    pub fn render(&self, coloured: bool) -> String {
        let renderer = if coloured {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let mut texts: Vec<String> = self
            .found
            .iter()
            .take(SHOWN)
            .map(|diagnostic| render(diagnostic, &renderer))
            .collect();
        if self.all > SHOWN {
            texts.push(match self.all - SHOWN {
                1 => "and 1 more problem".to_owned(),
                more => format!("and {more} more problems"),
            });
        }
        texts.join("\n\n")
    }

    /// All of them for machines; the first thousand if there are more.
    #[must_use]
    pub fn list(&self) -> Vec<Located> {
        self.found.iter().map(Diagnostic::located).collect()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl fmt::Debug for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}

impl std::error::Error for Problems {}
