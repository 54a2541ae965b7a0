//! The agents of this module: a request by name, carried out on the host.

use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    Removal, Remove, ServiceError, Systemd, install, removal, remove, run, start, status, stop,
};

/// What the agents are told of where they work.
#[derive(Clone, Debug)]
pub struct Here {
    /// The user's home.
    pub home: Option<PathBuf>,
    /// The time, µs of Unix time.
    pub now: i64,
}

/// Carries out the request to the agent `name`; `None` if no agent of that name is here.
#[must_use]
pub fn agent(name: &str, request: Value, here: &Here) -> Option<Result<Value, ServiceError>> {
    let home = here.home.as_deref();
    let systemd = || Systemd::of_this_host(home);
    let of_units = |removal: &Removal| Systemd::of_units(home, &removal.unit_prefix);
    Some(match name {
        "service-install" => answer(name, request, |request| install(request, systemd)),
        "service-start" => answer(name, request, |request| {
            start(request, &systemd()?, here.now)
        }),
        "service-stop" => answer(name, request, |request| stop(request, &systemd()?)),
        "service-status" => answer(name, request, |request| {
            status(request, &systemd()?, here.now)
        }),
        "service-run" => answer(name, request, run),
        "service-removal" => answer(name, request, |request| {
            removal(request, of_units(request)?)
        }),
        "service-remove" => answer(name, request, |request: &Remove| {
            remove(request, of_units(&request.removal)?)
        }),
        _ => return None,
    })
}

fn answer<Q: DeserializeOwned, T: Serialize>(
    agent: &str,
    request: Value,
    work: impl FnOnce(&Q) -> Result<T, ServiceError>,
) -> Result<Value, ServiceError> {
    let request = serde_json::from_value(request).map_err(|source| ServiceError::Request {
        agent: agent.to_owned(),
        source,
    })?;
    let outcome = work(&request)?;
    Ok(serde_json::to_value(outcome).expect("outcomes are plain data"))
}
