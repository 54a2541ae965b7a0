//! Tests of the library through its public interface.
#![allow(missing_docs, clippy::unwrap_used)]

mod load;
