//! Writes every byte again: works on any file system.

use super::method::work;
use super::{Attention, Cloning, Done, Order, SnapshotMethod};
use crate::host::{AgentError, Host, Pending};

/// Snapshots that are plain copies.
#[derive(Clone, Copy, Debug)]
pub struct Copy;

impl SnapshotMethod for Copy {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn take<'a>(
        &'a self,
        host: &'a dyn Host,
        order: &'a Order,
        attention: Attention<'a>,
    ) -> Pending<'a, Result<Done, AgentError>> {
        Box::pin(work(host, "snapshot-take", order, Cloning::Copy, attention))
    }

    fn restore<'a>(
        &'a self,
        host: &'a dyn Host,
        order: &'a Order,
        attention: Attention<'a>,
    ) -> Pending<'a, Result<Done, AgentError>> {
        Box::pin(work(
            host,
            "snapshot-restore",
            order,
            Cloning::Copy,
            attention,
        ))
    }
}
