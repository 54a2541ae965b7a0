//! Words for what libraries and the system say.

use std::error::Error;

use serde_json::Value;

/// Values are shown up to this many characters.
const LONGEST: usize = 120;

/// The innermost cause of an error, as one starts within a sentence and without its number: `connection refused`.
pub(super) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    let text = error.to_string();
    let text = text.rsplit_once(" (os error ").map_or(&*text, |(t, _)| t);
    // How rustls and mysql_async introduce what the system said.
    let text = text.trim_start_matches("Input/output error: ");
    let text = text.trim_start_matches("I/O error: ");
    uncapitalised(text)
}

/// The text with a small first letter, unless its first word is an abbreviation.
fn uncapitalised(text: &str) -> String {
    let mut letters = text.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}

/// A JSON value as people read it, cut where it is long.
pub(super) fn value(value: &Value) -> String {
    cut(&value.to_string())
}

/// The beginning of a text, on one line.
pub(super) fn cut(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST {
        return line;
    }
    let start: String = line.chars().take(LONGEST).collect();
    format!("{start}…")
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_cause_of_the_system_reads_as_part_of_a_sentence() {
        let refused = io::Error::from_raw_os_error(rustix::io::Errno::CONNREFUSED.raw_os_error());
        assert_eq!(innermost(&refused), "connection refused");
        let other = io::Error::other("TLS is off");
        assert_eq!(innermost(&other), "TLS is off");
    }

    #[test]
    fn long_values_are_cut_between_letters() {
        let long = "ä".repeat(LONGEST + 1);
        assert_eq!(cut(&long), format!("{}…", "ä".repeat(LONGEST)));
        assert_eq!(cut("select\n  1"), "select 1");
    }
}
