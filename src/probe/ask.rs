//! Asking the agents: what a request comes to on a host.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Answer, Held, Http, Method, Metrics, Sample, Sql, Table, Until, Waiting, agent};
use crate::host::{AgentError, Bounds, Hearing, Host, ask, call, look};

/// What reaching a host and starting an agent may take beside the work itself.
const GRACE: Duration = Duration::from_secs(60);

/// Sends an HTTP request from a host.
///
/// # Errors
/// There is no answer, or the host failed. A status that is no success is none.
pub async fn http(
    host: &dyn Host,
    request: &Http,
    stop: &CancellationToken,
) -> Result<Answer, AgentError> {
    let bounds = bounds(request.timeout.0, stop);
    match request.method {
        Method::Get => look(host, agent::HTTP, request, bounds).await,
        Method::Post | Method::Put | Method::Delete => {
            ask(host, agent::HTTP, request, bounds).await
        }
    }
}

/// Sends statements from a host; the result of each.
///
/// # Errors
/// There is no connection, a statement failed, or the host did.
pub async fn sql(
    host: &dyn Host,
    request: &Sql,
    stop: &CancellationToken,
) -> Result<Vec<Table>, AgentError> {
    // Connecting, each statement, and the farewell.
    let steps = u32::try_from(request.statements.len()).unwrap_or(u32::MAX);
    let limit = request.timeout.0.saturating_mul(steps.saturating_add(2));
    ask(host, agent::SQL, request, bounds(limit, stop)).await
}

/// Waits on a host until something is true; `tell` hears why it is not yet.
///
/// # Errors
/// It was not true within the limit, can never be, or the host failed.
pub async fn until(
    host: &dyn Host,
    request: &Until,
    stop: &CancellationToken,
    tell: &mut (dyn FnMut(Waiting) + Send),
) -> Result<Held, AgentError> {
    let hearing = Hearing {
        progress: tell,
        log: &mut |_| {},
    };
    let bounds = bounds(request.limit.0, stop);
    call(host, agent::UNTIL, request, bounds, hearing).await
}

/// Reads metrics of a server on a host.
///
/// # Errors
/// There is no answer, it is not the text format, or the host failed.
pub async fn metrics(
    host: &dyn Host,
    request: &Metrics,
    stop: &CancellationToken,
) -> Result<Vec<Sample>, AgentError> {
    let bounds = bounds(request.timeout.0, stop);
    look(host, agent::METRICS, request, bounds).await
}

fn bounds(limit: Duration, stop: &CancellationToken) -> Bounds<'_> {
    Bounds {
        limit: limit.saturating_add(GRACE),
        stop,
    }
}
