//! Daemons and tools.

use super::{Finding, HostView, Known, Wanted, by_hand, on_or_off};
use crate::host::preflight::Fix;

/// Interrupts are spread over the CPUs, or not.
pub(super) fn irqbalance(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    let why = "else one CPU handles all packets, and its share of the work waits";
    daemon(host, wanted, "irqbalance", wanted.irqbalance, why)
}

/// No firewall stands between the hosts.
pub(super) fn firewalld(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    let why = "instances cannot reach each other, and each packet is looked at";
    daemon(host, wanted, "firewalld", wanted.firewalld, why)
}

fn daemon(
    host: &HostView<'_>,
    wanted: &Wanted,
    item: &str,
    on: Option<bool>,
    why: &str,
) -> Vec<Finding> {
    let Some(on) = on else {
        return Vec::new();
    };
    let name = item.to_owned();
    let found = host.facts.services.get(item).copied();
    let known = Known {
        item,
        found: found.map(on_or_off),
        wanted: on_or_off(on),
        why,
        fix: Some(match on {
            true => Fix::StartService { name },
            false => Fix::StopService { name },
        }),
    };
    known.is(found == Some(on), wanted.otherwise(item))
}

/// numactl is there, to bind instances to nodes.
pub(super) fn numactl(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "numactl";
    if !wanted.numactl {
        return Vec::new();
    }
    let found = host.facts.packages.get(ITEM);
    let known = Known {
        item: ITEM,
        found: found.map(|version| match version {
            Some(version) => version.clone(),
            None => "not there".to_owned(),
        }),
        wanted: "installed".to_owned(),
        why: "an instance that is not bound to a node reads memory of the other one",
        fix: by_hand("install the package numactl"),
    };
    known.is(matches!(found, Some(Some(_))), wanted.otherwise(ITEM))
}
