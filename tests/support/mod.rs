//! What several tests share.

pub mod sample_run;
