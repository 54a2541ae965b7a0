//! Layers of settings, as an instance gets them.

use serde_json::Value;

use super::settings::{Settings, flatten, merge, nest};

/// Layers of settings as one nested value, the later over the earlier. What is a value in one layer and a mapping in another,
/// which [`crate::database::check`] refuses, is as the later says.
#[must_use]
pub fn layered(layers: &[Value]) -> Value {
    let mut all = Settings::new();
    for layer in layers {
        let over = flatten(layer).unwrap_or_default();
        all = merge(all.clone(), over.clone()).unwrap_or_else(|_| {
            let clashes = |key: &str| {
                over.keys().any(|new| {
                    new.starts_with(&format!("{key}.")) || key.starts_with(&format!("{new}."))
                })
            };
            let kept = all.into_iter().filter(|(key, _)| !clashes(key));
            kept.chain(over.clone()).collect()
        });
    }
    nest(&all).unwrap_or_default()
}

/// A value as text: a text itself, anything else as JSON.
#[must_use]
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_later_layer_goes_over_an_earlier_one_in_whatever_form() {
        let layers = [
            json!({"log": {"level": "info", "size": 1}, "a": [1, 2]}),
            json!({"log.level": "error", "a": [3]}),
        ];
        let all = json!({"a": [3], "log": {"level": "error", "size": 1}});
        assert_eq!(layered(&layers), all);
    }

    #[test]
    fn of_a_value_and_a_mapping_the_later_stays() {
        let layers = [json!({"a": 1, "b": {"c": 1}}), json!({"a.x": 2, "b": 3})];
        assert_eq!(layered(&layers), json!({"a": {"x": 2}, "b": 3}));
    }
}
