//! The processes of a lab: found by the mark in their environment, as members of a host's cgroup, or as descendants of
//! either. Any one of the three is enough, so that none is missed whatever died before.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::tool::MARK;
use super::{Entry, Lab, LabError, cgroups};

/// How long killed processes may take to go; ones in the midst of input or output take longest.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(10);

/// What `/proc/PID/stat` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    parent: i32,
}

/// All processes of the machine at one moment, zombies left out: those are dead already and wait for their parent only.
pub(super) struct Snapshot {
    table: BTreeMap<i32, Stat>,
    marks: BTreeMap<i32, String>,
}

impl Snapshot {
    pub(super) fn take() -> Self {
        let table = table();
        let own = std::process::id() as i32;
        let others = table.keys().filter(|pid| **pid != own && **pid > 1);
        let marked = |pid: &i32| Some((*pid, mark(Path::new(&format!("/proc/{pid}")))?));
        let marks = others.filter_map(marked).collect();
        Self { table, marks }
    }

    /// The processes whose mark is one of those, but for this one.
    fn marked(&self, is_one: impl Fn(&str) -> bool) -> BTreeSet<i32> {
        let found = self.marks.iter().filter(|(_, mark)| is_one(mark));
        found.map(|(pid, _)| *pid).collect()
    }
}

/// The processes of one host.
#[derive(Debug, Default)]
pub(super) struct HostProcesses {
    /// What runs the host: nspawn, or what becomes it. It carries the mark.
    pub(super) supervisors: BTreeSet<i32>,
    /// What runs in the host.
    pub(super) inside: BTreeSet<i32>,
}

impl HostProcesses {
    /// Those of a host that live.
    pub(super) fn of(lab: &Lab, host: &Entry) -> Self {
        Self::among(&Snapshot::take(), lab, host)
    }

    /// Those of a host in a snapshot.
    pub(super) fn among(all: &Snapshot, lab: &Lab, host: &Entry) -> Self {
        let mark = lab.mark(host);
        let supervisors = all.marked(|found| found == mark);
        let mut first = supervisors.clone();
        first.extend(cgroups::members(&lab.cgroup(host)));
        let inside = with_descendants(&all.table, first);
        Self {
            inside: inside.difference(&supervisors).copied().collect(),
            supervisors,
        }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.supervisors.is_empty() && self.inside.is_empty()
    }

    /// Whether every process in the host is stopped.
    pub(super) fn are_stopped(&self) -> bool {
        !self.inside.is_empty() && self.inside.iter().all(|pid| is_stopped(*pid))
    }
}

/// Ends all processes of a host, or of all hosts and of the making of the lab itself.
pub(super) fn kill(lab: &Lab, hosts: &[Entry]) -> Result<(), LabError> {
    until(PATIENCE, || {
        let all = Snapshot::take();
        let left: BTreeSet<i32> = hosts
            .iter()
            .flat_map(|host| {
                let found = HostProcesses::among(&all, lab, host);
                found.supervisors.into_iter().chain(found.inside)
            })
            .collect();
        signal(&left, Signal::KILL);
        left
    })
}

/// Ends the tools that make a lab and whose caller is gone.
pub(super) fn kill_tools(lab: &Lab) -> Result<(), LabError> {
    let hosts = format!("{}/", lab.id);
    until(PATIENCE, || {
        let left = Snapshot::take().marked(|found| found == lab.id || found.starts_with(&hosts));
        signal(&left, Signal::KILL);
        left
    })
}

/// Stops every process in a host. One that is just starting another is looked at again.
pub(super) fn stop(lab: &Lab, host: &Entry) -> Result<(), LabError> {
    until(PATIENCE, || {
        let found = HostProcesses::of(lab, host).inside;
        let running: BTreeSet<i32> = found.into_iter().filter(|pid| !is_stopped(*pid)).collect();
        signal(&running, Signal::STOP);
        running
    })
}

