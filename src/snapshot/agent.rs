//! The agents of this module: a request by name, carried out on the host that owns the data.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::directory::{self, Cloning, Marker, Order, Progress};
use super::{SnapshotError, Stage};

/// How often progress within one stage is told at the most.
const PACE: Duration = Duration::from_millis(200);

/// The request of `deploy`, `remove`, `snapshot-digest` and `snapshot-verify`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkedDirectory {
    /// The directory.
    pub directory: PathBuf,
    /// Whose it is.
    pub marker: Marker,
}

/// The request of `snapshot-take` and `snapshot-restore`.
#[derive(Deserialize)]
struct Work {
    order: Order,
    cloning: Cloning,
}

/// The request of `snapshot-probe`.
#[derive(Deserialize)]
struct Probe {
    directory: PathBuf,
}

/// Carries out the request to the agent `name`; `None` if no agent of that name is here.
/// Progress is told as [`Progress`], at a pace for people.
pub fn agent(
    name: &str,
    request: Value,
    progress: &mut dyn FnMut(Value),
) -> Option<Result<Value, SnapshotError>> {
    let mut paced = paced(progress);
    let watch = &mut paced;
    Some(match name {
        "deploy" => read(name, request).and_then(|place: MarkedDirectory| {
            directory::deploy(&place.directory, &place.marker, watch).map(|()| Value::Null)
        }),
        "remove" => read(name, request).and_then(|place: MarkedDirectory| {
            directory::remove(&place.directory, &place.marker, watch).map(|()| Value::Null)
        }),
        "snapshot-probe" => read(name, request)
            .and_then(|probe: Probe| directory::probe(&probe.directory).map(|can| json!(can))),
        "snapshot-take" => read(name, request).and_then(|work: Work| {
            directory::take(&work.order, work.cloning, watch).map(|done| json!(done))
        }),
        "snapshot-restore" => read(name, request).and_then(|work: Work| {
            directory::restore(&work.order, work.cloning, watch).map(|done| json!(done))
        }),
        "snapshot-verify" => read(name, request).and_then(|place: MarkedDirectory| {
            directory::verify(&place.directory, &place.marker, watch)
                .map(|(files, bytes)| json!({ "files": files, "bytes": bytes }))
        }),
        "snapshot-digest" => read(name, request).and_then(|place: MarkedDirectory| {
            directory::digest(&place.directory, &place.marker).map(|digest| json!(digest))
        }),
        _ => return None,
    })
}

fn read<T: DeserializeOwned>(agent: &str, request: Value) -> Result<T, SnapshotError> {
    serde_json::from_value(request).map_err(|source| SnapshotError::Request {
        agent: agent.to_owned(),
        source,
    })
}

/// Passes on each new stage, and within one stage a few words a second.
fn paced(tell: &mut dyn FnMut(Value)) -> impl FnMut(&Progress) {
    let mut last: Option<(Stage, Instant)> = None;
    move |progress| {
        let new = last.is_none_or(|(stage, at)| stage != progress.stage || at.elapsed() >= PACE);
        if new {
            last = Some((progress.stage, Instant::now()));
            tell(json!(progress));
        }
    }
}
