//! What has to be true of JSON that came back: pure, with words for what is wanted and what was found.

use std::fmt;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::words;

/// What has to be true of one place in a JSON value, or of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Where.
    pub pointer: Pointer,
    /// What.
    pub is: Test,
}

/// What has to be true of a value. A text that is a number counts as that number where one is wanted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// It is this value.
    Equals(Value),
    /// It is a number below this one.
    Below(f64),
    /// It is a number up to this one.
    AtMost(f64),
    /// It is a number from this one.
    AtLeast(f64),
    /// It is null, an empty text, list or mapping, or not there.
    Empty,
    /// It is there, and not [`Test::Empty`].
    NotEmpty,
    /// It is a text or a number in which this is found.
    Matches(Pattern),
    /// It is there, and not null.
    Exists,
}

/// A place in a JSON value, as in RFC 6901: empty for the whole, or `/a/0/b`, with `~1` for a slash and `~0` for a tilde. A
/// part that is `*` stands for every item of a list or mapping, of which there has to be one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pointer(String);

/// A regular expression that is searched for, not matched as a whole.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(Regex);

impl Condition {
    /// Why it is not true of `value`; `None` if it is.
    #[must_use]
    pub fn fault(&self, value: &Value) -> Option<String> {
        let found = self.pointer.find(value);
        let mut faults = found.iter().filter(|(_, v)| !self.is.holds(*v));
        let (at, first) = faults.next()?;
        let is = first.map_or_else(
            || "is not there".to_owned(),
            |value| format!("is {}", words::value(value)),
        );
        let more = match faults.count() {
            0 => String::new(),
            more => format!(", and {more} more like it"),
        };
        Some(format!(
            "{} {is}, wanted {}{more}",
            whole(at),
            self.is.noun()
        ))
    }
}

impl fmt::Display for Condition {
    /// `every /*/health is true`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let every = if self.pointer.is_many() { "every " } else { "" };
        write!(f, "{every}{} {}", whole(&self.pointer.0), self.is)
    }
}

fn whole(pointer: &str) -> &str {
    if pointer.is_empty() {
        "the answer"
    } else {
        pointer
    }
}

impl Test {
    /// Whether it is true of a value, or of one that is not there.
    fn holds(&self, value: Option<&Value>) -> bool {
        let number = || value.and_then(number).and_then(|n| n.as_f64());
        match self {
            Self::Equals(wanted) => value.is_some_and(|found| equal(found, wanted)),
            Self::Below(bound) => number().is_some_and(|n| n < *bound),
            Self::AtMost(bound) => number().is_some_and(|n| n <= *bound),
            Self::AtLeast(bound) => number().is_some_and(|n| n >= *bound),
            Self::Empty => value.is_none_or(is_empty),
            Self::NotEmpty => value.is_some_and(|found| !is_empty(found)),
            Self::Matches(pattern) => match value {
                Some(Value::String(text)) => pattern.0.is_match(text),
                Some(Value::Number(number)) => pattern.0.is_match(&number.to_string()),
                Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => {
                    false
                }
            },
            Self::Exists => value.is_some_and(|found| !found.is_null()),
        }
    }

    /// What is wanted: `true`, `below 3`.
    fn noun(&self) -> String {
        match self {
            Self::Equals(value) => words::value(value),
            Self::Below(bound) => format!("below {bound}"),
            Self::AtMost(bound) => format!("at most {bound}"),
            Self::AtLeast(bound) => format!("at least {bound}"),
            Self::Empty => "nothing".to_owned(),
            Self::NotEmpty => "something".to_owned(),
            Self::Matches(pattern) => format!("a match of `{}`", pattern.0),
            Self::Exists => "a value".to_owned(),
        }
    }
}

