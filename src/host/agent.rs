//! The protocol of `assay agent NAME`: one line of JSON in, lines of JSON out, the last of them the outcome.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Command, Host, HostError, Program, Watch};

/// A line that an agent prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply<P, T> {
    /// How far it is.
    Progress(P),
    /// It is done.
    Done(T),
    /// It failed: the message, then its causes.
    Failed(Vec<String>),
}

/// Why an agent's work failed.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The agent could not be run to its end.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The agent says why.
    #[error("{}", .0.join(": "))]
    Failed(Vec<String>),
    /// The agent ended without an outcome.
    #[error("`assay agent {name}` on `{host}` ended {how} without an outcome{stderr}")]
    Silent {
        /// The host.
        host: String,
        /// The agent.
        name: String,
        /// `with status 1`, `by a signal`.
        how: String,
        /// The end of its standard error, after a colon.
        stderr: String,
    },
}

/// Calls an agent on a host and returns its outcome; `progress` sees what it says on the way.
///
/// # Errors
/// The agent failed, was stopped, outlived `limit`, or died.
pub async fn call<Q, P, T>(
    host: &dyn Host,
    name: &str,
    request: &Q,
    limit: Duration,
    stop: &tokio_util::sync::CancellationToken,
    progress: &mut (dyn FnMut(P) + Send),
) -> Result<T, AgentError>
where
    Q: Serialize + Sync,
    P: DeserializeOwned + Send,
    T: DeserializeOwned + Send,
{
    let mut stdin = serde_json::to_vec(request).expect("requests are plain data");
    stdin.push(b'\n');
    let command = Command {
        program: Program::Assay,
        args: vec!["agent".into(), name.into()],
        stdin,
        limit,
    };
    let mut outcome: Option<Result<T, Vec<String>>> = None;
    let mut line = |text: &str| match serde_json::from_str::<Reply<P, T>>(text) {
        Ok(Reply::Progress(p)) => progress(p),
        Ok(Reply::Done(value)) => outcome = Some(Ok(value)),
        Ok(Reply::Failed(causes)) => outcome = Some(Err(causes)),
        Err(_) => tracing::debug!(agent = name, line = text, "unexpected output"),
    };
    let output = host
        .run(
            &command,
            Watch {
                stop: stop.clone(),
                line: &mut line,
            },
        )
        .await?;
    match outcome {
        Some(Ok(value)) => Ok(value),
        Some(Err(causes)) => Err(AgentError::Failed(causes)),
        None => Err(AgentError::Silent {
            host: host.name().to_owned(),
            name: name.to_owned(),
            how: output
                .status
                .map_or_else(|| "by a signal".to_owned(), |s| format!("with status {s}")),
            stderr: if output.stderr.trim().is_empty() {
                String::new()
            } else {
                format!(": {}", output.stderr.trim())
            },
        }),
    }
}

/// Calls an agent that reports no progress.
///
/// # Errors
/// As [`call`].
pub async fn ask<Q, T>(
    host: &dyn Host,
    name: &str,
    request: &Q,
    limit: Duration,
    stop: &tokio_util::sync::CancellationToken,
) -> Result<T, AgentError>
where
    Q: Serialize + Sync,
    T: DeserializeOwned + Send,
{
    call(
        host,
        name,
        request,
        limit,
        stop,
        &mut |_: serde_json::Value| {},
    )
    .await
}
