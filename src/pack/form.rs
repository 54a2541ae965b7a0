//! What the file `system.yaml` of a pack says. Doc comments here become the help of error messages and the table in
//! CONTRIBUTING's recipe. Texts marked *template* may use what `assay packs show SYSTEM --context` lists.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::{Name, ResourceControl, Setting};
use crate::units::Duration;

/// What a system is, and how it is deployed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// what the system is, in a sentence
    pub description: String,
    /// the versions that the pack is made for: `>=4.0.0, <9.0.0`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<String>,
    /// the language that clients speak to it
    #[serde(default)]
    pub protocol: Protocol,
    /// where its programs come from
    #[serde(default)]
    pub programs: Programs,
    /// where packages come from unless the experiment says otherwise: a mirror's URL
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror: Option<String>,
    /// where clients connect to
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Entry>,
    /// a role that clients go through where it has instances, such as a proxy that belongs to the system
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Entry>,
    /// who drivers are unless the experiment has users
    #[serde(default)]
    pub account: Account,
    /// the account on the hosts that its processes run as (default: the one that assay works as)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Name>,
    /// whether its components can speak TLS (default false)
    #[serde(default)]
    pub tls: bool,
    /// its roles
    #[serde(default)]
    pub roles: IndexMap<Name, Role>,
    /// the roles in the order in which they are started; they are stopped in the reverse one (default: as they stand)
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<Name>,
    /// what is done when every process answers, before the dataset is loaded, once for each deployment
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_first_start: Vec<Statement>,
    /// what must hold before a round, each named while it is waited for
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settle: Vec<Condition>,
    /// the SQL that differs between systems
    #[serde(default)]
    pub sql: Sql,
    /// what it wants of its hosts; see docs/preflight.md
    #[serde(default)]
    #[schemars(extend("format" = "assay-tree"))]
    pub host: Setting,
}

/// The language that clients speak to a system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// none that assay speaks
    #[default]
    None,
    /// MySQL's
    Mysql,
    /// PostgreSQL's
    Postgres,
    /// Cassandra's; no driver speaks it yet
    Cql,
    /// MongoDB's; no driver speaks it yet
    Mongodb,
    /// it passes on what the system behind it speaks
    Proxy,
}

/// Where a system's programs come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Programs {
    /// packages of a mirror, which assay brings to the hosts
    #[default]
    Packages,
    /// the hosts have them, from their distribution
    Installed,
    /// assay itself
    Builtin,
}

/// Where clients connect to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// the role
    pub role: Name,
    /// the name of its port
    pub port: Name,
}

/// Who drivers are unless the experiment has users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Account {
    /// the user that may do everything once the system is deployed
    pub user: String,
    /// the database that is there
    pub database: String,
    /// the socket that assay connects to as this user (default: the entry's address and port). *Template*
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// whether the user may only come from its own host, so that drivers need another (default false)
    pub local: bool,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            user: "root".to_owned(),
            database: "test".to_owned(),
            socket: None,
            local: false,
        }
    }
}

/// A role: what runs, where its files lie, how it is started, and when it is ready.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// what it does, in a few words
    pub description: String,
    /// the component whose package holds its program (default: the role)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<Name>,
    /// the versions that its package has, if they are not the system's: `{version: v1.7.0}` is written per role
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package_version: Option<String>,
    /// its program: below the instance's `bin`, or absolute where the hosts have it. *Template*
    pub program: String,
    /// installed: the package that has the program, for the hint when it is missing
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debian: Option<String>,
    /// the versions that have the role
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<String>,
    /// how many instances there may be
    #[serde(default)]
    pub count: Count,
    /// its ports and their defaults; the first is the main one, which names directories and units. 0: none by default
    #[serde(default)]
    #[schemars(with = "IndexMap<Name, u16>")]
    pub ports: IndexMap<Name, u16>,
    /// whether it keeps data
    #[serde(default)]
    pub data: bool,
    /// whether its data is in snapshots, and so is put back before rounds (default true)
    #[serde(default = "yes")]
    pub snapshot: bool,
    /// further keys of an instance, with their defaults. *Templates*
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub settings: IndexMap<Name, Setting>,
    /// its configuration file
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<ConfigFile>,
    /// further files, rendered from templates of the pack
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileTemplate>,
    /// what is run, once, where the data directory is empty. *Templates*
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub initialise: Vec<Run>,
    /// what checks the configuration before anything is started. *Templates*
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Run>,
    /// what its unit starts, a word each. *Templates*
    #[serde(default)]
    pub run: Vec<String>,
    /// its unit
    #[serde(default)]
    pub unit: Unit,
    /// when it is ready: it answers
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ready: Vec<Condition>,
    /// how its version is read back
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Reading>,
    /// how its effective configuration is read back
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective: Option<Reading>,
    /// the component in `config` whose tunables it takes (default: the role)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<Name>,
    /// patterns of files that are written once and never changed, below the data directory: they may be linked
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_once: Vec<String>,
    /// patterns of files that are no data
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transient: Vec<String>,
    /// its log files. *Templates*
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<String>,
}

