//! From an inventory to hosts that answer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::error::{Code, Failure};
use super::inputs::working_directory;
use super::session::block_on;
use crate::host::{
    Binary, Folders, Host, HostError, Jump, LocalHost, Settings, SshHost, Target, Worker, fan_out,
};
use crate::spec::{self, Become, Connection, Inventory};

/// Hosts by name.
pub(super) type Hosts = BTreeMap<String, Arc<dyn Host>>;

/// How many hosts are worked on at once, unless the user says otherwise.
pub(super) const AT_ONCE: usize = 32;
/// Where deployments lie on this machine when its inventory names no directory.
const DIRECTORY: &str = ".assay";
/// A socket's path can have 108 bytes; this leaves room for what `ssh` adds to it.
const SHORT: usize = 40;

/// For whom hosts are reached, and how much is done about a lost one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purpose<'a> {
    owner: &'a str,
    patience: Duration,
}

impl<'a> Purpose<'a> {
    /// A run, which goes on when a lost host comes back within `patience`.
    pub(super) fn run(owner: &'a str, patience: Duration) -> Self {
        Self { owner, patience }
    }

    /// A command that the user waits for.
    pub(super) fn command() -> Self {
        Self {
            owner: "a command",
            patience: Duration::ZERO,
        }
    }
}

/// How to reach the hosts of an inventory.
pub(super) struct Reach<'a> {
    inventory: &'a Inventory,
    folders: Folders,
    own: PathBuf,
    /// By the path that the inventory names, if it does.
    binaries: BTreeMap<Option<String>, Binary>,
}

impl<'a> Reach<'a> {
    /// Makes ready to reach hosts: reads the binaries that they are given.
    pub(super) fn of(inventory: &'a Inventory) -> Result<Self, Failure> {
        check_files(inventory)?;
        let mut binaries = BTreeMap::new();
        for host in inventory.hosts.values() {
            if host.connection == Connection::Ssh && !binaries.contains_key(&host.assay) {
                binaries.insert(host.assay.clone(), binary(host.assay.as_deref())?);
            }
        }
        Ok(Self {
            inventory,
            folders: folders()?,
            own: own()?,
            binaries,
        })
    }

    /// The folders that connections use here.
    pub(super) fn folders(&self) -> &Folders {
        &self.folders
    }

    /// How a host is reached over SSH; none for this machine.
    pub(super) fn target(&self, name: &str) -> Option<Target> {
        let host = self.inventory.hosts.get(name)?;
        match host.connection {
            Connection::Ssh => Some(target(self.inventory, name, host)),
            Connection::Local => None,
        }
    }

    /// Connects to the hosts of these names, each on its own; `seen` sees each that is reached, or why it is not.
    pub(super) async fn each(
        &self,
        names: &[String],
        purpose: Purpose<'_>,
        seen: impl FnMut(usize, &Result<Arc<dyn Host>, HostError>),
    ) -> Vec<Result<Arc<dyn Host>, HostError>> {
        let works: Vec<_> = names
            .iter()
            .map(|name| self.connect(name, purpose))
            .collect();
        fan_out(works, AT_ONCE, seen).await
    }

    /// Connects to one host.
    pub(super) fn connect(
        &self,
        name: &str,
        purpose: Purpose<'_>,
    ) -> impl Future<Output = Result<Arc<dyn Host>, HostError>> + Send + 'static {
        let host = &self.inventory.hosts[name];
        let target = self.target(name);
        let binary = self.binaries.get(&host.assay).cloned();
        let own = self.own.clone();
        let directory = PathBuf::from(host.directory.as_deref().unwrap_or(DIRECTORY));
        let settings = Settings {
            folders: self.folders.clone(),
            owner: purpose.owner.to_owned(),
            patience: purpose.patience,
        };
        let name = name.to_owned();
        async move {
            let host: Arc<dyn Host> = match target.zip(binary) {
                None => Arc::new(LocalHost::new(name, directory, own)),
                Some((target, binary)) => {
                    Arc::new(SshHost::connect(target, binary, settings).await?)
                }
            };
            Ok(host)
        }
    }

    /// Connects to all hosts of these names; the failure names each that cannot be reached.
    pub(super) async fn all(
        &self,
        names: impl IntoIterator<Item = String>,
        purpose: Purpose<'_>,
    ) -> Result<Hosts, Failure> {
        let names: Vec<String> = names
            .into_iter()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let reached = self.each(&names, purpose, |_, _| {}).await;
        let (mut hosts, mut failures) = (Hosts::new(), Vec::new());
        for (name, result) in names.into_iter().zip(reached) {
            match result {
                Ok(host) => drop(hosts.insert(name, host)),
                Err(error) => failures.push(Failure::from(error)),
            }
        }
        if failures.is_empty() {
            return Ok(hosts);
        }
        close(&hosts).await;
        let count = hosts.len() + failures.len();
        Err(Failure::all(failures, count))
    }
}

