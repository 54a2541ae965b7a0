//! All integration tests, in one binary.

#[path = "../support/mod.rs"]
mod support;

mod report;
