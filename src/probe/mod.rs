//! Asking a running database, on the host where it runs: TCP, HTTP and SQL, once or until it answers as wanted.
//! The work is done by agents ([`agent()`]); what asks them for it is beside it. What to ask is for others to say.

mod agent;
mod ask;
mod check;
mod condition;
mod error;
mod http;
mod metrics;
mod secret;
mod sql;
mod tls;
mod until;
mod words;

use std::time::Duration;

pub use agent::agent;
pub use ask::{http, metrics, sql, until};
pub use check::Check;
pub use condition::{Condition, Pattern, Pointer, Test};
pub use error::{Cause, ProbeError};
pub use http::{Answer, Http, Login, Method, url};
pub use metrics::{Metrics, Sample, parse as parse_metrics};
pub use secret::Secret;
pub use sql::{Address, Protocol, Server, Sql, Table};
pub use tls::Tls;
pub use until::{Held, Until, Waiting};

/// How long one answer may take unless the request says otherwise.
const TIMEOUT: crate::units::Duration = crate::units::Duration(Duration::from_secs(10));

fn timeout() -> crate::units::Duration {
    TIMEOUT
}

/// Does some work within a limit, or says that it took too long.
async fn within<T>(
    limit: crate::units::Duration,
    work: impl Future<Output = Result<T, Cause>>,
) -> Result<T, Cause> {
    let done = tokio::time::timeout(limit.0, work).await;
    done.unwrap_or(Err(Cause::Silent(limit)))
}
