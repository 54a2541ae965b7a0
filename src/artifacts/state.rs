//! The state of a run: its event log replayed. Resume, progress and reports read the same log.

use std::collections::BTreeMap;

use super::{Entry, Event, Status, Tunables};

/// What a run has come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// The revision of the spec in force, from 1.
    pub revision: u32,
    /// The hash of the spec in force, if it was changed.
    pub spec: Option<String>,
    /// Deployments that are ready for rounds.
    pub ready: BTreeMap<String, Ready>,
    /// Deployments that could not be prepared, and why; forgotten when the run is taken up again.
    pub unready: BTreeMap<String, String>,
    /// Rounds by id.
    pub rounds: BTreeMap<String, RoundState>,
    /// What is going on now.
    pub current: Option<Current>,
    /// Seconds spent up to the last event, over all resumes.
    pub spent_s: f64,
    /// How the run ended; `None` while it goes on, or after a crash.
    pub end: Option<End>,
    /// The estimate of the whole run, s: made at its first start, and anew when a changed spec was accepted.
    pub estimated_s: f64,
    /// Whether the estimate is that of a plan that is no longer in force.
    replanned: bool,
    /// The process that carries, or carried, it out.
    pub pid: Option<u32>,
    /// How often each deployment's preparation began.
    pub preparations: BTreeMap<String, u32>,
    /// When the last event happened.
    pub last: Option<jiff::Timestamp>,
}

/// A deployment that is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The fingerprint of what it was prepared from.
    pub fingerprint: String,
    /// The method of its snapshot.
    pub snapshot_method: String,
    /// Bytes of its data.
    pub bytes: u64,
    /// The sha256 of its snapshot's manifest.
    pub snapshot: String,
    /// Its tunables as read back after its start.
    pub effective: Tunables,
}

/// What is known of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundState {
    /// Attempts begun.
    pub attempts: u32,
    /// Attempts that ended as failed or invalid.
    pub failures: u32,
    /// The outcome that counts, once there is one: attempt, status, reason.
    pub outcome: Option<(u32, Status, Option<String>)>,
}

/// What is going on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Current {
    /// The deployment that is prepared or the round that runs.
    pub what: String,
    /// The step.
    pub step: String,
    /// Since when.
    pub since: jiff::Timestamp,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Every round is done.
    Finished,
    /// It stopped before its end.
    Stopped(String),
}

impl State {
    /// Replays a log.
    #[must_use]
    pub fn replay(entries: &[Entry]) -> Self {
        let mut state = Self {
            revision: 1,
            ..Self::default()
        };
        entries.iter().for_each(|entry| state.take(entry));
        state
    }

    /// Takes the next event in.
    pub fn take(&mut self, entry: &Entry) {
        // The time between a stop and a resume is not spent; a clock that was set back takes nothing away.
        let between = matches!(
            entry.event,
            Event::RunStarted { .. } | Event::SpecChanged { .. } | Event::HostChanged { .. }
        );
        if let (Some(before), false) = (self.last, between) {
            self.spent_s += entry.at.duration_since(before).as_secs_f64().max(0.0);
        }
        self.last = Some(entry.at);
        self.apply(entry);
    }

    /// Whether a round needs no further attempt.
    #[must_use]
    pub fn is_done(&self, round: &str) -> bool {
        self.rounds.get(round).is_some_and(|r| r.outcome.is_some())
    }

    fn apply(&mut self, entry: &Entry) {
        match &entry.event {
            Event::RunStarted {
                pid,
                estimated_s,
                resumed,
                ..
            } => self.start(*pid, *estimated_s, *resumed),
            Event::SpecChanged {
                revision,
                to,
                outdated,
                ..
            } => {
                for round in outdated {
                    self.rounds.entry(round.clone()).or_default().outcome = None;
                }
                self.revision = *revision;
                self.spec = Some(to.clone());
                self.replanned = true;
            }
            Event::HostChanged { .. } => {}
            Event::PrepareStarted {
                deployment,
                step,
                name,
            } => {
                if *step == 0 {
                    *self.preparations.entry(deployment.clone()).or_default() += 1;
                }
                self.enter(deployment, name, entry.at);
            }
            Event::DeploymentReady {
                deployment,
                fingerprint,
                snapshot_method,
                bytes,
                snapshot,
                effective,
            } => {
                let ready = Ready {
                    fingerprint: fingerprint.clone(),
                    snapshot_method: snapshot_method.clone(),
                    bytes: *bytes,
                    snapshot: snapshot.clone(),
                    effective: effective.clone(),
                };
                self.ready.insert(deployment.clone(), ready);
            }
            Event::DeploymentFailed { deployment, reason } => {
                self.ready.remove(deployment);
                self.unready.insert(deployment.clone(), reason.clone());
            }
            Event::RoundStarted { round, attempt } => {
                self.rounds.entry(round.clone()).or_default().attempts = *attempt;
                self.enter(round, "begin", entry.at);
            }
            Event::StepStarted { round, name } => self.enter(round, name, entry.at),
            Event::RoundFinished {
                round,
                attempt,
                status,
                retry,
                reason,
            } => {
                self.current = None;
                let known = self.rounds.entry(round.clone()).or_default();
                known.failures += u32::from(status.is_lost());
                if !retry {
                    known.outcome = Some((*attempt, *status, reason.clone()));
                }
            }
            Event::RunStopped { reason } => self.finish(End::Stopped(reason.clone())),
            Event::RunFinished { .. } => self.finish(End::Finished),
            Event::PrepareFinished { .. } | Event::StepFinished { .. } => {}
        }
    }

