//! Carries a plan out: prepares deployments, runs rounds, records everything. It decides what happens after a failure;
//! what is done on a host is the adapters' business, and reports are somebody else's.

mod control;
mod prepare;
mod round;
mod site;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::artifacts::{ArchiveError, Entry, Event, EventLog, Layout, State, Status};
use tokio_util::sync::CancellationToken;

use self::site::Site;
use crate::database::{DatabaseError, Hosts};
use crate::host::{AgentError, Bounds, Claim, HostError, Lease, ask};
use crate::pack::Packs;
use crate::plan::{Plan, Progress, Round, estimate, estimate_steps};
use crate::snapshot::ChoiceError;
use crate::spec::OnFailure;

pub use control::Control;

/// The longest that measuring a deployment's bytes may take.
const USAGE: Duration = Duration::from_secs(300);

/// What a run works with. The clock and the secrets come from outside.
pub struct Context<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Where the run is kept.
    pub layout: &'a Layout,
    /// The packs that the plan was built with.
    pub packs: &'a Packs,
    /// The folder of packages on this machine.
    pub packages: &'a Path,
    /// Every host of the plan by name.
    pub hosts: &'a Hosts,
    /// Replaces `${env:NAME}` by its value.
    pub reveal: &'a (dyn Fn(&str) -> String + Sync),
    /// Replaces the values of secrets by their names.
    pub hide: &'a (dyn Fn(&str) -> String + Sync),
    /// The time, for events.
    pub clock: &'a (dyn Fn() -> jiff::Timestamp + Sync),
    /// How the run is asked to stop.
    pub control: &'a Control,
}

/// Something that happened, for whoever watches the run.
#[derive(Debug)]
pub enum Notice<'a> {
    /// An event; it is on disk.
    Event(&'a Entry),
    /// What a driver says while it works; it is kept nowhere.
    Progress(&'a Progress),
    /// What is being done to a database, or waited for; it is kept nowhere.
    Doing(&'a str),
}

/// How a run came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every round is done.
    Finished {
        /// Rounds that are good.
        ok: usize,
        /// Rounds that failed.
        failed: usize,
        /// Rounds that are invalid.
        invalid: usize,
    },
    /// Every round is done but those whose deployment could not be prepared; resuming tries that again.
    Unprepared {
        /// The rounds that were skipped.
        skipped: usize,
    },
    /// A round is not good and the experiment says to stop then.
    Stopped {
        /// The round and its reason.
        reason: String,
    },
    /// It was asked to stop.
    Cancelled,
}

/// What ends a run at once: without an archive or a host there is nothing to go on with.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The archive cannot be written.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A host cannot be held.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The plan names a host that is not there.
    #[error("the plan names host `{0}`, which is not in the inventory")]
    NoHost(String),
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("`{instance}` was started again during the measurement")]
    Restarted { instance: String },
    #[error("`{instance}` ended during the measurement")]
    Ended { instance: String },
    #[error(transparent)]
    Driver(#[from] crate::driver::DriverError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error("`{name}` was `{before}` when the deployment was prepared and is `{now}`")]
    Reconfigured {
        name: String,
        before: String,
        now: String,
    },
    #[error("not one operation succeeded, {0} failed")]
    NoSuccess(u64),
}

impl StepError {
    /// Whether it was stopped on request, which is no failure.
    fn is_stop(&self) -> bool {
        let host = match self {
            Self::Agent(AgentError::Host(host)) | Self::Host(host) => host,
            Self::Choice(ChoiceError::Probe {
                source: AgentError::Host(host),
                ..
            }) => host,
            Self::Database(error) => match error.host() {
                Some(host) => host,
                None => return false,
            },
            _ => return false,
        };
        matches!(host, HostError::Stopped { .. })
    }

