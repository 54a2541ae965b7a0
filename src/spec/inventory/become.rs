//! Whom to become on a host after the login.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Whom to become with sudo after the login: `true`, `false` or a user's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Become {
    /// `false`: the user stays who logged in.
    #[default]
    No,
    /// `true`, or `root`.
    Root,
    /// Another user.
    User(String),
}

impl Become {
    fn of(text: &str) -> Self {
        match text {
            "false" => Self::No,
            "true" | "root" => Self::Root,
            user => Self::User(user.to_owned()),
        }
    }
}

impl Serialize for Become {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::No => serializer.serialize_bool(false),
            Self::Root => serializer.serialize_bool(true),
            Self::User(user) => serializer.serialize_str(user),
        }
    }
}

impl<'de> Deserialize<'de> for Become {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Become;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`true`, `false` or a user")
            }

            fn visit_bool<E: de::Error>(self, root: bool) -> Result<Become, E> {
                Ok(if root { Become::Root } else { Become::No })
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Become, E> {
                Ok(Become::of(text))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Become {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Become".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["boolean", "string"], "format": "assay-become" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_true_and_all_forms_read_back() {
        for (json, value, written) in [
            ("false", Become::No, "false"),
            ("true", Become::Root, "true"),
            ("\"root\"", Become::Root, "true"),
            ("\"tidb\"", Become::User("tidb".to_owned()), "\"tidb\""),
        ] {
            let read: Become = serde_json::from_str(json).unwrap();
            assert_eq!(read, value);
            assert_eq!(serde_json::to_string(&value).unwrap(), written);
        }
    }
}
