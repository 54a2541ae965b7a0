//! What the YAML parser's errors mean, in words for someone who does not know its grammar.

use std::sync::Arc;

use serde_saphyr::granit_parser::ErrorKind;

use super::parse::place;
use super::problem::Diagnostic;
use super::source::Source;
use super::tree::DEPTH;

/// The diagnostic for an error of syntax at a byte of a source.
pub(super) fn describe(kind: &ErrorKind, source: &Arc<Source>, start: usize) -> Diagnostic {
    let text = &source.text;
    let length = text[start..]
        .chars()
        .next()
        .filter(|c| !matches!(c, '\n' | '\r'))
        .map_or(0, char::len_utf8);
    let message = message(kind);
    let help = help(kind, line(text, start));
    Diagnostic::at(place(source, start..start + length), "", message).help(help.map(str::to_owned))
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
