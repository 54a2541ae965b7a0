//! Runs one round: its body up to the first failure, then its teardown, whatever happened before.

use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::site::{Site, driver, hidden};
use super::{Notice, RunError, Runner, StepError};
use crate::artifacts::{ArchiveError, Event, Measured, RoundResult, Status, read_files, write_new};
use crate::database::{DatabaseError, Effective, Hosts, Process, Spread, Work};
use crate::driver::Invocation;
use crate::host::{AgentError, Bounds, Hearing, HostError, ask, call};
use crate::measurement::LoadResult;
use crate::plan::{Action, Deployment, Measure, Progress, Round, Step};
use crate::spec::{Driver, OnFailure, Restore};
use crate::units;

/// The longest that a teardown step may take after the second request to stop.
const HASTE: Duration = Duration::from_secs(10);

/// How the attempts at a round ended.
pub(super) enum Ended {
    /// The round has its result.
    Done,
    /// It was asked to stop; the round has none.
    Cancelled,
    /// It is not good, and the experiment says to stop then.
    Stop(String),
}

/// What has happened in an attempt so far.
#[derive(Default)]
struct Attempt {
    failure: Option<String>,
    /// The failure is one of the conditions: the numbers are there, and no result.
    invalid: bool,
    /// The data could not be put back: a fault of the deployment, not a result of the round.
    unrestorable: bool,
    stopped: bool,
    steps: Vec<(String, f64)>,
    /// When the driver was started, its warm-up included.
    began: Option<jiff::Timestamp>,
    /// The driver that ran to its end.
    measured: Option<Driver>,
    load: Option<LoadResult>,
    /// What a reader must know of it.
    notes: Vec<String>,
    /// The processes before and after the measurement.
    processes: Option<Processes>,
    /// The connections of the servers behind a balancer.
    spread: Option<Spread>,
    /// What the driver said on its standard error.
    log: String,
}

/// `rounds/<id>/processes.json`: the processes before and after the measurement.
#[derive(Serialize)]
struct Processes {
    before: Vec<Process>,
    /// Nothing when they could not be read.
    after: Option<Vec<Process>>,
}

impl Processes {
    /// The first that is not there any more, or is another one now.
    fn lost(&self) -> Option<StepError> {
        let after = self.after.as_ref()?;
        let lost = self.before.iter().find(|was| !after.contains(was))?;
        let instance = lost.instance.clone();
        Some(match after.iter().any(|now| now.instance == instance) {
            true => StepError::Restarted { instance },
            false => StepError::Ended { instance },
        })
    }
}

/// A look at the connections behind a balancer; nothing where there is none that tells.
type Look = Option<Result<Spread, DatabaseError>>;

/// The balancer of a deployment, if it has one.
struct Balancer<'a> {
    hosts: &'a Hosts,
    site: &'a Site,
    bounds: Bounds<'a>,
}

impl Balancer<'_> {
    async fn look(&self) -> Look {
        let work = Work {
            hosts: self.hosts,
            bounds: self.bounds,
            say: &mut |_: &str| {},
        };
        self.site.database.spread(work).await.transpose()
    }

    /// Looks once some time has gone by: the middle of a measurement says what its ends do not.
    async fn look_after(&self, time: Duration) -> Look {
        tokio::time::sleep(time).await;
        self.look().await
    }

    /// Looks once more, and tells what happened since a look at the idle system.
    async fn between(&self, idle: Look, during: Look) -> Look {
        let idle = match idle? {
            Ok(idle) => idle,
            Err(error) => return Some(Err(error)),
        };
        let during = during.and_then(Result::ok);
        let after = self.look().await?;
        Some(after.map(|after| Spread::between(&idle, during.as_ref(), &after)))
    }
}

/// Does some work to its end, and another beside it as far as it gets by then.
async fn beside<T, S>(
    work: impl Future<Output = T>,
    other: impl Future<Output = S>,
) -> (T, Option<S>) {
    tokio::pin!(work, other);
    tokio::select! {
        done = &mut work => (done, None),
        found = &mut other => (work.await, Some(found)),
    }
}

impl Attempt {
    /// Takes in how a balancer spread the connections. That it does not tell spoils no round.
    fn balanced(&mut self, look: Look, most: Option<f64>) {
        match look {
            None => {}
            Some(Err(error)) => {
                let error = StepError::from(error).text();
                self.notes.push(format!("connections not read: {error}"));
            }
            Some(Ok(spread)) => {
                let uneven = most.and_then(|most| spread.uneven(most));
                let note = |servers| format!("connections uneven: {servers}");
                self.notes.extend(uneven.map(note));
                self.spread = Some(spread);
            }
        }
    }
}

