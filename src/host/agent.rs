//! The protocol of `assay agent NAME`: one line of JSON in, lines of JSON out, the last of them the outcome.

use std::borrow::Cow;

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

/// Bytes of a reply that one line carries. Hosts cut lines at 1 MiB, and a text may double when it is quoted.
const PIECE: usize = 256 << 10;

/// A part of the line of a reply that would be too long.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Piece<'a> {
    /// Which one, from 0. After a lost connection they may begin anew.
    piece: usize,
    /// How many there are.
    of: usize,
    text: Cow<'a, str>,
}

impl<P: Serialize, T: Serialize> Reply<P, T> {
    /// The lines that it is told in, each with its end: one, or as many as it takes.
    #[must_use]
    pub fn lines(&self) -> String {
        let whole = serde_json::to_string(self).expect("replies are plain data");
        if whole.len() <= PIECE {
            return format!("{whole}\n");
        }
        let pieces = split(&whole);
        let of = pieces.len();
        let numbered = pieces.into_iter().enumerate();
        let line = |(piece, text): (usize, &str)| {
            let text = Cow::Borrowed(text);
            let line = serde_json::to_string(&Piece { piece, of, text });
            format!("{}\n", line.expect("texts are plain data"))
        };
        numbered.map(line).collect()
    }
}

/// A text in parts of at most [`PIECE`] bytes.
fn split(mut text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    while !text.is_empty() {
        let mut end = text.len().min(PIECE);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let (part, rest) = text.split_at(end);
        parts.push(part);
        text = rest;
    }
    parts
}

/// Puts pieces together.
#[derive(Default)]
struct Pieces {
    text: String,
    next: usize,
}

impl Pieces {
    /// The line that is complete with this one: itself, or that of which it is the last piece.
    fn add<'a>(&mut self, line: &'a str) -> Option<Cow<'a, str>> {
        let Ok(piece) = serde_json::from_str::<Piece<'_>>(line) else {
            return Some(Cow::Borrowed(line));
        };
        if piece.piece == 0 {
            *self = Self::default();
        }
        if piece.piece != self.next {
            return None;
        }
        self.text.push_str(&piece.text);
        self.next += 1;
        (self.next == piece.of).then(|| Cow::Owned(std::mem::take(self).text))
    }
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
    let mut pieces = Pieces::default();
    let mut line = |text: &str| {
        let Some(text) = pieces.add(text) else {
            return;
        };
        match serde_json::from_str::<Reply<P, T>>(&text) {
            Ok(Reply::Progress(p)) => progress(p),
            Ok(Reply::Done(value)) => outcome = Some(Ok(value)),
            Ok(Reply::Failed(causes)) => outcome = Some(Err(causes)),
            Err(_) => tracing::debug!(agent = name, line = &*text, "unexpected output"),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is heard of these lines.
    fn heard(lines: &str) -> Vec<Reply<String, String>> {
        let mut pieces = Pieces::default();
        let whole = lines.lines().filter_map(|line| pieces.add(line));
        let replies = whole.map(|line| serde_json::from_str(&line).unwrap());
        replies.collect()
    }

    #[test]
    fn a_reply_is_one_line_until_it_is_too_long_for_one() {
        let short: Reply<String, String> = Reply::Done("a\nb".to_owned());
        assert_eq!(short.lines(), "{\"done\":\"a\\nb\"}\n");
        let long: Reply<String, String> = Reply::Done("\"ü🦀\u{1}\n".repeat(200_000));
        let lines = long.lines();
        assert!(lines.lines().count() > 8);
        let longest = lines.lines().map(str::len).max();
        assert!(longest.unwrap() < 1 << 20);
        let all = format!("{}{lines}{}", short.lines(), short.lines());
        assert_eq!(heard(&all), [short.clone(), long, short]);
    }

    #[test]
    fn a_reply_that_begins_anew_after_a_lost_connection_is_heard_once() {
        let long: Reply<String, String> = Reply::Done("x".repeat(3 * PIECE));
        let lines = long.lines();
        let (cut, _) = lines.split_at(lines.len() / 2);
        let (whole, _) = cut.rsplit_once('\n').unwrap();
        assert_eq!(heard(&format!("{whole}\n{lines}")), [long]);
        let (_, rest) = lines.split_once('\n').unwrap();
        assert_eq!(heard(rest), []);
    }
}
