//! What is said over the channel of a served host: one JSON text a line, in both directions.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::host::{Command, Program, lease};

/// How the first line of a serving host begins; what a login shell prints before it is no part of the protocol.
pub(in crate::host) const HELLO: &str = "assay-serves ";

/// What a serving host says first, after [`HELLO`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    /// Its version.
    pub(super) assay: String,
    /// The user that works there.
    pub(super) user: u32,
}

/// What is asked of a serving host. `id` names the answer's addressee; the asker counts it up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ask {
    /// Where the host's directory is: comes first, and is answered by [`Answer::Directory`].
    Enter { id: u64, directory: String },
    /// Run a command as long as the channel lasts.
    Run { id: u64, order: Order },
    /// Start a job unless there is one of its name, and say what it printed from byte `from` on.
    Job {
        id: u64,
        name: String,
        owner: String,
        order: Order,
        from: u64,
    },
    /// End what `id` asked for.
    Stop { id: u64 },
    /// The outcome of this job has arrived: it can be forgotten.
    Forget { name: String },
    /// What time it is.
    Clock { id: u64 },
    /// Take the host's lease, as [`lease::take_for`] says.
    Take {
        id: u64,
        holder: lease::Holder,
        dead: Option<String>,
        break_dead: bool,
    },
    /// The holder with this token lives.
    Beat { id: u64, token: String },
    /// Give the lease with this token back.
    Release { id: u64, token: String },
}

/// What a serving host answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// The host's directory, absolute.
    Directory { id: u64, path: PathBuf },
    /// A line of standard output; of a job, also the byte after it.
    Line { id: u64, text: String, next: u64 },
    /// How it ended.
    Ended { id: u64, end: Ending },
    /// Microseconds since 1970, UTC.
    Clock { id: u64, unix_us: i64 },
    /// It was done.
    Done { id: u64 },
    /// Another holds the host.
    Held { id: u64, other: lease::Other },
}

/// How something that was asked for ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::host) enum Ending {
    /// By itself; `None` after a signal. With the end of its standard error.
    Itself { status: Option<i32>, stderr: String },
    /// It outlived its limit.
    Limit { stderr: String },
    /// It said nothing for too long.
    Silence { stderr: String },
    /// It was stopped on request.
    Stopped { stderr: String },
    /// The operating system refused.
    Refused {
        what: String,
        errno: Option<i32>,
        text: String,
    },
    /// Its supervisor is gone and left no outcome: it was killed, or the host restarted.
    Gone,
}

/// A command as it travels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Order {
    /// The program; none for assay itself.
    pub(super) program: Option<PathBuf>,
    pub(super) args: Vec<String>,
    #[serde(serialize_with = "encode", deserialize_with = "decode")]
    pub(super) stdin: Vec<u8>,
    pub(super) limit: Duration,
    pub(super) silence: Option<Duration>,
}

impl Order {
    pub(super) fn of(command: &Command) -> Self {
        Self {
            program: match &command.program {
                Program::Assay => None,
                Program::Path(path) => Some(path.clone()),
            },
            args: command.args.clone(),
            stdin: command.stdin.clone(),
            limit: command.limit,
            silence: command.silence,
        }
    }

    pub(super) fn command(&self) -> Command {
        Command {
            program: match &self.program {
                None => Program::Assay,
                Some(path) => Program::Path(path.clone()),
            },
            stdin: self.stdin.clone(),
            silence: self.silence,
            ..Command::new(Program::Assay, self.args.clone(), self.limit)
        }
    }
}

fn encode<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}

fn decode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    STANDARD.decode(text).map_err(serde::de::Error::custom)
}

/// A message as the line that is sent.
pub(super) fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("messages are plain data");
    line.push(b'\n');
    line
}