impl Runner<'_> {
    /// Runs a round, again as often as the experiment says.
    pub(super) async fn round_with_retries(&mut self, round: &Round) -> Result<Ended, RunError> {
        loop {
            let attempt = self.attempts(&round.id) + 1;
            let attempted = self.attempt(round, attempt).await?;
            let lost = match &attempted {
                Some((result, _)) => result.status.is_lost(),
                None => self.context.control.is_stopping(),
            };
            if !lost {
                // Another run may have taken the host meanwhile: then nothing of this round counts.
                self.confirm_leases().await?;
            }
            let Some((result, unrestorable)) = attempted else {
                return Ok(Ended::Cancelled);
            };
            let failures =
                self.state.rounds.get(&round.id).map_or(0, |r| r.failures) + u32::from(lost);
            let retry = lost && self.retries(failures);
            if unrestorable && !retry {
                return self.give_deployment_up(round, attempt, &result);
            }
            let (id, status, reason) = (round.id.clone(), result.status, result.reason.clone());
            self.record(Event::RoundFinished {
                round: id,
                attempt,
                status,
                retry,
                reason,
            })?;
            if lost {
                self.stale.insert(round.deployment.clone());
            }
            if !retry {
                let stop = lost && self.context.plan.on_failure == OnFailure::Stop;
                return Ok(if stop {
                    Ended::Stop(stop_reason(&result))
                } else {
                    Ended::Done
                });
            }
            tracing::info!("round {} is tried again", round.id);
            if self.context.control.is_stopping() {
                return Ok(Ended::Cancelled);
            }
        }
    }

    /// Records that a deployment's data cannot be put back. Its rounds are skipped, this one too, so that a resume
    /// prepares it anew and runs them.
    fn give_deployment_up(
        &mut self,
        round: &Round,
        attempt: u32,
        result: &RoundResult,
    ) -> Result<Ended, RunError> {
        let reason = result.reason.clone().unwrap_or_default();
        let deployment = round.deployment.clone();
        self.record(Event::DeploymentFailed {
            deployment,
            reason: reason.clone(),
        })?;
        let (id, reason) = (round.id.clone(), Some(reason));
        self.record(Event::RoundFinished {
            round: id,
            attempt,
            status: Status::Skipped,
            retry: false,
            reason,
        })?;
        Ok(Ended::Done)
    }

    /// One attempt; `None` when it was stopped on request.
    async fn attempt(
        &mut self,
        round: &Round,
        attempt: u32,
    ) -> Result<Option<(RoundResult, bool)>, RunError> {
        let plan = self.context.plan;
        let deployment = plan
            .deployments
            .iter()
            .find(|d| d.id == round.deployment)
            .expect("a round has its deployment");
        let site = Site::of(self.context, deployment);
        let folder = self.context.layout.round(&round.id, attempt);
        self.record(Event::RoundStarted {
            round: round.id.clone(),
            attempt,
        })?;
        let started = (self.context.clock)();
        let mut so_far = Attempt::default();
        let done = self
            .steps(&site, round, deployment, &folder, &mut so_far)
            .await;
        if done.is_err() {
            self.leave_stopped(&site, deployment).await;
        }
        done?;
        if !so_far.log.is_empty() {
            let log = (self.context.hide)(&so_far.log);
            write_new(&folder.join("driver.log"), log.as_bytes())?;
        }
        if let Some(processes) = &so_far.processes {
            write_record(&folder.join("processes.json"), processes)?;
        }
        if let Some(spread) = &so_far.spread {
            write_record(&folder.join("balancer.json"), spread)?;
        }
        if so_far.stopped {
            return Ok(None);
        }
        let unrestorable = so_far.unrestorable;
        let result = self.result(round, attempt, started, so_far);
        write_record(&folder.join("result.json"), &result)?;
        Ok(Some((result, unrestorable)))
    }

    /// The steps of a round: the body up to the first failure, then the teardown.
    async fn steps(
        &mut self,
        site: &Site,
        round: &Round,
        deployment: &Deployment,
        folder: &Path,
        so_far: &mut Attempt,
    ) -> Result<(), RunError> {
        let is_teardown = |s: &&Step| matches!(s.action, Action::Stop | Action::Collect);
        let extra = self.extra_restore(round, deployment);
        let (teardown, body): (Vec<&Step>, Vec<&Step>) = round.steps.iter().partition(is_teardown);
        for step in extra.iter().chain(body) {
            if so_far.failure.is_none() && !so_far.stopped {
                self.step(site, round, step, folder, so_far).await?;
            }
        }
        for step in teardown {
            self.step(site, round, step, folder, so_far).await?;
        }
        Ok(())
    }

    /// A restore that the plan does not have, where the data may not be what the plan assumes.
    fn extra_restore(&self, round: &Round, deployment: &Deployment) -> Option<Step> {
        let planned = round.steps.iter().any(|s| s.action == Action::Restore);
        let never = self.context.plan.restore == Restore::Never;
        if planned || never || !self.stale.contains(&round.deployment) {
            return None;
        }
        let limit = deployment
            .prepare
            .iter()
            .find(|s| s.action == Action::Snapshot)
            .map(|s| s.limit);
        Some(Step {
            action: Action::Restore,
            limit: limit.unwrap_or(units::Duration(HASTE)),
        })
    }

    async fn step(
        &mut self,
        site: &Site,
        round: &Round,
        step: &Step,
        folder: &Path,
        so_far: &mut Attempt,
    ) -> Result<(), RunError> {
        let name = step.action.name().to_owned();
        self.record(Event::StepStarted {
            round: round.id.clone(),
            name: name.clone(),
        })?;
        let began = Instant::now();
        let done = self.do_step(site, step, folder, so_far).await;
        let seconds = began.elapsed().as_secs_f64();
        tracing::info!("round {}: {name} took {seconds:.3} s", round.id);
        so_far.steps.push((name.clone(), seconds));
        let error = done.as_ref().err().map(|e| (self.context.hide)(&e.text()));
        if let Err(stop) = &done {
            so_far.stopped |= stop.is_stop();
        }
        if let (Some(error), false, None) = (&error, so_far.stopped, &so_far.failure) {
            // The first failure is the cause; what fails after it, in teardown, stands in the events.
            so_far.invalid = done.as_ref().is_err_and(StepError::is_invalid);
            so_far.failure = Some(match so_far.invalid {
                true => error.clone(),
                false => format!("{name} failed: {error}"),
            });
            so_far.unrestorable = step.action == Action::Restore;
        }
        self.record(Event::StepFinished {
            round: round.id.clone(),
            name,
            seconds,
            error,
        })
    }

    async fn do_step(
        &mut self,
        site: &Site,
        step: &Step,
        folder: &Path,
        so_far: &mut Attempt,
    ) -> Result<(), StepError> {
        let context = self.context;
        let (now, unstoppable) = (context.control.now(), CancellationToken::new());
        let limit = step.limit.0;
        let body = Bounds { limit, stop: now };
        let teardown = Bounds {
            limit: if now.is_cancelled() {
                limit.min(HASTE)
            } else {
                limit
            },
            stop: &unstoppable,
        };
        let observe = &mut self.observe;
        let mut say = |what: &str| observe(Notice::Doing(what));
        let hosts = context.hosts;
        let is_teardown = matches!(step.action, Action::Stop);
        let work = Work {
            hosts,
            bounds: if is_teardown { teardown } else { body },
            say: &mut say,
        };
        match &step.action {
            Action::Restore => {
                site.restore(context.plan.snapshot, body).await?;
                self.stale.remove(&site.id);
                Ok(())
            }
            Action::Start => {
                let effective = site.database.start(work).await?;
                self.same_as_prepared(site, &effective)
            }
            Action::Settle(settle) => {
                let restless = site.database.settle(settle, work).await?;
                let note = |what| format!("not quiet when the measurement began: {what}");
                so_far.notes.extend(restless.map(note));
                Ok(())
            }
            Action::Measure(measure) => self.measure(site, measure, body, so_far).await,
            Action::Stop => Ok(site.database.stop(work).await?),
            Action::Collect => {
                let collected = match so_far.measured {
                    Some(tool) => collect(site, tool, folder, teardown, so_far).await,
                    None => Ok(()),
                };
                let removed: Result<(), AgentError> =
                    ask(&*site.client, "remove", &site.results(), teardown).await;
                if let Err(error) = removed {
                    let error = StepError::from(error).text();
                    tracing::warn!("results stay behind on `{}`: {error}", site.client.name());
                }
                collected
            }
            Action::Deploy | Action::Load(_) | Action::Snapshot => {
                unreachable!("a step of preparation only")
            }
        }
    }

    /// A round under other tunables than those that its deployment was prepared with is no round of its variant.
    fn same_as_prepared(&self, site: &Site, effective: &Effective) -> Result<(), StepError> {
        let Some(ready) = self.state.ready.get(&site.id) else {
            return Ok(());
        };
        let found = hidden(&effective.config, self.context.hide);
        for (component, tunables) in &ready.effective {
            for (name, before) in tunables {
                let now = found.get(component).and_then(|t| t.get(name));
                if now != Some(before) {
                    return Err(StepError::Reconfigured {
                        name: format!("{component}.{name}"),
                        before: before.clone(),
                        now: now.cloned().unwrap_or_default(),
                    });
                }
            }
        }
        Ok(())
    }

    async fn measure(
        &mut self,
        site: &Site,
        measure: &Measure,
        bounds: Bounds<'_>,
        so_far: &mut Attempt,
    ) -> Result<(), StepError> {
        // Empty and marked: what an earlier round left behind must not be taken for this one's.
        let () = ask(&*site.client, "deploy", &site.results(), bounds).await?;
        let tool = driver(measure.workload.driver);
        let order = tool.run(&site.database.target(), measure, &site.output)?;
        let before = self.processes(site, bounds).await?;
        let balancer = Balancer {
            hosts: self.context.hosts,
            site,
            bounds,
        };
        let idle = balancer.look().await;
        let middle = measure.warmup.0 + measure.duration.0 / 2;
        so_far.began = Some((self.context.clock)());
        let driving = self.drive(site, &order, bounds, &mut so_far.log);
        let (driven, during) = beside(driving, balancer.look_after(middle)).await;
        let look = balancer.between(idle, during.flatten()).await;
        so_far.balanced(look, self.uneven(site));
        let after = self.processes(site, bounds).await;
        if driven.is_ok() {
            so_far.measured = Some(measure.workload.driver);
        }
        let (after, unread) = match after {
            Ok(after) => (Some(after), None),
            Err(error) => (None, Some(error)),
        };
        let processes = Processes { before, after };
        let lost = processes.lost();
        // A system within the driver's own process has none to tell of.
        so_far.processes = (!processes.before.is_empty()).then_some(processes);
        // A process that ended meanwhile is a better reason than what its driver says of it.
        if let Some(error) = lost.or(unread) {
            return Err(error);
        }
        driven?;
        Ok(())
    }

    /// How uneven the connections of two servers may be behind the site's balancer.
    fn uneven(&self, site: &Site) -> Option<f64> {
        let mut deployments = self.context.plan.deployments.iter();
        let deployment = deployments.find(|d| d.id == site.id)?;
        deployment.balancer.as_ref().map(|b| b.uneven)
    }

    /// The processes of a database and when each was started.
    async fn processes(
        &mut self,
        site: &Site,
        bounds: Bounds<'_>,
    ) -> Result<Vec<Process>, StepError> {
        let observe = &mut self.observe;
        let work = Work {
            hosts: self.context.hosts,
            bounds,
            say: &mut |what: &str| observe(Notice::Doing(what)),
        };
        Ok(site.database.processes(work).await?)
    }

    fn result(
        &self,
        round: &Round,
        attempt: u32,
        started: jiff::Timestamp,
        so_far: Attempt,
    ) -> RoundResult {
        RoundResult {
            round: round.id.clone(),
            cell: round.cell.id.clone(),
            variant: round.deployment.clone(),
            repetition: round.repetition,
            attempt,
            status: match (&so_far.failure, so_far.invalid) {
                (None, _) => Status::Ok,
                (Some(_), true) => Status::Invalid,
                (Some(_), false) => Status::Failed,
            },
            reason: so_far.failure,
            notes: so_far
                .notes
                .iter()
                .map(|note| (self.context.hide)(note))
                .collect(),
            started,
            ended: (self.context.clock)(),
            steps: so_far.steps,
            measured: so_far.load.as_ref().map(Measured::of),
        }
    }

    /// Stops a database when nothing else of its round or preparation can go on; the error that ended it stays the cause.
    pub(super) async fn leave_stopped(&self, site: &Site, deployment: &Deployment) {
        if let Err(error) = self.stop_database(site, deployment).await {
            tracing::warn!(
                "the database of `{}` could not be stopped: {}",
                site.id,
                error.text()
            );
        }
    }

    /// Runs a driver on its client; what it says on its standard error is added to `log`.
    pub(super) async fn drive(
        &mut self,
        site: &Site,
        order: &Invocation,
        bounds: Bounds<'_>,
        log: &mut String,
    ) -> Result<serde_json::Value, AgentError> {
        let observe = &mut self.observe;
        let hearing = Hearing {
            progress: &mut |p: Progress| observe(Notice::Progress(&p)),
            log: &mut |text| log.push_str(text),
        };
        call(&*site.client, order.agent, &order.request, bounds, hearing).await
    }

    /// Leaves a database stopped after a failed preparation.
    pub(super) async fn stop_database(
        &self,
        site: &Site,
        deployment: &Deployment,
    ) -> Result<(), StepError> {
        let limit = deployment
            .prepare
            .iter()
            .find(|s| s.action == Action::Stop)
            .map_or(HASTE, |s| s.limit.0);
        let stop = CancellationToken::new();
        let work = Work {
            hosts: self.context.hosts,
            bounds: Bounds { limit, stop: &stop },
            say: &mut |_: &str| {},
        };
        Ok(site.database.stop(work).await?)
    }
}

