//! What the YAML parser's errors mean, in words for someone who does not know its grammar.

use std::sync::Arc;

use serde_saphyr::granit_parser::ErrorKind;

use super::layout;
use super::parse::place;
use super::problem::Diagnostic;
use super::source::{ARGUMENT, Place, Source};
use super::tree::{DEPTH, Point};

/// The diagnostic for an error of syntax at a byte of a source.
pub(super) fn describe(kind: &ErrorKind, source: &Arc<Source>, start: usize) -> Diagnostic {
    let text = &source.text;
    let length = text[start..]
        .chars()
        .next()
        .filter(|c| !matches!(c, '\n' | '\r'))
        .map_or(0, char::len_utf8);
    let message = message(kind);
    let help = help(kind, line(text, start)).map(str::to_owned);
    let point = Point {
        place: place(source, start..start + length),
        context: None,
    };
    let offset = start - text[..start].rfind('\n').map_or(0, |i| i + 1);
    let quotes = layout::quotes(line(text, start), offset);
    if quotes.is_some() {
        Diagnostic::point(point, "", message).help(quotes)
    } else if is_of_brackets(kind) {
        let context = open_bracket(source, start);
        let help = help.or_else(|| close(&context.as_ref()?.0.text()[..1]));
        Diagnostic::point(Point { context, ..point }, "", message).help(help)
    } else if is_of_layout(kind) && !is_of_value(kind, text, start) && source.name != ARGUMENT {
        let likely = layout::help(text, start);
        Diagnostic::point(point, "", message).help(likely.or(help))
    } else {
        Diagnostic::point(point, "", message).help(help)
    }
}

/// Whether an error can come from a bracket that stays open.
fn is_of_brackets(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ExpectedFlowMappingSeparator
            | ErrorKind::UnexpectedEofFlowMapping
            | ErrorKind::ExpectedFlowSequenceSeparator
            | ErrorKind::UnexpectedEofFlowSequence
            | ErrorKind::InvalidColonPlacement
    )
}

/// Whether an error can come from indentation or a missing colon.
fn is_of_layout(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ExpectedBlockMappingKey
            | ErrorKind::UnexpectedEofBlockMapping
            | ErrorKind::SimpleKeyExpected
            | ErrorKind::InvalidSimpleKey
            | ErrorKind::ExpectedBlockSequenceEntry
            | ErrorKind::UnexpectedEofBlockSequence
            | ErrorKind::MappingValueNotAllowed
            | ErrorKind::MappingKeyNotAllowed
            | ErrorKind::BlockSequenceEntryNotAllowed
    )
}

/// Whether the offence is a second `: ` of a line, so that the value is to blame.
fn is_of_value(kind: &ErrorKind, text: &str, at: usize) -> bool {
    let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
    matches!(kind, ErrorKind::MappingValueNotAllowed) && text[start..at].contains(": ")
}

/// The bracket that is open at a byte, if it stands on another line.
fn open_bracket(source: &Arc<Source>, at: usize) -> Option<(Place, &'static str)> {
    let open = layout::open_bracket(&source.text, at)?;
    let label = if source.text[open..].starts_with('[') {
        "this `[` is not closed"
    } else {
        "this `{` is not closed"
    };
    let other_line = source.text[open..at].contains('\n');
    other_line.then(|| (place(source, open..open + 1), label))
}

fn close(bracket: &str) -> Option<String> {
    let bracket = if bracket == "[" { "]" } else { "}" };
    Some(format!("close it with `{bracket}`"))
}

fn line(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
    let end = text[at..].find('\n').map_or(text.len(), |i| at + i);
    &text[start..end]
}

fn message(kind: &ErrorKind) -> String {
    match kind {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart => "a tab cannot indent YAML".to_owned(),
        ErrorKind::TabInPlainScalar => "a tab cannot stand here".to_owned(),
        ErrorKind::UnclosedQuotedScalar => "the quote that opens here is never closed".to_owned(),
        ErrorKind::UnclosedFlowCollection { open } => {
            format!("the `{open}` that opens here is never closed")
        }
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
            format!("`{close}` does not close the `{open}` before it")
        }
        ErrorKind::InvalidColonPlacement => "a `:` cannot stand here".to_owned(),
        ErrorKind::MisplacedFlowCollectionEnd => "this bracket closes nothing".to_owned(),
        ErrorKind::ExpectedFlowMappingSeparator | ErrorKind::UnexpectedEofFlowMapping => {
            "expected `,` or `}`".to_owned()
        }
        ErrorKind::ExpectedFlowSequenceSeparator | ErrorKind::UnexpectedEofFlowSequence => {
            "expected `,` or `]`".to_owned()
        }
        ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::UnexpectedEofBlockMapping
        | ErrorKind::SimpleKeyExpected
        | ErrorKind::InvalidSimpleKey => {
            "expected a key and `:` at the indentation of the keys above".to_owned()
        }
        ErrorKind::ExpectedBlockSequenceEntry | ErrorKind::UnexpectedEofBlockSequence => {
            "expected `- ` at the indentation of the items above".to_owned()
        }
        ErrorKind::MappingValueNotAllowed | ErrorKind::MappingKeyNotAllowed => {
            "a `key: value` cannot stand here".to_owned()
        }
        ErrorKind::BlockSequenceEntryNotAllowed | ErrorKind::BlockEntryInFlowCollection => {
            "a list item cannot stand here".to_owned()
        }
        ErrorKind::UnexpectedCharacter { character } => {
            format!("a value cannot begin with `{character}`")
        }
        ErrorKind::RecursionLimitExceeded => {
            format!("the value is nested deeper than {DEPTH} levels")
        }
        ErrorKind::BomInsideDocument => "a byte order mark stands inside the text".to_owned(),
        other => format!("this is no YAML: {other}"),
    }
}

fn help(kind: &ErrorKind, line: &str) -> Option<&'static str> {
    let quotes = "quote a value that holds a `:`, or mind the indentation";
    match kind {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart => Some("indent with spaces"),
        ErrorKind::UnexpectedCharacter { .. } => Some("quote the value"),
        ErrorKind::ExpectedFlowMappingSeparator
        | ErrorKind::ExpectedFlowSequenceSeparator
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::MisplacedFlowCollectionEnd
        | ErrorKind::MismatchedFlowCollectionEnd { .. }
            if line.contains("${") =>
        {
            Some("inside `[...]` and `{...}`, put quotes around `${...}`")
        }
        ErrorKind::MappingValueNotAllowed | ErrorKind::MappingKeyNotAllowed => Some(quotes),
        _ => None,
    }
}
