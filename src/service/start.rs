//! Starting: all units at once, watched until each one's program has lived for a while.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::error::Printed;
use super::state::{Activity, Shown, State, names};
use super::{ServiceError, Systemd, tail};

/// How often is looked.
pub(super) const GLANCE: Duration = Duration::from_millis(50);
/// How long a program has to live to count as started, if nothing else is said: one that dies at once does so within it.
const STEADY: Duration = Duration::from_millis(500);

/// The request of `service-start`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The units, which are started at the same time.
    pub units: Vec<String>,
    /// The log files of each, whose ends are shown when it fails.
    #[serde(default)]
    pub logs: BTreeMap<String, Vec<PathBuf>>,
    /// The longest until all have started. Being ready is another matter.
    pub limit: Duration,
    /// How long a program has to live to count as started.
    #[serde(default = "steady")]
    pub steady: Duration,
}

impl Start {
    /// Starts units that have no log files.
    #[must_use]
    pub fn new(units: Vec<String>, limit: Duration) -> Self {
        Self {
            units,
            logs: BTreeMap::new(),
            limit,
            steady: STEADY,
        }
    }
}

fn steady() -> Duration {
    STEADY
}

/// Starts units; those that run already go on. `now` is the time in µs of Unix time.
///
/// # Errors
/// A unit is not there, ends, fails or is started again meanwhile, or is not up within the limit. The others are left as
/// they are then.
pub fn start(request: &Start, systemd: &Systemd, now: i64) -> Result<Vec<State>, ServiceError> {
    let units = names(&request.units)?;
    if units.is_empty() {
        return Ok(Vec::new());
    }
    systemd.refuse_others(&units)?;
    let begun = Instant::now();
    let before = systemd.show(&units)?;
    for (unit, shown) in units.iter().zip(&before) {
        if shown.activity() == Activity::Absent {
            let unit = (*unit).to_owned();
            return Err(ServiceError::NoUnit { unit });
        }
    }
    systemd.forget_failures(&units);
    systemd.begin_start(&units)?;
    let mut watches: Vec<Watch> = before.iter().map(Watch::from).collect();
    loop {
        let shown = systemd.show(&units)?;
        let mut late = Vec::new();
        for ((unit, shown), watch) in units.iter().zip(&shown).zip(&mut watches) {
            match watch.look(shown, request.steady) {
                Sight::Steady => {}
                Sight::NotYet => late.push((*unit, shown.activity())),
                Sight::Ended => return Err(ended(request, systemd, unit, shown)),
            }
        }
        if late.is_empty() {
            let passed = i64::try_from(begun.elapsed().as_micros()).unwrap_or(i64::MAX);
            let states = units.iter().zip(&shown);
            let states = states.map(|(unit, shown)| shown.state(unit, now.saturating_add(passed)));
            return Ok(states.collect());
        }
        if begun.elapsed() >= request.limit {
            return Err(too_late(request, systemd, &late));
        }
        std::thread::sleep(GLANCE);
    }
}

/// What is seen of a unit that is to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    Steady,
    NotYet,
    Ended,
}

/// A unit that is watched.
struct Watch {
    /// The process that ran before it was asked to start.
    before: Option<u32>,
    /// The process that was seen to run, how often it had been started again by then, and since when.
    seen: Option<(Option<u32>, u32, Instant)>,
}

impl From<&Shown> for Watch {
    fn from(shown: &Shown) -> Self {
        let is_up = shown.activity() == Activity::Active && !shown.has_job();
        Self {
            before: shown.pid().filter(|_| is_up),
            seen: None,
        }
    }
}

impl Watch {
    fn look(&mut self, shown: &Shown, steady: Duration) -> Sight {
        match shown.activity() {
            _ if shown.has_job() => Sight::NotYet,
            Activity::Active if shown.pid().is_some() && shown.pid() == self.before => {
                Sight::Steady
            }
            Activity::Active => self.live(shown, steady),
            Activity::Starting => Sight::NotYet,
            // What was to be stopped when it was to be started.
            Activity::Stopping if self.seen.is_none() => Sight::NotYet,
            Activity::Stopping
            | Activity::Restarting
            | Activity::Inactive
            | Activity::Absent
            | Activity::Failed => Sight::Ended,
        }
    }

