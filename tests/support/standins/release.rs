//! The version that a stand-in plays, read from the end of its own file.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Failure;
use crate::misbehaviour::Misbehaviour;

/// The last bytes of a stand-in's file; before them the length of the JSON before that, as eight bytes, little-endian.
const MARK: &[u8; 8] = b"STANDIN1";

/// What `tests/support/mirror.rs` wrote at the end of the file.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Release {
    /// Such as `v5.4.3`.
    pub(crate) version: String,
    pub(crate) git_hash: String,
    /// By component: how this package misbehaves.
    #[serde(default)]
    pub(crate) misbehaviour: BTreeMap<String, Misbehaviour>,
}

impl Release {
    pub(crate) fn of_this_program() -> Result<Self, Failure> {
        let bytes = std::fs::read("/proc/self/exe")
            .map_err(|error| format!("cannot read its own file: {error}"))?;
        let json = trailer(&bytes)
            .ok_or("this file carries no version; tests/support/mirror.rs makes those that do")?;
        Ok(serde_json::from_slice(json)?)
    }

    /// Whether this version is `version` (such as `6.1` or `4.0.1`) or later.
    pub(crate) fn since(&self, version: &str) -> bool {
        numbers(&self.version) >= numbers(version)
    }

    /// The version without its `v`, as TiKV and PD's stores say it.
    pub(crate) fn bare(&self) -> &str {
        self.version.trim_start_matches('v')
    }

    /// What the server says of itself over MySQL's protocol.
    pub(crate) fn mysql(&self) -> String {
        let mysql = if self.since("7.4") {
            "8.0.11"
        } else {
            "5.7.25"
        };
        format!("{mysql}-TiDB-{}", self.version)
    }

    /// What `-V` prints.
    pub(crate) fn described(&self, component: &str) -> String {
        let Self {
            version, git_hash, ..
        } = self;
        match component {
            "tikv-server" => format!(
                "TiKV \nRelease Version:   {}\nEdition:           Community (stand-in for tests)\nGit Commit Hash:   {git_hash}\n\
                 Git Commit Branch: heads/refs/tags/{version}\nUTC Build Time:    2020-01-01 00:00:00\n\
                 Rust Version:      rustc (stand-in)\nEnable Features:   none\nProfile:           stand-in",
                self.bare()
            ),
            "pd-server" => self.described_go(),
            _ => format!(
                "{}\nGoVersion: none\nRace Enabled: false\nCheck Table Before Drop: false",
                self.described_go()
            ),
        }
    }

    fn described_go(&self) -> String {
        let Self {
            version, git_hash, ..
        } = self;
        format!(
            "Release Version: {version}\nEdition: Community (stand-in for tests)\nGit Commit Hash: {git_hash}\n\
             Git Branch: heads/refs/tags/{version}\nUTC Build Time: 2020-01-01 00:00:00"
        )
    }
}

fn trailer(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_suffix(MARK)?;
    let (rest, length) = rest.split_last_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    rest.get(rest.len().checked_sub(length)?..)
}

/// The numbers of a version; what follows them (`-alpha`, `-nightly-…`) does not count.
fn numbers(version: &str) -> [u64; 3] {
    let mut parts = version
        .trim_start_matches('v')
        .split(['.', '-'])
        .map_while(|part| part.parse().ok());
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}
