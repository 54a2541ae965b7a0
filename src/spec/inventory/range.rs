//! Ranges in names and addresses: `kv[1-3]` is `kv1`, `kv2` and `kv3`; `r[1-2]n[01-12]` is all 24 pairs.

use super::super::Name;
use super::super::suggest::shown;
use super::Wrong;

/// The most texts that one text with ranges may stand for.
pub(super) const MOST: usize = 1000;

/// The pattern of a host's name with or without ranges.
pub(in crate::spec) const PATTERN: &str =
    r"^([A-Za-z0-9_]|\[[0-9]+-[0-9]+\])([A-Za-z0-9._-]|\[[0-9]+-[0-9]+\])*$";

/// The form of a range, for help.
const FORM: &str = "a range is two numbers in brackets, such as `[1-3]`";

/// The longest number in a range.
const DIGITS: usize = 9;

/// A piece of a text with ranges.
#[derive(Clone, Copy, Debug)]
enum Piece<'a> {
    Text(&'a str),
    Range {
        first: u32,
        last: u32,
        /// Digits to fill up to with zeros.
        width: usize,
    },
}

/// The texts that a text with or without ranges stands for, in order: the last range runs fastest.
///
/// # Errors
/// A range that is no range, and more than [`MOST`] texts.
pub(super) fn expand(text: &str) -> Result<Vec<String>, Wrong> {
    let pieces = pieces(text)?;
    let all = pieces.iter().fold(1_u64, |all, piece| match piece {
        Piece::Text(_) => all,
        Piece::Range { first, last, .. } => all.saturating_mul(u64::from(last - first) + 1),
    });
    if all > MOST as u64 {
        let message = format!("`{}` stands for more than {MOST} hosts", shown(text));
        return Err((message, Some("write shorter ranges".to_owned())));
    }
    let mut texts = vec![String::new()];
    for piece in pieces {
        texts = longer(&texts, piece);
    }
    Ok(texts)
}