    fn live(&mut self, shown: &Shown, steady: Duration) -> Sight {
        let (pid, restarts) = (shown.pid(), shown.restarts());
        let (first, before, since) = *self.seen.get_or_insert((pid, restarts, Instant::now()));
        if (first, before) != (pid, restarts) {
            return Sight::Ended;
        }
        match since.elapsed() >= steady {
            true => Sight::Steady,
            false => Sight::NotYet,
        }
    }
}

fn ended(request: &Start, systemd: &Systemd, unit: &str, shown: &Shown) -> ServiceError {
    let how = match shown.activity() {
        Activity::Active => "was started again".to_owned(),
        _ => shown.how(),
    };
    ServiceError::Ended {
        unit: unit.to_owned(),
        how,
        printed: tail::of(systemd, unit, logs(request, unit)),
    }
}

fn too_late(request: &Start, systemd: &Systemd, late: &[(&str, Activity)]) -> ServiceError {
    let said = late.iter().flat_map(|(unit, _)| {
        let Printed(ends) = tail::of(systemd, unit, logs(request, unit));
        ends.into_iter()
            .map(move |(place, text)| (format!("`{unit}`, {place}"), text))
    });
    ServiceError::Late {
        units: late
            .iter()
            .map(|(unit, activity)| format!("`{unit}` is {activity}"))
            .collect(),
        limit: request.limit,
        printed: Printed(said.collect()),
    }
}

fn logs<'a>(request: &'a Start, unit: &str) -> &'a [PathBuf] {
    request.logs.get(unit).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT_RUNNING: &str = "LoadState=loaded\nActiveState=inactive\nSubState=dead";

    fn running(pid: u32, restarts: u32) -> Shown {
        Shown::read(&format!(
            "LoadState=loaded\nActiveState=active\nSubState=running\nMainPID={pid}\nNRestarts={restarts}"
        ))
    }

    #[test]
    fn a_unit_has_started_when_one_process_has_lived_for_the_time() {
        let mut watch = Watch::from(&Shown::read(NOT_RUNNING));
        let hour = Duration::from_secs(3600);
        assert_eq!(watch.look(&running(7, 0), hour), Sight::NotYet);
        assert_eq!(watch.look(&running(7, 0), hour), Sight::NotYet);
        assert_eq!(watch.look(&running(7, 0), Duration::ZERO), Sight::Steady);
    }

    #[test]
    fn a_unit_that_waits_for_its_turn_has_not_ended() {
        let mut watch = Watch::from(&Shown::read(NOT_RUNNING));
        let queued = Shown::read(&format!("{NOT_RUNNING}\nJob=5"));
        assert_eq!(watch.look(&queued, Duration::ZERO), Sight::NotYet);
        let ended = Shown::read(NOT_RUNNING);
        assert_eq!(watch.look(&ended, Duration::ZERO), Sight::Ended);
    }

    #[test]
    fn a_unit_that_was_started_again_meanwhile_has_ended_also_if_it_runs() {
        for again in [running(8, 0), running(7, 1)] {
            let mut watch = Watch::from(&Shown::read(NOT_RUNNING));
            let hour = Duration::from_secs(3600);
            assert_eq!(watch.look(&running(7, 0), hour), Sight::NotYet);
            assert_eq!(watch.look(&again, Duration::ZERO), Sight::Ended);
        }
    }

    #[test]
    fn a_unit_that_ran_before_need_not_be_watched() {
        let hour = Duration::from_secs(3600);
        let mut watch = Watch::from(&running(7, 3));
        assert_eq!(watch.look(&running(7, 3), hour), Sight::Steady);
        let mut watch = Watch::from(&running(7, 3));
        assert_eq!(watch.look(&running(9, 3), hour), Sight::NotYet);
    }
}
