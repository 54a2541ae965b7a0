//! A topology as written.
//! Doc comments here become the help of error messages.

mod schema;

use std::fmt;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use serde_json::{Value, json};

use super::section::{Kind, SECTIONS, Section};
use super::settings::{Settings, text};
use crate::spec::Setting;

/// What TiUP keeps of a cluster: `meta.yaml`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Meta {
    /// the user that owns the cluster
    user: Option<String>,
    /// the version of the cluster
    tidb_version: Option<String>,
    /// the version of TiUP that changed it last
    #[expect(dead_code, reason = "it is a key that may be there")]
    last_ops_ver: Option<String>,
    /// the topology, with its defaults
    pub(super) topology: Topology,
}

impl Meta {
    pub(super) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    pub(super) fn version(&self) -> Option<&str> {
        self.tidb_version.as_deref()
    }
}

/// A `topology.yaml`.
#[derive(Debug, Default)]
pub(super) struct Topology {
    pub(super) global: Global,
    pub(super) monitored: Monitored,
    pub(super) server_configs: IndexMap<String, Settings>,
    pub(super) component_versions: IndexMap<String, String>,
    pub(super) component_sources: IndexMap<String, String>,
    /// The instances by section, in the order of the table.
    servers: IndexMap<&'static str, Vec<Server>>,
}

impl Topology {
    /// The instances of a section, each with its path.
    pub(super) fn servers(&self, section: &Section) -> impl Iterator<Item = (String, &Server)> {
        let key = section.key;
        let servers = self.servers.get(key).into_iter().flatten().enumerate();
        servers.map(move |(i, server)| (format!("{key}[{i}]"), server))
    }

    /// All instances in the order of the table.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static Section, String, &Server)> {
        let sections = SECTIONS.iter();
        sections.flat_map(|section| {
            let servers = self.servers(section);
            servers.map(move |(path, server)| (section, path, server))
        })
    }
}

/// What holds for all instances.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Global {
    /// the user that owns and runs the cluster (default tidb)
    pub(super) user: Option<String>,
    /// the user's group (default called like the user)
    pub(super) group: Option<String>,
    /// the port of sshd (default 22)
    #[schemars(range(min = 1))]
    pub(super) ssh_port: Option<u16>,
    /// the ssh that is used
    pub(super) ssh_type: Option<SshType>,
    /// whether the components talk TLS
    pub(super) enable_tls: Option<bool>,
    /// the address that the components listen on
    pub(super) listen_host: Option<String>,
    /// where instances are deployed (default `deploy`, in the user's home)
    pub(super) deploy_dir: Option<String>,
    /// where instances keep data (default `data`, in the directory of the instance)
    pub(super) data_dir: Option<String>,
    /// where instances log (default `log`, in the directory of the instance)
    pub(super) log_dir: Option<String>,
    /// limits of the units
    pub(super) resource_control: Resources,
    /// the operating system (default linux)
    pub(super) os: Option<String>,
    /// amd64 or arm64 (default what the host says)
    pub(super) arch: Option<Arch>,
    /// what tools of somebody else keep here
    pub(super) custom: Option<Setting>,
    /// whose systemd runs the units
    pub(super) systemd_mode: Option<SystemdMode>,
    /// how PD runs: empty, or `ms` for microservices
    pub(super) pd_mode: Option<String>,
}

/// The exporters.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Monitored {
    /// the port of `node_exporter` (default 9100)
    #[schemars(range(min = 1))]
    pub(super) node_exporter_port: Option<u16>,
    /// the port of `blackbox_exporter` (default 9115)
    #[schemars(range(min = 1))]
    pub(super) blackbox_exporter_port: Option<u16>,
    /// the version of `node_exporter`
    pub(super) node_exporter_version: Option<String>,
    /// the version of `blackbox_exporter`
    pub(super) blackbox_exporter_version: Option<String>,
    /// where they are deployed
    pub(super) deploy_dir: Option<String>,
    /// where they keep data
    pub(super) data_dir: Option<String>,
    /// where they log
    pub(super) log_dir: Option<String>,
    /// the NUMA nodes to run on
    pub(super) numa_node: Option<String>,
    /// limits of the units
    pub(super) resource_control: Resources,
}

/// Limits of a unit.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Resources {
    /// the most memory, as systemd's MemoryLimit has it
    memory_limit: Option<String>,
    /// the share of a CPU, as systemd's CPUQuota has it
    cpu_quota: Option<String>,
    /// bytes/s that are read at most, as systemd has them
    io_read_bandwidth_max: Option<String>,
    /// bytes/s that are written at most, as systemd has them
    io_write_bandwidth_max: Option<String>,
    /// the largest core file
    limit_core: Option<String>,
    /// how long a start may take
    timeout_start_sec: Option<String>,
    /// how long a stop may take
    timeout_stop_sec: Option<String>,
}

impl Resources {
    /// The limits key by key, those of `self` over those of `base`.
    pub(super) fn over(&self, base: &Self) -> IndexMap<String, String> {
        let mut limits = IndexMap::new();
        for (key, own, base) in [
            ("memory_limit", &self.memory_limit, &base.memory_limit),
            ("cpu_quota", &self.cpu_quota, &base.cpu_quota),
            (
                "io_read_bandwidth_max",
                &self.io_read_bandwidth_max,
                &base.io_read_bandwidth_max,
            ),
            (
                "io_write_bandwidth_max",
                &self.io_write_bandwidth_max,
                &base.io_write_bandwidth_max,
            ),
            ("limit_core", &self.limit_core, &base.limit_core),
            (
                "timeout_start_sec",
                &self.timeout_start_sec,
                &base.timeout_start_sec,
            ),
            (
                "timeout_stop_sec",
                &self.timeout_stop_sec,
                &base.timeout_stop_sec,
            ),
        ] {
            let own = own.as_ref().filter(|own| !own.is_empty());
            if let Some(limit) = own.or(base.as_ref()) {
                limits.insert(key.to_owned(), limit.clone());
            }
        }
        limits
    }
}

