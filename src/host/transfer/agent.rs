//! The agents of transfers, on the host.

use std::io::{Read, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::cache::{self, Tidied};
use super::error::{Fault, Stop};
use super::offer::offer;
use super::receive::receive;
use super::wire::{Answer, Wire};
use super::{RECEIVE, SEND, TIDY};

/// How the work of an agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// It is done.
    Done,
    /// It failed, and said so.
    Failed,
    /// Its caller is gone.
    Abandoned,
}

/// The request of `store-tidy`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tidy {
    #[serde(with = "super::name")]
    pub(super) directory: PathBuf,
    /// Bytes that may be left.
    pub(super) limit: u64,
}

/// The answer of `store-tidy`. `Failed` reads as [`Answer::Failed`] does.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Tidying {
    /// It is done.
    Done(Tidied),
    /// It cannot be done.
    Failed(Fault),
}

/// Carries out the agent `name` between its streams; `None` if no agent of that name is here.
pub fn serve(name: &str, input: impl Read, output: impl Write) -> Option<Served> {
    let mut wire = Wire::new(input, output);
    let result = match name {
        RECEIVE => receive(&mut wire),
        SEND => offer(&mut wire),
        TIDY => tidy(&mut wire),
        _ => return None,
    };
    Some(match result {
        Ok(()) => Served::Done,
        Err(Stop::Here(fault) | Stop::There(fault)) => match wire.say(&Answer::Failed(fault)) {
            Ok(()) => Served::Failed,
            Err(_) => Served::Abandoned,
        },
        Err(Stop::Stream(_)) => Served::Abandoned,
    })
}

/// Whether `name` is one of the agents of transfers, which read and write more than lines.
#[must_use]
pub fn is_ours(name: &str) -> bool {
    matches!(name, RECEIVE | SEND | TIDY)
}

fn tidy<R: Read, W: Write>(wire: &mut Wire<R, W>) -> Result<(), Stop> {
    let Tidy { directory, limit } = wire.hear()?;
    let tidied = cache::tidy(&directory, limit)?;
    wire.say(&Tidying::Done(tidied))
}
