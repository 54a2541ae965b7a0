//! Specs: what is accepted, what is refused and in which words, and that a resolved spec reads back as itself.

mod broken;
mod good;
mod hostile;
mod inventory;
mod resolved;
mod schemas;
mod support;
