//! Versions of TiDB, as far as defaults of a topology depend on them.

use super::section::{HTTP_PORT, NG_PORT};

/// Whether a version is at least `major.minor`. One that is not known, and a nightly build, count as the newest.
pub(super) fn is_at_least(version: Option<&str>, major: u32, minor: u32) -> bool {
    let numbers = version.and_then(|version| {
        let mut parts = version
            .strip_prefix('v')
            .unwrap_or(version)
            .split(['.', '-', '+']);
        let mut number = || parts.next()?.parse::<u32>().ok();
        Some((number()?, number()?))
    });
    numbers.is_none_or(|numbers| numbers >= (major, minor))
}

/// A version as packages are called: `v6.1.2`, also where it is written without the `v`.
pub(super) fn normal(version: &str) -> String {
    let bare = version.starts_with(|c: char| c.is_ascii_digit());
    format!("{}{version}", if bare { "v" } else { "" })
}

/// Whether a port that only some versions have is there by default.
pub(super) fn has_port(version: Option<&str>, key: &str) -> bool {
    match key {
        NG_PORT => is_at_least(version, 5, 4),
        HTTP_PORT => !is_at_least(version, 7, 1),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_compared_by_its_first_two_numbers() {
        for (version, at_least) in [
            ("v5.4.3", true),
            ("5.4.0-alpha", true),
            ("v5.3.9", false),
            ("v10.0.0", true),
            ("nightly", true),
        ] {
            assert_eq!(is_at_least(Some(version), 5, 4), at_least, "{version}");
        }
        assert!(is_at_least(None, 5, 4));
    }

    #[test]
    fn a_version_may_go_without_its_letter() {
        assert_eq!(normal("6.1.2"), "v6.1.2");
        assert_eq!(normal("v6.1.2"), "v6.1.2");
        assert_eq!(normal("nightly"), "nightly");
    }
}
