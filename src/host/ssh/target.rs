//! What it takes to reach a host over SSH.

use std::path::PathBuf;

/// A host as the inventory describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Its name in the inventory.
    pub name: String,
    /// Its name or address on the network, or an alias of the user's `ssh_config`; IPv6 without brackets.
    pub address: String,
    /// Its SSH port, if it is not the user's `ssh_config` to say.
    pub port: Option<u16>,
    /// Who logs in.
    pub user: Option<String>,
    /// The private key.
    pub identity_file: Option<String>,
    /// The host on the way to it.
    pub jump: Option<Jump>,
    /// Who does the work there: whoever logs in, or another by way of sudo.
    pub worker: Worker,
    /// Fingerprints, one of which its key must have; none to go by the lists of known hosts.
    pub host_keys: Vec<String>,
    /// The directory there, absolute or below `~/`.
    pub directory: String,
    /// The user's configuration, if it is another file than `~/.ssh/config`.
    pub ssh_config: Option<PathBuf>,
}

/// A host on the way to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Jump {
    /// One of the inventory.
    Host(Box<Target>),
    /// As `ssh -J` takes it.
    Other(String),
}

/// Who does the work on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Worker {
    /// Whoever logs in.
    #[default]
    Login,
    /// root, by way of sudo.
    Root,
    /// This user, by way of sudo.
    User(String),
}

impl Worker {
    /// The words before a command, if there are any. `sudo -n` asks for no password: there is nobody to give one.
    pub(super) fn prefix(&self) -> Vec<&str> {
        match self {
            Self::Login => Vec::new(),
            Self::Root => vec!["sudo", "-n", "--"],
            Self::User(user) => vec!["sudo", "-n", "-u", user, "--"],
        }
    }
}

impl Target {
    /// It and its jump hosts of the inventory, the closest to it first.
    pub(super) fn way(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |host| match &host.jump {
            Some(Jump::Host(jump)) => Some(jump),
            Some(Jump::Other(_)) | None => None,
        })
    }

    /// The name that its pinned key is known by.
    pub(super) fn key_alias(&self) -> String {
        format!("assay-{}", self.name)
    }
}
