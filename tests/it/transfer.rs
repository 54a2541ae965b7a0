//! Transfers to and from real agents, over connections that break.

mod bench;
mod cache;
mod disk;
mod download;
mod peers;
mod resume;
mod upload;
