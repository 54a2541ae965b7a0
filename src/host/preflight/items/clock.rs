//! The clock and what keeps it.

use super::{Finding, HostView, Known, Wanted, by_hand};
use crate::host::facts::CLOCK_DAEMONS;
use crate::host::preflight::Fix;

/// The clock is near that of this machine. Half of the round trip is in doubt, in the host's favour.
pub(super) fn offset(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "clock_offset";
    let Some(limit) = wanted.clock_offset else {
        return Vec::new();
    };
    let certain = |c: crate::host::ClockOffset| c.offset_ms.abs() - c.round_trip_ms / 2.0;
    let is_near = host
        .clock
        .is_some_and(|clock| certain(clock) < limit.as_secs_f64() * 1e3);
    let known = Known {
        item: ITEM,
        found: host.clock.map(|clock| {
            let (offset, doubt) = (clock.offset_ms, clock.round_trip_ms / 2.0);
            format!("{offset:+.1} ms ± {doubt:.1} ms")
        }),
        wanted: format!("less than {limit}"),
        why: "timestamps of hosts are compared; transactions that take theirs from a clock wait for it",
        fix: by_hand("set the clock, then let chronyd keep it: `chronyc makestep`"),
    };
    known.is(is_near, wanted.otherwise(ITEM))
}

/// Something keeps the clock. A container has its machine's.
pub(super) fn daemon(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "time_daemon";
    if !wanted.time_daemon {
        return Vec::new();
    }
    let services = &host.facts.services;
    let runs = |name: &&&str| services.get(**name).is_some_and(|runs| *runs);
    let running = CLOCK_DAEMONS.iter().find(runs);
    let found = match (running, host.facts.container) {
        (Some(name), _) => Some((*name).to_owned()),
        // Nobody can tell from within whether the machine of a container keeps its clock.
        (None, Some(true)) => None,
        (None, _) => (!services.is_empty()).then(|| "none".to_owned()),
    };
    let known = Known {
        item: ITEM,
        found,
        wanted: CLOCK_DAEMONS.join(" or "),
        why: "a clock that nothing keeps drifts by seconds a day",
        fix: Some(Fix::StartService {
            name: "chronyd".to_owned(),
        }),
    };
    known.is(running.is_some(), wanted.otherwise(ITEM))
}

/// The time zone is that of the first host.
pub(super) fn timezone(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "same_timezone";
    let Some((first, zone)) = &wanted.planned.first_timezone else {
        return Vec::new();
    };
    if !wanted.same_timezone {
        return Vec::new();
    }
    let found = host.facts.timezone.clone();
    let is_same = found.as_deref() == Some(zone);
    let known = Known {
        item: ITEM,
        found,
        wanted: format!("{zone}, as on {first}"),
        why: "logs of hosts are read side by side, and SQL functions of time follow the zone",
        fix: by_hand(format!("timedatectl set-timezone {zone}")),
    };
    known.is(is_same, wanted.otherwise(ITEM))
}
