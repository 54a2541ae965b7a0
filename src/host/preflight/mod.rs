//! What of a host would spoil an experiment: what is found against what is wanted, why it matters, and what mends it.
//! Finding is a pure function; [`apply`] and [`revert`] are what changes a host.

mod apply;
mod directory;
mod fix;
mod holder;
mod items;
mod journal;
mod leftovers;
mod rule;
#[cfg(test)]
mod tests;
mod wanted;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use self::apply::{Applied, ApplyError, Done, Request, Reverted, Undone, apply, revert};
pub use self::directory::Directory;
pub use self::fix::Fix;
pub use self::holder::HeldBy;
pub use self::journal::JOURNAL;
pub use self::leftovers::{Leftovers, Process};
pub use self::rule::{Rule, RuleError};
pub use self::wanted::{Planned, Releases, Wanted};
use super::clock::ClockOffset;
use super::facts::Facts;

/// What is known of a host.
#[derive(Clone, Copy, Debug)]
pub struct HostView<'a> {
    /// What it is.
    pub facts: &'a Facts,
    /// Its clock against that of this machine.
    pub clock: Option<ClockOffset>,
    /// What earlier runs left on it.
    pub leftovers: Option<&'a Leftovers>,
    /// The folder that everything lies in there.
    pub directory: Option<&'a Directory>,
}

/// What a look at a host finds, without changing anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looked {
    /// What earlier runs left.
    #[serde(flatten)]
    pub leftovers: Leftovers,
    /// The host's directory.
    pub directory: Directory,
}

/// Looks at the host's `directory` and at the machine below `root`.
#[must_use]
pub fn look(root: &Path, directory: &Path) -> Looked {
    Looked {
        leftovers: leftovers::look(root, directory),
        directory: directory::look(directory),
    }
}

/// How an item stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As wanted.
    Ok,
    /// Nobody can tell.
    Unknown,
    /// Results may suffer.
    Warn,
    /// The experiment cannot be run, or its results would mean nothing.
    Fail,
}

/// What was found of one item.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Finding {
    /// The item: the name of its key in a pack, or of a kernel setting.
    pub item: String,
    /// How it stands.
    pub status: Status,
    /// The value found.
    pub found: String,
    /// The value wanted.
    pub wanted: String,
    /// Why it matters.
    pub why: String,
    /// What mends it, unless it is fine or nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
}

/// Compares a host with what is wanted of it; what is not wanted is not looked at.
#[must_use]
pub fn findings(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    items::ITEMS
        .iter()
        .flat_map(|item| item(host, wanted))
        .collect()
}