/// Connects to the hosts of these names, does `work` with them, and gives back what is kept there, whatever it came to.
pub(super) fn with_hosts<T>(
    reach: &Reach<'_>,
    names: impl IntoIterator<Item = String>,
    purpose: Purpose<'_>,
    work: impl AsyncFnOnce(&Hosts) -> Result<T, Failure>,
) -> Result<T, Failure> {
    block_on(async {
        let hosts = reach.all(names, purpose).await?;
        let outcome = work(&hosts).await;
        close(&hosts).await;
        outcome
    })
}

/// Gives back what is kept on hosts.
pub(super) async fn close(hosts: &Hosts) {
    let works = hosts
        .values()
        .cloned()
        .map(|host| async move { host.close().await });
    fan_out(works.collect::<Vec<_>>(), AT_ONCE, |_, ()| {}).await;
}

fn target(inventory: &Inventory, name: &str, host: &spec::Host) -> Target {
    let jump = host
        .jump
        .as_ref()
        .map(|jump| match inventory.hosts.get(jump.as_str()) {
            Some(next) => Jump::Host(Box::new(target(inventory, jump, next))),
            None => Jump::Other(jump.clone()),
        });
    Target {
        name: name.to_owned(),
        address: host.address.clone().unwrap_or_else(|| name.to_owned()),
        port: host.port,
        user: host.user.clone(),
        identity_file: host.identity_file.clone(),
        jump,
        worker: match &host.r#become {
            None | Some(Become::No) => Worker::Login,
            Some(Become::Root) => Worker::Root,
            Some(Become::User(user)) => Worker::User(user.clone()),
        },
        host_keys: host
            .host_key
            .as_ref()
            .map(|keys| keys.0.clone())
            .unwrap_or_default(),
        directory: host
            .directory
            .clone()
            .unwrap_or_else(|| "~/.assay".to_owned()),
        ssh_config: inventory.ssh_config.as_ref().map(PathBuf::from),
    }
}

/// Whether the files that the inventory names are there: `ssh` says little of one that is not.
fn check_files(inventory: &Inventory) -> Result<(), Failure> {
    let keys = inventory
        .hosts
        .values()
        .filter_map(|host| host.identity_file.as_deref())
        .map(|file| ("identity_file", file));
    let own = inventory.ssh_config.as_deref();
    let files: BTreeSet<_> = keys.chain(own.map(|file| ("ssh_config", file))).collect();
    for (key, file) in files {
        let path = match (file.strip_prefix("~/"), std::env::home_dir()) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(file),
        };
        if !path.exists() {
            let message = format!("the inventory's `{key}` names `{file}`, which is not there");
            return Err(Failure::new(Code::Usage, message)
                .hint("a relative path is taken from the inventory file"));
        }
    }
    Ok(())
}

/// The binary that hosts are given: this one, unless the inventory names another.
fn binary(path: Option<&str>) -> Result<Binary, Failure> {
    let file = path.map_or_else(own, |path| Ok(PathBuf::from(path)))?;
    Binary::read(file.clone(), path.is_some()).map_err(|error| {
        let message = format!("cannot read the assay binary `{}`: {error}", file.display());
        Failure::new(Code::Usage, message)
    })
}

/// This program.
fn own() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|e| Failure::from_error(Code::Internal, &e))
}

/// Folders on this machine that connections use.
fn folders() -> Result<Folders, Failure> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = std::env::home_dir();
    let runtime = [variable("XDG_RUNTIME_DIR"), Some(std::env::temp_dir())]
        .into_iter()
        .flatten()
        .find(|path| path.as_os_str().len() <= SHORT && is_writable(path));
    let cache = match (variable("XDG_CACHE_HOME"), &home) {
        (Some(cache), _) => cache,
        (None, Some(home)) => home.join(".cache"),
        (None, None) => std::env::temp_dir(),
    };
    Ok(Folders {
        runtime: runtime.unwrap_or_else(|| PathBuf::from("/tmp")),
        cache: working_directory()?.join(cache).join("assay"),
        home,
    })
}

/// The folder of packages on this machine.
pub(super) fn packages() -> Result<PathBuf, Failure> {
    Ok(folders()?.cache.join("packages"))
}

fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}
