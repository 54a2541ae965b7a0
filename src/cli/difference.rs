//! How two values differ, path by path, in words for people.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

/// Every path at which `before` and `after` differ: `rounds.duration: 1s -> 2s`.
pub(super) fn difference(before: &impl Serialize, after: &impl Serialize) -> Vec<String> {
    let (before, after) = (leaves(before), leaves(after));
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let shown = |side: &BTreeMap<String, String>, path| {
        side.get(path)
            .cloned()
            .unwrap_or_else(|| "(nothing)".into())
    };
    paths
        .into_iter()
        .filter(|path| before.get(*path) != after.get(*path))
        .map(|path| {
            format!(
                "{path}: {} -> {}",
                shown(&before, path),
                shown(&after, path)
            )
        })
        .collect()
}

/// The texts of a value's leaves, by path.
fn leaves(value: &impl Serialize) -> BTreeMap<String, String> {
    let value = serde_json::to_value(value).expect("what is compared is plain data");
    let mut found = BTreeMap::new();
    visit("", &value, &mut found);
    found
}

fn visit(path: &str, value: &Value, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(entries) => {
            let dot = if path.is_empty() { "" } else { "." };
            entries
                .iter()
                .for_each(|(key, inner)| visit(&format!("{path}{dot}{key}"), inner, found));
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(n, inner)| visit(&format!("{path}[{n}]"), inner, found));
        }
        Value::String(text) => {
            found.insert(path.to_owned(), text.clone());
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            found.insert(path.to_owned(), value.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_were_swapped_are_told() {
        let of = |a: &str, b: &str| json!({"variants": {"a": {"mode": a}, "b": {"mode": b}}, "threads": [1, 2]});
        let found = difference(&of("wal", "delete"), &of("delete", "wal"));
        assert_eq!(
            found,
            [
                "variants.a.mode: wal -> delete",
                "variants.b.mode: delete -> wal"
            ]
        );
    }

    #[test]
    fn what_only_one_side_has_is_told() {
        let found = difference(
            &json!({"threads": [1, 2]}),
            &json!({"threads": [1], "rate": 5}),
        );
        assert_eq!(
            found,
            ["rate: (nothing) -> 5", "threads[1]: 2 -> (nothing)"]
        );
    }
}
