//! How labs and their hosts are, read from the system and not from notes.

use serde::Serialize;

use super::locks::Mode;
use super::processes::{HostProcesses, Snapshot};
use super::{Entry, Lab, LabError, Labs, links};

/// How a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostState {
    /// It runs.
    Running,
    /// Its packets are dropped.
    Cut,
    /// Its processes are stopped.
    Paused,
    /// It has no processes.
    Killed,
    /// Its packets are slowed down.
    Slow,
    /// It has no network: the lab is half-made.
    Absent,
}

impl std::fmt::Display for HostState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Cut => "cut",
            Self::Paused => "paused",
            Self::Killed => "killed",
            Self::Slow => "slow",
            Self::Absent => "absent",
        })
    }
}

/// How a lab is.
#[derive(Debug)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Whether a process makes or removes it just now.
    pub is_busy: bool,
    /// What it is; `None` if it was left before that was written, or cannot be read.
    pub lab: Option<Lab>,
    /// How its hosts are, in their order.
    pub states: Vec<HostState>,
}

impl Labs {
    /// How all labs are.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn list(&self) -> Result<Vec<Status>, LabError> {
        let all = Snapshot::take();
        let status = |name: String| {
            let lab = self.read(&name).ok().flatten();
            let hosts = lab
                .iter()
                .flat_map(|lab| lab.hosts.iter().map(move |host| (lab, host)));
            let states = hosts.map(|(lab, host)| state(&all, lab, host)).collect();
            let is_busy = matches!(self.lock(&name, Mode::Beside), Err(LabError::Busy(_)));
            Status {
                name,
                is_busy,
                lab,
                states,
            }
        };
        Ok(self.names()?.into_iter().map(status).collect())
    }
}

/// How a host is; of several faults the one that hides the others.
pub(super) fn state(all: &Snapshot, lab: &Lab, host: &Entry) -> HostState {
    let processes = HostProcesses::among(all, lab, host);
    if !links::exists(lab, host) {
        HostState::Absent
    } else if processes.is_empty() {
        HostState::Killed
    } else if links::is_cut(lab, host) {
        HostState::Cut
    } else if processes.are_stopped() {
        HostState::Paused
    } else if links::is_slow(lab, host) {
        HostState::Slow
    } else {
        HostState::Running
    }
}
