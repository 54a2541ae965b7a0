//! Packs: what a system is made of and what it wants.

pub mod keys;
pub mod settings;
pub mod version;
