//! What a system wants of a host: the `host` section of its pack, and what the plan adds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Deserializer, de};

use super::Status;
use super::rule::Rule;
use crate::units::{Bytes, Duration};

/// What is wanted of a host. A key that is not given is not checked.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wanted {
    /// The clock is not further off than this.
    pub clock_offset: Option<Duration>,
    /// A daemon keeps the clock.
    pub time_daemon: bool,
    /// The time zone is that of the first host.
    pub same_timezone: bool,
    /// Releases of operating systems that the system is made for.
    pub os: Option<Releases>,
    /// At least so many CPUs.
    pub cpu_threads: Option<u32>,
    /// The frequency governor.
    pub governor: Option<String>,
    /// At least so much memory.
    #[serde(deserialize_with = "bytes")]
    pub memory: Option<Bytes>,
    /// Whether there may be swap.
    pub swap: Option<bool>,
    /// Transparent huge pages.
    pub thp: Option<String>,
    /// Kernel settings.
    pub sysctl: BTreeMap<String, Rule>,
    /// Network interfaces have at least so many Mbit/s.
    pub nic_mbps: Option<u32>,
    /// At least so many open files.
    pub nofile: Option<u64>,
    /// At least so much stack.
    #[serde(deserialize_with = "bytes")]
    pub stack: Option<Bytes>,
    /// Whether SELinux may enforce.
    pub selinux: Option<bool>,
    /// Whether irqbalance runs.
    pub irqbalance: Option<bool>,
    /// Whether firewalld runs.
    pub firewalld: Option<bool>,
    /// numactl is there.
    pub numactl: bool,
    /// The kernel has `EPOLLEXCLUSIVE`.
    pub epoll_exclusive: bool,
    /// File systems that data may lie on, each with the mount options that it needs.
    pub file_systems: BTreeMap<String, Vec<String>>,
    /// Instances of a role that stores data do not share a file system.
    pub one_instance_per_partition: bool,
    /// There is a local port for each planned connection.
    pub ephemeral_ports: bool,
    /// A process may open a file for each planned connection.
    pub open_files: bool,
    /// The planned ports are free.
    pub free_ports: bool,
    /// The file system has room for what the plan needs.
    pub free_disk: bool,
    /// Earlier runs left nothing.
    pub leftovers: bool,
    /// The items, by their keys or as kernel settings or mount options, that are worth a warning but stop no run.
    pub warn: BTreeSet<String>,
    /// What the plan adds.
    #[serde(skip)]
    pub planned: Planned,
}

/// Releases of operating systems: `ID` of `os-release(5)` -> rule for `VERSION_ID`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Releases {
    /// The system's makers support it there.
    pub supported: BTreeMap<String, Rule>,
    /// It is known to work there.
    pub tolerated: BTreeMap<String, Rule>,
}

/// What a plan needs of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Planned {
    /// Connections that the host opens at once, as a client.
    pub connections: Option<u32>,
    /// Bytes that it will keep.
    pub bytes: Option<u64>,
    /// Ports that its instances will listen on.
    pub ports: Vec<u16>,
    /// Instances of one deployment that store data on it.
    pub storage_instances: Option<u32>,
    /// The first host's name and time zone.
    pub first_timezone: Option<(String, String)>,
}

/// The keys of [`Wanted`] that are items, as `warn` may name them.
const ITEMS: [&str; 23] = [
    "clock_offset",
    "time_daemon",
    "same_timezone",
    "os",
    "cpu_threads",
    "governor",
    "memory",
    "swap",
    "thp",
    "nic_mbps",
    "nofile",
    "stack",
    "selinux",
    "irqbalance",
    "firewalld",
    "numactl",
    "epoll_exclusive",
    "file_systems",
    "one_instance_per_partition",
    "ephemeral_ports",
    "open_files",
    "free_ports",
    "free_disk",
];

impl Wanted {
    /// What an item that is not as wanted comes to.
    #[must_use]
    pub fn otherwise(&self, item: &str) -> Status {
        match self.warn.contains(item) {
            true => Status::Warn,
            false => Status::Fail,
        }
    }

    /// The first entry of `warn` that names nothing that is checked.
    #[must_use]
    pub fn unknown_warning(&self) -> Option<&str> {
        let is_option = |name: &String| self.file_systems.values().flatten().any(|o| o == name);
        let is_known = |name: &String| {
            ITEMS.contains(&name.as_str()) || self.sysctl.contains_key(name) || is_option(name)
        };
        self.warn
            .iter()
            .find(|name| !is_known(name))
            .map(String::as_str)
    }

    /// What is wanted here, and where that says nothing, what `other` wants.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            clock_offset: self.clock_offset.or(other.clock_offset),
            time_daemon: self.time_daemon || other.time_daemon,
            same_timezone: self.same_timezone || other.same_timezone,
            os: self.os.or(other.os),
            cpu_threads: self.cpu_threads.or(other.cpu_threads),
            governor: self.governor.or(other.governor),
            memory: self.memory.or(other.memory),
            swap: self.swap.or(other.swap),
            thp: self.thp.or(other.thp),
            sysctl: other.sysctl.into_iter().chain(self.sysctl).collect(),
            nic_mbps: self.nic_mbps.or(other.nic_mbps),
            nofile: self.nofile.or(other.nofile),
            stack: self.stack.or(other.stack),
            selinux: self.selinux.or(other.selinux),
            irqbalance: self.irqbalance.or(other.irqbalance),
            firewalld: self.firewalld.or(other.firewalld),
            numactl: self.numactl || other.numactl,
            epoll_exclusive: self.epoll_exclusive || other.epoll_exclusive,
            file_systems: match self.file_systems.is_empty() {
                true => other.file_systems,
                false => self.file_systems,
            },
            one_instance_per_partition: self.one_instance_per_partition
                || other.one_instance_per_partition,
            ephemeral_ports: self.ephemeral_ports || other.ephemeral_ports,
            open_files: self.open_files || other.open_files,
            free_ports: self.free_ports || other.free_ports,
            free_disk: self.free_disk || other.free_disk,
            leftovers: self.leftovers || other.leftovers,
            warn: self.warn.into_iter().chain(other.warn).collect(),
            planned: self.planned,
        }
    }
}

/// A byte size such as `32GB` or `10 MiB`.
fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Bytes>, D::Error> {
    struct Size;
    impl de::Visitor<'_> for Size {
        type Value = Option<Bytes>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a size such as `32GB` or `10 MiB`")
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            let size: Result<bytesize::ByteSize, _> = text.parse();
            let size = size.map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))?;
            Ok(Some(Bytes(size.as_u64())))
        }
    }
    deserializer.deserialize_str(Size)
}
