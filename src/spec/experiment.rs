//! The experiment as written: what is compared, what is loaded, what is run, how often.
//! Doc comments here become the help of error messages and the descriptions of the published JSON Schema.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cluster::{Cluster, Config, Deploy, LoadBalancer, Packages, Placement};
use super::{Name, OnFailure, OneOrMany, Scalar, Setting};
use crate::units::{Duration, Rate};

/// One experiment: a cluster, its variants, a dataset, workloads, a sweep and rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// the experiment's name; its runs are kept under it
    pub name: Name,
    /// what the experiment is for, in a sentence
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// the inventory file, relative to this file; without it the only host is `local`, this machine
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "assay-path"))]
    pub inventory: Option<String>,
    /// values for `${name}` in the strings of this file
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(with = "IndexMap<Name, Scalar>")]
    pub vars: IndexMap<Name, String>,
    /// the seed of every random order and key; without it, it follows from the experiment's content
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 18_446_744_073_709_551_615_u64))]
    pub seed: Option<u64>,
    /// the system under test and where it runs
    pub cluster: Cluster,
    /// what stands between the clients and the cluster; without it, clients get the addresses of the nodes
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<LoadBalancer>,
    /// who deploys
    #[serde(default, skip_serializing_if = "Deploy::is_default")]
    pub deploy: Deploy,
    /// the things compared, by name
    #[schemars(extend("minProperties" = 1))]
    pub variants: IndexMap<Name, Variant>,
    /// the hosts or groups that run the driver; without it, the hosts of the cluster
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<Name>,
    /// what is loaded before the first round: one dataset or a list of them
    pub dataset: OneOrMany<Dataset>,
    /// how the loaded data is kept and put back
    #[serde(default)]
    pub snapshot: Snapshot,
    /// what is run
    #[schemars(length(min = 1))]
    pub workloads: Vec<Workload>,
    /// the points that every workload is run at
    pub sweep: Sweep,
    /// how long and how often
    pub rounds: Rounds,
    /// what is compared with what
    #[serde(default)]
    pub compare: Compare,
}

impl Experiment {
    /// The names of hosts and groups that it uses.
    pub(super) fn named_hosts(&self) -> impl Iterator<Item = &Name> {
        let variants = self.variants.values().flat_map(|v| v.topology.values());
        let topologies = self.cluster.topology.values().chain(variants);
        let roles = topologies.flatten().map(Placement::name);
        let balancer = self.load_balancer.iter().filter_map(|b| b.host.as_ref());
        roles.chain(&self.clients).chain(balancer)
    }

    /// The system of a variant.
    #[must_use]
    pub fn system_of<'a>(&'a self, variant: &'a Variant) -> &'a Name {
        variant.system.as_ref().unwrap_or(&self.cluster.system)
    }

    /// Where the cluster of a variant can be reached, if it is there already.
    #[must_use]
    pub fn addresses_of<'a>(&'a self, variant: &'a Variant) -> &'a [String] {
        if variant.addresses.is_empty() {
            &self.deploy.addresses
        } else {
            &variant.addresses
        }
    }

    /// The topology of a variant.
    #[must_use]
    pub fn topology_of<'a>(&'a self, variant: &'a Variant) -> &'a IndexMap<Name, Vec<Placement>> {
        if variant.topology.is_empty() {
            &self.cluster.topology
        } else {
            &variant.topology
        }
    }
}

/// One of the things compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// the version that is deployed, or that the system must report, as text
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = ["string", "number"], "format" = "assay-version"))]
    pub version: Option<String>,
    /// another system than the cluster's
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<Name>,
    /// another topology than the cluster's
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub topology: IndexMap<Name, Vec<Placement>>,
    /// external: where the cluster of this variant can be reached, if not where `deploy.addresses` says
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// tunables by component; they override those of the cluster
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub config: Config,
    /// global variables; they override those of the cluster
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub variables: IndexMap<Name, Setting>,
    /// where its packages come from, if not from where the cluster's do
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packages: Option<Packages>,
}

/// The load tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Driver {
    /// assay's own driver
    Native,
    /// sysbench 1.0 or 1.1, as it is installed on the clients
    Sysbench,
}

/// What is loaded before the first round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dataset {
    /// the load tool that loads it
    pub driver: Driver,
    /// whose tables (native: has to be given; sysbench: `sysbench`)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Schema>,
    /// ycsb: rows of `usertable` (default 1000)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000_000_000_u64))]
    pub records: Option<u64>,
    /// ycsb: fields of a row (default 10)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub fields: Option<u32>,
    /// ycsb: bytes of a field (default 100)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub field_length: Option<u32>,
    /// sysbench: number of tables, `sbtest1` and on (default 1)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub tables: Option<u32>,
    /// sysbench: rows of each table (default 10000)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000_000_000_u64))]
    pub table_size: Option<u64>,
    /// sysbench as driver: threads that load, each a table at a time (default: the number of tables, at most 16)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1024))]
    pub threads: Option<u32>,
    /// what is done with the loaded tables before the snapshot
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<Then>,
    /// sysbench as driver: further options, without the dashes before them
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub options: IndexMap<String, Scalar>,
}

/// What is done with loaded tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Then {
    /// the statistics of every table are gathered
    Analyze,
}

/// The tables that a family of workloads works on.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Schema {
    /// YCSB: one table `usertable` with a key and text fields
    Ycsb,
    /// sysbench OLTP: tables `sbtest1` ... with `id, k, c, pad` and an index on `k`
    Sysbench,
}

/// How loaded data is kept and put back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// how files are kept
    #[serde(default)]
    pub method: Method,
    /// when they are put back
    #[serde(default)]
    pub restore: Restore,
}

