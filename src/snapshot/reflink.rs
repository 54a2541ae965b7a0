//! Shares blocks between the data and its snapshot: quick, and takes room only for what is written later.

use super::method::work;
use super::{Attention, Cloning, Done, Order, SnapshotMethod};
use crate::host::{AgentError, Host, Pending};

/// Snapshots that share blocks with the data (XFS, Btrfs).
#[derive(Clone, Copy, Debug)]
pub struct Reflink;

impl SnapshotMethod for Reflink {
    fn name(&self) -> &'static str {
        "reflink"
    }

    fn take<'a>(
        &'a self,
        host: &'a dyn Host,
        order: &'a Order,
        attention: Attention<'a>,
    ) -> Pending<'a, Result<Done, AgentError>> {
        Box::pin(work(
            host,
            "snapshot-take",
            order,
            Cloning::Reflink,
            attention,
        ))
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
            Cloning::Reflink,
            attention,
        ))
    }
}
