//! A value that fits a schema, in place of one that does not, so that the rest can be checked all the same.

use serde_json::Value as Schema;

use super::expected::{self, Type};
use super::source::Place;
use super::tree::{Entry, Item, Scalar, Value};

/// The plainest value that fits a schema.
pub(super) fn placeholder(root: &Schema, schema: &Schema, place: &Place) -> Item {
    let schema = expected::resolve(root, schema);
    let text = |text: &str| {
        Value::Scalar(Scalar {
            text: text.into(),
            plain: true,
            ..Scalar::default()
        })
    };
    let value = match expected::kind(schema) {
        Type::Object => Value::Mapping(entries(root, schema, place)),
        Type::Array if schema.get("minItems").is_some() => {
            Value::Sequence(vec![placeholder(root, &schema["items"], place)])
        }
        Type::Array => Value::Sequence(Vec::new()),
        Type::Alternatives(alternatives) => return placeholder(root, &alternatives[0], place),
        Type::Choice => text(expected::choices(schema)[0]),
        Type::Whole | Type::Number => text("1"),
        Type::Boolean => text("false"),
        Type::Any => text("placeholder"),
        Type::Text => text(match schema.get("format").and_then(Schema::as_str) {
            Some("assay-duration") => "1s",
            Some("assay-on-failure") => "continue",
            _ => "placeholder",
        }),
    };
    Item::new(value, place.clone())
}

fn entries(root: &Schema, schema: &Schema, place: &Place) -> Vec<Entry> {
    expected::required(schema)
        .map(|key| Entry {
            key: key.into(),
            key_place: place.clone(),
            item: placeholder(root, &schema["properties"][key], place),
            merged: None,
        })
        .collect()
}
