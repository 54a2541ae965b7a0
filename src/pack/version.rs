//! Versions of components and ranges of them: `v6.1.2`, `nightly`, `>=6.0, <6.5.1 || >=7.1`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// A version of a component, as its packages are named: `v6.1.2`, `6.1`, `v8.5.0-alpha`, or `nightly`, which is newer than all.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Version(Inner);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Inner {
    Release(semver::Version),
    Nightly,
}

/// Versions that something holds for: ranges set apart by `||`, each of comparisons that all hold, set apart by commas.
///
/// Parts that are left out match anything: `<=6.1` holds for 6.1.7, `6.1` for every 6.1. A version before a release
/// (`v8.5.0-alpha`) counts as the release, as it has what the release has.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct VersionRange {
    text: String,
    any_of: Vec<Vec<Comparison>>,
}

/// A comparison with the parts of a version that are given.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Comparison {
    operator: Operator,
    parts: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    AtLeast,
    Above,
    AtMost,
    Below,
    Same,
}

/// Why a text is no version, or no range of versions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// It is no version.
    #[error("`{0}` is no version; versions look like v6.1.2, or nightly")]
    Version(String),
    /// A part of it is no comparison with a version.
    #[error("`{0}` is no range of versions; ranges look like \">=6.0, <6.5.1 || >=7.1\"")]
    Range(String),
}

impl Version {
    /// The newest, built every night.
    #[must_use]
    pub fn nightly() -> Self {
        Self(Inner::Nightly)
    }

    /// Whether it is the newest, built every night, whose number is not known.
    #[must_use]
    pub fn is_nightly(&self) -> bool {
        self.0 == Inner::Nightly
    }

    /// Whether it has what came with `first`. A version before a release has what the release has.
    #[must_use]
    pub fn reaches(&self, first: &Self) -> bool {
        match (self.numbers(), first.numbers()) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(first)) => own >= first,
        }
    }

    /// Major, minor and patch; none for `nightly`.
    #[must_use]
    pub fn numbers(&self) -> Option<[u64; 3]> {
        match &self.0 {
            Inner::Release(version) => Some([version.major, version.minor, version.patch]),
            Inner::Nightly => None,
        }
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Inner::Release(version) => write!(f, "v{version}"),
            Inner::Nightly => f.write_str("nightly"),
        }
    }
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let wrong = || VersionError::Version(text.to_owned());
        if text == "nightly" {
            return Ok(Self::nightly());
        }
        let plain = text.strip_prefix('v').unwrap_or(text);
        let whole = match numbers(plain) {
            Some(parts) if parts.len() < 3 => format!("{plain}{}", ".0".repeat(3 - parts.len())),
            _ => plain.to_owned(),
        };
        let version = semver::Version::parse(&whole).map_err(|_| wrong())?;
        Ok(Self(Inner::Release(version)))
    }
}

impl TryFrom<String> for Version {
    type Error = VersionError;

    fn try_from(text: String) -> Result<Self, VersionError> {
        text.parse()
    }
}

impl VersionRange {
    /// Whether the version is in it.
    #[must_use]
    pub fn contains(&self, version: &Version) -> bool {
        let numbers = version.numbers();
        self.any_of
            .iter()
            .any(|all| all.iter().all(|one| one.holds(numbers)))
    }
}

