//! The limits that processes started here inherit, from `/proc/self/limits`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A limit, or the word for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Limit {
    /// So much.
    Number(u64),
    /// Without end.
    Word(Word),
}

/// The word for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Word {
    /// No limit.
    #[serde(rename = "unlimited")]
    Unlimited,
}

impl Limit {
    /// Whether it allows `wanted`.
    #[must_use]
    pub fn allows(self, wanted: u64) -> bool {
        match self {
            Self::Number(number) => number >= wanted,
            Self::Word(Word::Unlimited) => true,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Word(Word::Unlimited) => f.write_str("unlimited"),
        }
    }
}

/// Limits of a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Open files, as they begin.
    pub nofile_soft: Option<Limit>,
    /// Open files, as far as a process may raise them.
    pub nofile_hard: Option<Limit>,
    /// Stack, bytes, as it begins.
    pub stack_soft: Option<Limit>,
    /// Stack, bytes, as far as a process may raise it.
    pub stack_hard: Option<Limit>,
}

/// Reads lines such as `Max open files            1024                 524288               files`.
pub(super) fn parse(text: &str) -> Limits {
    let pair = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let mut fields = line.unwrap_or_default().split_whitespace();
        let mut next = || fields.next().and_then(limit);
        (next(), next())
    };
    let (nofile_soft, nofile_hard) = pair("Max open files");
    let (stack_soft, stack_hard) = pair("Max stack size");
    Limits {
        nofile_soft,
        nofile_hard,
        stack_soft,
        stack_hard,
    }
}

fn limit(text: &str) -> Option<Limit> {
    match text {
        "unlimited" => Some(Limit::Word(Word::Unlimited)),
        number => number.parse().ok().map(Limit::Number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_numbers_or_unlimited_and_survive_json() {
        let found = parse(
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max stack size            8388608              unlimited            bytes     \n\
             Max open files            1024                 524288               files     \n",
        );
        let unlimited = Limit::Word(Word::Unlimited);
        assert_eq!(found.nofile_soft, Some(Limit::Number(1024)));
        assert_eq!(found.nofile_hard, Some(Limit::Number(524_288)));
        assert_eq!(found.stack_hard, Some(unlimited));
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!(json["stack_hard"], "unlimited");
        assert_eq!(serde_json::from_value::<Limits>(json).unwrap(), found);
    }
}
