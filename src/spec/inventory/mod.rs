//! The inventory: the hosts, how they are reached, their groups. What is written may hold ranges and defaults; an
//! [`Inventory`] holds each host by itself, with everything that is its own.

mod address;
mod r#become;
mod expand;
mod form;
mod groups;
mod load;
mod range;
mod resolve;

use std::fmt;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Name, OneOrMany, Scalar};
pub use r#become::Become;
pub(super) use expand::expand;
use form::{Fingerprint, HostNames};
pub(super) use form::{Form, Wrong};
pub use load::{LoadedInventory, load_inventory};
pub(super) use load::{document, resolved_in};
pub(super) use range::{PATTERN as HOSTS_PATTERN, check as check_names};

/// Where deployments lie on a host over SSH whose inventory names no directory.
pub(super) const DIRECTORY: &str = "~/.assay";

/// The hosts that experiments may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    /// the configuration file of ssh, relative to this file (default the user's own)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "assay-path"))]
    pub ssh_config: Option<String>,
    /// the hosts by name; `kv[1-3]` stands for three
    #[schemars(with = "IndexMap<HostNames, Host>", extend("minProperties" = 1))]
    pub hosts: IndexMap<Name, Host>,
    /// groups of hosts by name; a group can hold groups
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(with = "IndexMap<Name, Vec<HostNames>>")]
    pub groups: IndexMap<Name, Vec<Name>>,
}

/// One host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// how it is reached (default `ssh`)
    #[serde(default)]
    pub connection: Connection,
    /// a host name, IP address or `Host` of ~/.ssh/config (default the host's name); `:port` may follow, IPv6 in brackets
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "assay-address"))]
    pub address: Option<String>,
    /// the port of sshd (default that of ~/.ssh/config, or 22)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub port: Option<u16>,
    /// the user to log in as (default that of ~/.ssh/config, or your own name)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "assay-user"))]
    pub user: Option<String>,
    /// the private key; `~/` is your home, another relative path is taken from the inventory file (default those of
    /// ~/.ssh/config and the agent)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "assay-home-path"))]
    pub identity_file: Option<String>,
    /// the host to go through: another one of the inventory, or `user@host:port`; `none` for no one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "assay-jump"))]
    pub jump: Option<String>,
    /// whom to become with sudo after the login: `true` for root, or a user (default `false`)
    #[serde(default, rename = "become", skip_serializing_if = "Option::is_none")]
    pub r#become: Option<Become>,
    /// the address in the data network, where it is another one; without a port
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "assay-data-address"))]
    pub data_address: Option<String>,
    /// the fingerprints of the host's keys, `SHA256:...`; no other key is accepted (default what known_hosts says)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OneOrMany<Fingerprint>>")]
    pub host_key: Option<OneOrMany<String>>,
    /// the folder on the host that holds deployments and snapshots: absolute or below `~/` (default `~/.assay`); on this
    /// machine a relative one is taken from the inventory file (default `.assay` in the folder where assay is started)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "assay-directory"))]
    pub directory: Option<String>,
    /// an assay binary on this machine for a host of another architecture or libc, relative to the inventory file
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "assay-path"))]
    pub assay: Option<String>,
    /// marks of the host, by name
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(with = "IndexMap<Name, String>")]
    pub labels: IndexMap<String, String>,
    /// values of the host's own, by name
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(with = "IndexMap<Name, Scalar>")]
    pub vars: IndexMap<String, Scalar>,
}

/// How a host is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Connection {
    /// over SSH
    #[default]
    Ssh,
    /// it is this machine
    Local,
}

impl Inventory {
    /// The inventory of an experiment that names none: this machine as `local`.
    #[must_use]
    pub fn this_machine() -> Self {
        let local = Host {
            connection: Connection::Local,
            ..Host::default()
        };
        Self {
            hosts: IndexMap::from([(Name::of("local"), local)]),
            ..Self::default()
        }
    }
}

impl Host {
    /// Where a port of the host is reached from the machine that assay runs on: `10.0.0.1:4000`,
    /// `[fe80::1%eth0]:4000`. A host without an address is this machine: `localhost:4000`.
    #[must_use]
    pub fn endpoint(&self, port: u16) -> String {
        address::endpoint(self.address_or_localhost(), port)
    }

    /// Where a port of the host is reached in the data network, which is the only one where there is no second address.
    #[must_use]
    pub fn data_endpoint(&self, port: u16) -> String {
        address::endpoint(self.data_address_or_address(), port)
    }

    /// The address in the data network, else the address, else `localhost`; IPv6 without brackets.
    #[must_use]
    pub fn data_address_or_address(&self) -> &str {
        let data = self.data_address.as_deref();
        data.unwrap_or(self.address_or_localhost())
    }

    fn address_or_localhost(&self) -> &str {
        self.address.as_deref().unwrap_or("localhost")
    }
}

impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ssh => "ssh",
            Self::Local => "local",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(address: Option<&str>, data_address: Option<&str>) -> Host {
        Host {
            address: address.map(str::to_owned),
            data_address: data_address.map(str::to_owned),
            ..Host::default()
        }
    }

    #[test]
    fn only_an_ipv6_address_stands_in_brackets_before_a_port() {
        for (address, endpoint) in [
            ("10.0.0.1", "10.0.0.1:4000"),
            ("kv1.example.org", "kv1.example.org:4000"),
            ("fe80::1%eth0", "[fe80::1%eth0]:4000"),
            ("::1", "[::1]:4000"),
        ] {
            assert_eq!(host(Some(address), None).endpoint(4000), endpoint);
        }
        assert_eq!(host(None, None).endpoint(4000), "localhost:4000");
    }

    #[test]
    fn the_data_network_is_the_only_one_where_there_is_no_second_address() {
        let two = host(Some("10.0.0.1"), Some("fd00::1"));
        assert_eq!(two.data_address_or_address(), "fd00::1");
        assert_eq!(two.data_endpoint(20160), "[fd00::1]:20160");
        assert_eq!(two.endpoint(20160), "10.0.0.1:20160");
        let one = host(Some("10.0.0.1"), None);
        assert_eq!(one.data_address_or_address(), "10.0.0.1");
    }
}