/// How files are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// the best that works on the host
    #[default]
    Auto,
    /// shared blocks (XFS, Btrfs)
    Reflink,
    /// a plain copy
    Copy,
}

/// When data is put back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Restore {
    /// before every round
    #[default]
    EachRound,
    /// before a round that follows one that wrote
    AfterWrites,
    /// when the workload changes
    EachWorkload,
    /// not at all: every round goes on with what the last one left
    Never,
}

/// One workload and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// what it is called in results; by default the workload itself
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// the load tool
    pub driver: Driver,
    /// native: what is run
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Kind>,
    /// sysbench: the script that is run, one of its `oltp_*`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Kind>,
    /// how keys are drawn (ycsb: zipfian, or latest for D; oltp: uniform)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Distribution>,
    /// ycsb E: longest scan in rows; lengths are uniform from 1 (default 100)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub max_scan_length: Option<u32>,
    /// oltp: rows of a range query (default 100)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub range_size: Option<u32>,
    /// oltp: run the statements without BEGIN and COMMIT (default false)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_trx: Option<bool>,
    /// sysbench: further options, without the dashes before them
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub options: IndexMap<String, Scalar>,
}

/// The workloads of the native driver: YCSB A to F and sysbench's OLTP set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// 50 % reads, 50 % updates
    YcsbA,
    /// 95 % reads, 5 % updates
    YcsbB,
    /// reads only
    YcsbC,
    /// 95 % reads of the latest, 5 % inserts
    YcsbD,
    /// 95 % scans, 5 % inserts
    YcsbE,
    /// 50 % reads, 50 % read-modify-writes
    YcsbF,
    /// one select by key
    OltpPointSelect,
    /// 10 selects by key and 4 range queries a transaction
    OltpReadOnly,
    /// the read_only and the write_only statements in one transaction
    OltpReadWrite,
    /// two updates, a delete and an insert a transaction
    OltpWriteOnly,
    /// one update of an indexed column
    OltpUpdateIndex,
    /// one update of a column without index
    OltpUpdateNonIndex,
    /// one insert
    OltpInsert,
    /// one delete
    OltpDelete,
}

/// How keys are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// every key alike
    Uniform,
    /// Zipf with exponent 0.99, scattered over the keys (ycsb)
    Zipfian,
    /// Zipf with exponent 0.99 from the newest key backwards (ycsb)
    Latest,
    /// sysbench 1.0's default: 1 % of the keys drawn in 75 % of the cases (oltp)
    Special,
}

/// The points that every workload is run at: all combinations of its axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// numbers of client threads
    #[schemars(length(min = 1), inner(range(min = 1, max = 65_536)))]
    pub threads: Vec<u32>,
    /// target rates, operations/s over all threads: open loop, latency from the intended start; without it closed loop
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub rate: Option<Vec<Rate>>,
}

/// How long and how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rounds {
    /// load before the measurement that does not count
    #[serde(default)]
    pub warmup: Duration,
    /// length of the measurement window
    pub duration: Duration,
    /// rounds of each cell for each variant (default 3)
    #[serde(default = "three")]
    #[schemars(range(min = 1, max = 1000))]
    pub repetitions: u32,
    /// the order of the rounds
    #[serde(default)]
    pub order: Order,
    /// what happens after a failed round: `continue`, `stop`, or `retry N`
    #[serde(default)]
    pub on_failure: OnFailure,
    /// how long the system is given to become quiet before a round
    #[serde(default, skip_serializing_if = "Settle::is_default")]
    pub settle: Settle,
    /// limits of the steps; one that outlives its limit is killed and its round fails
    #[serde(default)]
    pub limits: Limits,
}

fn three() -> u32 {
    3
}

/// How long the system is given to become quiet before a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settle {
    /// the longest that is waited for it (default 10m)
    pub timeout: Duration,
    /// what becomes of a round that begins before that
    pub at_limit: AtLimit,
    /// how far apart two looks are at what must stay the same (default 10s)
    pub window: Duration,
}

impl Settle {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Settle {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(600),
            at_limit: AtLimit::default(),
            window: Duration::from_secs(10),
        }
    }
}

/// What becomes of a round whose system was not quiet in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AtLimit {
    /// it is not run, and counts as invalid
    #[default]
    Invalid,
    /// it is run, and says so
    Warn,
}

/// The order of the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// the variants of a cell side by side, in an order drawn from the seed
    #[default]
    Interleaved,
    /// one variant after the other; drift of the machine cannot be told from a difference
    Blocked,
    /// all rounds shuffled by the seed
    Random,
}

/// The longest that each kind of step may take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// loading one dataset (default 1h)
    pub load: Duration,
    /// taking or restoring a snapshot (default 30m)
    pub snapshot: Duration,
    /// deploying, starting or stopping the system (default 5m)
    pub start: Duration,
    /// what a driver may take beyond warm-up and window (default 1m)
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            load: Duration::from_secs(3600),
            snapshot: Duration::from_secs(1800),
            start: Duration::from_secs(300),
            grace: Duration::from_secs(60),
        }
    }
}

/// What is compared with what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Compare {
    /// the variant that the others are compared with (default: the first)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Name>,
    /// the metrics shown
    #[schemars(length(min = 1))]
    pub metrics: Vec<Metric>,
}

impl Default for Compare {
    fn default() -> Self {
        Self {
            baseline: None,
            metrics: vec![Metric::Throughput, Metric::P95, Metric::P99],
        }
    }
}

/// A metric of a round.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// successful operations per second
    Throughput,
    /// mean latency
    Mean,
    /// median latency
    P50,
    /// 95th percentile of latency
    P95,
    /// 99th percentile of latency
    P99,
    /// largest latency
    Max,
}
