//! The tests of parts together, in one binary.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../support/mod.rs"]
mod support;

mod report;
