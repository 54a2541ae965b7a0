//! What a schema wants, in words, and whether a single value is it.

use serde_json::Value as Schema;

use super::inventory::{Form, HOSTS_PATTERN, Wrong, check_names};
use super::scalar::{boolean, boolean_hint, number, whole};
use super::suggest;
use super::tree::{Item, Scalar, Value};
use super::value::TREE;
use super::{Name, OnFailure};
use crate::units::Duration;

/// The kinds of values that schemas here tell apart.
#[derive(Clone, Copy)]
pub(super) enum Type<'a> {
    Object,
    Array,
    /// One value or a list of them.
    Alternatives(&'a [Schema]),
    /// One of a few words.
    Choice,
    Whole,
    Number,
    Boolean,
    Text,
    /// A value of any shape.
    Any,
}

/// The schema that a `$ref` stands for.
pub(super) fn resolve<'a>(root: &'a Schema, schema: &'a Schema) -> &'a Schema {
    let name = schema
        .get("$ref")
        .and_then(Schema::as_str)
        .and_then(|reference| reference.strip_prefix("#/$defs/"));
    match name {
        Some(name) => &root["$defs"][name],
        None => schema,
    }
}

pub(super) fn kind(schema: &Schema) -> Type<'_> {
    if format(schema) == TREE {
        return Type::Any;
    }
    if let Some(Schema::Array(alternatives)) = schema.get("anyOf") {
        return Type::Alternatives(alternatives);
    }
    if schema.get("oneOf").is_some() || schema.get("enum").is_some() {
        return Type::Choice;
    }
    if has_type(schema, "object") {
        Type::Object
    } else if has_type(schema, "array") {
        Type::Array
    } else if has_type(schema, "integer") {
        Type::Whole
    } else if has_type(schema, "string") {
        Type::Text
    } else if has_type(schema, "number") {
        Type::Number
    } else if has_type(schema, "boolean") {
        Type::Boolean
    } else {
        Type::Text
    }
}

fn has_type(schema: &Schema, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Schema::String(one)) => one == wanted,
        Some(Schema::Array(types)) => types.iter().any(|one| one == wanted),
        _ => false,
    }
}

/// Whether any text will do, so that a value from the environment may stand there.
pub(super) fn is_free(schema: &Schema) -> bool {
    matches!(kind(schema), Type::Text)
        && schema.get("format").is_none()
        && schema.get("pattern").is_none()
}

/// The schema of the values of a mapping with keys of the user's.
pub(super) fn any_key(schema: &Schema) -> Option<&Schema> {
    match schema.get("patternProperties") {
        Some(patterns) => patterns.as_object()?.values().next(),
        None if schema.get("properties").is_some() => None,
        None => any_other_key(schema),
    }
}

/// The schema of the values of keys that a mapping does not name, if it takes some.
pub(super) fn any_other_key(schema: &Schema) -> Option<&Schema> {
    let below = schema.get("additionalProperties");
    below.filter(|below| below.is_object())
}

/// Whether a key of the user's is the name that a mapping wants.
pub(super) fn check_key(schema: &Schema, key: &str) -> Result<(), Wrong> {
    let patterns = schema.get("patternProperties").and_then(Schema::as_object);
    if patterns.is_some_and(|patterns| patterns.contains_key(HOSTS_PATTERN)) {
        return check_names(key);
    }
    if patterns.is_none() {
        return Ok(());
    }
    let name = key.parse::<Name>();
    name.map(|_| ()).map_err(|error| (error.to_string(), None))
}

pub(super) fn required(schema: &Schema) -> impl Iterator<Item = &str> {
    let keys = schema.get("required").and_then(Schema::as_array);
    keys.into_iter().flatten().filter_map(Schema::as_str)
}

pub(super) fn keys(schema: &Schema) -> impl Iterator<Item = &str> {
    let keys = schema.get("properties").and_then(Schema::as_object);
    keys.into_iter().flatten().map(|(key, _)| key.as_str())
}

/// The schema of the value of a key, and whether the key is required; nothing when there is no such key.
pub(super) fn property<'a>(
    root: &'a Schema,
    schema: &'a Schema,
    key: &str,
) -> Option<(&'a Schema, bool)> {
    let schema = one_of(root, schema, false);
    match any_key(schema) {
        Some(below) => Some((below, false)),
        None => {
            let below = schema.get("properties")?.get(key);
            let below = below.or_else(|| any_other_key(schema))?;
            Some((below, required(schema).any(|required| required == key)))
        }
    }
}

