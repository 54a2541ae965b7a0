//! The order that runs an installed load tool on a client, and the record that it leaves there.
//! It stands here because both sides of it, the driver that writes it and the agent that carries it out, lie above.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::measurement::Phase;
use crate::units::Duration;

/// Runs of a load tool, one after the other, in one folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// The folder that it works in and leaves its files in; without one it gets a private one, which is removed at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// How its version is found out.
    pub probe: Probe,
    /// Versions that cannot do what is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<Refusal>,
    /// The files that it needs, in its folder.
    pub files: Vec<ToolFile>,
    /// What is run, in order. The first that fails ends it.
    pub steps: Vec<ToolStep>,
}

impl Tool {
    /// The file in the folder that the [`ToolRecord`] is kept in.
    pub const RECORD: &str = "tool.json";
}

/// How a tool's version is found out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// The program.
    pub program: String,
    /// The arguments that make it print its version.
    pub args: Vec<String>,
    /// The package that has it, for whoever lacks it.
    pub package: String,
}

/// A range of versions, told by the first two numbers of each: `from` and up, but not `below` and up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// The first version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<(u32, u32)>,
    /// The first version behind the range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<(u32, u32)>,
}

impl Versions {
    /// All versions.
    pub const ALL: Self = Self {
        from: None,
        below: None,
    };

    /// Whether a version is in the range.
    #[must_use]
    pub fn contains(self, version: (u32, u32)) -> bool {
        self.from.is_none_or(|from| from <= version)
            && self.below.is_none_or(|below| version < below)
    }

    fn is_all(&self) -> bool {
        *self == Self::ALL
    }
}

/// Versions that cannot do what is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// Which.
    pub versions: Versions,
    /// What they cannot do.
    pub why: String,
}

/// A file that a tool needs.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolFile {
    /// Its name in the folder.
    pub name: String,
    /// Its permissions.
    pub mode: u32,
    /// What it holds.
    pub content: String,
    /// Whether it is removed when the tool has ended, and never shown.
    #[serde(default)]
    pub secret: bool,
}

/// All but the content of a secret one.
impl fmt::Debug for ToolFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let content = if self.secret {
            "(hidden)"
        } else {
            &self.content
        };
        f.debug_struct("ToolFile")
            .field("name", &self.name)
            .field("mode", &self.mode)
            .field("content", &content)
            .finish_non_exhaustive()
    }
}

/// One run of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolStep {
    /// What it is called in messages and in the record.
    pub name: String,
    /// The versions of the tool that it is run with; others go on to the next step.
    #[serde(default, skip_serializing_if = "Versions::is_all")]
    pub versions: Versions,
    /// The program, looked for where programs are.
    pub program: String,
    /// Its arguments; they hold no secrets, for everyone on the host can read them.
    pub args: Vec<String>,
    /// Variables added to its environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// After this it is killed and has failed. Without it, only whoever asked for the work limits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Duration>,
    /// The file in the folder that its standard output goes to.
    pub stdout: String,
    /// The file in the folder that its standard error goes to.
    pub stderr: String,
    /// What is understood of what it prints.
    #[serde(default)]
    pub listen: Listen,
}

/// What is understood of the lines that a program prints on its standard output. Patterns are regular expressions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Listen {
    /// Lines that say why it failed. One of them is a failure whatever the exit status: some tools end with 0 all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Lines that tell of a second of load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<Seconds>,
    /// Lines that tell of rows loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loading: Option<Loading>,
}

/// Lines that tell of a second of load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seconds {
    /// The pattern, with the groups `second` (counted from 1), `rate` and `errors` (both per second).
    pub line: String,
    /// Whether the load counts.
    pub phase: Phase,
}

/// Lines that tell of rows loaded. All rows must have been told of at the end, or the step has failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loading {
    /// The pattern.
    pub line: String,
    /// Rows that each such line stands for.
    pub rows: u64,
    /// Rows in all.
    pub of: u64,
}

/// What was run, as kept beside what it printed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolRecord {
    /// What the tool says its version is.
    pub version: String,
    /// The steps that were begun, in order.
    pub steps: Vec<StepRecord>,
}

/// How one step went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// The step.
    pub name: String,
    /// Its program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its exit status; `None` after a signal.
    pub status: Option<i32>,
    /// How long it took, s.
    pub seconds: f64,
    /// CPU time that it used, s, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_versions_hold_their_first_and_not_their_last() {
        let below = Versions {
            below: Some((1, 1)),
            ..Versions::ALL
        };
        let from = Versions {
            from: Some((1, 1)),
            ..Versions::ALL
        };
        for version in [(0, 5), (1, 0), (1, 1), (2, 0)] {
            assert!(Versions::ALL.contains(version));
            assert_eq!(below.contains(version), version < (1, 1));
            assert_eq!(from.contains(version), version >= (1, 1));
        }
    }

    #[test]
    fn a_secret_file_is_not_in_the_debug_text() {
        let file = |secret| ToolFile {
            name: "a".into(),
            mode: 0o600,
            content: "password".into(),
            secret,
        };
        assert!(!format!("{:?}", file(true)).contains("password"));
        assert!(format!("{:?}", file(false)).contains("password"));
    }
}
