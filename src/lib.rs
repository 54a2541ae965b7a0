//! assay tells, with evidence, whether one database set-up is faster than another.
//!
//! Data flow: an experiment file is parsed ([`spec`]), planned ([`plan`]), executed ([`runner`]) and archived
//! ([`artifacts`]); the archive is compared and drawn ([`report`]). State is the event log replayed.
//!
//! A module uses only rows below its own; modules of one row do not see each other (`tests/layers.rs`):
//!
//! | row | modules |
//! |--:|---|
//! | 7 | cli |
//! | 6 | runner, report |
//! | 5 | artifacts, database, driver, load |
//! | 4 | plan, service |
//! | 3 | pack, package, probe, snapshot |
//! | 2 | statistics, host, tiup |
//! | 1 | spec |
//! | 0 | units, measurement, template |

#![cfg_attr(
    test,
    expect(clippy::unwrap_used, reason = "a failed unwrap fails its test")
)]

pub mod artifacts;
pub mod cli;
pub mod database;
pub mod driver;
pub mod host;
pub mod load;
pub mod measurement;
pub mod pack;
pub mod package;
pub mod plan;
pub mod probe;
pub mod report;
pub mod runner;
pub mod service;
pub mod snapshot;
pub mod spec;
pub mod statistics;
pub mod template;
pub mod tiup;
pub mod units;