/// Each text with each form of a piece after it.
fn longer(texts: &[String], piece: Piece<'_>) -> Vec<String> {
    let each = |text: &String| match piece {
        Piece::Text(part) => vec![format!("{text}{part}")],
        Piece::Range { first, last, width } => (first..=last)
            .map(|number| format!("{text}{number:0width$}"))
            .collect(),
    };
    texts.iter().flat_map(each).collect()
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>, Wrong> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(['[', ']']) {
        let stray = rest[start..].starts_with(']');
        let end = rest[start..].find(']').filter(|_| !stray);
        let Some(end) = end else {
            let (bracket, lacks) = if stray {
                (']', "opened")
            } else {
                ('[', "closed")
            };
            let message = format!("the `{bracket}` in `{}` is never {lacks}", shown(text));
            return Err((message, Some(FORM.to_owned())));
        };
        pieces.push(Piece::Text(&rest[..start]));
        pieces.push(range(&rest[start + 1..start + end])?);
        rest = &rest[start + end + 1..];
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

/// The range between two brackets.
fn range(inner: &str) -> Result<Piece<'static>, Wrong> {
    let wrong =
        |message: &str, help: String| Err((format!("`[{}]` {message}", shown(inner)), Some(help)));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let ends = inner.split_once('-');
    let Some((first, last)) = ends.filter(|(first, last)| digits(first) && digits(last)) else {
        let separator = inner
            .split_once([':', ','])
            .filter(|(a, b)| digits(a) && digits(b));
        let help = match separator {
            Some((first, last)) if inner.contains(':') => format!("write `[{first}-{last}]`"),
            _ => FORM.to_owned(),
        };
        return wrong("is no range", help);
    };
    if first.len() > DIGITS || last.len() > DIGITS {
        return wrong("has too large a number", FORM.to_owned());
    }
    let padded = [first, last]
        .iter()
        .any(|end| end.len() > 1 && end.starts_with('0'));
    let width = if padded {
        first.len().max(last.len())
    } else {
        0
    };
    match (first.parse(), last.parse()) {
        (Ok(low), Ok(high)) if low <= high => Ok(Piece::Range {
            first: low,
            last: high,
            width,
        }),
        _ => wrong("runs backwards", format!("write `[{last}-{first}]`")),
    }
}

/// Whether a text is the name of a host, or ranges of names.
pub(in crate::spec) fn check(text: &str) -> Result<(), Wrong> {
    names(text).map(|_| ())
}

/// The names that a text stands for.
pub(super) fn names(text: &str) -> Result<Vec<Name>, Wrong> {
    if !text.contains(['[', ']']) {
        let name = text.parse::<Name>();
        return name
            .map(|name| vec![name])
            .map_err(|error| (error.to_string(), None));
    }
    let names = expand(text)?.into_iter().map(|name| name.parse::<Name>());
    names
        .collect::<Result<_, _>>()
        .map_err(|error| (error.to_string(), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_stand_for_their_numbers_in_order() {
        for (text, texts) in [
            ("kv", "kv"),
            ("kv[1-3]", "kv1 kv2 kv3"),
            ("kv[9-11]", "kv9 kv10 kv11"),
            ("kv[09-11]", "kv09 kv10 kv11"),
            ("kv[8-010]", "kv008 kv009 kv010"),
            ("[0-1]x", "0x 1x"),
            ("10.0.0.[11-12]", "10.0.0.11 10.0.0.12"),
            (
                "r[1-2]n[01-03]z",
                "r1n01z r1n02z r1n03z r2n01z r2n02z r2n03z",
            ),
            ("kv[7-7]", "kv7"),
        ] {
            assert_eq!(expand(text).unwrap().join(" "), texts, "{text}");
        }
        assert_eq!(expand("kv[1-1000]").unwrap().len(), 1000);
    }

    #[test]
    fn what_is_no_range_is_refused_with_a_reason() {
        for (text, message) in [
            ("kv[3-1]", "`[3-1]` runs backwards"),
            ("kv[]", "`[]` is no range"),
            ("kv[1-]", "`[1-]` is no range"),
            ("kv[a-c]", "`[a-c]` is no range"),
            ("kv[1]", "`[1]` is no range"),
            ("kv[1-2-3]", "`[1-2-3]` is no range"),
            ("kv[+1-2]", "`[+1-2]` is no range"),
            ("kv[[1-2]]", "`[[1-2]` is no range"),
            ("kv[1-3", "the `[` in `kv[1-3` is never closed"),
            ("kv1-3]", "the `]` in `kv1-3]` is never opened"),
            (
                "kv[1-9999999999]",
                "`[1-9999999999]` has too large a number",
            ),
            ("kv[1-1001]", "`kv[1-1001]` stands for more than 1000 hosts"),
            (
                "[1-999999999][1-999999999][1-999999999]",
                "`[1-999999999][1-999999999][1-999999999]` stands for more than 1000 hosts",
            ),
        ] {
            assert_eq!(expand(text).unwrap_err().0, message);
        }
        let help = |text: &str| expand(text).unwrap_err().1.unwrap();
        assert_eq!(help("kv[3-1]"), "write `[1-3]`");
        assert_eq!(help("kv[1:3]"), "write `[1-3]`");
        assert_eq!(help("kv[1,3]"), FORM);
    }

    #[test]
    fn all_that_ranges_stand_for_must_be_names() {
        assert_eq!(
            names("kv[1-2]").unwrap(),
            [Name::of("kv1"), Name::of("kv2")]
        );
        for text in ["k v[1-2]", "-[1-2]", "", "${kv}[1-2]"] {
            let (message, _) = names(text).unwrap_err();
            assert!(message.starts_with("expected a name"), "{message}");
        }
        let long = format!("{}[9-10]", "x".repeat(63));
        assert!(names(&long).unwrap_err().0.contains("at most 64"));
    }
}
