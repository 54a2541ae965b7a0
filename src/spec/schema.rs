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
    let mut schema = EXPERIMENT.clone();
    if let Value::Object(object) = &mut schema {
        // A file that is laid over another need not be whole.
        let required = object.shift_remove("required");
        object.insert("if".to_owned(), json!({ "required": ["extends"] }));
        object.insert("else".to_owned(), json!({ "required": required }));
    }
    schema
}

/// The JSON Schema (2020-12) of inventory files.
#[must_use]
pub fn inventory_schema() -> Value {
    INVENTORY.clone()
}

/// The schema that experiments are walked against, laid over what they extend.
pub(super) static EXPERIMENT: LazyLock<Value> = LazyLock::new(|| {
    let mut schema = generate::<Experiment>("assay experiment");
    let extends = json!({
        "type": "string",
        "format": "assay-path",
        "description": "a file that this one is laid over, relative to this file: mappings are merged, lists replaced",
    });
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.shift_insert(2, "extends".to_owned(), extends);
    }
    schema
});

/// The schema that inventories are walked against.
pub(super) static INVENTORY: LazyLock<Value> = LazyLock::new(|| {
    let mut schema = generate::<Inventory>("assay inventory");
    let defaults = json!({
        "$ref": "#/$defs/Host",
        "description": "what holds for every host that does not say otherwise; labels and vars are merged",
    });
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.shift_insert(0, "defaults".to_owned(), defaults);
    }
    schema
});

/// The schema that a text of another type is walked against.
pub(super) fn of<T: JsonSchema>() -> Value {
    generate::<T>(&T::schema_name())
}

fn generate<T: JsonSchema>(title: &str) -> Value {
    let settings = SchemaSettings::draft2020_12();
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = schema.to_value();
    tidy(&mut schema);
    if let Value::Object(object) = &mut schema {
        let version = object.shift_remove("$schema").unwrap_or_default();
        object.shift_insert(0, "$schema".to_owned(), version);
        object.shift_remove("title");
        object.shift_insert(1, "title".to_owned(), Value::from(title));
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
