//! The spec: YAML as written -> [`Experiment`] and [`Inventory`]. All errors at once, each with file, line and column.

mod experiment;
mod inventory;
mod value;
mod workload;

pub use experiment::{
    Cluster, Compare, Config, Dataset, Distribution, Driver, Experiment, Kind, Limits, Method,
    Metric, Order, Restore, Rounds, Schema, Snapshot, Sweep, System, Variant, Workload,
};
pub use inventory::{Connection, Host, Inventory};
pub use value::{Name, NameError, OnFailure, OneOrMany, Scalar};

/// Something wrong with a spec, at a path such as `variants.wal.config.sqlite.journal_mode`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub path: String,
    /// What.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}