/// Brings the driver's files home and reads them.
async fn collect(
    site: &Site,
    tool: Driver,
    folder: &Path,
    bounds: Bounds<'_>,
    so_far: &mut Attempt,
) -> Result<(), StepError> {
    let fetched = timeout(bounds.limit, site.client.fetch(&site.output, folder)).await;
    fetched.unwrap_or_else(|_| {
        Err(HostError::Limit {
            host: site.client.name().to_owned(),
            what: format!("copy `{}`", site.output.display()),
            limit: bounds.limit,
        })
    })?;
    let files = read_files(folder)?;
    let load = so_far.load.insert(driver(tool).parse(&files)?);
    // Whatever tool it was, the archive has its numbers in one form.
    let began = so_far.began.unwrap_or_default().as_microsecond();
    let began = Duration::from_micros(u64::try_from(began).unwrap_or(0));
    for (name, content) in load.to_files(SystemTime::UNIX_EPOCH + began) {
        if !files.contains_key(&name) {
            write_new(&folder.join(name), &content)?;
        }
    }
    if load.count() == 0 {
        return Err(StepError::NoSuccess(load.errors()));
    }
    Ok(())
}

/// Writes a record as JSON.
fn write_record<T: Serialize>(path: &Path, record: &T) -> Result<(), ArchiveError> {
    let text = serde_json::to_vec_pretty(record).expect("records are plain data");
    write_new(path, &text)
}