/// The ssh that TiUP uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum SshType {
    /// TiUP's own
    Builtin,
    /// the system's
    System,
    /// none: everything is this machine
    None,
}

/// Whose systemd runs the units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum SystemdMode {
    /// the system's
    System,
    /// the user's own
    User,
}

/// An architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub(super) enum Arch {
    /// amd64
    #[serde(rename = "amd64")]
    Amd64,
    /// the kernel's word for amd64
    #[serde(rename = "x86_64")]
    X8664,
    /// arm64
    #[serde(rename = "arm64")]
    Arm64,
    /// the kernel's word for arm64
    #[serde(rename = "aarch64")]
    Aarch64,
}

impl Arch {
    /// TiUP's word for it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Amd64 | Self::X8664 => "amd64",
            Self::Arm64 | Self::Aarch64 => "arm64",
        }
    }
}

/// An instance as written: its keys with their values.
#[derive(Debug)]
pub(super) struct Server(IndexMap<String, Value>);

impl Server {
    /// The host, without the brackets of an IPv6 address.
    pub(super) fn host(&self) -> &str {
        unbracketed(self.text("host").unwrap_or_default())
    }

    /// A single value that is not empty.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str().filter(|text| !text.is_empty())
    }

    pub(super) fn boolean(&self, key: &str) -> bool {
        self.text(key) == Some("true")
    }

    /// A port; none for one that is switched off, and for 0, which stands for the default.
    pub(super) fn port(&self, key: &str) -> Option<u16> {
        let port = self.text(key)?.replace('_', "").parse().ok();
        port.filter(|port| *port > 0)
    }

    /// Whether a port is switched off.
    pub(super) fn is_off(&self, key: &str) -> bool {
        self.text(key).is_some_and(|text| text.starts_with('-'))
    }

    pub(super) fn settings(&self, key: &str) -> Settings {
        let map = self.0.get(key).and_then(Value::as_object);
        let entries = map.into_iter().flatten();
        entries
            .map(|(key, value)| (key.clone(), Setting(value.clone())))
            .collect()
    }

    /// The limits of the unit over those of `base`.
    pub(super) fn resources(&self, base: &Resources) -> IndexMap<String, String> {
        let own = self.0.get("resource_control").cloned();
        let own = own.and_then(|own| serde_json::from_value::<Resources>(own).ok());
        own.unwrap_or_default().over(base)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Whether a key says something: TiUP writes empty lists and `false` too.
    pub(super) fn says(&self, key: &str) -> bool {
        match self.0.get(key) {
            None | Some(Value::Null) => false,
            Some(Value::Array(items)) => !items.is_empty(),
            Some(Value::Object(entries)) => !entries.is_empty(),
            Some(Value::String(text)) => !matches!(&**text, "" | "false"),
            Some(Value::Bool(_) | Value::Number(_)) => true,
        }
    }
}

pub(super) fn unbracketed(host: &str) -> &str {
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    inner.unwrap_or(host)
}

impl<'de> Deserialize<'de> for Server {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Server;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an instance")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Server, A::Error> {
                let mut keys = IndexMap::new();
                while let Some(key) = map.next_key::<String>()? {
                    let value = match kind(&key) {
                        Some(Kind::Settings | Kind::Any) | None => map.next_value::<Setting>()?.0,
                        Some(Kind::Resources) => limits(&map.next_value::<Resources>()?),
                        Some(_) => Value::String(map.next_value()?),
                    };
                    keys.insert(key, value);
                }
                Ok(Server(keys))
            }
        }

        deserializer.deserialize_map(Visitor)
    }
}

fn limits(resources: &Resources) -> Value {
    json!(resources.over(&Resources::default()))
}

/// What stands after a key of an instance: a key means the same in all sections.
fn kind(key: &str) -> Option<Kind> {
    let is_port = |section: &Section| section.ports.iter().any(|port| port.key == key);
    if SECTIONS.iter().any(is_port) {
        return Some(Kind::Port);
    }
    if matches!(key, "deploy_dir" | "data_dir" | "log_dir") {
        return Some(Kind::Text);
    }
    let mut keys = SECTIONS.iter().flat_map(Section::all_keys);
    keys.find(|known| known.name == key).map(|known| known.kind)
}

impl<'de> Deserialize<'de> for Topology {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Topology;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a topology")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Topology, A::Error> {
                let mut topology = Topology::default();
                while let Some(key) = map.next_key::<String>()? {
                    match &*key {
                        "global" => topology.global = map.next_value()?,
                        "monitored" => topology.monitored = map.next_value()?,
                        "server_configs" => topology.server_configs = map.next_value()?,
                        "component_versions" => topology.component_versions = map.next_value()?,
                        "component_sources" => topology.component_sources = map.next_value()?,
                        other => match Section::named(other) {
                            Some(section) => {
                                topology.servers.insert(section.key, map.next_value()?);
                            }
                            None => return Err(de::Error::custom("an unknown key")),
                        },
                    }
                }
                Ok(topology)
            }
        }

        deserializer.deserialize_map(Visitor)
    }
}

/// A single value, or the whole of another, for a message.
pub(super) fn shown(value: &Value) -> String {
    text(value)
}