/// The schema of a list's items.
pub(super) fn item<'a>(root: &'a Schema, schema: &'a Schema) -> Option<&'a Schema> {
    one_of(root, schema, true).get("items")
}

/// The schema itself, or that of its alternatives which is a list or a mapping.
fn one_of<'a>(root: &'a Schema, schema: &'a Schema, list: bool) -> &'a Schema {
    let schema = resolve(root, schema);
    let wanted = |kind: Type<'_>| match kind {
        Type::Array => list,
        Type::Object => !list,
        _ => false,
    };
    match kind(schema) {
        Type::Alternatives(alternatives) => one_that(root, alternatives, wanted),
        _ => schema,
    }
}

/// The one of several alternatives that has the shape of a value, or else the first.
pub(super) fn alternative<'a>(
    root: &'a Schema,
    alternatives: &'a [Schema],
    item: &Item,
) -> &'a Schema {
    one_that(root, alternatives, |kind| match &item.node.value {
        Value::Sequence(_) => matches!(kind, Type::Array),
        Value::Mapping(_) => matches!(kind, Type::Object),
        Value::Scalar(_) => !matches!(kind, Type::Array | Type::Object),
    })
}

fn one_that<'a>(
    root: &'a Schema,
    alternatives: &'a [Schema],
    wanted: impl Fn(Type<'_>) -> bool,
) -> &'a Schema {
    let mut resolved = alternatives.iter().map(|one| resolve(root, one));
    let one = resolved.find(|one| wanted(kind(one)));
    one.unwrap_or_else(|| resolve(root, &alternatives[0]))
}

/// Where a key that is unknown here would be right.
pub(super) fn elsewhere(root: &Schema, key: &str, here: &str) -> Option<String> {
    if !here.is_empty() && keys(root).any(|known| known == key) {
        return Some(format!("`{key}` belongs at the top of the file"));
    }
    let properties = root.get("properties")?.as_object()?;
    let below = |schema| {
        let mut below = resolve(root, schema);
        if let Type::Alternatives([first, ..]) = kind(below) {
            below = resolve(root, first);
        }
        below
            .get("items")
            .map_or(below, |items| resolve(root, items))
    };
    let others = properties.iter().filter(|(name, _)| name.as_str() != here);
    let others = others.map(|(name, schema)| (name, below(schema)));
    let mut owners = others.filter(|(_, below)| keys(below).any(|known| known == key));
    // It is rather missed where it is required than where it could be.
    let first = owners.next()?;
    let wants = |(_, below): &(&String, &Schema)| required(below).any(|wanted| wanted == key);
    let owner = if wants(&first) {
        first
    } else {
        owners.find(wants).unwrap_or(first)
    };
    Some(format!("`{key}` belongs under `{}`", owner.0))
}

/// What a schema wants, as "expected ..." continues.
pub(super) fn expected(schema: &Schema) -> String {
    match kind(schema) {
        Type::Object => "a mapping".to_owned(),
        Type::Array => "a list".to_owned(),
        Type::Alternatives(_) => "a single value, a mapping or a list".to_owned(),
        Type::Any => "a value".to_owned(),
        Type::Choice => match &choices(schema)[..] {
            [only] => format!("`{only}`"),
            several => format!("one of {}", suggest::list(several)),
        },
        Type::Whole => format!("a whole number{}", range(schema)),
        Type::Number => format!("a number{}", range(schema)),
        Type::Boolean => "`true` or `false`".to_owned(),
        Type::Text => match format(schema) {
            "assay-duration" => "a duration such as `90s`, `20m` or `1h 30m`",
            "assay-name" => "a name",
            "assay-on-failure" => "`continue`, `stop` or `retry N`",
            "assay-path" => "a path",
            "assay-version" => "a version",
            _ if has_type(schema, "number") => "a single value",
            other => Form::of(other).map_or("a text", Form::expected),
        }
        .to_owned(),
    }
}

fn range(schema: &Schema) -> String {
    let bound = |key: &str| schema.get(key).filter(|bound| bound.is_number());
    match (bound("minimum"), bound("maximum")) {
        (Some(min), Some(max)) => format!(" from {min} to {max}"),
        (Some(min), None) => format!(" of at least {min}"),
        (None, Some(max)) => format!(" of at most {max}"),
        (None, None) => match bound("exclusiveMinimum") {
            Some(min) => format!(" above {min}"),
            None => String::new(),
        },
    }
}

