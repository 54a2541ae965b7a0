//! Stopping: not done when systemd says so, but when no process is left.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::start::GLANCE;
use super::state::{Activity, Exit, Shown, names};
use super::{ServiceError, Systemd, cgroup};

/// How long the kernel may take after SIGKILL: a process in the middle of a write to a slow disk takes as long as that.
const GRACE: Duration = Duration::from_secs(20);

/// The request of `service-stop`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The units, which are stopped at the same time.
    pub units: Vec<String>,
    /// How long they may take after SIGTERM; then they are killed.
    pub limit: Duration,
}

/// A unit that no longer runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// Its name.
    pub name: String,
    /// What it did before.
    pub before: Activity,
    /// Whether it had to be killed.
    pub killed: bool,
    /// How its program ended.
    pub exit: Option<Exit>,
}

/// Stops units, and returns when none of their processes is left. Those that do not run, or are not there, are fine.
///
/// # Errors
/// A name is none of a unit of assay, systemd does not answer, or a process cannot even be killed.
pub fn stop(request: &Stop, systemd: &Systemd) -> Result<Vec<Stopped>, ServiceError> {
    let units = names(&request.units)?;
    if units.is_empty() {
        return Ok(Vec::new());
    }
    systemd.refuse_others(&units)?;
    let shown = systemd.show(&units)?;
    let mut stopping: Vec<Stopping> = units
        .iter()
        .zip(&shown)
        .map(|(unit, shown)| Stopping::of(unit, shown))
        .collect();
    let there: Vec<&str> = (stopping.iter().filter(|one| one.is_there()))
        .map(|one| one.unit)
        .collect();
    if !there.is_empty() {
        systemd.begin_stop(&there)?;
    }
    let mut left = wait(systemd, &mut stopping, request.limit)?;
    if !left.is_empty() {
        kill(systemd, &mut stopping, &left);
        left = wait(systemd, &mut stopping, GRACE)?;
    }
    if let Some(unit) = left.first() {
        return Err(remains(&stopping, unit));
    }
    if !there.is_empty() {
        systemd.forget_failures(&there);
    }
    Ok(stopping.into_iter().map(Stopping::stopped).collect())
}

/// A unit that is to stop.
struct Stopping<'a> {
    unit: &'a str,
    before: Activity,
    group: PathBuf,
    /// Whether what systemd left of it was asked to end.
    is_asked: bool,
    killed: bool,
    exit: Option<Exit>,
}

impl<'a> Stopping<'a> {
    fn of(unit: &'a str, shown: &Shown) -> Self {
        // One that does not run has no group, but may have left processes where it had been.
        let usual = format!("system.slice/{unit}");
        Self {
            unit,
            before: shown.activity(),
            group: cgroup::folder(shown.group().unwrap_or(&usual)),
            is_asked: false,
            killed: false,
            exit: None,
        }
    }

    fn is_there(&self) -> bool {
        self.before != Activity::Absent
    }

    /// Whether nothing of it is left.
    fn look(&mut self, shown: &Shown) -> bool {
        if shown.has_job() {
            return false;
        }
        match shown.activity() {
            Activity::Absent | Activity::Inactive | Activity::Failed => {}
            Activity::Starting | Activity::Active | Activity::Restarting | Activity::Stopping => {
                return false;
            }
        }
        if self.before == Activity::Active {
            self.killed |= shown.was_killed();
        }
        self.exit = self.exit.or(shown.exit());
        if cgroup::processes(&self.group).is_empty() {
            return true;
        }
        if !self.is_asked {
            self.is_asked = true;
            cgroup::signal(&self.group, Signal::TERM);
        }
        false
    }

    fn stopped(self) -> Stopped {
        Stopped {
            name: self.unit.to_owned(),
            before: self.before,
            killed: self.killed,
            exit: self.exit,
        }
    }
}

/// Waits until nothing is left; the units of which something is at the limit.
fn wait<'a>(
    systemd: &Systemd,
    stopping: &mut [Stopping<'a>],
    limit: Duration,
) -> Result<Vec<&'a str>, ServiceError> {
    let end = Instant::now() + limit;
    let units: Vec<&str> = stopping.iter().map(|one| one.unit).collect();
    loop {
        let shown = systemd.show(&units)?;
        let mut left = Vec::new();
        for (one, shown) in stopping.iter_mut().zip(&shown) {
            if !one.look(shown) {
                left.push(one.unit);
            }
        }
        if left.is_empty() || Instant::now() >= end {
            return Ok(left);
        }
        std::thread::sleep(GLANCE);
    }
}

fn kill(systemd: &Systemd, stopping: &mut [Stopping<'_>], left: &[&str]) {
    systemd.kill(left);
    for one in stopping.iter_mut().filter(|one| left.contains(&one.unit)) {
        cgroup::signal(&one.group, Signal::KILL);
        one.killed = true;
    }
}

fn remains(stopping: &[Stopping<'_>], unit: &str) -> ServiceError {
    let one = stopping.iter().find(|one| one.unit == unit);
    ServiceError::Remains {
        unit: unit.to_owned(),
        processes: one.map_or_else(Vec::new, |one| cgroup::processes(&one.group)),
    }
}
