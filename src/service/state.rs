//! What systemd says of units.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ServiceError, Systemd, cgroup, name};

/// What is asked for of each unit.
pub(super) const PROPERTIES: [&str; 13] = [
    "LoadState",
    "ActiveState",
    "SubState",
    "MainPID",
    "ExecMainStartTimestamp",
    "ExecMainCode",
    "ExecMainStatus",
    "Result",
    "NRestarts",
    "MemoryCurrent",
    "ControlGroup",
    "Job",
    "NeedDaemonReload",
];
/// `CLD_EXITED`: a program ended by itself; other codes are those of signals.
const EXITED: &str = "1";

/// The request of `service-status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The units.
    pub units: Vec<String>,
}

/// What a unit does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activity {
    /// There is none of that name.
    Absent,
    /// It does not run.
    Inactive,
    /// It is about to run.
    Starting,
    /// It runs.
    Active,
    /// Its program ended, and will be started again.
    Restarting,
    /// It is about to end.
    Stopping,
    /// It ended otherwise than it should.
    Failed,
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absent => "absent",
            Self::Inactive => "inactive",
            Self::Starting => "starting",
            Self::Active => "active",
            Self::Restarting => "restarting",
            Self::Stopping => "stopping",
            Self::Failed => "failed",
        })
    }
}

/// How a program last ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exit {
    /// With this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // What systemd itself says when it cannot carry out a unit.
            Self::Status(200) => write!(f, "cannot enter its directory (status 200)"),
            Self::Status(203) => write!(f, "cannot execute its program (status 203)"),
            Self::Status(217) => write!(f, "cannot become its user (status 217)"),
            Self::Status(status) => write!(f, "ended with status {status}"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
        }
    }
}

/// A unit as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Its name.
    pub name: String,
    /// What it does.
    pub activity: Activity,
    /// Its main process.
    pub pid: Option<u32>,
    /// When its program was last started, µs of Unix time; always the same for one start. Older versions of systemd tell
    /// seconds only.
    pub started: Option<i64>,
    /// For how long its program has run, µs.
    pub uptime: Option<i64>,
    /// How often systemd started its program again since the unit was started.
    pub restarts: u32,
    /// Bytes of memory of all its processes: as the kernel counts them for the unit, or else what each has in memory.
    pub memory: Option<u64>,
    /// How its program last ended, if it did since it was last started. systemd soon forgets it where nothing failed.
    pub exit: Option<Exit>,
}

/// Looks at units, those of others too, at the time `now` in µs of Unix time.
///
/// # Errors
/// A name is none of a unit, or systemd does not answer.
pub fn status(request: &Status, systemd: &Systemd, now: i64) -> Result<Vec<State>, ServiceError> {
    let units = each(&request.units, name::check_any)?;
    if units.is_empty() {
        return Ok(Vec::new());
    }
    let shown = systemd.show(&units)?;
    let states = units.iter().zip(&shown).map(|(name, shown)| {
        let mut state = shown.state(name, now);
        // Not every kernel and systemd counts it.
        let group = shown.group().filter(|_| state.memory.is_none());
        state.memory = group.map(cgroup::folder).map_or(state.memory, |group| {
            Some(cgroup::memory(&group)).filter(|bytes| *bytes > 0)
        });
        state
    });
    Ok(states.collect())
}

/// The names of units, each of which is one of assay.
pub(super) fn names(units: &[String]) -> Result<Vec<&str>, ServiceError> {
    each(units, name::check)
}

fn each(
    units: &[String],
    check: fn(&str) -> Result<(), ServiceError>,
) -> Result<Vec<&str>, ServiceError> {
    let checked = units.iter().map(|unit| {
        check(unit)?;
        Ok(unit.as_str())
    });
    checked.collect()
}

/// The properties of a unit.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown(HashMap<String, String>);

impl Shown {
    pub(super) fn read(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        Self(pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect())
    }

    fn text(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.text(key).parse().ok()
    }

    pub(super) fn state(&self, name: &str, now: i64) -> State {
        let pid = self.pid();
        let started = moment(self.text("ExecMainStartTimestamp"));
        State {
            name: name.to_owned(),
            activity: self.activity(),
            pid,
            started,
            uptime: pid.and(started).map(|started| (now - started).max(0)),
            restarts: self.number("NRestarts").unwrap_or(0),
            // What is not known is the largest number, or a text.
            memory: self.number("MemoryCurrent").filter(|n| *n != u64::MAX),
            exit: self.exit(),
        }
    }

    pub(super) fn activity(&self) -> Activity {
        match (self.text("ActiveState"), self.text("SubState")) {
            (_, "auto-restart" | "auto-restart-queued") => Activity::Restarting,
            ("active" | "reloading" | "refreshing", _) => Activity::Active,
            ("activating", _) => Activity::Starting,
            ("deactivating", _) => Activity::Stopping,
            ("failed", _) => Activity::Failed,
            _ if self.text("LoadState") == "not-found" => Activity::Absent,
            _ => Activity::Inactive,
        }
    }

    /// Why a file that is there is no unit: `bad-setting`.
    pub(super) fn fault(&self) -> Option<&str> {
        let state = self.text("LoadState");
        matches!(state, "bad-setting" | "error" | "masked").then_some(state)
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.number("MainPID").filter(|pid| *pid != 0)
    }