fn stop_reason(result: &RoundResult) -> String {
    let ended = match result.status {
        Status::Invalid => "is invalid",
        Status::Ok | Status::Failed | Status::Skipped => "failed",
    };
    format!(
        "round `{}` {ended}: {}",
        result.round,
        result.reason.as_deref().unwrap_or("for no known reason")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(instance: &str, pid: u32, started_us: i64) -> Process {
        Process {
            instance: instance.to_owned(),
            host: "db1".to_owned(),
            pid,
            started_us,
        }
    }

    fn lost(after: Option<Vec<Process>>) -> Option<String> {
        let before = vec![process("kv@db1", 7, 100), process("sql@db1", 8, 200)];
        let processes = Processes { before, after };
        processes.lost().map(|error| {
            assert!(error.is_invalid());
            error.to_string()
        })
    }

    #[test]
    fn the_same_processes_before_and_after_are_well_in_any_order() {
        let same = vec![process("sql@db1", 8, 200), process("kv@db1", 7, 100)];
        assert_eq!(lost(Some(same)), None);
        assert_eq!(lost(None), None);
    }

    #[test]
    fn a_process_that_was_started_again_or_ended_makes_a_round_invalid() {
        let again = vec![process("kv@db1", 9, 300), process("sql@db1", 8, 200)];
        let said = "`kv@db1` was started again during the measurement";
        assert_eq!(lost(Some(again)).as_deref(), Some(said));
        // The id of a process may be given out again.
        let same_id = vec![process("kv@db1", 7, 300), process("sql@db1", 8, 200)];
        assert_eq!(lost(Some(same_id)).as_deref(), Some(said));
        let gone = vec![process("kv@db1", 7, 100)];
        let said = "`sql@db1` ended during the measurement";
        assert_eq!(lost(Some(gone)).as_deref(), Some(said));
    }

    #[test]
    fn a_system_that_was_not_quiet_in_time_makes_a_round_invalid() {
        let restless = DatabaseError::Restless {
            limit: "5m".to_owned(),
            condition: "leaders are balanced".to_owned(),
        };
        assert!(StepError::from(restless).is_invalid());
        assert!(!StepError::NoSuccess(3).is_invalid());
    }
}
