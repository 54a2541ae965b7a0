//! A tree as typed values. Scalars are read by the type that is asked for, never guessed.

use serde::de::value::{Error, MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{Deserialize, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::scalar::{boolean, number, resolve, whole};
use super::tree::{Item, Value};
use super::value::SETTING;

/// The typed value of a tree that a walk found sound.
pub(super) fn read<'a, T: Deserialize<'a>>(item: &'a Item) -> Result<T, Error> {
    T::deserialize(Reader(item))
}

struct Reader<'a>(&'a Item);

impl<'a> Reader<'a> {
    fn text(&self) -> Result<&'a str, Error> {
        match &self.0.node.value {
            Value::Scalar(scalar) => Ok(&scalar.text),
            _ => Err(Error::custom("expected a single value")),
        }
    }

    fn number<N: TryFrom<i128>>(&self) -> Result<N, Error> {
        let number = whole(self.text()?).ok();
        number
            .and_then(|number| N::try_from(number).ok())
            .ok_or_else(|| Error::custom("expected a whole number"))
    }
}

impl<'a> IntoDeserializer<'a> for Reader<'a> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! whole_numbers {
    ($($method:ident $visit:ident,)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(self.number()?)
        })*
    };
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Error;

    whole_numbers! {
        deserialize_i8 visit_i8, deserialize_i16 visit_i16,
        deserialize_i32 visit_i32, deserialize_i64 visit_i64,
        deserialize_u8 visit_u8, deserialize_u16 visit_u16,
        deserialize_u32 visit_u32, deserialize_u64 visit_u64,
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.0.node.value {
            Value::Scalar(scalar) if scalar.is_null() => visitor.visit_unit(),
            Value::Scalar(scalar) => visitor.visit_borrowed_str(&scalar.text),
            Value::Sequence(items) => {
                visitor.visit_seq(SeqDeserializer::new(items.iter().map(Reader)))
            }
            Value::Mapping(entries) => {
                let entries = entries.iter().map(|e| (&*e.key, Reader(&e.item)));
                visitor.visit_map(MapDeserializer::new(entries))
            }
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match boolean(self.text()?) {
            Some(value) => visitor.visit_bool(value),
            None => Err(Error::custom("expected `true` or `false`")),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match number(self.text()?) {
            Some(value) => visitor.visit_f64(value),
            None => Err(Error::custom("expected a number")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0.scalar() {
            Some(scalar) if scalar.is_null() => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == SETTING {
            return visitor.visit_newtype_struct(Resolver(self.0));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let word: StrDeserializer<'_, Error> = self.text()?.into_deserializer();
        visitor.visit_enum(word)
    }

    forward_to_deserialize_any! {
        i128 u128 f32 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

/// Reads values by how they are written: for settings, which no type is known of.
struct Resolver<'a>(&'a Item);

impl<'a> IntoDeserializer<'a> for Resolver<'a> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Resolver<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.0.node.value {
            Value::Scalar(scalar) if scalar.is_null() => visitor.visit_unit(),
            Value::Scalar(scalar) if scalar.plain => {
                let value = resolve(&scalar.text).map_err(Error::custom)?;
                value.deserialize_any(visitor).map_err(Error::custom)
            }
            Value::Scalar(scalar) => visitor.visit_borrowed_str(&scalar.text),
            Value::Sequence(items) => {
                visitor.visit_seq(SeqDeserializer::new(items.iter().map(Resolver)))
            }
            Value::Mapping(entries) => {
                let entries = entries.iter().map(|e| (&*e.key, Resolver(&e.item)));
                visitor.visit_map(MapDeserializer::new(entries))
            }
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
