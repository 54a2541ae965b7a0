//! resolved
