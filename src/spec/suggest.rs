//! "Did you mean": the closest of the words that would have been right.

/// The candidate that `word` was likely meant to be: equal but for case and dashes, or a few letters off.
pub(super) fn closest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let wanted = plain(word);
    let length = word.chars().count();
    if length > 100 {
        // A long text is no slip of a word, and comparing it takes time.
        return None;
    }
    let allowed = (length / 3).clamp(1, 4);
    candidates
        .into_iter()
        .take(1000)
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= allowed)
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&wanted, &plain(candidate));
            (distance, candidate)
        })
        .filter(|(distance, candidate)| {
            // Every letter of a short word replaced is another word.
            *distance <= allowed && *distance < candidate.chars().count()
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `did you mean ...?` for a word, or what could have stood there.
#[must_use]
pub fn help(word: &str, candidates: &[&str], what: &str) -> Option<String> {
    match closest(word, candidates.iter().copied()) {
        Some(candidate) => Some(format!("did you mean `{candidate}`?")),
        None if candidates.is_empty() => None,
        None => Some(format!("{what} {}", list(candidates))),
    }
}

/// Words for a message: "`a`, `b` and 3 more".
pub(super) fn list(words: &[&str]) -> String {
    const SHOWN: usize = 20;
    let shown: Vec<String> = words.iter().take(SHOWN).map(|w| format!("`{w}`")).collect();
    match words.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// A text for a message: on one line, cut where it is long.
pub(super) fn shown(text: &str) -> String {
    const SHOWN: usize = 60;
    let line = text.lines().next().unwrap_or("");
    if line.chars().count() > SHOWN || line.len() < text.trim_end().len() {
        line.chars().take(SHOWN).chain(['…']).collect()
    } else {
        line.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let words = ["threads", "rate", "wal", "wal-normal"];
        assert_eq!(closest("thread", words), Some("threads"));
        assert_eq!(closest("Threads", words), Some("threads"));
        assert_eq!(closest("wal_normal", words), Some("wal-normal"));
        assert_eq!(closest("thraeds", words), Some("threads"));
        assert_eq!(closest("duration", words), None);
        assert_eq!(closest("x", words), None);
        assert_eq!(closest(&"x".repeat(100_000), words), None);
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(shown("short"), "short");
        assert_eq!(shown("two\nlines"), "two…");
        assert_eq!(shown(&"x".repeat(1000)).chars().count(), 61);
    }
}