    /// Whether what was measured is no result, though every step did what it should.
    fn is_invalid(&self) -> bool {
        matches!(
            self,
            Self::Restarted { .. }
                | Self::Ended { .. }
                | Self::Database(DatabaseError::Restless { .. })
        )
    }

    /// The message with its causes.
    fn text(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        text
    }
}

/// A run in progress.
struct Runner<'a> {
    context: &'a Context<'a>,
    leases: &'a [Lease],
    log: EventLog,
    state: State,
    observe: &'a mut (dyn FnMut(Notice<'_>) + Send),
    /// Deployments whose data may not be what the plan assumes: their next round begins with a restore.
    stale: BTreeSet<String>,
}

/// Carries out whatever of the plan is not done yet, according to `events`, those that `log` holds so far.
/// `leases` are those of [`hold`].
///
/// # Errors
/// The archive cannot be written, or a host is no longer held.
pub async fn run(
    context: &Context<'_>,
    leases: &[Lease],
    log: EventLog,
    events: &[Entry],
    observe: &mut (dyn FnMut(Notice<'_>) + Send),
) -> Result<Outcome, RunError> {
    let state = State::replay(events);
    let resumed = !events.is_empty();
    let stale = if resumed {
        context
            .plan
            .deployments
            .iter()
            .map(|d| d.id.clone())
            .collect()
    } else {
        BTreeSet::new()
    };
    let mut runner = Runner {
        context,
        leases,
        log,
        state,
        observe,
        stale,
    };
    runner.start(resumed)?;
    let outcome = runner.go().await?;
    runner.end(&outcome).await?;
    Ok(outcome)
}

/// Holds every host of a plan, so that nobody else works there meanwhile.
///
/// # Errors
/// A host is held by another run, or is not there.
pub async fn hold(plan: &Plan, hosts: &Hosts, claim: Claim<'_>) -> Result<Vec<Lease>, RunError> {
    let mut leases = Vec::new();
    for name in plan.hosts() {
        let host = hosts
            .get(&name)
            .ok_or_else(|| RunError::NoHost(name.clone()))?;
        leases.push(host.lease(claim).await?);
    }
    Ok(leases)
}

impl Runner<'_> {
    fn record(&mut self, event: Event) -> Result<(), RunError> {
        let entry = self.log.append((self.context.clock)(), event)?;
        (self.observe)(Notice::Event(&entry));
        self.state.take(&entry);
        Ok(())
    }

    fn start(&mut self, resumed: bool) -> Result<(), RunError> {
        let left: f64 = self
            .left()
            .iter()
            .map(|r| estimate_steps(self.context.plan, &r.steps))
            .sum();
        let estimated_s = if resumed {
            left
        } else {
            estimate(self.context.plan).total_s()
        };
        self.record(Event::RunStarted {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            estimated_s,
            resumed,
        })
    }

    /// The rounds that are not done, in order.
    fn left(&self) -> Vec<&Round> {
        self.context
            .plan
            .rounds
            .iter()
            .filter(|r| !self.state.is_done(&r.id))
            .collect()
    }

    async fn go(&mut self) -> Result<Outcome, RunError> {
        let plan = self.context.plan;
        for deployment in &plan.deployments {
            let needed = self.left().iter().any(|r| r.deployment == deployment.id);
            if needed && !self.prepare(deployment).await? {
                if !self.context.control.is_stopping() {
                    self.confirm_leases().await?;
                }
                return Ok(Outcome::Cancelled);
            }
        }
        for round in &plan.rounds {
            if self.state.is_done(&round.id) {
                continue;
            }
            if self.context.control.is_stopping() {
                return Ok(Outcome::Cancelled);
            }
            // Without its lease another run may be working on the same data.
            self.leases.iter().try_for_each(Lease::check)?;
            if let Some(reason) = self.state.unready.get(&round.deployment).cloned() {
                self.skip(round, reason)?;
                continue;
            }
            match self.round_with_retries(round).await? {
                round::Ended::Done => {}
                round::Ended::Cancelled => return Ok(Outcome::Cancelled),
                round::Ended::Stop(reason) => return Ok(Outcome::Stopped { reason }),
            }
        }
        Ok(self.finished())
    }

    /// Whether every host was held until now.
    async fn confirm_leases(&self) -> Result<(), RunError> {
        for lease in self.leases {
            lease.confirm().await?;
        }
        Ok(())
    }

    fn skip(&mut self, round: &Round, reason: String) -> Result<(), RunError> {
        let reason = Some(format!(
            "deployment `{}` could not be prepared: {reason}",
            round.deployment
        ));
        let (round, attempt) = (round.id.clone(), self.attempts(&round.id));
        self.record(Event::RoundFinished {
            round,
            attempt,
            status: Status::Skipped,
            retry: false,
            reason,
        })
    }

    /// Attempts at a round so far.
    fn attempts(&self, round: &str) -> u32 {
        self.state.rounds.get(round).map_or(0, |r| r.attempts)
    }

    /// Whether a round that was lost `failures` times is tried again.
    fn retries(&self, failures: u32) -> bool {
        match self.context.plan.on_failure {
            OnFailure::Continue | OnFailure::Stop => false,
            OnFailure::Retry(most) => failures <= most,
        }
    }

    fn finished(&self) -> Outcome {
        let of = |wanted: Status| {
            let counts = |id| {
                self.state
                    .rounds
                    .get(id)
                    .and_then(|r| r.outcome.as_ref())
                    .is_some_and(|o| o.1 == wanted)
            };
            self.context
                .plan
                .rounds
                .iter()
                .filter(|r| counts(&r.id))
                .count()
        };
        match of(Status::Skipped) {
            0 => Outcome::Finished {
                ok: of(Status::Ok),
                failed: of(Status::Failed),
                invalid: of(Status::Invalid),
            },
            skipped => Outcome::Unprepared { skipped },
        }
    }

    /// Bytes that the deployments take on their hosts, and the one copy that a restore makes beside them.
    async fn used_bytes(&self) -> u64 {
        let stop = CancellationToken::new();
        let bounds = Bounds {
            limit: USAGE,
            stop: &stop,
        };
        let mut used = self
            .state
            .ready
            .values()
            .map(|r| r.bytes)
            .max()
            .unwrap_or(0);
        for deployment in &self.context.plan.deployments {
            let site = Site::of(self.context, deployment);
            let mut found: Result<u64, AgentError> = Ok(0);
            for (host, base) in &site.bases {
                let request = serde_json::json!({ "directory": base });
                let here: Result<u64, AgentError> =
                    ask(&**host, "disk-usage", &request, bounds).await;
                found = found.and_then(|so_far| Ok(so_far + here?));
            }
            // What cannot be measured is taken as data and snapshot.
            let ready = self
                .state
                .ready
                .get(&deployment.id)
                .map_or(0, |r| 2 * r.bytes);
            used += found.unwrap_or(ready);
        }
        used
    }

    async fn end(&mut self, outcome: &Outcome) -> Result<(), RunError> {
        let event = match outcome {
            Outcome::Finished {
                ok,
                failed,
                invalid,
            } => Event::RunFinished {
                ok: *ok,
                failed: *failed,
                invalid: *invalid,
                estimated_s: self.state.estimated_s,
                actual_s: self.state.spent_s,
                estimated_bytes: estimate(self.context.plan).host_bytes,
                actual_bytes: self.used_bytes().await,
            },
            Outcome::Stopped { reason } => Event::RunStopped {
                reason: reason.clone(),
            },
            Outcome::Unprepared { skipped } => Event::RunStopped {
                reason: format!(
                    "{skipped} rounds were skipped, their deployment could not be prepared"
                ),
            },
            Outcome::Cancelled => Event::RunStopped {
                reason: "it was asked to stop".to_owned(),
            },
        };
        self.record(event)
    }
}
