//! "Did you mean": the name that was likely meant.

/// The candidate that `name` is a few letters off, or the only one that ends in the same word.
pub(super) fn closest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    const LONGEST: usize = 100;
    if name.len() > LONGEST {
        return None;
    }
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let wanted = plain(name);
    let allowed = (wanted.len() / 5).clamp(1, 4);
    let last = |text: &str| text.rsplit('.').next().map(str::to_owned);
    let mut nearest: Option<(usize, &str)> = None;
    let mut elsewhere = Vec::new();
    for candidate in candidates {
        let other = plain(candidate);
        if other.len().abs_diff(wanted.len()) <= allowed {
            let distance = strsim::damerau_levenshtein(&wanted, &other);
            if distance <= allowed && nearest.is_none_or(|(least, _)| distance < least) {
                nearest = Some((distance, candidate));
            }
        }
        if last(&other) == last(&wanted) {
            elsewhere.push(candidate);
        }
    }
    let only = (elsewhere.len() == 1).then(|| elsewhere[0]);
    nearest.map(|(_, candidate)| candidate).or(only)
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn the_likely_name_is_found_and_a_far_one_is_not() {
        let keys = [
            "readpool.unified.max-thread-count",
            "log.level",
            "log.file.max-days",
            "server.labels",
        ];
        let cases = [
            (
                "readpool.unified.max-threads-count",
                Some("readpool.unified.max-thread-count"),
            ),
            (
                "readpool.unified.max_thread_count",
                Some("readpool.unified.max-thread-count"),
            ),
            (
                "max-thread-count",
                Some("readpool.unified.max-thread-count"),
            ),
            ("log.leval", Some("log.level")),
            ("log.max-days", Some("log.file.max-days")),
            ("gc.enabled", None),
        ];
        for (name, wanted) in cases {
            assert_eq!(closest(name, keys), wanted, "{name}");
        }
    }
}