fn format(schema: &Schema) -> &str {
    schema.get("format").and_then(Schema::as_str).unwrap_or("")
}

/// The words of a choice.
pub(super) fn choices(schema: &Schema) -> Vec<&str> {
    let of = |key: &str| schema.get(key).and_then(Schema::as_array);
    let constants = of("oneOf").into_iter().flatten();
    let constants = constants.filter_map(|one| one.get("const")?.as_str());
    let words = of("enum").into_iter().flatten().filter_map(Schema::as_str);
    constants.chain(words).collect()
}

/// Whether a value, which is not nothing, is what a schema without parts wants.
pub(super) fn check(schema: &Schema, scalar: &Scalar) -> Result<(), Wrong> {
    let unquote = || Some("take the quotes away".to_owned());
    let mismatch = |help: Option<String>| {
        let expected = expected(schema);
        let found = suggest::shown(&scalar.text);
        let found = if scalar.plain {
            format!("`{found}`")
        } else {
            format!("the text `{found}`")
        };
        Err((format!("expected {expected}, found {found}"), help))
    };
    match kind(schema) {
        Type::Choice => choice(schema, &scalar.text),
        Type::Whole => match whole(&scalar.text) {
            Ok(_) if !scalar.plain => mismatch(unquote()),
            Ok(number) if in_range(schema, number) => Ok(()),
            Ok(_) => mismatch(None),
            Err(help) => mismatch(help),
        },
        Type::Number => match number(&scalar.text) {
            Some(_) if !scalar.plain => mismatch(unquote()),
            Some(number) if is_within(schema, number) => Ok(()),
            _ => mismatch(None),
        },
        Type::Boolean => match boolean(&scalar.text) {
            Some(_) if !scalar.plain => mismatch(unquote()),
            Some(_) => Ok(()),
            None => {
                mismatch(boolean_hint(&scalar.text).map(|word| format!("did you mean `{word}`?")))
            }
        },
        _ => text(schema, &scalar.text),
    }
}

fn in_range(schema: &Schema, number: i128) -> bool {
    let bound = |key: &str| {
        let bound = schema.get(key)?;
        let signed = bound.as_i64().map(i128::from);
        signed.or_else(|| bound.as_u64().map(i128::from))
    };
    bound("minimum").is_none_or(|min| number >= min)
        && bound("maximum").is_none_or(|max| number <= max)
}

fn is_within(schema: &Schema, number: f64) -> bool {
    let bound = |key: &str| schema.get(key).and_then(Schema::as_f64);
    bound("exclusiveMinimum").is_none_or(|min| number > min)
        && bound("minimum").is_none_or(|min| number >= min)
        && bound("maximum").is_none_or(|max| number <= max)
}

fn choice(schema: &Schema, found: &str) -> Result<(), Wrong> {
    const FEW: usize = 6;
    let choices = choices(schema);
    if choices.contains(&found) {
        return Ok(());
    }
    let close = suggest::closest(found, choices.iter().copied());
    let close = close.map(|word| format!("did you mean `{word}`?"));
    let found = suggest::shown(found);
    Err(if choices.len() <= FEW {
        (
            format!("expected {}, found `{found}`", expected(schema)),
            close,
        )
    } else {
        let list = || Some(format!("it can be {}", suggest::list(&choices)));
        (format!("unknown value `{found}`"), close.or_else(list))
    })
}

fn text(schema: &Schema, text: &str) -> Result<(), Wrong> {
    let of_text = |error: String| Err((error, None));
    match format(schema) {
        "assay-duration" => match text.parse::<Duration>() {
            Ok(_) => Ok(()),
            Err(error) => {
                let bare = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
                let help = bare.then(|| format!("write a unit: `{text}s`"));
                Err((error.to_string(), help))
            }
        },
        "assay-name" => match text.parse::<Name>() {
            Ok(_) => Ok(()),
            Err(error) => of_text(error.to_string()),
        },
        "assay-on-failure" => match text.parse::<OnFailure>() {
            Ok(_) => Ok(()),
            Err(error) => of_text(error),
        },
        "assay-path" if text.starts_with('~') => Err((
            "`~` has no meaning here".to_owned(),
            Some("write the whole path".to_owned()),
        )),
        "assay-path" | "assay-version" if text.trim().is_empty() => of_text(format!(
            "expected {}, found an empty text",
            expected(schema)
        )),
        other => Form::of(other).map_or(Ok(()), |form| form.check(text)),
    }
}