impl Comparison {
    fn holds(&self, numbers: Option<[u64; 3]>) -> bool {
        let Some(numbers) = numbers else {
            return matches!(self.operator, Operator::AtLeast | Operator::Above);
        };
        let order = numbers[..self.parts.len()].cmp(&self.parts[..]);
        match self.operator {
            Operator::AtLeast => order.is_ge(),
            Operator::Above => order.is_gt(),
            Operator::AtMost => order.is_le(),
            Operator::Below => order.is_lt(),
            Operator::Same => order.is_eq(),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        const OPERATORS: [(&str, Operator); 5] = [
            (">=", Operator::AtLeast),
            ("<=", Operator::AtMost),
            (">", Operator::Above),
            ("<", Operator::Below),
            ("=", Operator::Same),
        ];
        let text = text.trim();
        let found = OPERATORS
            .iter()
            .find_map(|(sign, operator)| Some((text.strip_prefix(sign)?, *operator)));
        let (version, operator) = found.unwrap_or((text, Operator::Same));
        let version = version.trim();
        let parts = numbers(version.strip_prefix('v').unwrap_or(version))?;
        Some(Self { operator, parts })
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for VersionRange {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let all = |range: &str| range.split(',').map(Comparison::parse).collect();
        let any_of: Option<Vec<Vec<_>>> = text.split("||").map(all).collect();
        Ok(Self {
            any_of: any_of.ok_or_else(|| VersionError::Range(text.to_owned()))?,
            text: text.to_owned(),
        })
    }
}

impl TryFrom<String> for VersionRange {
    type Error = VersionError;

    fn try_from(text: String) -> Result<Self, VersionError> {
        text.parse()
    }
}

/// One to three numbers set apart by dots.
fn numbers(text: &str) -> Option<Vec<u64>> {
    let part = |part: &str| {
        let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| part.parse().ok()).flatten()
    };
    let parts: Vec<u64> = text.split('.').map(part).collect::<Option<_>>()?;
    (parts.len() <= 3).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn a_version_is_read_as_packages_are_named_and_shown_whole() {
        let cases = [
            ("v6.1.2", "v6.1.2"),
            ("6.1.2", "v6.1.2"),
            ("6.1", "v6.1.0"),
            ("v8", "v8.0.0"),
            ("v8.5.0-alpha", "v8.5.0-alpha"),
            ("nightly", "nightly"),
        ];
        for (text, shown) in cases {
            assert_eq!(version(text).to_string(), shown);
        }
        for text in [
            "", "v", "latest", "6.1.2.3", "6..1", "v6.x", "+6.1", "v6.1-",
        ] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }

    #[test]
    fn nightly_is_the_newest_and_a_pre_release_older_than_its_release() {
        let ascending = [
            "v4.0.16",
            "v6.1.2",
            "v6.1.10",
            "v8.5.0-alpha",
            "v8.5.0",
            "nightly",
        ];
        let versions = ascending.map(version);
        assert!(versions.is_sorted());
        assert!(
            versions
                .iter()
                .all(|v| v.is_nightly() == (v.to_string() == "nightly"))
        );
    }

    #[test]
    fn a_pre_release_has_what_its_release_has() {
        assert!(version("v8.5.0-alpha").reaches(&version("8.5")));
        assert!(version("nightly").reaches(&version("99.0")));
        assert!(!version("v8.5.0").reaches(&version("8.5.1")));
        assert!(!version("v8.5.0").reaches(&Version::nightly()));
    }

    #[test]
    fn a_range_takes_partial_versions_and_alternatives() {
        let cases = [
            (
                ">=6.0, <6.5.1",
                "v6.0.0 v6.1.7 v6.5.0",
                "v5.4.3 v6.5.1 v6.6.0 nightly",
            ),
            (
                ">=6.5.7, <6.6 || >=7.1",
                "v6.5.7 v6.5.12 v7.1.0 v8.5.0 nightly",
                "v6.5.6 v6.6.0 v7.0.0",
            ),
            ("6.1", "v6.1.0 v6.1.7", "v6.0.0 v6.2.0 nightly"),
            ("=v6.1.2", "v6.1.2", "v6.1.3"),
            ("<=6.1", "v5.4.3 v6.1.0 v6.1.7", "v6.2.0 nightly"),
            (">6.1", "v6.2.0 nightly", "v6.1.7"),
            (">=8.5", "v8.5.0-alpha v8.5.0", "v8.4.0"),
        ];
        for (range, inside, outside) in cases {
            let range: VersionRange = range.parse().unwrap();
            for text in inside.split(' ') {
                assert!(range.contains(&version(text)), "{range} and {text}");
            }
            for text in outside.split(' ') {
                assert!(!range.contains(&version(text)), "{range} and {text}");
            }
        }
    }

    #[test]
    fn what_is_no_range_is_refused_with_its_text() {
        for text in ["", ">=", "6.1 ||", ">=6.1,", "~>6", ">=6.1 <7", "6.x"] {
            let error = text.parse::<VersionRange>().unwrap_err();
            assert_eq!(error, VersionError::Range(text.to_owned()));
        }
    }
}
