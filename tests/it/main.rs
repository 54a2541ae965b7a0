//! The integration tests, in one binary.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod spec;
