//! What was likely meant where the layout of a YAML text ended its parsing: a missing `:`, a line that is indented
//! wrongly, a bracket that stays open.

/// A line's indentation in spaces and what stands after it.
#[derive(Clone, Copy)]
struct Line<'a> {
    indent: usize,
    content: &'a str,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Self {
        let line = line.trim_end();
        let content = line.trim_start_matches(' ');
        Self {
            indent: line.len() - content.len(),
            content,
        }
    }

    /// The column of the key after one or more `- `.
    fn after_dash(self) -> Option<usize> {
        let rest = self.content.trim_start_matches(['-', ' ']);
        let dashes = self.content.len() - rest.len();
        (self.content.starts_with("- ")).then_some(self.indent + dashes)
    }

    fn has_key(self) -> bool {
        self.content.ends_with(':') || self.content.contains(": ")
    }

    /// What lacks in a line that looks like a key and its value, and the line with it.
    fn mended(self) -> Option<(&'static str, String)> {
        let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let end = self.content.find(|c| !word(c));
        let (key, rest) = self.content.split_at(end.unwrap_or(self.content.len()));
        let (lacks, rest) = match rest.strip_prefix(':') {
            Some(rest) => ("space after the `:`", rest.trim()),
            None => ("`:`", rest.trim()),
        };
        if key.is_empty() || self.content.starts_with('-') || self.has_key() {
            return None;
        }
        let rest = super::suggest::shown(rest);
        let mended = match rest.is_empty() {
            true => format!("`{key}:`"),
            false => format!("`{key}: {rest}`"),
        };
        Some((lacks, mended))
    }
}

/// How a text with brackets of its own would be written, where one without quotes ended at byte `at` of a line: a range,
/// `[kv[1-3]]`, or an IPv6 address with a port, `address: [::1]:22`.
pub(super) fn quotes(line: &str, at: usize) -> Option<String> {
    let (before, after) = line.split_at(at);
    let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '{' | '}' | ']');
    let opens = |c: char| c.is_whitespace() || matches!(c, ',' | '{' | '}');
    let start = before.char_indices().rfind(|(_, c)| opens(*c));
    let word = &before[start.map_or(0, |(i, c)| i + c.len_utf8())..];
    let (word, kept) = if after.starts_with('[') {
        let inner = &after[1..after.find(']')?];
        let is_range = |c: char| c.is_ascii_digit() || c == '-';
        let word = word.trim_start_matches('[');
        if word.is_empty() || inner.is_empty() || !inner.chars().all(is_range) {
            return None;
        }
        (word, inner.len() + 2)
    } else {
        let address = word.strip_prefix('[')?.strip_suffix(']')?;
        if !after.starts_with(':') || address.matches(':').count() < 2 {
            return None;
        }
        (word, 1)
    };
    let rest = &after[kept..];
    let mut is_in_range = false;
    let end = rest.find(|c| match c {
        '[' => {
            is_in_range = true;
            false
        }
        ']' if is_in_range => {
            is_in_range = false;
            false
        }
        c => ends(c),
    });
    let end = end.unwrap_or(rest.len());
    let text = format!("{word}{}{}", &after[..kept], &rest[..end]);
    let text = super::suggest::shown(&text);
    Some(format!("write it in quotes: `\"{text}\"`"))
}

/// What is likely wrong with the line that byte `at` of a text lies on, where a key or an item was expected.
pub(super) fn help(text: &str, at: usize) -> Option<String> {
    let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
    let end = text[at..].find('\n').map_or(text.len(), |i| at + i);
    let line = Line::of(&text[start..end]);
    if let Some((lacks, mended)) = line.mended() {
        return Some(format!("is a {lacks} missing? write {mended}"));
    }
    let mut above = text[..start]
        .lines()
        .rev()
        .map(Line::of)
        .filter(|line| !line.content.is_empty() && !line.content.starts_with('#'));
    let previous = above.next()?;
    let mended = previous.mended().filter(|_| previous.indent == line.indent);
    if let Some((lacks, mended)) = mended {
        return Some(format!(
            "is a {lacks} missing in the line above? write {mended}"
        ));
    }
    let is_item = line.content.starts_with("- ");
    let (wanted, what) = wanted_indent(previous, above, line.indent, is_item)?;
    let spaces = if line.indent == 1 { "space" } else { "spaces" };
    let indent = line.indent;
    Some(format!(
        "this line is indented by {indent} {spaces}, the {what} above by {wanted}"
    ))
}

