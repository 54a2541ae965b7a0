//! Values from the environment. A spec holds their names; the values come in where they are used, and go out nowhere.

use std::collections::BTreeMap;
use std::fmt;

use super::reference::placeholder;

/// Shorter values are not looked for in texts: replacing every `1` or `on` would hide the text, not the secret.
const SHORTEST: usize = 4;

/// The values of the environment variables that a spec uses, by name.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    values: BTreeMap<String, String>,
    /// What to look for in texts, and what to put there; the longest first.
    hidden: Vec<(String, String)>,
}

impl Secrets {
    pub(super) fn new(values: BTreeMap<String, String>) -> Self {
        let mut hidden: Vec<(String, String)> = values
            .iter()
            .flat_map(|(name, value)| {
                let placeholder = placeholder(name);
                forms(value).map(move |form| (form, placeholder.clone()))
            })
            .filter(|(form, _)| form.chars().count() >= SHORTEST)
            .collect();
        hidden.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.cmp(b)));
        hidden.dedup_by(|a, b| a.0 == b.0);
        Self { values, hidden }
    }

    /// The text with the values in place of their names. Only for the moment of use: nothing of it may be kept or printed.
    #[must_use]
    pub fn reveal(&self, text: &str) -> String {
        let pairs: Vec<(String, &str)> = self
            .values
            .iter()
            .map(|(name, value)| (placeholder(name), value.as_str()))
            .collect();
        replace(text, pairs.iter().map(|(from, to)| (from.as_str(), *to)))
    }

    /// The text with the names in place of the values, for what comes back from outside: logs, errors, settings read back.
    ///
    /// A value is also found as JSON and SQL quote it, and each of its lines by itself. Values and lines of fewer than
    /// four characters are left alone: they are no secrets, and they stand everywhere.
    #[must_use]
    pub fn hide(&self, text: &str) -> String {
        let pairs = self.hidden.iter();
        replace(text, pairs.map(|(from, to)| (from.as_str(), to.as_str())))
    }

    /// The names of the variables.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.values.keys().map(String::as_str)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// The texts that a value may come back as.
fn forms(value: &str) -> impl Iterator<Item = String> {
    let json = serde_json::Value::from(value).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let lines = value.lines().map(str::trim).map(str::to_owned);
    let quoted = value.replace('\'', "''");
    let escaped = value.replace('\\', r"\\");
    let of_sql = escaped.replace('\'', "''");
    let of_shell = value.replace('\'', r"'\''");
    let mut forms = vec![value.to_owned(), quoted, escaped, of_sql, of_shell, json];
    forms.extend(lines);
    forms.into_iter()
}

/// Replaces in one pass from left to right, so that what was put in is never replaced again. Of the pairs that fit at
/// one place the first is taken.
fn replace<'a>(text: &str, pairs: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> String {
    let bytes = text.as_bytes();
    let mut result = String::with_capacity(text.len());
    let (mut kept, mut at) = (0, 0);
    while at < bytes.len() {
        let fits = |(from, _): &(&str, &str)| bytes[at..].starts_with(from.as_bytes());
        match pairs.clone().find(fits) {
            Some((from, to)) => {
                result.push_str(&text[kept..at]);
                result.push_str(to);
                at += from.len();
                kept = at;
            }
            None => at += 1,
        }
    }
    result + &text[kept..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(pairs: &[(&str, &str)]) -> Secrets {
        let pairs = pairs
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        Secrets::new(pairs.collect())
    }

    #[test]
    fn values_take_the_place_of_names_and_back() {
        let secrets = secrets(&[("PW", "hunter22"), ("USER", "bench")]);
        let text = "${env:USER}:${env:PW}@db";
        assert_eq!(secrets.reveal(text), "bench:hunter22@db");
        assert_eq!(secrets.hide("bench:hunter22@db"), text);
        assert_eq!(secrets.reveal("${env:OTHER}"), "${env:OTHER}");
    }

    #[test]
    fn a_value_is_not_looked_at_again() {
        let secrets = secrets(&[("A", "${env:B}"), ("B", "secret")]);
        assert_eq!(secrets.reveal("${env:A}"), "${env:B}");
    }

    #[test]
    fn the_longest_of_values_that_contain_each_other_is_hidden() {
        let secrets = secrets(&[("SHORT", "pass"), ("LONG", "password")]);
        assert_eq!(secrets.hide("password pass"), "${env:LONG} ${env:SHORT}");
    }

    #[test]
    fn quoted_forms_and_single_lines_are_hidden_too() {
        let secrets = secrets(&[("PW", "it's \"so\"\nlong")]);
        for text in [
            r#"it's \"so\"\nlong"#,
            "it''s \"so\"\nlong",
            "it's \"so\"",
            "long",
        ] {
            assert_eq!(secrets.hide(text), "${env:PW}", "{text}");
        }
    }

    #[test]
    fn short_values_are_left_alone() {
        let secrets = secrets(&[("N", "1"), ("EMPTY", "")]);
        assert_eq!(secrets.hide("1 of 11"), "1 of 11");
        assert_eq!(secrets.reveal("<${env:EMPTY}>"), "<>");
    }

    #[test]
    fn debug_shows_names_only() {
        let text = format!("{:?}", secrets(&[("PW", "hunter22")]));
        assert_eq!(text, r#"{"PW"}"#);
    }
}
