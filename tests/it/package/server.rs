//! A server of files on the loopback device that fails as told.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What goes wrong with one request.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Another status.
    Status(u16),
    /// The connection ends after so many bytes of the body.
    Cut(usize),
    /// Ranges are ignored, and then the connection ends after so many bytes.
    WholeThenCut(usize),
    /// Nothing comes after so many bytes.
    Stall(usize),
    /// Another place.
    Redirect(String),
    /// The connection ends without a word.
    Close,
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// As it stands in the first line: with scheme and host, if a proxy is asked.
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// By the name of the file.
    pub(crate) faults: BTreeMap<String, VecDeque<Fault>>,
    pub(crate) asked: Vec<Asked>,
    /// The `ETag` of all files, if there is to be one.
    pub(crate) etag: Option<String>,
}

/// The server, which ends when dropped.
pub(crate) struct Server {
    pub(crate) state: Arc<Mutex<State>>,
    pub(crate) url: String,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn new(files: BTreeMap<String, Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State {
            files,
            etag: Some("\"1\"".to_owned()),
            ..State::default()
        }));
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { state, url, task }
    }

    /// The next requests for a file go wrong like this.
    pub(crate) fn fails(&self, file: &str, faults: impl IntoIterator<Item = Fault>) {
        let mut state = self.state.lock().unwrap();
        state
            .faults
            .entry(file.to_owned())
            .or_default()
            .extend(faults);
    }

    /// The requests for a file.
    pub(crate) fn asked(&self, file: &str) -> Vec<Asked> {
        let state = self.state.lock().unwrap();
        let asked = state
            .asked
            .iter()
            .filter(|asked| asked.target.ends_with(file));
        asked.cloned().collect()
    }

    /// The first bytes that the requests for a file were for.
    pub(crate) fn ranges(&self, file: &str) -> Vec<Option<String>> {
        let asked = self.asked(file).into_iter();
        asked
            .map(|mut asked| asked.headers.remove("range"))
            .collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(stream: TcpStream, state: Arc<Mutex<State>>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let asked = read(&mut stream).await?;
    let path = asked.target.split('?').next()?;
    let name = path.rsplit('/').next()?.to_owned();
    let (body, fault, etag) = {
        let mut state = state.lock().unwrap();
        state.asked.push(asked.clone());
        let fault = state.faults.get_mut(&name).and_then(VecDeque::pop_front);
        (state.files.get(&name).cloned(), fault, state.etag.clone())
    };
    let stream = stream.get_mut();
    answer(stream, &asked, body, fault, etag.as_deref()).await
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let target = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            return Some(Asked { target, headers });
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
}

async fn answer(
    stream: &mut TcpStream,
    asked: &Asked,
    body: Option<Vec<u8>>,
    fault: Option<Fault>,
    etag: Option<&str>,
) -> Option<()> {
    let tag = etag.map_or(String::new(), |etag| format!("ETag: {etag}\r\n"));
    let bare = |status: &str| {
        format!("HTTP/1.1 {status}\r\n{tag}Content-Length: 0\r\nConnection: close\r\n\r\n")
    };
    let (body, ignores) = match (&fault, body) {
        (Some(Fault::Close), _) => return None,
        (Some(Fault::Status(status)), _) => {
            return say(stream, bare(&format!("{status} X")).as_bytes()).await;
        }
        (Some(Fault::Redirect(place)), _) => {
            let head = format!(
                "HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            return say(stream, head.as_bytes()).await;
        }
        (_, None) => return say(stream, bare("404 Not Found").as_bytes()).await,
        (Some(Fault::WholeThenCut(_)), Some(body)) => (body, true),
        (_, Some(body)) => (body, false),
    };
    let header = |name: &str| asked.headers.get(name).map(String::as_str);
    if etag.is_some() && header("if-none-match") == etag {
        return say(stream, bare("304 Not Modified").as_bytes()).await;
    }
    let range = header("range").and_then(|range| {
        range
            .strip_prefix("bytes=")?
            .strip_suffix('-')?
            .parse()
            .ok()
    });
    let same = header("if-range").is_none_or(|wanted| Some(wanted) == etag);
    let from: usize = range.filter(|_| same && !ignores).unwrap_or(0);
    if from > 0 && from >= body.len() {
        return say(stream, bare("416 Range Not Satisfiable").as_bytes()).await;
    }
    let (status, range) = match from {
        0 => ("200 OK", String::new()),
        from => (
            "206 Partial Content",
            format!(
                "Content-Range: bytes {from}-{}/{}\r\n",
                body.len() - 1,
                body.len()
            ),
        ),
    };
    let rest = &body[from..];
    let head = format!(
        "HTTP/1.1 {status}\r\n{tag}{range}Content-Length: {}\r\nConnection: close\r\n\r\n",
        rest.len()
    );
    say(stream, head.as_bytes()).await?;
    match fault {
        Some(Fault::Cut(bytes) | Fault::WholeThenCut(bytes)) => {
            say(stream, &rest[..bytes.min(rest.len())]).await
        }
        Some(Fault::Stall(bytes)) => {
            say(stream, &rest[..bytes]).await?;
            // Until the other side hangs up.
            stream.readable().await.ok()
        }
        _ => say(stream, rest).await,
    }
}

async fn say(stream: &mut TcpStream, bytes: &[u8]) -> Option<()> {
    stream.write_all(bytes).await.ok()?;
    stream.flush().await.ok()
}
