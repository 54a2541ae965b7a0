//! The protocol of `assay agent NAME`: one line of JSON in, lines of JSON out, the last of them the outcome.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Bounds, Command, Host, HostError, OnLoss, Output, Program, Watch};

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

/// What hears of an agent's work while it goes on.
pub struct Hearing<'a, P> {
    /// Sees how far it is.
    pub progress: &'a mut (dyn FnMut(P) + Send),
    /// Sees the end of its standard error, once it ended.
    pub log: &'a mut (dyn FnMut(&str) + Send),
}

/// Calls an agent on a host and returns its outcome. It survives a lost connection.
///
/// # Errors
/// The agent failed, was stopped, outlived its limit, or died.
pub async fn call<Q, P, T>(
    host: &dyn Host,
    name: &str,
    request: &Q,
    bounds: Bounds<'_>,
    hearing: Hearing<'_, P>,
) -> Result<T, AgentError>
where
    Q: Serialize + Sync,
    P: DeserializeOwned + Send,
    T: DeserializeOwned + Send,
{
    put(host, name, request, bounds, Some(hearing), OnLoss::Survive).await
}

/// What would hear of work that nobody hears of.
type Unheard<'a> = Hearing<'a, serde_json::Value>;

/// Puts a request to an agent.
async fn put<Q, P, T>(
    host: &dyn Host,
    name: &str,
    request: &Q,
    bounds: Bounds<'_>,
    hearing: Option<Hearing<'_, P>>,
    on_loss: OnLoss,
) -> Result<T, AgentError>
where
    Q: Serialize + Sync,
    P: DeserializeOwned + Send,
    T: DeserializeOwned + Send,
{
    let mut stdin = serde_json::to_vec(request).expect("requests are plain data");
    stdin.push(b'\n');
    let args = vec!["agent".into(), name.into()];
    let command = Command {
        stdin,
        on_loss,
        ..Command::new(Program::Assay, args, bounds.limit)
    };
    let (progress, log) = hearing.map(|h| (h.progress, h.log)).unzip();
    let mut unheard = |_: P| {};
    let progress: &mut (dyn FnMut(P) + Send) = progress.map_or(&mut unheard, |p| p);
    let mut unlogged = |_: &str| {};
    let log: &mut (dyn FnMut(&str) + Send) = log.map_or(&mut unlogged, |l| l);
    let mut outcome: Option<Result<T, Vec<String>>> = None;
    let mut line = |text: &str| match serde_json::from_str::<Reply<P, T>>(text) {
        Ok(Reply::Progress(p)) => progress(p),
        Ok(Reply::Done(value)) => outcome = Some(Ok(value)),
        Ok(Reply::Failed(causes)) => outcome = Some(Err(causes)),
        Err(_) => tracing::debug!(agent = name, line = text, "unexpected output"),
    };
    let stop = bounds.stop.clone();
    let watch = Watch {
        stop,
        line: &mut line,
        log,
    };
    let output = host.run(&command, watch).await?;
    match outcome {
        Some(Ok(value)) => Ok(value),
        Some(Err(causes)) => Err(AgentError::Failed(causes)),
        None => Err(silent(host, name, &output)),
    }
}

fn silent(host: &dyn Host, name: &str, output: &Output) -> AgentError {
    let stderr = match output.stderr.trim() {
        "" => String::new(),
        text => format!(": {text}"),
    };
    let how = match output.status {
        Some(status) => format!("with status {status}"),
        None => "by a signal".to_owned(),
    };
    AgentError::Silent {
        host: host.name().to_owned(),
        name: name.to_owned(),
        how,
        stderr,
    }
}

/// Calls an agent that reports no progress and whose log nobody needs.
///
/// # Errors
/// As [`call`].
pub async fn ask<Q, T>(
    host: &dyn Host,
    name: &str,
    request: &Q,
    bounds: Bounds<'_>,
) -> Result<T, AgentError>
where
    Q: Serialize + Sync,
    T: DeserializeOwned + Send,
{
    put(
        host,
        name,
        request,
        bounds,
        None::<Unheard<'_>>,
        OnLoss::Survive,
    )
    .await
}

/// Asks an agent that only looks, so that it may be asked again after a lost connection.
///
/// # Errors
/// As [`call`].
pub async fn look<Q, T>(
    host: &dyn Host,
    name: &str,
    request: &Q,
    bounds: Bounds<'_>,
) -> Result<T, AgentError>
where
    Q: Serialize + Sync,
    T: DeserializeOwned + Send,
{
    put(
        host,
        name,
        request,
        bounds,
        None::<Unheard<'_>>,
        OnLoss::Repeat,
    )
    .await
}
