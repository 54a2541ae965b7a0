//! Whether a key or a variable is there in a version.

use super::catalogue::{Key, Variable};
use crate::pack::version::{Version, VersionRange};

/// When something is there.
pub(super) struct Presence<'a> {
    since: Option<&'a Version>,
    until: Option<&'a Version>,
    versions: Option<&'a VersionRange>,
}

impl Key {
    pub(super) fn presence(&self) -> Presence<'_> {
        Presence {
            since: self.since.as_ref(),
            until: self.until.as_ref(),
            versions: self.versions.as_ref(),
        }
    }
}

impl Variable {
    pub(super) fn presence(&self) -> Presence<'_> {
        Presence {
            since: self.since.as_ref(),
            until: self.until.as_ref(),
            versions: self.versions.as_ref(),
        }
    }
}

impl Presence<'_> {
    /// Why it is not there, or none if it is.
    pub(super) fn absent(&self, version: &Version) -> Option<String> {
        match (self.since, self.until, self.versions) {
            (Some(since), _, _) if !version.reaches(since) => Some(format!("it came with {since}")),
            (_, Some(until), _) if version.reaches(until) => {
                Some(format!("it is gone since {until}"))
            }
            (_, _, Some(versions)) if !versions.contains(version) => {
                Some(format!("it exists in versions {versions}"))
            }
            _ => None,
        }
    }
}