/// Lets every process in a host go on.
pub(super) fn go_on(lab: &Lab, host: &Entry) -> Result<(), LabError> {
    until(PATIENCE, || {
        let found = HostProcesses::of(lab, host).inside;
        let stopped: BTreeSet<i32> = found.into_iter().filter(|pid| is_stopped(*pid)).collect();
        signal(&stopped, Signal::CONT);
        stopped
    })
}

/// Acts until nothing is left to act on.
fn until(patience: Duration, mut act: impl FnMut() -> BTreeSet<i32>) -> Result<(), LabError> {
    let end = Instant::now() + patience;
    loop {
        let left = act();
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(LabError::Undead(left.into_iter().collect()));
        }
        std::thread::sleep(PAUSE);
    }
}

/// This process is never signalled, nor is 1, whatever the lists say. One that is gone by now needs none.
fn signal(pids: &BTreeSet<i32>, signal: Signal) {
    let own = std::process::id() as i32;
    for pid in pids.iter().filter(|pid| **pid > 1 && **pid != own) {
        if let Some(pid) = Pid::from_raw(*pid) {
            let _ = kill_process(pid, signal);
        }
    }
}

fn is_stopped(pid: i32) -> bool {
    stat(pid).is_none_or(|stat| matches!(stat.state, 'T' | 't' | 'Z' | 'X'))
}

/// All processes that are no zombies.
fn table() -> BTreeMap<i32, Stat> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let living = pids.filter_map(|pid| Some((pid, stat(pid)?)));
    living
        .filter(|(_, stat)| !matches!(stat.state, 'Z' | 'X'))
        .collect()
}

fn stat(pid: i32) -> Option<Stat> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(&String::from_utf8_lossy(&text))
}

/// `PID (NAME) STATE PARENT ...`, where the name may hold anything.
fn parse(text: &str) -> Option<Stat> {
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    Some(Stat {
        state: fields.next()?.chars().next()?,
        parent: fields.next()?.parse().ok()?,
    })
}

fn mark(process: &Path) -> Option<String> {
    let environment = std::fs::read(process.join("environ")).ok()?;
    let mut entries = environment.split(|byte| *byte == 0);
    let value = entries.find_map(|entry| {
        let rest = entry.strip_prefix(MARK.as_bytes())?;
        rest.strip_prefix(b"=")
    })?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// Those processes and all that descend from them.
fn with_descendants(table: &BTreeMap<i32, Stat>, mut all: BTreeSet<i32>) -> BTreeSet<i32> {
    loop {
        let is_new = |(pid, stat): &(&i32, &Stat)| all.contains(&stat.parent) && !all.contains(pid);
        let more: Vec<i32> = table.iter().filter(is_new).map(|(pid, _)| *pid).collect();
        if more.is_empty() {
            all.retain(|pid| table.contains_key(pid));
            return all;
        }
        all.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_holds() {
        let stat = parse("77 (a) S (b) T 12 77 0").unwrap();
        assert_eq!(
            stat,
            Stat {
                state: 'T',
                parent: 12
            }
        );
        assert_eq!(parse("77 (cut"), None);
        assert_eq!(parse("77 (a) S"), None);
    }

    #[test]
    fn descendants_are_found_in_any_order_and_the_dead_are_left_out() {
        let stat = |parent| Stat { state: 'S', parent };
        let table = BTreeMap::from([
            (2, stat(1)),
            (5, stat(9)),
            (9, stat(7)),
            (7, stat(1)),
            (8, stat(2)),
        ]);
        let found = with_descendants(&table, BTreeSet::from([7, 4000]));
        assert_eq!(found, BTreeSet::from([5, 7, 9]));
    }

    #[test]
    fn a_marked_process_is_found_and_ended_and_others_are_not() {
        let mut lab = super::super::description::tests::sample("marked", 1);
        // No lab has this id, since it is no hexadecimal one.
        lab.id = format!("t{}", std::process::id());
        let mut sleep = super::super::tool::command("sleep", &lab.id);
        let mut marked = sleep.arg("1000").spawn().unwrap();
        let mut sleep = super::super::tool::command("sleep", "other");
        let mut other = sleep.arg("1000").spawn().unwrap();
        kill_tools(&lab).unwrap();
        assert!(!marked.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
