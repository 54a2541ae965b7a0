//! Hosts as users have them: real ones of the lab, reached over SSH by the library and by the program, and the faults that
//! hosts have.

mod databases;
mod disk;
mod fleet;
mod keys;
mod lease;
mod link;
mod rights;
mod runs;
mod secrets;
mod service;
mod user;
