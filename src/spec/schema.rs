//! The published JSON Schemas. The same schemas are walked when a file is checked, so they cannot disagree.

use std::sync::LazyLock;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::{Experiment, Inventory};

/// What an integer may also be written as: with underscores, or as a variable.
const INTEGER_TEXT: &str = r"^([0-9]+(_[0-9]+)*|\$\{[^}]+\})$";

/// The JSON Schema (2020-12) of experiment files.
#[must_use]
pub fn experiment_schema() -> Value {
    let mut schema = generate::<Experiment>("Experiment");
    let extends = json!({
        "description": "a file that this one is laid over, relative to this file: mappings are merged, lists replaced",
        "type": "string",
        "format": "assay-path",
    });
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.shift_insert(2, "extends".to_owned(), extends);
    }
    schema
}

/// The JSON Schema (2020-12) of inventory files.
#[must_use]
pub fn inventory_schema() -> Value {
    generate::<Inventory>("Inventory")
}

/// The schemas as they are walked.
pub(super) static EXPERIMENT: LazyLock<Value> = LazyLock::new(experiment_schema);
pub(super) static INVENTORY: LazyLock<Value> = LazyLock::new(inventory_schema);

fn generate<T: JsonSchema>(title: &str) -> Value {
    let settings = SchemaSettings::draft2020_12();
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = schema.to_value();
    tidy(&mut schema);
    if let Value::Object(object) = &mut schema {
        object.insert(
            "title".to_owned(),
            Value::from(format!("assay {title}").to_lowercase()),
        );
    }
    schema
}

/// Takes out what the files do not have: `null` for keys that may be left away, formats of Rust's numbers.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(object) => {
            object.values_mut().for_each(tidy);
            without_null(object);
            if object.get("type") == Some(&Value::from("integer")) {
                object.remove("format");
                object.insert("type".to_owned(), json!(["integer", "string"]));
                object.insert("pattern".to_owned(), Value::from(INTEGER_TEXT));
            }
        }
        _ => {}
    }
}

fn without_null(object: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(any)) = object.get_mut("anyOf") {
        any.retain(|one| one.get("type") != Some(&Value::from("null")));
        if let [Value::Object(only)] = &any[..] {
            let only = only.clone();
            object.remove("anyOf");
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
    }
}
