//! One thing that can be true of a running program, and whether it is.

use std::fmt;
use std::process::Stdio;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::TcpStream;

use super::http::place;
use super::{Cause, Condition, Http, ProbeError, Sql, http, sql, within, words};
use crate::units::Duration;

/// Bytes of a program's standard error that are kept: its end.
const KEPT: usize = 4096;

/// Something that can be true of a running program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Check {
    /// A TCP port accepts connections.
    Listening {
        /// A name or an address.
        host: String,
        /// The port.
        port: u16,
    },
    /// An HTTP request is answered.
    Http {
        /// The request.
        request: Http,
        /// The status that is wanted; any of success if none is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// What has to be true of the answer, which is JSON if there are any.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        conditions: Vec<Condition>,
    },
    /// Statements succeed.
    Sql {
        /// The statements.
        request: Sql,
        /// What has to be true of the rows of the last one, a list of lists of texts or nulls: `/0/0` is the first value.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        conditions: Vec<Condition>,
    },
    /// A program ends as it should.
    Command {
        /// The program.
        program: String,
        /// Its arguments.
        #[serde(default)]
        args: Vec<String>,
        /// The exit status that is wanted.
        #[serde(default)]
        status: i32,
        /// How long it may run; then it is killed.
        #[serde(default = "super::timeout")]
        timeout: Duration,
    },
}

impl Check {
    /// Looks once: `None` if it is true, else why not.
    ///
    /// # Errors
    /// It can never be true.
    pub(super) async fn fault(&self) -> Result<Option<String>, ProbeError> {
        match self {
            Self::Listening { host, port } => Ok(listening(host, *port).await),
            Self::Http {
                request,
                status,
                conditions,
            } => match http::send(request).await {
                Ok(answer) => Ok(answered(&answer, *status, conditions)),
                Err(error) => error.passing().map(Some),
            },
            Self::Sql {
                request,
                conditions,
            } => match sql::send(request).await {
                Ok(tables) => {
                    let rows = tables.last().map_or(json!([]), |table| json!(table.rows));
                    Ok(first_fault(conditions, &rows))
                }
                Err(error) => error.passing().map(Some),
            },
            Self::Command {
                program,
                args,
                status,
                timeout,
            } => ended(program, args, *status, *timeout).await,
        }
    }
}

async fn listening(host: &str, port: u16) -> Option<String> {
    let connecting = async {
        let connected = TcpStream::connect((host, port)).await;
        connected.map_err(|e| Cause::of(&e))
    };
    let connected = within(super::TIMEOUT, connecting).await;
    connected.err().map(|cause| cause.to_string())
}

fn answered(
    answer: &http::Answer,
    status: Option<u16>,
    conditions: &[Condition],
) -> Option<String> {
    let found = answer.status;
    match status {
        Some(wanted) if wanted != found => return Some(format!("status {found}, wanted {wanted}")),
        None if !answer.is_success() => return Some(format!("status {found}, wanted success")),
        Some(_) | None => {}
    }
    if conditions.is_empty() {
        return None;
    }
    match serde_json::from_str(&answer.body) {
        Ok(value) => first_fault(conditions, &value),
        Err(_) => Some(format!(
            "the answer is no JSON: `{}`",
            words::cut(&answer.body)
        )),
    }
}

fn first_fault(conditions: &[Condition], value: &Value) -> Option<String> {
    conditions
        .iter()
        .find_map(|condition| condition.fault(value))
}

async fn ended(
    program: &str,
    args: &[String],
    wanted: i32,
    timeout: Duration,
) -> Result<Option<String>, ProbeError> {
    let mut command = tokio::process::Command::new(program);
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(|source| ProbeError::Program {
        program: program.to_owned(),
        source,
    })?;
    let stderr = child.stderr.take().expect("standard error is piped");
    let running = async {
        let (said, status) = tokio::join!(end_of(stderr), child.wait());
        status.map(|s| (s.code(), said)).map_err(|e| Cause::of(&e))
    };
    Ok(match within(timeout, running).await {
        Err(Cause::Silent(limit)) => Some(format!("it did not end within {limit}")),
        Err(cause) => Some(cause.to_string()),
        Ok((Some(status), _)) if status == wanted => None,
        Ok((status, said)) => Some(otherwise(status, wanted, &said)),
    })
}

fn otherwise(status: Option<i32>, wanted: i32, said: &str) -> String {
    let ended = match status {
        Some(status) => format!("status {status}, wanted {wanted}"),
        None => format!("ended by a signal, wanted status {wanted}"),
    };
    match said.trim() {
        "" => ended,
        said => format!("{ended}: {}", words::cut(said)),
    }
}

/// The end of what a program says on a stream.
async fn end_of(mut stream: impl AsyncRead + Unpin) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; KEPT];
    while let Ok(bytes @ 1..) = stream.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..bytes]);
        kept.drain(..kept.len().saturating_sub(KEPT));
    }
    String::from_utf8_lossy(&kept).into_owned()
}

