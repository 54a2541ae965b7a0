//! The experiment as written: what is compared, what is loaded, what is run, how often.
//! Doc comments here become the help of error messages and the descriptions of the published JSON Schema.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Name, OnFailure, OneOrMany, Scalar};
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

/// The system under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// the database system
    pub system: System,
    /// role -> hosts or groups of the inventory
    #[schemars(extend("minProperties" = 1))]
    pub topology: IndexMap<Name, Vec<Name>>,
    /// tunables of all variants, by component
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub config: Config,
}

/// Tunables by component: `{sqlite: {journal_mode: wal}}`.
pub type Config = IndexMap<Name, IndexMap<Name, Scalar>>;

/// A database system that can be put under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum System {
    /// SQLite, built into assay
    Sqlite,
}

/// One of the things compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// the version that the system must report, as text
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = ["string", "number"], "format" = "assay-version"))]
    pub version: Option<String>,
    /// tunables by component; they override those of the cluster
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub config: Config,
}

/// The load tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Driver {
    /// assay's own driver
    Native,
    /// sysbench, as installed on the clients
    Sysbench,
}

/// What is loaded before the first round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dataset {
    /// the load tool that loads it
    pub driver: Driver,
    /// whose tables
    pub schema: Schema,
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
    /// threads that load (default: one for each table, at most 16)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_536))]
    pub threads: Option<u32>,
    /// further options of the load tool
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub options: IndexMap<String, Scalar>,
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
    /// what is run
    pub workload: Kind,
    /// the load tool's script, by its own name
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Kind>,
    /// further options of the load tool
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub options: IndexMap<String, Scalar>,
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
    /// limits of the steps; one that outlives its limit is killed and its round fails
    #[serde(default)]
    pub limits: Limits,
}

fn three() -> u32 {
    3
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
    /// starting or stopping the system (default 5m)
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
