//! The pragmas of SQLite that may be tuned, with their values, as <https://sqlite.org/pragma.html> gives them.

/// A pragma that may be tuned.
#[derive(Debug, PartialEq)]
pub(super) struct Tunable {
    pub(super) name: &'static str,
    pub(super) values: Values,
}

/// What a pragma may be set to.
#[derive(Debug, PartialEq)]
pub(super) enum Values {
    /// One of these words. Where the pragma reads back a number, it is the word's index.
    Word(&'static [&'static str]),
    /// A whole number from the first to the second.
    Whole(i64, i64),
    /// A power of two from the first to the second.
    PowerOfTwo(i64, i64),
}

const ON_OFF: Values = Values::Word(&["off", "on"]);

/// All tunables, in the order in which they are set: those that only an empty file takes first.
pub(super) const TUNABLES: &[Tunable] = &[
    Tunable {
        name: "page_size",
        values: Values::PowerOfTwo(512, 65_536),
    },
    Tunable {
        name: "auto_vacuum",
        values: Values::Word(&["none", "full", "incremental"]),
    },
    Tunable {
        name: "busy_timeout",
        values: Values::Whole(0, 3_600_000),
    },
    Tunable {
        name: "locking_mode",
        values: Values::Word(&["normal", "exclusive"]),
    },
    Tunable {
        name: "journal_mode",
        values: Values::Word(&["delete", "truncate", "persist", "memory", "wal", "off"]),
    },
    Tunable {
        name: "synchronous",
        values: Values::Word(&["off", "normal", "full", "extra"]),
    },
    Tunable {
        name: "cache_size",
        values: Values::Whole(-2_000_000_000, 2_000_000_000),
    },
    Tunable {
        name: "mmap_size",
        values: Values::Whole(0, 2_147_418_112),
    },
    Tunable {
        name: "temp_store",
        values: Values::Word(&["default", "file", "memory"]),
    },
    Tunable {
        name: "wal_autocheckpoint",
        values: Values::Whole(0, 2_000_000_000),
    },
    Tunable {
        name: "journal_size_limit",
        values: Values::Whole(-1, i64::MAX),
    },
    Tunable {
        name: "secure_delete",
        values: ON_OFF,
    },
    Tunable {
        name: "automatic_index",
        values: ON_OFF,
    },
    Tunable {
        name: "cell_size_check",
        values: ON_OFF,
    },
    Tunable {
        name: "threads",
        values: Values::Whole(0, 8),
    },
];

/// The tunable called `name`.
pub(super) fn tunable(name: &str) -> Option<&'static Tunable> {
    TUNABLES.iter().find(|t| t.name == name)
}

impl Values {
    /// Whether `value`, as written, is allowed.
    pub(super) fn allow(&self, value: &str) -> bool {
        match self {
            Self::Word(words) => words.contains(&value.to_ascii_lowercase().as_str()),
            Self::Whole(least, most) => whole(value).is_some_and(|n| (*least..=*most).contains(&n)),
            Self::PowerOfTwo(least, most) => {
                whole(value).is_some_and(|n| (*least..=*most).contains(&n) && n.count_ones() == 1)
            }
        }
    }

    /// What is allowed, in words.
    pub(super) fn expected(&self) -> String {
        match self {
            Self::Word(words) => {
                let quoted: Vec<String> = words.iter().map(|w| format!("`{w}`")).collect();
                format!("one of {}", quoted.join(", "))
            }
            Self::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Self::PowerOfTwo(least, most) => format!("a power of two from {least} to {most}"),
        }
    }

    /// The form that both what was written and what is read back are brought to, so that they can be compared.
    pub(super) fn normal(&self, value: &str) -> String {
        match self {
            Self::Word(words) => match value.parse::<usize>() {
                Ok(index) if index < words.len() => words[index].to_owned(),
                _ => value.to_ascii_lowercase(),
            },
            Self::Whole(..) | Self::PowerOfTwo(..) => {
                whole(value).map_or_else(|| value.to_owned(), |n| n.to_string())
            }
        }
    }
}

fn whole(value: &str) -> Option<i64> {
    value.replace('_', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_back_as_a_number_equals_the_word_that_was_written() {
        let synchronous = &tunable("synchronous").unwrap().values;
        assert_eq!(synchronous.normal("2"), synchronous.normal("FULL"));
        let cache = &tunable("cache_size").unwrap().values;
        assert_eq!(cache.normal("-20_000"), cache.normal("-20000"));
    }

    #[test]
    fn values_outside_their_range_are_refused() {
        assert!(!tunable("page_size").unwrap().values.allow("5000"));
        assert!(tunable("page_size").unwrap().values.allow("4096"));
        assert!(!tunable("threads").unwrap().values.allow("9"));
        assert!(!tunable("journal_mode").unwrap().values.allow("walrus"));
    }
}