/// How many instances of a role there may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Count {
    /// at least (default 0)
    pub min: u32,
    /// at most
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// an even number is refused
    pub odd: bool,
}

/// A configuration file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    /// how it is written
    pub format: ConfigFormat,
    /// its path below the instance's folder
    pub file: String,
    /// what is in it unless the experiment says otherwise. *Templates*
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub defaults: IndexMap<Name, Setting>,
    /// what is in it whatever the experiment says. *Templates*
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub forced: IndexMap<Name, Setting>,
    /// format ini: the section of keys that name none
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// format template: the template, which has all settings as `config`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
}

/// How a configuration file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConfigFormat {
    /// TOML
    Toml,
    /// sections of `key = value`, as MySQL reads them
    Ini,
    /// `key = 'value'`, as PostgreSQL reads it
    Conf,
    /// YAML
    Yaml,
    /// whatever a template makes of it
    Template,
}

/// A file that is rendered from a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileTemplate {
    /// the template, a file of the pack
    pub template: String,
    /// its path below the instance's folder
    pub file: String,
    /// whether it can be run (default false)
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
    /// the versions that have it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<String>,
}

/// A command that is run to its end on the instance's host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// the program and its arguments, a word each
    pub command: Vec<String>,
    /// what it prints when the program does not know the command, so that its failure means nothing: a regular expression
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<String>,
    /// what it prints when it refuses the configuration and yet exits with 0: a regular expression
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// the longest it may take (default 2m)
    #[serde(default = "two_minutes")]
    pub limit: Duration,
    /// the versions that take it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<String>,
}

fn yes() -> bool {
    true
}

fn two_minutes() -> Duration {
    Duration::from_secs(120)
}

/// The unit of an instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Unit {
    /// `no`, `on-failure` or `always` (default `always`)
    pub restart: String,
    /// how long after its end it is started again (default 15s)
    pub restart_sec: Duration,
    /// open files (default 1000000)
    pub nofile: u64,
    /// bytes of stack (default 10485760)
    pub stack: u64,
    /// its environment. *Templates*
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(with = "IndexMap<Name, String>")]
    pub environment: IndexMap<Name, String>,
    /// the longest that stopping may take before it is killed (default 90s)
    pub timeout_stop: Duration,
    /// limits unless the experiment says otherwise
    pub resource_control: ResourceControl,
}

impl Default for Unit {
    fn default() -> Self {
        Self {
            restart: "always".to_owned(),
            restart_sec: Duration::from_secs(15),
            nofile: 1_000_000,
            stack: 10_485_760,
            environment: IndexMap::new(),
            timeout_stop: Duration::from_secs(90),
            resource_control: ResourceControl::default(),
        }
    }
}

/// Something that is asked until it holds: `http`, `sql`, `command` or `listening`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Condition {
    /// what it means, while it is waited for: `all stores are up`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// settle: the role whose first instance is asked, or each with `each: true` (default: the entry)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Name>,
    /// settle: every instance of the role is asked
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub each: bool,
    /// the URL of a GET. *Template*
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// a statement. *Template*
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// a program and its arguments, which exits with 0. *Templates*
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// the name of a port that accepts connections
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listening: Option<Name>,
    /// http: the status (default 200)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// what must be in the answer
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub r#where: Vec<Test>,
    /// the versions that can be asked
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions: Option<String>,
}

/// What must be in an answer: exactly one test of a value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Test {
    /// where in the JSON: `/stores/*/store/state_name`, `*` is every item; of SQL `/0/1` is row 0, column 1
    pub at: String,
    /// it is this
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equals: Option<Setting>,
    /// it is a number of at most this. *Template*
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<String>,
    /// it is a number of at least this. *Template*
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<String>,
    /// it is a text that matches a regular expression
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches: Option<String>,
    /// it is an empty list, mapping or text, or nothing (true), or not (false)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty: Option<bool>,
}

/// How something is read back: `http`, `sql` or `command`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reading {
    /// the URL of a GET that answers with JSON. *Template*
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// a statement. *Template*
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// a program and its arguments. *Templates*
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// http: where in the JSON
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// what of the text, the first group of a regular expression
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// A statement that is run at the entry, or a change by HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// what it is for
    pub name: String,
    /// the statement. *Template*
    pub sql: String,
    /// the versions that take it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<String>,
}

/// The SQL that differs between systems. *Templates*
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sql {
    /// sets the global variable `name` to `value`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_variable: Option<String>,
    /// reads the global variable `name`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_variable: Option<String>,
    /// makes the database `database`
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub create_database: Vec<String>,
    /// makes the user `user` that may come from `from`, with `password`
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub create_user: Vec<String>,
    /// gives the user what `grant` says
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// gives the user everything in `database`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant_all: Option<String>,
    /// lists the tables of the database, a name a row
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<String>,
    /// gathers the statistics of `table`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analyze: Option<String>,
}
