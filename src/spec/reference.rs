//! References in texts: `${name}`, `${env:NAME}`, and `$${` for a literal `${`.

use std::ops::Range;

use super::Name;

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Text as it is.
    Text(&'a str),
    /// `$${`: a literal `${`.
    Escape,
    /// `${name}`.
    Variable(&'a str),
    /// `${env:NAME}`.
    Environment(&'a str),
    /// Something that begins like a reference, and why it is none.
    Wrong(&'static str),
}

/// The pieces of a text with their ranges in it.
pub(super) fn pieces(text: &str) -> Vec<(Piece<'_>, Range<usize>)> {
    let mut pieces = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(dollar) = text[at..].find('$').map(|i| at + i) {
        let (piece, end) = if text[dollar..].starts_with("$${") {
            (Piece::Escape, dollar + 3)
        } else if text[dollar..].starts_with("${") {
            reference(text, dollar)
        } else {
            at = dollar + 1;
            continue;
        };
        if start < dollar {
            pieces.push((Piece::Text(&text[start..dollar]), start..dollar));
        }
        pieces.push((piece, dollar..end));
        (start, at) = (end, end);
    }
    if start < text.len() {
        pieces.push((Piece::Text(&text[start..]), start..text.len()));
    }
    pieces
}

/// The reference that begins at `start`, and its end.
fn reference(text: &str, start: usize) -> (Piece<'_>, usize) {
    let Some(length) = text[start..].find('}') else {
        return (Piece::Wrong("is never closed"), text.len());
    };
    let inner = &text[start + 2..start + length];
    let piece = match inner.strip_prefix("env:") {
        Some(name) if is_environment_name(name) => Piece::Environment(name),
        Some(_) => Piece::Wrong("names no environment variable"),
        None if inner.parse::<Name>().is_ok() => Piece::Variable(inner),
        None => Piece::Wrong("is no variable"),
    };
    (piece, start + length + 1)
}

fn is_environment_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The placeholder of an environment variable, as it is stored and printed.
pub(super) fn placeholder(name: &str) -> String {
    format!("${{env:{name}}}")
}

/// The text that reads back as `text`: every `${` escaped but those of the placeholders of `secrets`.
pub(super) fn escape<'a>(text: &str, secrets: impl Iterator<Item = &'a str> + Clone) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        escaped.push_str(&rest[..at]);
        rest = &rest[at..];
        let kept = secrets
            .clone()
            .map(placeholder)
            .find(|placeholder| rest.starts_with(placeholder.as_str()));
        if kept.is_none() {
            escaped.push('$');
        }
        let taken = kept.map_or(2, |placeholder| placeholder.len());
        escaped.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    escaped + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_into_its_pieces() {
        let text = "a $ b ${x}$${y}${env:HOME_2}${";
        let found: Vec<Piece<'_>> = pieces(text).into_iter().map(|(piece, _)| piece).collect();
        let expected = [
            Piece::Text("a $ b "),
            Piece::Variable("x"),
            Piece::Escape,
            Piece::Text("y}"),
            Piece::Environment("HOME_2"),
            Piece::Wrong("is never closed"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn names_are_checked() {
        for (text, wrong) in [
            ("${}", "is no variable"),
            ("${a b}", "is no variable"),
            ("${env:}", "names no environment variable"),
            ("${env:1A}", "names no environment variable"),
        ] {
            assert_eq!(pieces(text), [(Piece::Wrong(wrong), 0..text.len())]);
        }
    }

    #[test]
    fn escaped_texts_read_back() {
        for text in ["${a}", "$${a}", "x ${env:PW} ${env:OTHER} $", "$$$"] {
            let escaped = escape(text, ["PW"].into_iter());
            let read: String = pieces(&escaped)
                .iter()
                .map(|(piece, range)| match piece {
                    Piece::Escape => "${",
                    _ => &escaped[range.clone()],
                })
                .collect();
            assert_eq!(read, text);
            let open = pieces(&escaped)
                .into_iter()
                .filter(|(piece, _)| !matches!(piece, Piece::Text(_) | Piece::Escape));
            assert!(
                open.into_iter()
                    .all(|(piece, _)| piece == Piece::Environment("PW"))
            );
        }
    }
}