impl fmt::Display for Test {
    /// `is true`, `is below 3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equals(_) | Self::Below(_) | Self::AtMost(_) | Self::AtLeast(_) => {
                write!(f, "is {}", self.noun())
            }
            Self::Empty => f.write_str("is empty"),
            Self::NotEmpty => f.write_str("is not empty"),
            Self::Matches(pattern) => write!(f, "matches `{}`", pattern.0),
            Self::Exists => f.write_str("is there"),
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The number that a value is or says.
fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => serde_json::from_str(text.trim()).ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn equal(found: &Value, wanted: &Value) -> bool {
    if found == wanted {
        return true;
    }
    let (Value::Number(wanted), Some(found)) = (wanted, number(found)) else {
        return false;
    };
    // Whole numbers are compared as they are: ids of clusters have more digits than a float.
    let is_whole = |n: &Number| n.is_i64() || n.is_u64();
    if is_whole(wanted) && is_whole(&found) {
        return *wanted == found;
    }
    wanted.as_f64() == found.as_f64()
}

impl Pointer {
    fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').skip(1)
    }

    fn is_many(&self) -> bool {
        self.parts().any(|part| part == "*")
    }

    /// The values at the place, each with its own one. What is not there is `None`.
    fn find<'a>(&self, value: &'a Value) -> Vec<(String, Option<&'a Value>)> {
        let mut found = vec![(String::new(), Some(value))];
        for part in self.parts() {
            found = found
                .into_iter()
                .flat_map(|(at, value)| step(&at, value, part))
                .collect();
        }
        found
    }
}

/// What `part` leads to from a value; at least one place, there or not.
fn step<'a>(at: &str, value: Option<&'a Value>, part: &str) -> Vec<(String, Option<&'a Value>)> {
    let place = |name: &str| format!("{at}/{name}");
    let every: Vec<(String, Option<&Value>)> = match (part, value) {
        ("*", Some(Value::Array(items))) => {
            let numbered = items.iter().enumerate();
            numbered
                .map(|(i, v)| (place(&i.to_string()), Some(v)))
                .collect()
        }
        ("*", Some(Value::Object(items))) => {
            let named = items.iter();
            named.map(|(k, v)| (place(&escaped(k)), Some(v))).collect()
        }
        _ => {
            let next = value.and_then(|value| value.pointer(&format!("/{part}")));
            return vec![(place(part), next)];
        }
    };
    if every.is_empty() {
        return vec![(place(part), None)];
    }
    every
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

impl TryFrom<String> for Pointer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() || text.starts_with('/') {
            return Ok(Self(text));
        }
        Err(format!(
            "`{text}` is no JSON pointer: it does not start with a slash"
        ))
    }
}

impl From<Pointer> for String {
    fn from(pointer: Pointer) -> Self {
        pointer.0
    }
}

impl TryFrom<String> for Pattern {
    type Error = regex::Error;

