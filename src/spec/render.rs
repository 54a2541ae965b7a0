//! A problem as text: title, place, the lines with marks below them, notes and help.

use annotate_snippets::{
    Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet, normalize_untrusted_str,
};

use super::problem::{Diagnostic, Spot};
use super::source::Place;
use super::tree::Point;

/// The longest piece of a source that is shown; a longer line is only named.
const PIECE: usize = 16 * 1024;

/// A part of a line, what it is, and what to write below it.
type Mark<'a> = (&'a Place, AnnotationKind, Option<&'static str>);

/// The text of a problem.
pub(super) fn render(diagnostic: &Diagnostic, renderer: &Renderer) -> String {
    let title = Level::ERROR.primary_title(title(diagnostic));
    let mut group = Group::with_title(title);
    if let Spot::At(point) = &diagnostic.spot {
        for marks in pieces(point) {
            group = with_lines(group, &marks);
        }
        if let Some(because) = &point.place.source.because {
            let (line, column) = because.position();
            let name = &because.source.name;
            let text = format!("read because of `extends` at {name}:{line}:{column}");
            group = group.element(Level::NOTE.message(text));
        }
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(normalize_untrusted_str(help)));
    }
    renderer.render(&[group])
}

fn title(diagnostic: &Diagnostic) -> String {
    match (&diagnostic.spot, diagnostic.path.is_empty()) {
        (Spot::File(file), _) => format!("`{file}` {}", diagnostic.message),
        (Spot::At(_), true) => diagnostic.message.clone(),
        (Spot::At(_), false) => format!("{}: {}", diagnostic.path, diagnostic.message),
    }
}

/// The marks of a point: in one piece, or in two when they stand in two sources or far from each other.
fn pieces(point: &Point) -> Vec<Vec<Mark<'_>>> {
    let primary = (&point.place, AnnotationKind::Primary, None);
    let Some((place, label)) = &point.context else {
        return vec![vec![primary]];
    };
    let context = (place, AnnotationKind::Context, Some(*label));
    let together = vec![primary, context];
    if place.source.order == point.place.source.order && lines(&together).len() <= PIECE {
        vec![together]
    } else {
        vec![vec![primary], vec![context]]
    }
}

/// The lines from the first mark to the last, in bytes of their source.
fn lines(marks: &[Mark<'_>]) -> std::ops::Range<usize> {
    let text = &marks[0].0.source.text;
    let start = marks.iter().map(|mark| mark.0.range.start).min();
    let end = marks.iter().map(|mark| mark.0.range.end).max();
    let (start, end) = (start.unwrap_or(0), end.unwrap_or(0));
    let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
    let line_end = text[end..].find('\n').map_or(text.len(), |i| end + i);
    line_start..line_end
}

fn with_lines<'a>(group: Group<'a>, marks: &[Mark<'a>]) -> Group<'a> {
    let place = marks[0].0;
    let source = &place.source;
    let lines = lines(marks);
    if lines.len() > PIECE {
        let (line, column) = place.position();
        let origin = Origin::path(source.name.as_str());
        return group.element(origin.line(line).char_column(column));
    }
    let start = lines.start;
    let number = source.text[..start].matches('\n').count() + 1;
    let snippet = Snippet::source(source.text[lines].trim_end_matches('\r'))
        .path(source.name.as_str())
        .line_start(number)
        .annotations(
            marks
                .iter()
                .map(|(place, kind, label)| annotation(place, *kind, *label, start)),
        );
    group.element(snippet)
}

fn annotation<'a>(
    place: &Place,
    kind: AnnotationKind,
    label: Option<&'static str>,
    start: usize,
) -> Annotation<'a> {
    kind.span(place.range.start - start..place.range.end - start)
        .label(label)
}
