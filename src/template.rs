//! Templates: minijinja where an undefined value is an error, with the few filters that files on hosts need.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior};

/// Instructions that one template may take: far more than any file needs, and an end for one that loops.
const FUEL: u64 = 5_000_000;

/// An environment without templates. A line that is only a block leaves no empty line.
#[must_use]
pub fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true);
    syntax.keep_trailing_newline(true);
    environment.set_syntax(syntax.build().expect("the standard delimiters are sound"));
    environment.set_fuel(Some(FUEL));
    // A name such as `x.yml.j2` says nothing of how texts are quoted; filters do.
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.add_filter("sh", |value: Value| quoted(&value.to_string()));
    environment.add_filter("bracket", |value: Value| bracketed(&value.to_string()));
    environment.add_filter("sql", sql);
    environment
}

/// Renders one text.
///
/// # Errors
/// The text is no template, or names what is not there.
pub fn render(
    environment: &Environment<'_>,
    name: &str,
    text: &str,
    context: &Value,
) -> Result<String, TemplateError> {
    let failed = |source: Error| TemplateError {
        name: name.to_owned(),
        line: source.line(),
        source,
    };
    let template = environment.template_from_named_str(name, text);
    let rendered = template.and_then(|template| template.render(context));
    rendered.map_err(failed)
}

/// A template that cannot be rendered.
#[derive(Debug, thiserror::Error)]
#[error("cannot render `{name}`{}", line.map(|line| format!(", line {line}")).unwrap_or_default())]
pub struct TemplateError {
    /// Which.
    pub name: String,
    /// Where in it, from 1, if that is known.
    pub line: Option<usize>,
    /// Why.
    pub source: Error,
}

/// A text as one word of a shell.
#[must_use]
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A host as it stands before a port: an IPv6 address in brackets.
#[must_use]
pub fn bracketed(host: &str) -> String {
    if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

/// A value as SQL writes it.
fn sql(value: &Value) -> Result<String, Error> {
    use minijinja::value::ValueKind;
    match value.kind() {
        ValueKind::Number => Ok(value.to_string()),
        ValueKind::Bool => Ok(if value.is_true() { "ON" } else { "OFF" }.to_owned()),
        ValueKind::String => Ok(format!(
            "'{}'",
            value.to_string().replace('\\', r"\\").replace('\'', "''")
        )),
        other => {
            let message = format!("SQL takes numbers, booleans and texts, found {other}");
            Err(Error::new(ErrorKind::InvalidOperation, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use minijinja::value::Serde;

    use super::*;

    fn rendered(text: &str) -> Result<String, TemplateError> {
        let context = Value::from(Serde(
            serde_json::json!({"a": "it's", "host": "::1", "n": 3}),
        ));
        render(&environment(), "x.j2", text, &context)
    }

    #[test]
    fn a_text_is_one_word_of_a_shell_whatever_is_in_it() {
        assert_eq!(rendered("{{ a | sh }}").unwrap(), r"'it'\''s'");
        assert_eq!(rendered("{{ n | sh }} {{ '' | sh }}").unwrap(), "3 ''");
        assert_eq!(quoted("$(x)"), "'$(x)'");
    }

    #[test]
    fn what_is_undefined_is_an_error_with_its_line() {
        let error = rendered("fine\n{{ nothing }}\n").unwrap_err();
        assert_eq!(error.to_string(), "cannot render `x.j2`, line 2");
    }

    #[test]
    fn an_address_of_ipv6_stands_in_brackets() {
        assert_eq!(rendered("{{ host | bracket }}:1").unwrap(), "[::1]:1");
        assert_eq!(bracketed("10.0.0.1"), "10.0.0.1");
    }

    #[test]
    fn values_are_written_as_sql_takes_them() {
        assert_eq!(
            rendered("{{ a | sql }}, {{ n | sql }}, {{ true | sql }}").unwrap(),
            "'it''s', 3, ON"
        );
        assert!(rendered("{{ [1] | sql }}").is_err());
    }

    #[test]
    fn a_template_that_does_not_end_is_stopped() {
        let text =
            "{% for i in range(9999) %}{% for j in range(9999) %}{{ i }}{% endfor %}{% endfor %}";
        assert!(rendered(text).is_err());
    }
}
