//! Tunables as they are written: dotted and nested keys mean the same, mappings are merged, everything else is replaced.

use serde_json::{Map, Value};

/// Layers of tunables as one nested value, the later over the earlier.
#[must_use]
pub fn layered(layers: &[Value]) -> Value {
    let mut all = Map::new();
    for (key, value) in layers.iter().flat_map(|layer| flat("", layer)) {
        put(&mut all, &key, value);
    }
    Value::Object(all)
}

fn put(map: &mut Map<String, Value>, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            map.insert(key.to_owned(), value);
        }
        Some((first, rest)) => {
            let below = map
                .entry(first)
                .or_insert_with(|| Value::Object(Map::new()));
            if !below.is_object() {
                *below = Value::Object(Map::new());
            }
            if let Some(below) = below.as_object_mut() {
                put(below, rest, value);
            }
        }
    }
}

/// Every single value, list or empty mapping below a key, by its dotted key.
#[must_use]
pub fn flat(key: &str, value: &Value) -> Vec<(String, Value)> {
    match value {
        Value::Object(below) if !below.is_empty() || key.is_empty() => below
            .iter()
            .flat_map(|(name, value)| {
                let dot = if key.is_empty() { "" } else { "." };
                flat(&format!("{key}{dot}{name}"), value)
            })
            .collect(),
        other => vec![(key.to_owned(), other.clone())],
    }
}

/// A value as text: a text itself, anything else as JSON.
#[must_use]
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
