//! The agents of this module: a request by name, carried out on the host where the database runs.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{ProbeError, Until, Waiting, http, metrics, sql, until};

/// Sends one HTTP request.
pub(super) const HTTP: &str = "probe-http";
/// Sends statements.
pub(super) const SQL: &str = "probe-sql";
/// Waits until something is true.
pub(super) const UNTIL: &str = "probe-until";
/// Reads metrics.
pub(super) const METRICS: &str = "probe-metrics";

/// Carries out the request to the agent `name`; `None` if no agent of that name is here.
/// Progress is told as [`Waiting`].
pub fn agent(
    name: &str,
    request: Value,
    progress: &mut dyn FnMut(Value),
) -> Option<Result<Value, ProbeError>> {
    Some(match name {
        HTTP => carry_out(name, request, async |request| http::send(&request).await),
        SQL => carry_out(name, request, async |request| sql::send(&request).await),
        METRICS => carry_out(name, request, async |request| {
            metrics::fetch(&request).await
        }),
        UNTIL => carry_out(name, request, async |request: Until| {
            let mut tell = |waiting: &Waiting| progress(json!(waiting));
            until::wait(&request, &mut tell).await
        }),
        _ => return None,
    })
}

fn carry_out<Q: DeserializeOwned, T: Serialize>(
    agent: &str,
    request: Value,
    work: impl AsyncFnOnce(Q) -> Result<T, ProbeError>,
) -> Result<Value, ProbeError> {
    let request = serde_json::from_value(request).map_err(|source| ProbeError::Request {
        agent: agent.to_owned(),
        source,
    })?;
    // mysql_async takes the process's provider of ciphers; another one that was there first does as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| ProbeError::Impossible(e.to_string()))?;
    let done = runtime.block_on(work(request));
    // A name that is still being resolved, past all limits, is not waited for.
    runtime.shutdown_background();
    done.map(|done| json!(done))
}
