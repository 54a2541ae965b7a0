//! Packs: what a system is made of and what it wants.

pub mod settings;
pub mod version;
