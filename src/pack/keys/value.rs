//! Values of keys: of what kind they are, and what sizes and durations come to.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

/// What the value of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// True or false.
    Bool,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// A text.
    String,
    /// Bytes: a number, or a text such as `32KB` or `1GiB`; the prefixes are powers of 1024.
    Size,
    /// A text such as `1m30s`, or a number in a unit of the key's own.
    Duration,
    /// A list.
    List,
    /// A map with any keys.
    Map,
    /// Anything.
    Any,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "true or false",
            Self::Int => "a whole number",
            Self::Float => "a number",
            Self::String => "a text",
            Self::Size => "a size, such as 512MB",
            Self::Duration => "a duration, such as 30s",
            Self::List => "a list",
            Self::Map => "a map",
            Self::Any => "anything",
        })
    }
}

impl Kind {
    /// Whether a value can be of this kind.
    pub(super) fn takes(self, value: &Value) -> bool {
        match self {
            Self::Bool => value.is_boolean(),
            Self::Int => value.is_i64() || value.is_u64(),
            Self::Float => value.is_number(),
            Self::String => value.is_string(),
            Self::Size => value.is_u64() || value.as_str().is_some_and(|t| size(t).is_some()),
            Self::Duration => {
                value.is_number() || value.as_str().is_some_and(|t| seconds(t).is_some())
            }
            Self::List => value.is_array(),
            Self::Map => value.is_object(),
            Self::Any => true,
        }
    }

    /// Whether what a component tells is what was asked for, though it may write it otherwise: `64KB` as `64KiB` or
    /// `65536`, `60s` as `1m`.
    #[must_use]
    pub fn same(self, asked: &Value, told: &Value) -> bool {
        asked == told
            || match self {
                Self::Size => matches!((number(asked), number(told)), (Some(a), Some(b)) if a == b),
                Self::Duration => {
                    let of = |value: &Value| value.as_str().and_then(seconds);
                    matches!((of(asked), of(told)), (Some(a), Some(b)) if (a - b).abs() < 1e-9)
                }
                Self::Int | Self::Float => {
                    matches!((asked.as_f64(), told.as_f64()), (Some(a), Some(b)) if a == b)
                }
                Self::Bool | Self::String | Self::List | Self::Map | Self::Any => {
                    plain(asked) == plain(told)
                }
            }
    }
}

/// The number of a value; of a size, its bytes.
pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => size(text),
        _ => None,
    }
}

/// A value as a word, in small letters, so that `true` and `"true"` are the same.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_lowercase(),
        other => other.to_string(),
    }
}

/// The bytes of a size, as TiKV and PD read it: the prefixes are powers of 1024, with or without an `i`.
fn size(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.'));
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit = unit.trim().to_uppercase();
    let unit = unit.strip_suffix('B').unwrap_or(&unit);
    let power = match unit.strip_suffix('I').unwrap_or(unit) {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        "P" => 5,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * 1024_f64.powi(power))
}

/// The seconds of a duration: numbers with units, such as `1h30m`, or 0.
fn seconds(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    if rest == "0" {
        return Some(0.0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut sum = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let (digits, after) = rest.split_at(end);
        let end = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit = match unit {
            "d" => 86400.0,
            "h" => 3600.0,
            "m" | "min" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        sum += digits.parse::<f64>().ok()? * unit;
        rest = after;
    }
    Some(sum)
}

/// Bytes for a message: `3 GiB` where that is exact, else the number.
pub(super) fn shown_size(bytes: f64) -> String {
    let units = ["", " KiB", " MiB", " GiB", " TiB"];
    let mut amount = bytes;
    let mut unit = 0;
    while amount >= 1024.0 && amount % 1024.0 == 0.0 && unit + 1 < units.len() {
        amount /= 1024.0;
        unit += 1;
    }
    format!("{amount}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_fits_its_kind() {
        let cases = [
            (Kind::Int, json!(3), json!("3")),
            (Kind::Int, json!(-1), json!(3.5)),
            (Kind::Float, json!(3), json!("0.5")),
            (Kind::Bool, json!(true), json!("true")),
            (Kind::String, json!("x"), json!(1)),
            (Kind::Size, json!("512MB"), json!("512 apples")),
            (Kind::Size, json!(512), json!(-1)),
            (Kind::Duration, json!("1h30m"), json!("1 hour")),
            (Kind::Duration, json!(2_000_000), json!("")),
            (Kind::List, json!([]), json!({})),
            (Kind::Map, json!({}), json!([])),
        ];
        for (kind, fits, not) in cases {
            assert!(kind.takes(&fits), "{kind}: {fits}");
            assert!(!kind.takes(&not), "{kind}: {not}");
        }
    }

    #[test]
    fn the_same_value_may_be_written_otherwise() {
        let same = [
            (Kind::Size, json!("64KB"), json!("64KiB")),
            (Kind::Size, json!("1GB"), json!(1_073_741_824)),
            (Kind::Size, json!("1024MB"), json!("1GiB")),
            (Kind::Duration, json!("60s"), json!("1m")),
            (Kind::Duration, json!("1d"), json!("24h0m0s")),
            (Kind::Bool, json!(true), json!("true")),
            (Kind::Float, json!(1), json!(1.0)),
            (Kind::String, json!("ERROR"), json!("error")),
        ];
        for (kind, asked, told) in same {
            assert!(kind.same(&asked, &told), "{asked} and {told}");
        }
        let other = [
            (Kind::Size, json!("64KB"), json!("63KiB")),
            (Kind::Duration, json!("60s"), json!("61s")),
            (Kind::Int, json!(8), json!(9)),
            (Kind::List, json!(["a"]), json!(["b"])),
            (Kind::Bool, json!(true), json!(false)),
        ];
        for (kind, asked, told) in other {
            assert!(!kind.same(&asked, &told), "{asked} and {told}");
        }
    }

    #[test]
    fn bytes_are_shown_in_the_largest_unit_that_is_exact() {
        assert_eq!(shown_size(3_221_225_472.0), "3 GiB");
        assert_eq!(shown_size(1000.0), "1000");
        assert_eq!(shown_size(1536.0), "1536");
        assert_eq!(shown_size(2048.0), "2 KiB");
    }
}
