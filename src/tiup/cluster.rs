//! A cluster of TiUP's: every instance with its ports and directories, and what holds for all of them.

use indexmap::IndexMap;
use serde::Serialize;

use super::directory::{Globals, Own};
use super::section::Section;
use super::settings::Settings;
use super::{Role, version};

/// A cluster as TiUP deploys it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// The version of TiDB, if it is known.
    pub version: Option<String>,
    /// The user that owns and runs it.
    pub user: String,
    /// The user's group (default: called like the user).
    pub group: Option<String>,
    /// The port of sshd on hosts that do not say otherwise.
    pub ssh_port: u16,
    /// Whether components and clients talk TLS.
    pub tls: bool,
    /// The architecture of hosts that do not say otherwise: `amd64` or `arm64`.
    pub arch: Option<String>,
    /// Where instances are deployed that do not say otherwise; relative to the user's home.
    pub deploy_dir: String,
    /// Where they keep data; relative to the directory of the instance.
    pub data_dir: String,
    /// Where they keep logs; relative to the directory of the instance; empty for `log`.
    pub log_dir: String,
    /// The exporters.
    pub monitored: Monitored,
    /// Settings by component.
    pub config: IndexMap<String, Settings>,
    /// Versions of single components.
    pub versions: IndexMap<String, String>,
    /// The instances, by role and then as written.
    pub instances: Vec<Instance>,
}

/// The exporters that stand on every host that does not go without.
#[derive(Clone, Debug, PartialEq)]
pub struct Monitored {
    /// The port of `node_exporter`.
    pub node_exporter_port: u16,
    /// The port of `blackbox_exporter`.
    pub blackbox_exporter_port: u16,
    /// Where both are deployed.
    pub deploy_dir: String,
    /// Where both keep data.
    pub data_dir: String,
    /// Where both keep logs.
    pub log_dir: String,
    /// The NUMA nodes to run on.
    pub numa_node: Option<String>,
    /// Limits of the units.
    pub resource_control: IndexMap<String, String>,
}

/// One process of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// What it is.
    pub role: Role,
    /// The address that the other components reach it by.
    pub host: String,
    /// The address for SSH, where it is another one.
    pub manage_host: Option<String>,
    /// The port of sshd.
    pub ssh_port: u16,
    /// The architecture of the host.
    pub arch: Option<String>,
    /// Whether the host has exporters.
    pub exporters: bool,
    /// The name in PD's cluster, for PD.
    pub name: Option<String>,
    /// Its ports by TiUP's keys, the one that names directories first.
    pub ports: IndexMap<String, u16>,
    /// Where programs, configuration and scripts lie.
    pub deploy_dir: String,
    /// Where data lies, for roles that have some; several are separated by commas.
    pub data_dir: Option<String>,
    /// Where logs lie.
    pub log_dir: Option<String>,
    /// Settings of the instance, over those of its component.
    pub config: Settings,
    /// Settings of TiFlash's proxy.
    pub learner_config: Settings,
    /// Limits of the unit.
    pub resource_control: IndexMap<String, String>,
    /// Further keys that are the same here and there: `numa_node`, `advertise_addr`, ...
    pub other: IndexMap<String, String>,
}

/// Something that a topology says and an experiment does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Where it stands: `pump_servers[0]`, `global.systemd_mode`.
    pub path: String,
    /// Why it is left out, or what became of it.
    pub reason: String,
}

impl LeftOut {
    pub(super) fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            reason: reason.into(),
        }
    }
}

impl Cluster {
    /// A cluster without instances, with TiUP's defaults.
    #[must_use]
    pub fn new(version: Option<String>, user: &str) -> Self {
        let mut cluster = Self {
            version,
            user: user.to_owned(),
            group: None,
            ssh_port: 22,
            tls: false,
            arch: None,
            deploy_dir: "deploy".to_owned(),
            data_dir: "data".to_owned(),
            log_dir: String::new(),
            monitored: Monitored {
                node_exporter_port: 9100,
                blackbox_exporter_port: 9115,
                deploy_dir: String::new(),
                data_dir: String::new(),
                log_dir: String::new(),
                numa_node: None,
                resource_control: IndexMap::new(),
            },
            config: IndexMap::new(),
            versions: IndexMap::new(),
            instances: Vec::new(),
        };
        cluster.place_exporters();
        cluster
    }

    /// Puts the exporters where they are by default, after their port or the directories of the cluster changed.
    pub fn place_exporters(&mut self) {
        let name = format!("monitor-{}", self.monitored.node_exporter_port);
        let found = self.globals().exporters(&name, Own::default());
        self.monitored.deploy_dir = found.deploy;
        self.monitored.data_dir = found.data;
        self.monitored.log_dir = found.log;
    }

    /// An instance with the default ports and directories of its role in this cluster.
    #[must_use]
    pub fn instance(&self, role: Role, host: &str) -> Instance {
        self.instance_at(role, host, &IndexMap::new())
    }

    /// An instance with some ports of its own; the directories that are not given follow from them.
    #[must_use]
    pub fn instance_at(&self, role: Role, host: &str, own: &IndexMap<String, u16>) -> Instance {
        let mut ports = default_ports(role, self.version.as_deref());
        for (key, port) in own {
            ports.insert(key.clone(), *port);
        }
        let section = Section::of(role);
        ports.sort_by_key(|key, _| section.ports.iter().position(|port| port.key == *key));
        let main = ports.first().map_or(0, |(_, port)| *port);
        let found = self
            .globals()
            .directories(&format!("{role}-{main}"), Own::default());
        Instance {
            role,
            host: host.to_owned(),
            manage_host: None,
            ssh_port: self.ssh_port,
            arch: self.arch.clone(),
            exporters: true,
            name: (role == Role::Pd).then(|| format!("pd-{host}-{main}")),
            ports,
            deploy_dir: found.deploy,
            data_dir: section.has_data.then_some(found.data),
            log_dir: section.has_log.then_some(found.log),
            config: Settings::new(),
            learner_config: Settings::new(),
            resource_control: IndexMap::new(),
            other: IndexMap::new(),
        }
    }

    pub(super) fn globals(&self) -> Globals<'_> {
        Globals {
            user: &self.user,
            deploy: &self.deploy_dir,
            data: &self.data_dir,
            log: &self.log_dir,
        }
    }
}

/// The ports that an instance has where nothing is written.
pub(super) fn default_ports(role: Role, version: Option<&str>) -> IndexMap<String, u16> {
    let section = Section::of(role);
    let there = section
        .ports
        .iter()
        .filter(|port| version::has_port(version, port.key));
    there
        .filter_map(|port| Some((port.key.to_owned(), port.default?)))
        .collect()
}
