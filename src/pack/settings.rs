//! Settings of a component. Dotted and nested keys are the same thing: `{log.level: x}` is `{log: {level: x}}`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Values by dotted key. An empty map is a value; any other map is the keys in it.
pub type Settings = BTreeMap<String, Value>;

/// Why settings cannot be brought into one form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A value and a map under one key, in whatever form.
    #[error("`{outer}` is a value, and `{inner}` is below it")]
    Below {
        /// The key of the value.
        outer: String,
        /// A key in the map.
        inner: String,
    },
    /// One key in two forms.
    #[error("`{0}` is given twice, dotted and nested")]
    Twice(String),
    /// A part of a key is empty.
    #[error("a part of the key `{0}` is empty")]
    EmptyPart(String),
    /// The settings are no map.
    #[error("settings are a map, not {0}")]
    NoMap(Value),
}

/// Brings settings, dotted or nested or mixed, to dotted keys.
///
/// # Errors
/// A key is given twice or is both a value and a map, a part of a key is empty, or the settings are no map.
pub fn flatten(settings: &Value) -> Result<Settings, SettingsError> {
    let mut flat = Settings::new();
    match settings {
        Value::Object(map) => collect("", map, &mut flat)?,
        Value::Null => {}
        other => return Err(SettingsError::NoMap(other.clone())),
    }
    without_clashes(flat)
}

/// Brings dotted keys to nested maps.
///
/// # Errors
/// A key is both a value and a map.
pub fn nest(settings: &Settings) -> Result<Value, SettingsError> {
    let mut root = Map::new();
    for (key, value) in without_clashes(settings.clone())? {
        let mut map = &mut root;
        let mut parts: Vec<&str> = key.split('.').collect();
        let last = parts.pop().unwrap_or_default();
        for part in parts {
            let inner = map.entry(part).or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(inner) = inner else {
                return Err(SettingsError::Twice(key));
            };
            map = inner;
        }
        map.insert(last.to_owned(), value);
    }
    Ok(Value::Object(root))
}

/// Lays settings over others: maps merge, everything else, lists too, is replaced.
///
/// # Errors
/// A key is a value in one and a map in the other.
pub fn merge(base: Settings, over: Settings) -> Result<Settings, SettingsError> {
    let mut merged = base;
    merged.extend(over);
    without_clashes(merged)
}

fn collect(
    prefix: &str,
    map: &Map<String, Value>,
    flat: &mut Settings,
) -> Result<(), SettingsError> {
    for (key, value) in map {
        let path = format!("{prefix}{key}");
        if key.split('.').any(str::is_empty) {
            return Err(SettingsError::EmptyPart(path));
        }
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                collect(&format!("{path}."), inner, flat)?;
            }
            leaf => match flat.get(&path) {
                Some(known) if known != leaf => return Err(SettingsError::Twice(path)),
                _ => {
                    flat.insert(path, leaf.clone());
                }
            },
        }
    }
    Ok(())
}

/// Drops empty maps that have keys below them; whatever else has keys below it is a clash.
fn without_clashes(mut settings: Settings) -> Result<Settings, SettingsError> {
    let mut needless = Vec::new();
    for inner in settings.keys() {
        for (end, _) in inner.match_indices('.') {
            let outer = &inner[..end];
            match settings.get(outer) {
                None => {}
                Some(Value::Object(map)) if map.is_empty() => needless.push(outer.to_owned()),
                Some(_) => {
                    return Err(SettingsError::Below {
                        outer: outer.to_owned(),
                        inner: inner.clone(),
                    });
                }
            }
        }
    }
    for key in needless {
        settings.remove(&key);
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn dotted_nested_and_mixed_keys_are_the_same() {
        let forms = [
            json!({"log.level": "error", "log.file.max-days": 7}),
            json!({"log": {"level": "error", "file": {"max-days": 7}}}),
            json!({"log.file": {"max-days": 7}, "log": {"level": "error"}}),
            json!({"log": {"file.max-days": 7, "level": "error"}}),
        ];
        for form in &forms {
            let flat = flatten(form).unwrap();
            assert_eq!(flat["log.level"], "error");
            assert_eq!(flat["log.file.max-days"], 7);
            assert_eq!(nest(&flat).unwrap(), forms[1]);
        }
    }

    #[test]
    fn a_value_and_a_map_under_one_key_are_an_error_that_names_both() {
        let error = flatten(&json!({"log": "x", "log.level": "y"})).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`log` is a value, and `log.level` is below it"
        );
        let error = flatten(&json!({"a": {"b": [1]}, "a.b": {"c": {"d": 1}}})).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`a.b` is a value, and `a.b.c.d` is below it"
        );
        let over = flatten(&json!({"log": {"level": "y"}})).unwrap();
        let base = flatten(&json!({"log": "x"})).unwrap();
        assert!(merge(base.clone(), over.clone()).is_err());
        assert!(merge(over, base).is_err());
    }

    #[test]
    fn what_cannot_be_a_key_or_is_given_twice_is_refused() {
        let twice = flatten(&json!({"a.b": 1, "a": {"b": 2}})).unwrap_err();
        assert_eq!(twice.to_string(), "`a.b` is given twice, dotted and nested");
        assert!(flatten(&json!({"a.b": 1, "a": {"b": 1}})).is_ok());
        for key in ["", ".", "a.", ".a", "a..b"] {
            let error = flatten(&json!({ key: 1 })).unwrap_err();
            assert_eq!(error, SettingsError::EmptyPart(key.to_owned()));
        }
        assert!(flatten(&json!([1])).is_err());
        assert!(flatten(&Value::Null).unwrap().is_empty());
    }

    #[test]
    fn maps_merge_and_everything_else_is_replaced() {
        let base = json!({"a": {"x": 1, "y": [1, 2]}, "b": "old", "labels": {}});
        let over = json!({"a.y": [3], "b": null, "labels": {"zone": "z1"}, "a": {}});
        let merged = merge(flatten(&base).unwrap(), flatten(&over).unwrap()).unwrap();
        let wanted = json!({"a": {"x": 1, "y": [3]}, "b": null, "labels": {"zone": "z1"}});
        assert_eq!(nest(&merged).unwrap(), wanted);
    }

    /// Nested settings whose keys have no dots.
    fn nested() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z0-9 .]{0,8}".prop_map(Value::from),
            prop::collection::vec(any::<u8>(), 0..3).prop_map(Value::from),
            Just(json!({})),
        ];
        let map = |inner| {
            let map = prop::collection::btree_map("[a-z][a-z-]{0,5}", inner, 1..4);
            map.prop_map(|map| Value::Object(map.into_iter().collect()))
        };
        map(leaf.prop_recursive(4, 32, 4, map).boxed())
    }

    proptest! {
        #[test]
        fn nesting_undoes_flattening(settings in nested()) {
            prop_assert_eq!(nest(&flatten(&settings).unwrap()).unwrap(), settings);
        }

        #[test]
        fn flattening_undoes_nesting(settings in nested()) {
            let flat = flatten(&settings).unwrap();
            prop_assert_eq!(flatten(&nest(&flat).unwrap()).unwrap(), flat.clone());
            prop_assert_eq!(merge(flat.clone(), flat.clone()).unwrap(), flat);
        }
    }
}
