//! Quantities as people write them: durations (`1m 30s`), rates (`1000/s`), byte sizes (`1.5 GiB`).

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A length of time, written `90s`, `20m`, `1h 30m` or `250ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub std::time::Duration);

/// A rate of operations, in operations per second; written `500` or `500/s`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate(pub f64);

/// A number of bytes, printed with binary prefixes: `1.5 GiB`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A text that is no quantity of the wanted kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found `{found}`")]
pub struct UnitError {
    expected: &'static str,
    found: String,
}

impl Duration {
    /// The duration of `seconds` whole seconds.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(std::time::Duration::from_secs(seconds))
    }

    /// The duration in seconds, with fractions.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0.as_secs_f64()
    }
}

impl FromStr for Duration {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError {
            expected: "a duration such as `90s`, `20m` or `1h 30m`",
            found: text.to_owned(),
        };
        let text = text.trim();
        // Only of zero would no unit be wanted; `0s` is as short and leaves no exception.
        if text == "0" {
            return Err(error());
        }
        humantime::parse_duration(text)
            .map(Self)
            .map_err(|_| error())
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let number = text
            .trim()
            .trim_end_matches("/s")
            .trim_end()
            .replace('_', "");
        match number.parse::<f64>() {
            Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(Self(rate)),
            _ => Err(UnitError {
                expected: "a rate above 0 such as `500` or `500/s`",
                found: text.to_owned(),
            }),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.0)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bytesize::ByteSize(self.0).display().iec().fmt(f)
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl JsonSchema for Duration {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "assay-duration",
            "description": "a duration such as `90s`, `20m` or `1h 30m`",
            "examples": ["90s", "20m", "1h 30m"],
        })
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for Rate {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Rate".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "operations per second, above 0",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_printed_as_people_write_them() {
        for (text, seconds, printed) in [
            ("90s", 90.0, "1m 30s"),
            ("20m", 1200.0, "20m"),
            ("1h 30m", 5400.0, "1h 30m"),
            ("250ms", 0.25, "250ms"),
            ("0s", 0.0, "0s"),
            ("1.5h", 5400.0, "1h 30m"),
            ("2sec", 2.0, "2s"),
            ("1 week", 604_800.0, "7days"),
        ] {
            let duration: Duration = text.parse().unwrap();
            assert!((duration.as_secs_f64() - seconds).abs() < 1e-9);
            assert_eq!(duration.to_string(), printed);
        }
    }

    #[test]
    fn a_bare_number_is_no_duration() {
        assert!("0".parse::<Duration>().is_err());
        let error = "30".parse::<Duration>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected a duration such as `90s`, `20m` or `1h 30m`, found `30`"
        );
    }

    #[test]
    fn a_rate_may_carry_its_unit() {
        assert_eq!("1_500/s".parse(), Ok(Rate(1500.0)));
        assert!("0".parse::<Rate>().is_err());
        assert!("inf".parse::<Rate>().is_err());
    }

    #[test]
    fn bytes_print_with_binary_prefixes() {
        assert_eq!(Bytes(1536 * 1024 * 1024).to_string(), "1.5 GiB");
    }
}