    pub(super) fn restarts(&self) -> u32 {
        self.number("NRestarts").unwrap_or(0)
    }

    /// Whether it is to be started or stopped, and this has not come to its end.
    pub(super) fn has_job(&self) -> bool {
        !matches!(self.text("Job"), "" | "0")
    }

    pub(super) fn group(&self) -> Option<&str> {
        Some(self.text("ControlGroup")).filter(|group| group.len() > 1)
    }

    /// Whether systemd had to kill it when it was to stop.
    pub(super) fn was_killed(&self) -> bool {
        self.text("Result") == "timeout"
    }

    pub(super) fn exit(&self) -> Option<Exit> {
        if self.pid().is_some() {
            return None;
        }
        let status = self.number("ExecMainStatus")?;
        match self.text("ExecMainCode") {
            "" | "0" => None,
            EXITED => Some(Exit::Status(status)),
            _ => Some(Exit::Signal(status)),
        }
    }

    /// How it ended, for people: `ended with status 1`.
    pub(super) fn how(&self) -> String {
        if let Some(fault) = self.fault() {
            return format!("cannot be read by systemd ({fault})");
        }
        match (self.exit(), self.text("Result")) {
            // systemd forgets the status of one that did not fail.
            (Some(Exit::Status(0)) | None, "" | "success") => "ended without an error".to_owned(),
            (Some(exit), "" | "success" | "exit-code" | "signal") => exit.to_string(),
            (Some(exit), result) => format!("{exit} ({result})"),
            (None, result) => format!("failed ({result})"),
        }
    }
}

/// Reads `Mon 2026-11-30 18:22:40.123456 UTC`; µs of Unix time.
fn moment(text: &str) -> Option<i64> {
    let mut words = text.strip_suffix(" UTC")?.split(' ').skip(1);
    let (day, time) = (words.next()?, words.next()?);
    let moment: jiff::Timestamp = format!("{day}T{time}Z").parse().ok()?;
    Some(moment.as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What systemd 252 said of a unit with `Restart=always` that runs `exit 7`, and of one that runs.
    const RESTARTING: &str = "\
        MainPID=0\nResult=exit-code\nNRestarts=4\nExecMainStartTimestamp=Mon 2026-11-30 18:53:18.325932 UTC\n\
        ExecMainCode=1\nExecMainStatus=7\nControlGroup=\nMemoryCurrent=[not set]\nLoadState=loaded\n\
        ActiveState=activating\nSubState=auto-restart\nJob=\nNeedDaemonReload=no\n";
    const RUNNING: &str = "\
        MainPID=147\nResult=success\nNRestarts=0\nExecMainStartTimestamp=Mon 2026-11-30 18:53:17.367944 UTC\n\
        ExecMainCode=0\nExecMainStatus=0\nControlGroup=/system.slice/assay-lab-services-v1-fine-4000.service\n\
        MemoryCurrent=[not set]\nLoadState=loaded\nActiveState=active\nSubState=running\nJob=\nNeedDaemonReload=no\n";

    #[test]
    fn a_unit_between_two_starts_shows_how_its_program_ended() {
        let shown = Shown::read(RESTARTING);
        let state = shown.state("assay-x.service", 0);
        assert_eq!(state.activity, Activity::Restarting);
        assert_eq!(state.exit, Some(Exit::Status(7)));
        assert_eq!((state.restarts, state.pid, state.memory), (4, None, None));
        // date -d '2026-11-30 18:53:18 UTC' +%s
        assert_eq!(state.started, Some(1_796_064_798_325_932));
        assert_eq!(state.uptime, None);
        assert_eq!(shown.how(), "ended with status 7");
    }

    #[test]
    fn times_in_seconds_and_none_are_read() {
        assert_eq!(moment("Thu 1970-01-01 00:00:01 UTC"), Some(1_000_000));
        for none in ["", "n/a", "0", "Thu 1970-01-01 00:00:01 CET"] {
            assert_eq!(moment(none), None, "{none}");
        }
    }

    #[test]
    fn a_unit_that_runs_has_no_exit_but_an_uptime() {
        let shown = Shown::read(RUNNING);
        let started = 1_796_064_797_367_944;
        let state = shown.state("u", started + 2_000_000);
        assert_eq!((state.activity, state.pid), (Activity::Active, Some(147)));
        assert_eq!(
            (state.started, state.uptime),
            (Some(started), Some(2_000_000))
        );
        assert_eq!((state.exit, state.memory), (None, None));
        assert!(!shown.has_job());
    }

    #[test]
    fn memory_is_a_number_and_a_job_one_of_its_own() {
        let shown = Shown::read("MemoryCurrent=4096\nJob=12\n");
        assert!(shown.has_job());
        assert_eq!(shown.state("u", 0).memory, Some(4096));
        let unknown = Shown::read("MemoryCurrent=18446744073709551615\n");
        assert_eq!(unknown.state("u", 0).memory, None);
    }

    #[test]
    fn a_unit_that_nobody_knows_is_absent() {
        let shown = Shown::read("LoadState=not-found\nActiveState=inactive\nSubState=dead");
        assert_eq!(shown.activity(), Activity::Absent);
    }
}
