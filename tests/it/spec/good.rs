//! good
