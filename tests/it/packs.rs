//! What packs make of a deployment: every file on every host, kept and reviewed like code.

mod tidb;
