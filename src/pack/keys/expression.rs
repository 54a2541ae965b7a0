//! Limits of a value: numbers, or expressions of CPUs, memory and other keys, such as `max(4, 10 * cpus)`.

use serde::Deserialize;

/// A limit: numbers, names, `*`, `min(..)` and `max(..)`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Written")]
pub(super) enum Expression {
    Number(f64),
    /// `cpus`, `memory` or another key.
    Name(String),
    Product(Box<Expression>, Box<Expression>),
    Least(Vec<Expression>),
    Greatest(Vec<Expression>),
}

/// How a limit is written: a number, or a text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(f64),
    Text(String),
}

/// Why a text is no expression.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no limit; limits look like 16, cpus, \"10 * cpus\" or \"max(4, cpus)\"")]
pub(super) struct NoExpression(String);

impl TryFrom<Written> for Expression {
    type Error = NoExpression;

    fn try_from(written: Written) -> Result<Self, NoExpression> {
        match written {
            Written::Number(number) => Ok(Self::Number(number)),
            Written::Text(text) => Self::parse(&text),
        }
    }
}

impl Expression {
    pub(super) fn parse(text: &str) -> Result<Self, NoExpression> {
        let wrong = || NoExpression(text.to_owned());
        let mut reader = Reader {
            tokens: tokens(text).ok_or_else(wrong)?,
            next: 0,
            depth: 0,
        };
        let expression = reader.product().ok_or_else(wrong)?;
        let whole = reader.next == reader.tokens.len();
        whole.then_some(expression).ok_or_else(wrong)
    }

    /// The number that it comes to; none where a name has no value.
    pub(super) fn value(&self, name: &impl Fn(&str) -> Option<f64>) -> Option<f64> {
        let fold = |all: &[Self], pick: fn(f64, f64) -> f64| {
            let values: Option<Vec<f64>> = all.iter().map(|one| one.value(name)).collect();
            values?.into_iter().reduce(pick)
        };
        match self {
            Self::Number(number) => Some(*number),
            Self::Name(text) => name(text),
            Self::Product(left, right) => Some(left.value(name)? * right.value(name)?),
            Self::Least(all) => fold(all, f64::min),
            Self::Greatest(all) => fold(all, f64::max),
        }
    }

    /// Its text for a message, with `name` for each name; none for a mere number, which needs no explanation.
    pub(super) fn explained(&self, name: &impl Fn(&str) -> String) -> Option<String> {
        (!matches!(self, Self::Number(_))).then(|| self.text(name))
    }

    fn text(&self, name: &impl Fn(&str) -> String) -> String {
        let list = |all: &[Self]| {
            let all: Vec<String> = all.iter().map(|one| one.text(name)).collect();
            all.join(", ")
        };
        match self {
            Self::Number(number) => number.to_string(),
            Self::Name(text) => name(text),
            Self::Product(left, right) => format!("{} * {}", left.text(name), right.text(name)),
            Self::Least(all) => format!("min({})", list(all)),
            Self::Greatest(all) => format!("max({})", list(all)),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(f64),
    Name(String),
    Sign(char),
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = |more: fn(char) -> bool| rest.find(|c| !more(c)).unwrap_or(rest.len());
        let end = if "(),*".contains(first) {
            found.push(Token::Sign(first));
            1
        } else if first.is_ascii_digit() {
            let end = word(|c| c.is_ascii_digit() || c == '.');
            found.push(Token::Number(rest[..end].parse().ok()?));
            end
        } else if first.is_ascii_alphabetic() {
            let end = word(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
            found.push(Token::Name(rest[..end].to_owned()));
            end
        } else {
            return None;
        };
        rest = rest[end..].trim_start();
    }
    Some(found)
}

/// Reads tokens from the left.
struct Reader {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

impl Reader {
    /// How deep brackets may stand in one another.
    const DEPTH: usize = 16;

    fn product(&mut self) -> Option<Expression> {
        let mut left = self.operand()?;
        while self.take('*') {
            left = Expression::Product(Box::new(left), Box::new(self.operand()?));
        }
        Some(left)
    }

    fn operand(&mut self) -> Option<Expression> {
        let token = self.tokens.get(self.next)?.clone();
        self.next += 1;
        match token {
            Token::Number(number) => Some(Expression::Number(number)),
            Token::Name(name) if self.take('(') => match name.as_str() {
                "min" => Some(Expression::Least(self.list()?)),
                "max" => Some(Expression::Greatest(self.list()?)),
                _ => None,
            },
            Token::Name(name) => Some(Expression::Name(name)),
            Token::Sign(_) => None,
        }
    }

    fn list(&mut self) -> Option<Vec<Expression>> {
        self.depth += 1;
        if self.depth > Self::DEPTH {
            return None;
        }
        let mut all = vec![self.product()?];
        while self.take(',') {
            all.push(self.product()?);
        }
        self.depth -= 1;
        self.take(')').then_some(all)
    }

    fn take(&mut self, sign: char) -> bool {
        let there = self.tokens.get(self.next) == Some(&Token::Sign(sign));
        self.next += usize::from(there);
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, cpus: Option<f64>) -> Option<f64> {
        let name = |name: &str| match name {
            "cpus" => cpus,
            "rocksdb.max-background-jobs" => Some(8.0),
            _ => None,
        };
        Expression::parse(text).unwrap().value(&name)
    }

    #[test]
    fn an_expression_of_cpus_and_keys_comes_to_a_number() {
        let cases = [
            ("16384", 16384.0),
            ("cpus", 16.0),
            ("10 * cpus", 160.0),
            ("max(4, cpus)", 16.0),
            ("max(4, 10 * cpus)", 160.0),
            ("min(1, rocksdb.max-background-jobs)", 1.0),
            (" max( 2 ,min( cpus*0.5,9 ) )", 8.0),
        ];
        for (text, wanted) in cases {
            assert_eq!(value(text, Some(16.0)), Some(wanted), "{text}");
        }
    }

    #[test]
    fn what_is_not_known_leaves_no_number() {
        assert_eq!(value("max(4, cpus)", None), None);
        assert_eq!(value("10 * memory", Some(16.0)), None);
        assert_eq!(value("4", None), Some(4.0));
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        let deep = format!("{}1{}", "max(".repeat(40), ")".repeat(40));
        for text in [
            "", "4 +", "max(4", "max()", "most(4)", "4 4", "* 4", "4,", "1.2.3", ")", &deep,
        ] {
            let error = Expression::parse(text).unwrap_err();
            assert_eq!(error, NoExpression(text.to_owned()));
        }
    }
}
