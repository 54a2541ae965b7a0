//! The inventory as written: the hosts, how they are reached, their groups.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Name;

/// The hosts that experiments may use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    /// the hosts by name
    #[schemars(extend("minProperties" = 1))]
    pub hosts: IndexMap<Name, Host>,
    /// groups of hosts by name
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub groups: IndexMap<Name, Vec<Name>>,
}

/// One host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// how it is reached
    pub connection: Connection,
    /// the folder on the host that holds deployments and snapshots; a relative one is taken from the inventory file
    /// (default `.assay` in the folder where assay is started)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "assay-path"))]
    pub directory: Option<String>,
}

/// How a host is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Connection {
    /// it is this machine
    Local,
}

impl Inventory {
    /// The inventory of an experiment that names none: this machine as `local`.
    #[must_use]
    pub fn this_machine() -> Self {
        let local = Host {
            connection: Connection::Local,
            directory: None,
        };
        Self {
            hosts: IndexMap::from([(Name::of("local"), local)]),
            groups: IndexMap::new(),
        }
    }
}
