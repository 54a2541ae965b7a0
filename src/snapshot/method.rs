//! What every snapshot method can do. How one behaves is fixed by the contract test that all of them share.

use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Cloning, Done, Order, Progress};
use crate::host::{AgentError, Bounds, Hearing, Host, Pending, call};

/// A way to keep a deployment's data and to put it back.
pub trait SnapshotMethod: Send + Sync {
    /// Its name in the experiment file.
    fn name(&self) -> &'static str;

    /// Takes a snapshot of data that nobody writes to; an older one of it goes first.
    fn take<'a>(
        &'a self,
        host: &'a dyn Host,
        order: &'a Order,
        attention: Attention<'a>,
    ) -> Pending<'a, Result<Done, AgentError>>;

    /// Puts the data back, whole or not at all.
    fn restore<'a>(
        &'a self,
        host: &'a dyn Host,
        order: &'a Order,
        attention: Attention<'a>,
    ) -> Pending<'a, Result<Done, AgentError>>;
}

/// How long a call may take, who may stop it, and who sees how far it is.
pub struct Attention<'a> {
    /// The longest it may take.
    pub limit: Duration,
    /// Stops it when cancelled.
    pub stop: CancellationToken,
    /// Called now and then.
    pub progress: &'a mut (dyn FnMut(Progress) + Send),
}

/// Has an agent work on an order.
pub(super) async fn work(
    host: &dyn Host,
    agent: &str,
    order: &Order,
    cloning: Cloning,
    attention: Attention<'_>,
) -> Result<Done, AgentError> {
    let request = json!({ "order": order, "cloning": cloning });
    let Attention {
        limit,
        stop,
        progress,
    } = attention;
    let bounds = Bounds { limit, stop: &stop };
    let hearing = Hearing {
        progress,
        log: &mut |_| {},
    };
    call(host, agent, &request, bounds, hearing).await
}
