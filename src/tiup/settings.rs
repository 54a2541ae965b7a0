//! Configuration maps: `log.level: x`, `log: {level: x}` and `a.b: {c.d: x}` are the same thing.

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::spec::Setting;

/// Settings by key, which may be dotted.
pub(super) type Settings = IndexMap<String, Setting>;

/// The settings that are no mappings, by their dotted keys.
pub(super) fn flat(settings: &Settings) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for (key, setting) in settings {
        flatten(key, &setting.0, &mut found);
    }
    found
}

fn flatten<'a>(path: &str, value: &'a Value, found: &mut Vec<(String, &'a Value)>) {
    match value {
        Value::Object(below) if !below.is_empty() => {
            for (key, value) in below {
                flatten(&format!("{path}.{key}"), value, found);
            }
        }
        value => found.push((path.to_owned(), value)),
    }
}

/// The setting with a dotted key.
pub(super) fn get<'a>(settings: &'a Settings, key: &str) -> Option<&'a Value> {
    let mut found = flat(settings).into_iter();
    found.find(|(path, _)| path == key).map(|(_, value)| value)
}

/// The settings below a dotted key, by what follows it.
pub(super) fn below(settings: &Settings, key: &str) -> Vec<(String, String)> {
    let of = |(path, value): (String, &Value)| {
        let rest = path.strip_prefix(key)?.strip_prefix('.')?.to_owned();
        Some((rest, text(value)))
    };
    flat(settings).into_iter().filter_map(of).collect()
}

/// The texts of a list.
pub(super) fn texts(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

/// A single value as text.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The settings as a value.
pub(super) fn value(settings: &Settings) -> Value {
    let entries = settings.iter();
    let entries = entries.map(|(key, setting)| (key.clone(), setting.0.clone()));
    Value::Object(entries.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings(value: Value) -> Settings {
        let Value::Object(map) = value else {
            panic!("no mapping")
        };
        map.into_iter().map(|(k, v)| (k, Setting(v))).collect()
    }

    #[test]
    fn dotted_and_nested_keys_are_the_same() {
        let mixed =
            settings(json!({"a.b": {"c.d": 1}, "server": {"labels": {"zone": "z", "n": 2}}}));
        assert_eq!(get(&mixed, "a.b.c.d"), Some(&json!(1)));
        let labels = below(&mixed, "server.labels");
        assert_eq!(
            labels,
            [("zone", "z"), ("n", "2")].map(|(k, v)| (k.into(), v.into()))
        );
        assert_eq!(get(&mixed, "a.b"), None);
    }
}