/// The indentation of the closest keys or items above that a line could have meant, if it has that of none.
fn wanted_indent<'a>(
    previous: Line<'a>,
    above: impl Iterator<Item = Line<'a>>,
    indent: usize,
    is_item: bool,
) -> Option<(usize, &'static str)> {
    let mut levels: Vec<(usize, &'static str)> = Vec::new();
    for line in std::iter::once(previous).chain(above) {
        if levels
            .last()
            .is_some_and(|(lowest, _)| *lowest <= line.indent)
        {
            continue;
        }
        match line.after_dash() {
            Some(column) => levels.extend([(column, "keys"), (line.indent, "items")]),
            None => levels.push((line.indent, "keys")),
        }
        if line.indent == 0 {
            break;
        }
    }
    if levels.iter().any(|(level, _)| *level == indent) {
        return None;
    }
    let items = || levels.iter().filter(|(_, what)| *what == "items");
    let close = |levels: &mut dyn Iterator<Item = &(usize, &'static str)>| {
        levels
            .min_by_key(|(level, _)| level.abs_diff(indent))
            .copied()
    };
    if is_item && items().next().is_some() {
        return close(&mut items());
    }
    close(&mut levels.iter())
}

/// The innermost bracket before byte `end` of a text that is still open there.
pub(super) fn open_bracket(text: &str, end: usize) -> Option<usize> {
    let mut open = Vec::new();
    let mut chars = text[..end].char_indices().peekable();
    // The last character that is no space: in a plain text outside brackets, brackets and quotes have no meaning.
    let mut last = '\n';
    let mut spaced = true;
    while let Some((at, c)) = chars.next() {
        let starts = !open.is_empty() && matches!(last, '[' | '{' | ',' | ':' | '\n')
            || open.is_empty() && spaced && matches!(last, ':' | '-' | '?' | '\n');
        match c {
            '#' if spaced => while chars.next_if(|(_, c)| *c != '\n').is_some() {},
            '"' | '\'' if starts => {
                while let Some((_, inner)) = chars.next() {
                    match inner {
                        '\\' if c == '"' => drop(chars.next()),
                        '\'' if c == '\'' && chars.next_if(|(_, c)| *c == '\'').is_some() => {}
                        _ if inner == c => break,
                        _ => {}
                    }
                }
            }
            '[' | '{' if starts || !open.is_empty() => open.push(at),
            ']' | '}' => drop(open.pop()),
            _ => {}
        }
        spaced = c.is_whitespace();
        if !spaced || c == '\n' {
            last = c;
        }
    }
    open.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_brackets_of_their_own_want_quotes() {
        for (line, text) in [
            ("tikv: [kv|[1-3]]", Some("kv[1-3]")),
            ("tikv: [a, kv|[1-3]x, b]", Some("kv[1-3]x")),
            ("  kv: {address: 10.0.0.|[1-3]}", Some("10.0.0.[1-3]")),
            ("    address: [::1]|:22", Some("[::1]:22")),
            (
                "a: {address: [fe80::1%eth0]|:22, user: x}",
                Some("[fe80::1%eth0]:22"),
            ),
            ("threads: [1, 2]|: 3", None),
            (
                "r[1-2]n[01-02]: {address: 10.0.|[1-2].[1-2]}",
                Some("10.0.[1-2].[1-2]"),
            ),
            (
                "tikv: [a, kv|[1-2]n[01-02]x[3-4]]",
                Some("kv[1-2]n[01-02]x[3-4]"),
            ),
            ("tikv: [a[1-2]|[1-2], b]", Some("a[1-2][1-2]")),
            ("a: [b |[c]]", None),
            ("a: [b|[c]]", None),
            ("a: [b|[1-3", None),
            ("ä[ä|[1-3]", Some("ä[ä[1-3]")),
        ] {
            let at = line.find('|').unwrap();
            let help = text.map(|text| format!("write it in quotes: `\"{text}\"`"));
            assert_eq!(super::quotes(&line.replace('|', ""), at), help, "{line}");
        }
    }

    #[test]
    fn the_innermost_open_bracket_is_found() {
        for (text, open) in [
            ("a: [1, 2\nb: ", Some("[1, 2")),
            ("a: {b: {c: d}\n  e: ", Some("{b: {c: d}")),
            ("a: {b: [1]}\n", None),
            ("a: b [c {d\n", None),
            ("a: \"[{\" # [\nb: '{' \n", None),
            ("- {a: \"}\", b: [\n", Some("[")),
            ("a: [x[y, {\n", Some("{")),
            ("a: ['it''s [', b\n", Some("['it''s [', b")),
        ] {
            let found = open_bracket(text, text.len());
            let found = found.map(|at| text[at..].lines().next().unwrap());
            assert_eq!(found, open, "{text:?}");
        }
    }

    #[test]
    fn the_likely_cause_is_named() {
        for (text, help) in [
            (
                "a: 1\nvariants",
                Some("is a `:` missing? write `variants:`"),
            ),
            (
                "a:\n  duration 1s\n  b: 2",
                Some("is a `:` missing in the line above? write `duration: 1s`"),
            ),
            (
                "a:\n  b: 1\n\n   c: 2",
                Some("this line is indented by 3 spaces, the keys above by 2"),
            ),
            (
                "a:\n  - b: 1\n # x\n     c: 2",
                Some("this line is indented by 5 spaces, the keys above by 4"),
            ),
            (
                "a:\n  - b: 1\n    c: 2\n - d: 3",
                Some("this line is indented by 1 space, the items above by 2"),
            ),
            ("a: 1\nb: 2", None),
        ] {
            assert_eq!(super::help(text, text.len()).as_deref(), help, "{text:?}");
        }
    }
}
