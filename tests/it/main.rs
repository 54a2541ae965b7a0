//! The tests of parts together, in one binary.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod fake_host;
mod host;
mod snapshot;
