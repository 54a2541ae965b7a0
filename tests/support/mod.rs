//! What several tests share.

pub(crate) mod golden;
pub(crate) mod sample_run;