    fn start(&mut self, pid: u32, estimated_s: f64, resumed: bool) {
        self.pid = Some(pid);
        self.end = None;
        self.current = None;
        self.unready.clear();
        // Skipped rounds get their chance again; failed ones are results and stay.
        self.rounds
            .values_mut()
            .filter(|r| matches!(r.outcome, Some((_, Status::Skipped, _))))
            .for_each(|r| r.outcome = None);
        if !resumed || self.replanned {
            self.estimated_s = self.spent_s + estimated_s;
            self.replanned = false;
        }
    }

    fn enter(&mut self, what: &str, step: &str, since: jiff::Timestamp) {
        self.current = Some(Current {
            what: what.to_owned(),
            step: step.to_owned(),
            since,
        });
    }

    fn finish(&mut self, end: End) {
        self.current = None;
        self.end = Some(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64, event: Event) -> Entry {
        Entry {
            at: jiff::Timestamp::from_second(second).unwrap(),
            event,
        }
    }

    fn started(resumed: bool) -> Event {
        Event::RunStarted {
            pid: 1,
            version: "0".into(),
            estimated_s: 10.0,
            resumed,
        }
    }

    fn finished(round: &str, attempt: u32, status: Status, retry: bool) -> Event {
        Event::RoundFinished {
            round: round.into(),
            attempt,
            status,
            retry,
            reason: None,
        }
    }

    #[test]
    fn the_time_between_a_stop_and_a_resume_is_not_spent() {
        let log = [
            at(0, started(false)),
            at(
                5,
                Event::RunStopped {
                    reason: "interrupted".into(),
                },
            ),
            at(1000, started(true)),
            at(1007, finished("a", 1, Status::Ok, false)),
        ];
        assert!((State::replay(&log).spent_s - 12.0).abs() < 1e-9);
    }

    #[test]
    fn a_changed_spec_brings_its_estimate_and_no_idle_time() {
        let changed = Event::SpecChanged {
            from: "a".into(),
            to: "b".into(),
            revision: 2,
            difference: Vec::new(),
            outdated: vec!["old".into()],
        };
        let resumed = Event::RunStarted {
            pid: 1,
            version: "0".into(),
            estimated_s: 30.0,
            resumed: true,
        };
        let log = [
            at(0, started(false)),
            at(0, finished("old", 1, Status::Ok, false)),
            at(0, finished("kept", 1, Status::Ok, false)),
            at(
                5,
                Event::RunStopped {
                    reason: "interrupted".into(),
                },
            ),
            at(1000, changed),
            at(1001, resumed),
            at(1003, finished("a", 1, Status::Ok, false)),
        ];
        let state = State::replay(&log);
        assert!((state.spent_s - 7.0).abs() < 1e-9);
        assert!((state.estimated_s - 35.0).abs() < 1e-9);
        assert_eq!(state.revision, 2);
        assert!(!state.is_done("old") && state.is_done("kept"));
    }

    #[test]
    fn a_clock_that_was_set_back_takes_no_time_away() {
        let log = [
            at(100, started(false)),
            at(105, finished("a", 1, Status::Ok, false)),
            at(50, finished("b", 1, Status::Ok, false)),
            at(53, finished("c", 1, Status::Ok, false)),
        ];
        assert!((State::replay(&log).spent_s - 8.0).abs() < 1e-9);
    }

    #[test]
    fn a_round_that_will_be_retried_is_not_done() {
        let mut log = vec![
            at(
                0,
                Event::RoundStarted {
                    round: "a".into(),
                    attempt: 1,
                },
            ),
            at(1, finished("a", 1, Status::Failed, true)),
        ];
        assert!(!State::replay(&log).is_done("a"));
        log.push(at(
            2,
            Event::RoundStarted {
                round: "a".into(),
                attempt: 2,
            },
        ));
        log.push(at(3, finished("a", 2, Status::Ok, false)));
        let state = State::replay(&log);
        assert_eq!(state.rounds["a"].outcome, Some((2, Status::Ok, None)));
        assert_eq!(state.rounds["a"].failures, 1);
    }

    #[test]
    fn an_invalid_round_is_a_result_that_stays_and_counts_as_a_try() {
        let log = [
            at(0, started(false)),
            at(1, finished("a", 1, Status::Invalid, true)),
            at(2, finished("a", 2, Status::Invalid, false)),
            at(3, started(true)),
        ];
        let state = State::replay(&log);
        assert!(state.is_done("a"));
        assert_eq!(state.rounds["a"].failures, 2);
    }

    #[test]
    fn skipped_rounds_get_their_chance_on_resume_and_failed_ones_stay() {
        let log = [
            at(0, started(false)),
            at(1, finished("a", 1, Status::Skipped, false)),
            at(2, finished("b", 1, Status::Failed, false)),
            at(3, started(true)),
        ];
        let state = State::replay(&log);
        assert!(!state.is_done("a"));
        assert!(state.is_done("b"));
    }
}