    fn try_from(text: String) -> Result<Self, regex::Error> {
        Regex::new(&text).map(Self)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0.as_str().to_owned()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn condition(pointer: &str, is: Value) -> Condition {
        serde_json::from_value(json!({ "pointer": pointer, "is": is })).unwrap()
    }

    /// As PD answers `/pd/api/v1/health`.
    fn health(second: bool) -> Value {
        json!([{"name": "pd-1", "health": true}, {"name": "pd-2", "health": second}])
    }

    #[test]
    fn a_condition_says_what_is_wanted_and_what_was_found() {
        let condition = condition("/*/health", json!({"equals": true}));
        assert_eq!(condition.to_string(), "every /*/health is true");
        assert_eq!(condition.fault(&health(true)), None);
        let fault = condition.fault(&health(false)).unwrap();
        assert_eq!(fault, "/1/health is false, wanted true");
        let fault = condition.fault(&json!([{}, {"health": false}])).unwrap();
        assert_eq!(
            fault,
            "/0/health is not there, wanted true, and 1 more like it"
        );
    }

    #[test]
    fn of_every_item_there_has_to_be_one() {
        let condition = condition("/*/health", json!({"equals": true}));
        let fault = "/*/health is not there, wanted true";
        assert_eq!(condition.fault(&json!([])).unwrap(), fault);
        assert_eq!(condition.fault(&Value::Null).unwrap(), fault);
    }

    #[test]
    fn every_test_holds_where_it_should_and_only_there() {
        let value = json!({
            "n": 3, "t": "3", "f": 3.5, "big": 7_123_456_789_012_345_678_u64,
            "none": null, "list": [], "map": {}, "text": "v6.1.2", "blank": "", "a/b": {"~": 1}, "no": false,
        });
        for (pointer, test, holds) in [
            ("/n", json!({"equals": 3}), true),
            ("/n", json!({"equals": 3.0}), true),
            ("/t", json!({"equals": 3}), true),
            ("/t", json!({"equals": "3"}), true),
            ("/n", json!({"equals": "3"}), false),
            (
                "/big",
                json!({"equals": 7_123_456_789_012_345_678_u64}),
                true,
            ),
            (
                "/big",
                json!({"equals": 7_123_456_789_012_345_679_u64}),
                false,
            ),
            ("/no", json!({"equals": false}), true),
            ("/none", json!({"equals": null}), true),
            ("/gone", json!({"equals": null}), false),
            ("/n", json!({"below": 3}), false),
            ("/n", json!({"below": 3.1}), true),
            ("/t", json!({"at_most": 3}), true),
            ("/f", json!({"at_most": 3}), false),
            ("/f", json!({"at_least": 3.5}), true),
            ("/text", json!({"at_least": 0}), false),
            ("/gone", json!({"below": 3}), false),
            ("/none", json!("empty"), true),
            ("/list", json!("empty"), true),
            ("/map", json!("empty"), true),
            ("/blank", json!("empty"), true),
            ("/gone", json!("empty"), true),
            ("/no", json!("empty"), false),
            ("/n", json!("not_empty"), true),
            ("/list", json!("not_empty"), false),
            ("/gone", json!("not_empty"), false),
            ("/text", json!({"matches": "^v6\\."}), true),
            ("/n", json!({"matches": "^3$"}), true),
            ("/text", json!({"matches": "^6"}), false),
            ("/gone", json!({"matches": ""}), false),
            ("/no", json!("exists"), true),
            ("/none", json!("exists"), false),
            ("/gone", json!("exists"), false),
            ("/a~1b/~0", json!({"equals": 1}), true),
            ("/a~1b/*", json!({"equals": 1}), true),
            ("", json!("not_empty"), true),
        ] {
            let condition = condition(pointer, test);
            assert_eq!(condition.fault(&value).is_none(), holds, "{condition}");
        }
    }

    #[test]
    fn places_in_a_fault_are_pointers_again() {
        let condition = condition("/*/*", json!({"below": 1}));
        let fault = condition.fault(&json!({"a/b": [0, 2]})).unwrap();
        assert_eq!(fault, "/a~1b/1 is 2, wanted below 1");
    }

    #[test]
    fn what_is_no_pointer_or_pattern_is_refused() {
        let read = |value| {
            serde_json::from_value::<Condition>(value)
                .unwrap_err()
                .to_string()
        };
        let text = read(json!({"pointer": "a", "is": "empty"}));
        assert_eq!(
            text,
            "`a` is no JSON pointer: it does not start with a slash"
        );
        let text = read(json!({"pointer": "", "is": {"matches": "("}}));
        assert!(text.contains("unclosed group"), "{text}");
    }

    #[test]
    fn a_condition_is_written_as_it_is_read() {
        for is in [
            json!({"matches": "a.b"}),
            json!("empty"),
            json!({"below": 1.5}),
        ] {
            let written = serde_json::to_value(condition("/a/*", is.clone())).unwrap();
            assert_eq!(written, json!({"pointer": "/a/*", "is": is}));
        }
    }
}
