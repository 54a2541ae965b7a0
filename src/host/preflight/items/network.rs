//! Network interfaces and ports.

use super::{Finding, HostView, Known, Wanted, by_hand};

/// The slowest interface that tells its speed is fast enough. Virtual ones do not tell.
pub(super) fn speed(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "nic_mbps";
    let Some(least) = wanted.nic_mbps else {
        return Vec::new();
    };
    let speeds = host.facts.interfaces.iter();
    let slowest = speeds
        .filter_map(|nic| Some((nic.speed_mbps?, &nic.name)))
        .min();
    let known = Known {
        item: ITEM,
        found: slowest.map(|(speed, name)| format!("{speed} Mbit/s on {name}")),
        wanted: format!("{least} Mbit/s or more"),
        why: "replication and results share it; a full line looks like a slow database",
        fix: by_hand("use a faster interface or port; `ethtool` shows what was agreed on"),
    };
    let is_enough = slowest.is_some_and(|(speed, _)| speed >= least);
    known.is(is_enough, wanted.otherwise(ITEM))
}

/// Nothing listens on the ports that instances will use.
pub(super) fn free_ports(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "free_ports";
    let planned = &wanted.planned.ports;
    if !wanted.free_ports || planned.is_empty() {
        return Vec::new();
    }
    let listening = host.facts.listening.as_ref();
    let taken: Option<Vec<String>> = listening.map(|ports| {
        let both = planned.iter().filter(|port| ports.contains(port));
        both.map(ToString::to_string).collect()
    });
    let is_free = taken.as_ref().is_some_and(Vec::is_empty);
    let shown: Vec<String> = planned.iter().map(ToString::to_string).collect();
    let known = Known {
        item: ITEM,
        found: taken.map(|ports| match ports.is_empty() {
            true => "free".to_owned(),
            false => format!("taken: {}", ports.join(", ")),
        }),
        wanted: format!("free: {}", shown.join(", ")),
        why: "an instance cannot start on a port that another program has",
        fix: by_hand("`ss -ltnp` names the program; stop it, or choose another port"),
    };
    known.is(is_free, wanted.otherwise(ITEM))
}
