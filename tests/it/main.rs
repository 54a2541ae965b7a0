//! The tests of parts together, in one binary.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../support/mod.rs"]
mod support;

mod cli;
mod cluster;
mod documents;
mod engines;
mod fake_host;
mod host;
mod hosts_cli;
mod lab;
mod load;
mod local_run;
mod package;
mod packs;
mod packs_db;
mod plan;
mod preflight;
mod probe;
mod report;
mod runner;
mod service;
mod snapshot;
mod spec;
mod ssh;
mod ssh_keys;
mod standins;
mod sysbench;
mod tiup;
mod transfer;
