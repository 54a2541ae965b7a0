//! Packages from mirrors, files and archives, over connections that break and with contents that are wrong.

mod archives;
mod faults;
mod files;
mod made;
mod server;
mod servers;
