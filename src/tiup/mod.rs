//! TiUP's `topology.yaml` and `meta.yaml`: read strictly with their defaults, turned into an experiment and an inventory,
//! and written. Nothing here touches a file.

mod check;
mod cluster;
mod directory;
mod expand;
mod experiment;
mod hosts;
mod role;
mod section;
mod settings;
mod topology;
mod version;
mod written;

pub use cluster::{Cluster, Instance, LeftOut, Monitored};
pub use experiment::{Import, Names, import};
pub use role::Role;
pub use topology::topology;

use crate::spec::{Problem, Problems, Text, read_checked};
use written::{Meta, Topology};

/// What a file alone does not say about a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The version of TiDB, which only `meta.yaml` has.
    pub version: Option<String>,
    /// Whether several TiKV instances on a host may go without labels.
    pub no_labels: bool,
}

/// A cluster of TiUP's with every default in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The cluster.
    pub cluster: Cluster,
    /// What the file says beyond it.
    pub left_out: Vec<LeftOut>,
}

/// Reads a `topology.yaml`, or a `meta.yaml`, which holds a topology.
///
/// # Errors
/// All problems at once, each with its line: what is no topology, and what TiUP would refuse to deploy.
pub fn read(name: &str, text: &str, options: &Options) -> Result<Reading, Problems> {
    let source = Text {
        name,
        text,
        nothing_is_absent: true,
    };
    if is_meta(text) {
        let meta = read_checked(&source, |meta: &Meta| {
            let version = options.version.as_deref().or(meta.version());
            let problems = check::check(&meta.topology, version, true);
            problems.into_iter().map(below_topology).collect()
        })?;
        let version = options.version.as_deref().or(meta.version());
        return Ok(expand::expand(&meta.topology, meta.user(), version));
    }
    let version = options.version.as_deref();
    let topology = read_checked(&source, |topology: &Topology| {
        check::check(topology, version, options.no_labels)
    })?;
    Ok(expand::expand(&topology, None, version))
}

/// Whether a text is the state that TiUP keeps of a cluster.
fn is_meta(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("topology:"))
}

/// A problem of a topology that stands in a `meta.yaml`.
fn below_topology(problem: Problem) -> Problem {
    let path = match &*problem.path {
        "" => "topology".to_owned(),
        path => format!("topology.{path}"),
    };
    Problem { path, ..problem }
}
