//! The small value types of the spec: names, scalars kept as text, one-or-many, what follows a failure.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A name that is also a folder's name: letters, digits, `.`, `_`, `-`, at most 64, and no dot or dash first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Name(String);

/// The pattern of a [`Name`].
pub(super) const NAME_PATTERN: &str = "^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$";

/// A text that is no [`Name`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a name of at most 64 letters, digits, `.`, `_` and `-`, with no `.` or `-` first, found `{}`",
    super::suggest::shown(.0)
)]
pub struct NameError(String);

impl Name {
    /// The name `text`, which is known to be one.
    ///
    /// # Panics
    /// When it is none.
    #[must_use]
    pub fn of(text: &str) -> Self {
        text.parse().expect("the text is a valid name")
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let good = text.chars().all(allowed)
            && (1..=64).contains(&text.len())
            && !text.starts_with(['.', '-']);
        if good {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError(text.to_owned()))
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl JsonSchema for Name {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Name".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": NAME_PATTERN,
            "format": "assay-name",
            "description": "a name of letters, digits, `.`, `_` and `-`",
        })
    }
}

/// A tunable's value, kept as the text that was written: `6.10` stays `6.10`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scalar(pub String);

impl JsonSchema for Scalar {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Scalar".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"], "description": "a single value, kept as written" })
    }
}

/// A value of any shape with the types that it is written with: `20` is a number, `true` a boolean, `"20"` and `5MB` texts,
/// and lists and mappings hold such values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting(pub serde_json::Value);

/// The name under which a [`Setting`] asks to be read: it alone has its values resolved.
pub(super) const SETTING: &str = "Setting";

/// The format of a value of any shape in a schema.
pub(super) const TREE: &str = "assay-tree";

impl JsonSchema for Setting {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        SETTING.into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "format": TREE, "description": "a value: a number, `true`, `false`, a text, a list or a mapping" })
    }
}

/// One value or a list of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> de::Visitor<'de> for Visitor<T> {
            type Value = OneOrMany<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("one value or a list of them")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                let one = T::deserialize(de::value::StrDeserializer::new(text));
                one.map(|one| OneOrMany(vec![one]))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(de::value::SeqAccessDeserializer::new(seq)).map(OneOrMany)
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(de::value::MapAccessDeserializer::new(map))
                    .map(|one| OneOrMany(vec![one]))
            }
        }

        deserializer.deserialize_any(Visitor(std::marker::PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("OneOrMany{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
    }
}

/// What happens after a failed round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The failure is recorded and the other rounds go on.
    #[default]
    Continue,
    /// The round is tried again, at most so many times, then the others go on.
    Retry(u32),
    /// The run ends.
    Stop,
}

impl FromStr for OnFailure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_whitespace().collect::<Vec<_>>()[..] {
            ["continue"] => Ok(Self::Continue),
            ["stop"] => Ok(Self::Stop),
            ["retry", n] => match n.parse() {
                Ok(n @ 1..=100) => Ok(Self::Retry(n)),
                _ => Err(format!(
                    "expected `retry` and a number from 1 to 100, found `{text}`"
                )),
            },
            _ => Err(format!(
                "expected `continue`, `stop` or `retry N`, found `{text}`"
            )),
        }
    }
}

impl fmt::Display for OnFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Continue => f.write_str("continue"),
            Self::Retry(n) => write!(f, "retry {n}"),
            Self::Stop => f.write_str("stop"),
        }
    }
}

impl Serialize for OnFailure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for OnFailure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl JsonSchema for OnFailure {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OnFailure".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "assay-on-failure",
            "pattern": "^(continue|stop|retry ([1-9][0-9]?|100))$",
            "description": "`continue`, `stop` or `retry N` (1 to 100)",
        })
    }
}
