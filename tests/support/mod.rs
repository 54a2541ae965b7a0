//! What several tests share.

pub(crate) mod bare_run;
pub(crate) mod golden;
pub(crate) mod lab;
pub(crate) mod sample_run;

pub(crate) mod sshd;
