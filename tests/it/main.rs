//! Tests of the library through its public interface.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails its test")]

mod load;
