//! The work on a data directory, done on its own host.