impl fmt::Display for Check {
    /// `` `http://pd1:2379/pd/api/v1/health`: every /*/health is true ``.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening { host, port } => {
                write!(f, "`{}`: accepts connections", place(host, *port))
            }
            Self::Http {
                request,
                status,
                conditions,
            } => {
                write!(f, "`{request}`: ")?;
                match (status, &conditions[..]) {
                    (None, []) => f.write_str("answers"),
                    (None, _) => all(f, conditions),
                    (Some(status), []) => write!(f, "answers with status {status}"),
                    (Some(status), _) => {
                        write!(f, "answers with status {status}, and ")?;
                        all(f, conditions)
                    }
                }
            }
            Self::Sql {
                request,
                conditions,
            } => {
                write!(f, "{request}: ")?;
                match &conditions[..] {
                    [] => f.write_str("succeeds"),
                    _ => all(f, conditions),
                }
            }
            Self::Command {
                program,
                args,
                status,
                timeout: _,
            } => {
                let parts = std::iter::once(program).chain(args);
                let line = parts.cloned().collect::<Vec<_>>().join(" ");
                write!(f, "`{}`: ends with status {status}", words::cut(&line))
            }
        }
    }
}

/// The conditions as one sentence.
fn all(f: &mut fmt::Formatter<'_>, conditions: &[Condition]) -> fmt::Result {
    for (index, condition) in conditions.iter().enumerate() {
        let and = if index == 0 { "" } else { " and " };
        write!(f, "{and}{condition}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Value) -> Check {
        serde_json::from_value(value).unwrap()
    }

    fn on_pd(status: Option<u16>, conditions: Value) -> Check {
        let request = json!({"url": "http://[::1]:2379/pd/api/v1/health"});
        read(json!({"http": {"request": request, "status": status, "conditions": conditions}}))
    }

    #[test]
    fn a_check_says_in_plain_words_what_it_wants() {
        let health = json!({"pointer": "/*/health", "is": {"equals": true}});
        let name = json!({"pointer": "/0/name", "is": "exists"});
        let server = json!({
            "protocol": "mysql", "address": {"tcp": {"host": "db1", "port": 4000}}, "user": "root", "password": "geheim",
        });
        let sql = json!({"server": server, "statements": ["SET x = 'geheim'", "SELECT\n 1"]});
        let url = "`http://[::1]:2379/pd/api/v1/health`";
        for (check, words) in [
            (
                read(json!({"listening": {"host": "::1", "port": 1}})),
                "`[::1]:1`: accepts connections".to_owned(),
            ),
            (on_pd(None, json!([])), format!("{url}: answers")),
            (
                on_pd(Some(503), json!([])),
                format!("{url}: answers with status 503"),
            ),
            (
                on_pd(None, json!([health])),
                format!("{url}: every /*/health is true"),
            ),
            (
                on_pd(Some(200), json!([health, name])),
                format!(
                    "{url}: answers with status 200, and every /*/health is true and /0/name is there"
                ),
            ),
            (
                read(
                    json!({"sql": {"request": sql, "conditions": [{"pointer": "/0/0", "is": {"equals": 1}}]}}),
                ),
                "`SELECT 1` on mysql at db1:4000: /0/0 is 1".to_owned(),
            ),
            (
                read(json!({"command": {"program": "redis-cli", "args": ["ping"]}})),
                "`redis-cli ping`: ends with status 0".to_owned(),
            ),
        ] {
            assert_eq!(check.to_string(), words);
        }
    }

    #[test]
    fn an_answer_of_another_status_or_form_is_a_fault() {
        let health = Condition {
            pointer: "/health".to_owned().try_into().unwrap(),
            is: super::super::Test::Equals(json!("true")),
        };
        let answer = |status, body: &str| http::Answer {
            status,
            body: body.to_owned(),
        };
        let fault = |status, body, wanted, conditions: &[Condition]| {
            answered(&answer(status, body), wanted, conditions)
        };
        assert_eq!(fault(204, "", None, &[]), None);
        assert_eq!(fault(503, "", Some(503), &[]), None);
        assert_eq!(
            fault(503, "", None, &[]).unwrap(),
            "status 503, wanted success"
        );
        assert_eq!(
            fault(200, "", Some(204), &[]).unwrap(),
            "status 200, wanted 204"
        );
        let health = [health];
        assert_eq!(fault(200, r#"{"health": "true"}"#, None, &health), None);
        let text = fault(200, "starting\nup", None, &health).unwrap();
        assert_eq!(text, "the answer is no JSON: `starting up`");
    }

    #[tokio::test]
    async fn a_command_that_ends_otherwise_is_quoted() {
        let shell =
            |script: &str| read(json!({"command": {"program": "/bin/sh", "args": ["-c", script]}}));
        assert_eq!(shell("exit 0").fault().await.unwrap(), None);
        let fault = shell("echo no such >&2; exit 3").fault().await.unwrap();
        assert_eq!(fault.unwrap(), "status 3, wanted 0: no such");
        let fault = shell("kill -9 $$").fault().await.unwrap();
        assert_eq!(fault.unwrap(), "ended by a signal, wanted status 0");
        let slow =
            json!({"program": "/bin/sh", "args": ["-c", "exec sleep 600"], "timeout": "100ms"});
        let fault = read(json!({ "command": slow })).fault().await.unwrap();
        assert_eq!(fault.unwrap(), "it did not end within 100ms");
        let absent = read(json!({"command": {"program": "/nowhere/x"}}));
        let error = absent.fault().await.unwrap_err();
        assert_eq!(error.to_string(), "cannot run `/nowhere/x`");
    }
}
