//! Configuration files: nested settings in the format that a program reads.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::pack::ConfigFormat;

/// The text of a configuration file; nothing for a format that only a template can write.
pub(super) fn text(
    format: ConfigFormat,
    section: Option<&str>,
    config: &Value,
) -> Result<Option<String>, String> {
    match format {
        ConfigFormat::Toml => {
            let value: toml::Value = serde_json::from_value(config.clone())
                .map_err(|error| format!("cannot be written as TOML: {error}"))?;
            let text = toml::to_string(&value);
            text.map(Some)
                .map_err(|error| format!("cannot be written as TOML: {error}"))
        }
        ConfigFormat::Ini => ini(section, config).map(Some),
        ConfigFormat::Conf => conf(config).map(Some),
        ConfigFormat::Yaml => {
            let text = serde_saphyr::to_string(config);
            text.map(Some)
                .map_err(|error| format!("cannot be written as YAML: {error}"))
        }
        ConfigFormat::Template => Ok(None),
    }
}

fn entries(config: &Value) -> Map<String, Value> {
    config.as_object().cloned().unwrap_or_default()
}

/// Sections of `key = value`; what is in no section is in the default one.
fn ini(section: Option<&str>, config: &Value) -> Result<String, String> {
    let (mut own, mut sections) = (Map::new(), Map::new());
    for (key, value) in entries(config) {
        if value.is_object() {
            sections.insert(key, value);
        } else {
            own.insert(key, value);
        }
    }
    let mut out = String::new();
    if let Some(section) = section {
        if let Some(Value::Object(more)) = sections.remove(section) {
            own.extend(more);
        }
        writeln!(out, "[{section}]").expect(INFALLIBLE);
    }
    for (key, value) in own {
        writeln!(out, "{}", line(&key, &value)?).expect(INFALLIBLE);
    }
    for (section, below) in sections {
        let gap = if out.is_empty() { "" } else { "\n" };
        writeln!(out, "{gap}[{section}]").expect(INFALLIBLE);
        for (key, value) in entries(&below) {
            writeln!(out, "{}", line(&key, &value)?).expect(INFALLIBLE);
        }
    }
    Ok(out)
}

const INFALLIBLE: &str = "writing to a string cannot fail";

/// A key and its value; `true` alone is the key by itself, as a switch.
fn line(key: &str, value: &Value) -> Result<String, String> {
    let plain = |text: &str| {
        let text = text.replace(['\n', '\r'], " ");
        if text.contains(['#', ';', '"']) || text.trim() != text {
            format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""))
        } else {
            text
        }
    };
    match value {
        Value::String(text) if text.is_empty() => Ok(key.to_owned()),
        Value::String(text) => Ok(format!("{key} = {}", plain(text))),
        Value::Number(number) => Ok(format!("{key} = {number}")),
        Value::Bool(on) => Ok(format!("{key} = {}", if *on { "ON" } else { "OFF" })),
        Value::Null | Value::Array(_) | Value::Object(_) => Err(format!(
            "`{key}` is a list or mapping, which the format does not have"
        )),
    }
}

/// `key = 'value'`, nested keys with dots.
fn conf(config: &Value) -> Result<String, String> {
    let flat = crate::pack::settings::flatten(config).map_err(|error| error.to_string())?;
    let mut out = String::new();
    for (key, value) in flat {
        let text = match value {
            Value::Bool(on) => if on { "on" } else { "off" }.to_owned(),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(crate::pack::text).collect();
                items.join(", ")
            }
            other => crate::pack::text(&other),
        };
        writeln!(out, "{key} = '{}'", text.replace('\'', "''")).expect(INFALLIBLE);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(format: ConfigFormat, section: Option<&str>, config: Value) -> String {
        text(format, section, &config).unwrap().unwrap()
    }

    #[test]
    fn toml_has_its_single_values_before_its_tables() {
        let config =
            json!({"log": {"level": "error"}, "a": 1, "b": {"c": [1, 2], "d": {"e": true}}});
        let written = written(ConfigFormat::Toml, None, config.clone());
        let read: Value = toml::from_str(&written).unwrap();
        assert_eq!(read, config);
        assert!(written.starts_with("a = 1\n"), "{written}");
    }

    #[test]
    fn what_names_no_section_is_in_the_default_one() {
        let config = json!({"port": 3306, "skip-name-resolve": "", "mysqld": {"x": true}, "client": {"user": "a # b"}});
        assert_eq!(
            written(ConfigFormat::Ini, Some("mysqld"), config),
            "[mysqld]\nport = 3306\nskip-name-resolve\nx = ON\n\n[client]\nuser = \"a # b\"\n"
        );
    }

    #[test]
    fn texts_of_conf_are_quoted() {
        let config = json!({"search_path": "it's", "pg_stat": {"max": 5}, "fsync": false});
        assert_eq!(
            written(ConfigFormat::Conf, None, config),
            "fsync = 'off'\npg_stat.max = '5'\nsearch_path = 'it''s'\n"
        );
    }
}
