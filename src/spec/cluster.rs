//! The system under test as written: its roles and their hosts, tunables, users, packages, and what stands before it.

use std::path::Path;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, de};

use super::{Name, Setting};

/// The system under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// the database system: the name of a pack
    pub system: Name,
    /// the version of every variant that names none, as text
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = ["string", "number"], "format" = "assay-version"))]
    pub version: Option<String>,
    /// role -> hosts or groups of the inventory, or instances with settings of their own; an external cluster needs none
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("minProperties" = 1))]
    pub topology: IndexMap<Name, Vec<Placement>>,
    /// tunables of all variants, by component
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub config: Config,
    /// global variables of all variants: set, read back and compared after every start
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub variables: IndexMap<Name, Setting>,
    /// database users that are made before the dataset is loaded; the first is the drivers'
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<User>,
    /// the database that drivers use; it is made if it is not there (default: the system's)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<Name>,
    /// where the packages come from (default: where the system's makers have them)
    #[serde(default, skip_serializing_if = "Packages::is_default")]
    pub packages: Packages,
    /// the account on the hosts that the processes run as (default: the system's, else the one that assay works as)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Name>,
    /// an absolute folder for programs and configuration (default: the host's folder for assay)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "assay-path"))]
    pub deploy_dir: Option<String>,
    /// an absolute folder for data and its snapshots (default: the host's folder for assay)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "assay-path"))]
    pub data_dir: Option<String>,
    /// an absolute folder for logs (default: `log` beside each program)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "assay-path"))]
    pub log_dir: Option<String>,
    /// limits of every process
    #[serde(default, skip_serializing_if = "ResourceControl::is_default")]
    pub resource_control: ResourceControl,
    /// whether components and clients speak TLS, with certificates made for the deployment (default false)
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tls: bool,
}

/// Tunables by component: `{sqlite: {journal_mode: wal}}`. Dotted and nested keys mean the same.
pub type Config = IndexMap<Name, IndexMap<Name, Setting>>;

/// Where instances of a role run: a host or group by its name, or one host with settings of the instance's own.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Placement {
    /// One instance on the host, or on each host of the group.
    Name(Name),
    /// One instance.
    Instance(Box<InstanceSettings>),
}

/// One instance of a role, with settings of its own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstanceSettings {
    /// The host.
    pub host: Name,
    /// Everything else by its key: ports and what the system's pack knows, `config`, directories, limits.
    #[serde(flatten)]
    pub settings: IndexMap<Name, Setting>,
}

impl Placement {
    /// The host or group.
    #[must_use]
    pub fn name(&self) -> &Name {
        match self {
            Self::Name(name) => name,
            Self::Instance(instance) => &instance.host,
        }
    }

    /// The settings of the instance's own.
    #[must_use]
    pub fn settings(&self) -> Option<&IndexMap<Name, Setting>> {
        match self {
            Self::Name(_) => None,
            Self::Instance(instance) => Some(&instance.settings),
        }
    }
}

impl<'de> Deserialize<'de> for Placement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Placement;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a name, or a mapping with a `host`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Placement, E> {
                text.parse().map(Placement::Name).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Placement, A::Error> {
                let (mut host, mut settings) = (None, IndexMap::new());
                while let Some(key) = map.next_key::<Name>()? {
                    if key.as_str() == "host" {
                        host = Some(map.next_value()?);
                    } else {
                        settings.insert(key, map.next_value()?);
                    }
                }
                let host = host.ok_or_else(|| de::Error::missing_field("host"))?;
                Ok(Placement::Instance(Box::new(InstanceSettings {
                    host,
                    settings,
                })))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for Placement {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Placement".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let name = generator.subschema_for::<Name>();
        let setting = generator.subschema_for::<Setting>();
        let mut host = name.clone();
        host.insert("description".to_owned(), "the host that it runs on".into());
        json_schema!({
            "anyOf": [
                name,
                {
                    "type": "object",
                    "properties": { "host": host },
                    "required": ["host"],
                    "additionalProperties": setting,
                    "description": "an instance with settings of its own",
                },
            ],
            "description": "a host or group, or `{host: NAME, ...}` for one instance with ports, directories, `config` and limits of its own",
        })
    }
}

/// A user of the database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// its name; for MySQL with the hosts it may come from, `bench@10.0.%` (default `%`)
    pub name: String,
    /// its password (default: none)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// what it may do: `ALL`, or `SELECT ON shop.*` (default: everything in the drivers' database)
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<String>,
}

/// Where packages come from. At most one of `mirror` and `offline`; single components may come from elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Packages {
    /// a mirror: a URL, or a folder
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror: Option<String>,
    /// an offline package: a tarball of tarballs, or the folder that it was unpacked to
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offline: Option<String>,
    /// component -> its tarball: a path, or a URL
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub tarballs: IndexMap<Name, String>,
    /// component -> a program that is put in the place of the packaged one
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub binaries: IndexMap<Name, String>,
}

impl Packages {
    /// Takes relative paths from a folder. URLs stay as they are.
    pub fn be_below(&mut self, folder: &Path) {
        let named = self.mirror.iter_mut().chain(&mut self.offline);
        let listed = self.tarballs.values_mut().chain(self.binaries.values_mut());
        for path in named.chain(listed).filter(|path| !path.contains("://")) {
            *path = folder.join(&*path).to_string_lossy().into_owned();
        }
    }

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Limits of processes, in systemd's words. A limit that is not given is the system's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResourceControl {
    /// memory: `48G`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<String>,
    /// CPU time: `400%` is four CPUs
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_quota: Option<String>,
    /// reading from a device: `/dev/nvme0n1 500M`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_read_bandwidth_max: Option<String>,
    /// writing to a device: `/dev/nvme0n1 500M`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_write_bandwidth_max: Option<String>,
    /// the size of core files: `infinity`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_core: Option<String>,
}

impl ResourceControl {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What stands between the clients and the cluster: a system that is deployed, or an address that is there already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadBalancer {
    /// the balancer: the name of a pack (default `haproxy`)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<Name>,
    /// the host that it is deployed on
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Name>,
    /// the port that clients connect to (default: the pack's)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_535))]
    pub port: Option<u16>,
    /// an address that is there already, `lb.example.com:4000`: nothing is deployed
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// its tunables
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub config: IndexMap<Name, Setting>,
    /// the most that the connections of two servers may differ, as a share of their mean (default 0.2)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub uneven: Option<f64>,
}

/// Who deploys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Deploy {
    /// who deploys, starts and stops
    pub engine: Engine,
    /// external: where the cluster can be reached, `host:port` each; a variant can have `addresses` of its own
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// tiup: the program (default `tiup`)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tiup: Option<String>,
}

impl Deploy {
    /// The addresses in an order of their own: two lists of the same ones are the same cluster.
    #[must_use]
    pub fn places(&self) -> Vec<String> {
        let mut places = self.addresses.clone();
        places.sort();
        places.dedup();
        places
    }

    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Who deploys, starts and stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// assay itself
    #[default]
    Assay,
    /// an installed `tiup cluster`
    Tiup,
    /// nobody: the cluster is there; variables are set and loads are run
    External,
}
