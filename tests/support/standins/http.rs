//! HTTP/1.1, as little as the stand-ins need: a server for small requests and a client for small answers.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep_until, timeout};

use crate::Failure;
use crate::tls::{self, AnyStream};

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Without the query.
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(value: &Value) -> Self {
        Self {
            status: 200,
            body: value.to_string(),
        }
    }

    pub(crate) fn text(status: u16, text: impl Into<String>) -> Self {
        Self {
            status,
            body: text.into(),
        }
    }

    pub(crate) fn not_found() -> Self {
        Self::text(404, "404 page not found\n")
    }
}

/// Binds a listener on `host:port`; hosts may be names or bracketed IPv6 addresses.
pub(crate) async fn listen(address: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address)
        .await
        .map_err(|error| format!("cannot listen on {address}: {error}").into())
}

/// Answers requests from `from` on; those that come earlier wait.
pub(crate) async fn serve<F, A>(listener: TcpListener, from: Instant, handler: F)
where
    F: Fn(Request) -> A + Send + Sync + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let handler = Arc::new(handler);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        let handler = Arc::clone(&handler);
        tokio::spawn(async move {
            sleep_until(from).await;
            // The other side may hang up at any time.
            if let Ok(stream) = tls::accepted(stream) {
                let _ = connection(stream, &*handler).await;
            }
        });
    }
}

async fn connection<F, A>(stream: AnyStream, handler: &F) -> std::io::Result<()>
where
    F: Fn(Request) -> A + Send + Sync,
    A: Future<Output = Answer> + Send,
{
    let mut stream = BufReader::new(stream);
    while let Some((request, keep)) = read_request(&mut stream).await? {
        let answer = handler(request).await;
        let kind = if answer.body.starts_with(['{', '[', '"']) {
            "application/json; charset=UTF-8"
        } else {
            "text/plain"
        };
        let head = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: {}\r\n\r\n",
            answer.status,
            if answer.status < 400 { "OK" } else { "Error" },
            answer.body.len(),
            if keep { "keep-alive" } else { "close" },
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(answer.body.as_bytes()).await?;
        stream.flush().await?;
        if !keep {
            break;
        }
    }
    Ok(())
}

async fn read_request<S: AsyncRead + Unpin>(
    stream: &mut BufReader<S>,
) -> std::io::Result<Option<(Request, bool)>> {
    let Some(head) = read_head(stream).await? else {
        return Ok(None);
    };
    let mut words = head.line.split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let body = read_body(stream, head.length.unwrap_or(0)).await?;
    let request = Request {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        body,
    };
    Ok(Some((request, !head.close)))
}

struct Head {
    line: String,
    length: Option<usize>,
    close: bool,
}

async fn read_head<S: AsyncRead + Unpin>(
    stream: &mut BufReader<S>,
) -> std::io::Result<Option<Head>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let mut head = Head {
        line: line.trim_end().to_owned(),
        length: None,
        close: false,
    };
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 || line.trim().is_empty() {
            return Ok(Some(head));
        }
        let lower = line.trim().to_ascii_lowercase();
        if let Some(length) = lower.strip_prefix("content-length:") {
            head.length = length.trim().parse().ok();
        }
        head.close |= lower.starts_with("connection:") && lower.contains("close");
    }
}

async fn read_body<S: AsyncRead + Unpin>(
    stream: &mut BufReader<S>,
    length: usize,
) -> std::io::Result<String> {
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// The `host:port` of a URL such as `http://10.0.0.1:2379`.
pub(crate) fn address_of(url: &str) -> &str {
    url.trim_start_matches("http://")
        .trim_start_matches("https://")
        .trim_end_matches('/')
}

/// Sends a request and returns the answer, whatever its status.
pub(crate) async fn ask(
    address: &str,
    method: &str,
    target: &str,
    body: &str,
) -> Result<Answer, Failure> {
    let limit = Duration::from_secs(5);
    let answer = timeout(limit, ask_unlimited(address, method, target, body)).await;
    let answer = answer.map_err(|_| format!("{address} does not answer"))?;
    answer.map_err(|error| format!("cannot ask {address}: {error}").into())
}

async fn ask_unlimited(
    address: &str,
    method: &str,
    target: &str,
    body: &str,
) -> std::io::Result<Answer> {
    let stream = tls::connected(TcpStream::connect(address).await?, address);
    let mut stream = BufReader::new(stream.map_err(std::io::Error::other)?);
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.flush().await?;
    let head = read_head(&mut stream)
        .await?
        .ok_or(std::io::ErrorKind::UnexpectedEof)?;
    let status = head
        .line
        .split(' ')
        .nth(1)
        .and_then(|word| word.parse().ok())
        .unwrap_or(0);
    let body = read_body(&mut stream, head.length.unwrap_or(0)).await?;
    Ok(Answer { status, body })
}

/// Asks for JSON; any status but 200 is an error that carries the text.
pub(crate) async fn ask_json(
    address: &str,
    method: &str,
    target: &str,
    body: &str,
) -> Result<Value, Failure> {
    let answer = ask(address, method, target, body).await?;
    if answer.status != 200 {
        return Err(format!(
            "{address} answers {} to {target}: {}",
            answer.status, answer.body
        )
        .into());
    }
    Ok(serde_json::from_str(&answer.body)?)
}
