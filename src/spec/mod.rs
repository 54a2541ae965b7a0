//! The spec: YAML as written -> [`Experiment`] and [`Inventory`]. All errors at once, each with file, line and column.
//!
//! [`load`] reads the files and lays them over what they extend, applies `--set`, replaces variables, walks the tree
//! against the published JSON Schema, and checks what the schema cannot say. Values from the environment stay
//! `${env:NAME}` in all that it returns; [`Secrets`] puts them in at the point of use.

mod bad;
mod cluster;
mod expected;
mod experiment;
mod files;
mod inventory;
mod layout;
mod likely;
mod load;
mod overrides;
mod parse;
mod placeholder;
mod problem;
mod read;
mod reference;
mod render;
mod resolved;
mod rules;
mod scalar;
mod schema;
mod secrets;
mod source;
mod suggest;
mod syntax;
mod tree;
mod typed;
mod value;
mod vars;
mod walk;
mod workload;

pub use cluster::{
    Cluster, Config, Deploy, Engine, InstanceSettings, LoadBalancer, Packages, Placement,
    ResourceControl, User,
};
pub use experiment::{
    AtLimit, Compare, Dataset, Distribution, Driver, Experiment, Kind, Limits, Method, Metric,
    Order, Restore, Rounds, Schema, Settle, Snapshot, Sweep, Then, Variant, Workload,
};
pub use inventory::{Become, Connection, Host, Inventory, LoadedInventory, load_inventory};
pub use load::{Check, Request, Spec, load};
pub use problem::{Located, Problem, Problems};
pub use read::{Text, read, read_checked, read_text};
pub use resolved::{plain_yaml, yaml};
pub use schema::{experiment_schema, inventory_schema};
pub use secrets::Secrets;
pub use suggest::help as did_you_mean;
pub use value::{Name, NameError, OnFailure, OneOrMany, Scalar, Setting};
