//! Conditions on numbers, versions and words, as packs write them: `0 or 1`, `>= 32768`, `>= 8.4, < 10`, `*`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A condition on a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    text: String,
    /// One of these must hold: all comparisons of it.
    alternatives: Vec<Vec<Comparison>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Comparison {
    operator: Operator,
    operand: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Anything,
    Equal,
    AtLeast,
    Below,
}

/// A text that is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a value, `a or b`, `>= n`, `< n` or `*`, found `{0}`")]
pub struct RuleError(String);

impl Rule {
    /// Whether a value is as wanted.
    #[must_use]
    pub fn allows(&self, value: &str) -> bool {
        let mut alternatives = self.alternatives.iter();
        alternatives.any(|all| all.iter().all(|comparison| comparison.holds(value)))
    }

    /// A value that it allows, as near to its limits as can be; `None` if it names none.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        let named =
            self.alternatives.iter().flatten().find(|comparison| {
                matches!(comparison.operator, Operator::Equal | Operator::AtLeast)
            });
        named.map(|comparison| comparison.operand.as_str())
    }
}

impl Comparison {
    fn holds(&self, value: &str) -> bool {
        let operand = self.operand.as_str();
        match self.operator {
            Operator::Anything => true,
            Operator::Equal => value.eq_ignore_ascii_case(operand),
            Operator::AtLeast => compare(value, operand).is_some_and(Ordering::is_ge),
            Operator::Below => compare(value, operand).is_some_and(Ordering::is_lt),
        }
    }
}

/// Compares numbers and versions part by part; what is none has no order. A missing part is 0.
fn compare(a: &str, b: &str) -> Option<Ordering> {
    let parts = |text: &str| -> Option<Vec<u128>> {
        text.split('.').map(|part| part.parse().ok()).collect()
    };
    let (mut a, mut b) = (parts(a)?, parts(b)?);
    let longest = a.len().max(b.len());
    a.resize(longest, 0);
    b.resize(longest, 0);
    Some(a.cmp(&b))
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let alternatives = text.split(" or ").map(|all| {
            all.split(',')
                .map(|one| comparison(one).ok_or_else(|| RuleError(text.to_owned())))
                .collect::<Result<Vec<_>, _>>()
        });
        Ok(Self {
            text: text.to_owned(),
            alternatives: alternatives.collect::<Result<_, _>>()?,
        })
    }
}

fn comparison(text: &str) -> Option<Comparison> {
    let text = text.trim();
    let (operator, operand) = if let Some(rest) = text.strip_prefix(">=") {
        (Operator::AtLeast, rest)
    } else if let Some(rest) = text.strip_prefix('<') {
        (Operator::Below, rest)
    } else if text == "*" {
        (Operator::Anything, text)
    } else {
        (Operator::Equal, text)
    };
    let operand = operand.trim();
    let is_ordered = matches!(operator, Operator::AtLeast | Operator::Below);
    let is_wrong = operand.is_empty()
        || operand.starts_with(['=', '<', '>'])
        || is_ordered && compare(operand, operand).is_none();
    (!is_wrong).then(|| Comparison {
        operator,
        operand: operand.to_owned(),
    })
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RuleVisitor)
    }
}

struct RuleVisitor;

/// A number without quotes is a rule as well.
impl de::Visitor<'_> for RuleVisitor {
    type Value = Rule;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, `a or b`, `>= n`, `< n` or `*`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Rule, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Rule, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Rule, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Rule, E> {
        self.visit_str(&number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed<'a>(rule: &str, values: &[&'a str]) -> Vec<&'a str> {
        let rule: Rule = rule.parse().unwrap();
        let values = values.iter().copied();
        values.filter(|value| rule.allows(value)).collect()
    }

    #[test]
    fn values_alternatives_bounds_and_ranges_are_told_apart() {
        assert_eq!(allowed("0", &["0", "1", "00"]), ["0"]);
        assert_eq!(allowed("0 or 1", &["0", "1", "2"]), ["0", "1"]);
        // The kernel's own greatest value of fs.file-max fits.
        let values = ["999999", "1000000", "9223372036854775807", "many"];
        assert_eq!(allowed(">= 1000000", &values), values[1..3]);
        assert_eq!(
            allowed(">= 8.4, < 10", &["8.3", "8.4", "8.10", "9", "10"]),
            ["8.4", "8.10", "9"]
        );
        assert_eq!(allowed("V10", &["v10", "V11"]), ["v10"]);
        assert_eq!(allowed("*", &["anything", ""]), ["anything", ""]);
    }

    #[test]
    fn the_value_to_set_is_the_first_that_is_named() {
        let value = |text: &str| text.parse::<Rule>().unwrap().value().map(str::to_owned);
        assert_eq!(value("0 or 1").as_deref(), Some("0"));
        assert_eq!(value(">= 32768").as_deref(), Some("32768"));
        assert_eq!((value("*"), value("< 5")), (None, None));
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in ["", ">=", "> 5", ">= many", "1 or ", "== 3", "< "] {
            assert!(text.parse::<Rule>().is_err(), "{text}");
        }
    }
}
