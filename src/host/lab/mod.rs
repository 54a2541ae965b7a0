//! The lab: hosts made on this machine, each with a network of its own, systemd and sshd, for trials and for tests.
//! It makes them, breaks them on request, and removes every trace of them. It prints nothing.
//!
//! A host is a `systemd-nspawn` container whose root is an overlay of `/`: what is installed here is there, and what
//! is written there stays there. Everything of a lab is found again by its name and its description (`lab.json`, written
//! before anything is made), so that a lab that was left half-made by a crash is removed like any other. File systems are
//! mounted only in the hosts' own mount namespaces, so that they go when the last process of their host goes, and nothing
//! of a lab is ever mounted where a removal could reach into it.

mod accounts;
mod address;
mod boot;
mod cgroups;
mod description;
mod down;
mod faults;
mod image;
mod inventory;
mod keys;
mod links;
mod locks;
mod needs;
mod nspawn;
mod processes;
mod ready;
mod removal;
mod seed;
mod status;
mod tool;
mod up;

use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

pub use self::description::{Entry, Lab};
pub use self::faults::{Fault, Slowness};
pub use self::status::{HostState, Status};
pub use self::up::Wanted;

/// Where labs are kept unless somebody says otherwise.
pub const FOLDER: &str = "/var/lib/assay/lab";
/// The most hosts of one lab.
pub const MOST_HOSTS: usize = 500;

/// All labs of a folder.
#[derive(Clone, Debug)]
pub struct Labs {
    /// The folder that holds a folder for each.
    folder: PathBuf,
    /// The assay binary, which hosts are booted with.
    program: PathBuf,
    /// Ends what is being made.
    stop: CancellationToken,
}

/// Hears what is being done, for people who wait.
pub type Hear<'a> = &'a (dyn Fn(&str) + Sync);

impl Labs {
    /// The labs of `folder`, an absolute path; `program` is the assay binary.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>, program: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            program: program.into(),
            stop: CancellationToken::new(),
        }
    }

    /// Gives up what is being made when the token is cancelled, and removes what there is of it.
    #[must_use]
    pub fn until(self, stop: CancellationToken) -> Self {
        Self { stop, ..self }
    }

    /// Whether this process may do anything with labs.
    ///
    /// # Errors
    /// It lacks the rights of root.
    pub fn check_rights(&self) -> Result<(), LabError> {
        if rustix::process::geteuid().is_root() {
            return Ok(());
        }
        Err(LabError::Missing(vec![needs::ROOT.to_owned()]))
    }

    /// Where a lab is kept.
    #[must_use]
    pub fn of(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The folder of all labs.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Why something about a lab failed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// It was stopped on request.
    #[error("stopped")]
    Stopped,
    /// The machine lacks what a lab needs; all of it.
    #[error("a lab needs what this machine lacks: {}", .0.join("; "))]
    Missing(Vec<String>),
    /// A lab cannot have this name.
    #[error(
        "a lab cannot be called `{0}`: at most 20 lower-case letters, digits and dashes, a letter first and no dash last"
    )]
    Name(String),
    /// The number of hosts is out of range.
    #[error("a lab has 1 to {MOST_HOSTS} hosts, not {0}")]
    Hosts(usize),
    /// Data images have a least size.
    #[error("an XFS needs at least {} MB, not {} MB", image::LEAST / 1_000_000, .0 / 1_000_000)]
    Small(u64),
    /// The folder for labs cannot serve.
    #[error("`{}` cannot hold labs: {why}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// There is one by that name.
    #[error("there is a lab `{0}` already, or what a crash left of one")]
    Exists(String),
    /// There is none by that name.
    #[error("there is no lab `{0}`")]
    None(String),
    /// There is no such host.
    #[error("no lab has a host `{0}`")]
    NoHost(String),
    /// Several labs have a host by that name.
    #[error("several labs have a host `{host}`: {}", labs.join(", "))]
    Ambiguous {
        /// The host.
        host: String,
        /// The labs.
        labs: Vec<String>,
    },
    /// Another process works on it.
    #[error("another assay process is making or removing lab `{0}`")]
    Busy(String),
    /// No network is free.
    #[error("every network that a lab could have clashes with a network of this machine")]
    NoNetwork,
    /// The inventory would replace a file that is not a lab's.
    #[error("`{}` is left alone: it is not the inventory of lab `{name}`", path.display())]
    Inventory {
        /// The file.
        path: PathBuf,
        /// The lab.
        name: String,
    },
    /// Something is in the lab's folder that assay did not put there.
    #[error("`{}` is left alone: {why}", path.display())]
    Foreign {
        /// What is left.
        path: PathBuf,
        /// Why it cannot be assay's.
        why: String,
    },
    /// A program failed.
    #[error("cannot {what}: {said}")]
    Tool {
        /// What it was to do.
        what: String,
        /// What it said, or its status.
        said: String,
    },
    /// A host did not come up.
    #[error("host `{host}` is not ready: {why}\n{log}")]
    NotReady {
        /// The host.
        host: String,
        /// What is missing.
        why: String,
        /// The end of its console's output.
        log: String,
    },
    /// A host is not in the state that is asked of it.
    #[error("host `{host}` is {state}")]
    State {
        /// The host.
        host: String,
        /// Its state.
        state: HostState,
    },
    /// The kernel cannot do this.
    #[error("this kernel cannot {0}")]
    Kernel(&'static str),
    /// Processes of a lab that do not end.
    #[error("processes of the lab do not end: {0:?}")]
    Undead(Vec<i32>),
    /// A description that cannot be read.
    #[error("cannot read `{}`", path.display())]
    Description {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// The operating system refused.
    #[error("cannot {what} `{}`", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
}

/// A file beside another, with an extension more.
fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}

/// Makes the error of a failed action on a path.
fn io<E: Into<std::io::Error>>(what: &'static str, path: &Path) -> impl FnOnce(E) -> LabError {
    let path = path.to_owned();
    move |error| LabError::Io {
        what,
        path,
        source: error.into(),
    }
}
