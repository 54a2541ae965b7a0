//! Problems of a spec: found by many checks, shown together with their lines, or listed for machines.

use std::fmt;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet, normalize_untrusted_str};
use serde::Serialize;

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

/// What is printed at most; a broken generator can make thousands.
const SHOWN: usize = 100;

/// What is kept at most, and how many problems are looked at for a "did you mean".
pub(super) const MANY: usize = 1000;

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

    fn title(&self) -> String {
        match (&self.spot, self.path.is_empty()) {
            (Spot::File(file), _) => format!("`{file}` {}", self.message),
            (Spot::At(_), true) => self.message.clone(),
            (Spot::At(_), false) => format!("{}: {}", self.path, self.message),
        }
    }

    fn render(&self, renderer: &Renderer) -> String {
        let title = self.title();
        let mut group = Level::ERROR
            .primary_title(title)
            .elements(std::iter::empty::<
                annotate_snippets::Snippet<'_, annotate_snippets::Annotation<'_>>,
            >());
        if let Spot::At(point) = &self.spot {
            for snippet in snippets(point) {
                group = group.element(snippet);
            }
            if let Some(because) = &point.place.source.because {
                let (line, column) = because.position();
                let name = normalize_untrusted_str(&because.source.name);
                let text = format!("read because of `extends` at {name}:{line}:{column}");
                group = group.element(Level::NOTE.message(text));
            }
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(normalize_untrusted_str(help)));
        }
        renderer.render(&[group])
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

type Marked<'a> = Snippet<'a, annotate_snippets::Annotation<'a>>;

/// The lines of a point: one piece of source, or two when the context stands elsewhere.
fn snippets(point: &Point) -> Vec<Marked<'_>> {
    let primary = (&point.place, AnnotationKind::Primary, None);
    let context = point
        .context
        .as_ref()
        .map(|(place, label)| (place, AnnotationKind::Context, Some(*label)));
    match context {
        None => vec![snippet(&[primary])],
        Some(context) if context.0.source.order == point.place.source.order => {
            vec![snippet(&[primary, context])]
        }
        Some(context) => vec![snippet(&[primary]), snippet(&[context])],
    }
}

/// The lines of one source that the marks stand on.
fn snippet<'a>(marks: &[(&'a Place, AnnotationKind, Option<&'static str>)]) -> Marked<'a> {
    let source = &marks[0].0.source;
    let text = source.text.as_str();
    let starts = marks.iter().map(|mark| mark.0.range.start).min();
    let ends = marks.iter().map(|mark| mark.0.range.end).max();
    let start = text[..starts.unwrap_or(0)].rfind('\n').map_or(0, |i| i + 1);
    let end = ends.unwrap_or(0);
    let end = text[end..].find('\n').map_or(text.len(), |i| end + i);
    let line = text[..start].bytes().filter(|b| *b == b'\n').count() + 1;
    Snippet::source(text[start..end].trim_end_matches('\r'))
        .path(source.name.as_str())
        .line_start(line)
        .annotations(marks.iter().map(|(place, kind, label)| {
            kind.span(place.range.start - start..place.range.end - start)
                .label(*label)
        }))
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
            .map(|diagnostic| diagnostic.render(&renderer))
            .collect();
        if self.all > SHOWN {
            texts.push(format!("and {} more problems", self.all - SHOWN));
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
