//! What a client needs for its connections.

use super::{Finding, HostView, Known, Wanted, by_hand};
use crate::host::facts::words;
use crate::host::preflight::Fix;

/// The ports that every system leaves to programs.
const WIDEST: &str = "1024 65535";
const WIDEST_PORTS: u32 = 64_512;
/// Files that a load tool opens besides its connections: libraries, scripts, logs.
const OTHER_FILES: u64 = 64;

/// There is a local port for each connection.
pub(super) fn ports(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "ephemeral_ports";
    const KEY: &str = "net.ipv4.ip_local_port_range";
    let Some(connections) = wanted
        .planned
        .connections
        .filter(|_| wanted.ephemeral_ports)
    else {
        return Vec::new();
    };
    let range = host.facts.sysctls.get(KEY).map(|value| words(value));
    let ports = range.as_deref().and_then(width);
    let known = Known {
        item: ITEM,
        found: ports
            .zip(range.as_ref())
            .map(|(n, range)| format!("{n} ({range})")),
        wanted: format!("{connections} or more"),
        why: "each connection to a server takes a local port; without one it fails",
        fix: match connections <= WIDEST_PORTS {
            true => Some(Fix::WriteSysctl {
                key: KEY.to_owned(),
                value: WIDEST.to_owned(),
            }),
            false => by_hand("spread the connections over more clients"),
        },
    };
    let is_enough = ports.is_some_and(|n| n >= connections);
    known.is(is_enough, wanted.otherwise(ITEM))
}

/// How many ports a range such as `32768 60999` has.
fn width(range: &str) -> Option<u32> {
    let (first, last) = range.split_once(' ')?;
    let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
    last.checked_sub(first)?.checked_add(1)
}

/// A load tool may open a file for each connection.
pub(super) fn open_files(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "open_files";
    let Some(connections) = wanted.planned.connections.filter(|_| wanted.open_files) else {
        return Vec::new();
    };
    let least = u64::from(connections) + OTHER_FILES;
    let limit = host.facts.limits.as_ref().and_then(|l| l.nofile_soft);
    let known = Known {
        item: ITEM,
        found: limit.map(|limit| limit.to_string()),
        wanted: format!("{least} or more"),
        why: "each connection is an open file of the load tool; above the limit it fails",
        fix: Some(Fix::Limits {
            name: "nofile".to_owned(),
            value: least.next_power_of_two().to_string(),
        }),
    };
    let is_enough = limit.is_some_and(|limit| limit.allows(least));
    known.is(is_enough, wanted.otherwise(ITEM))
}
