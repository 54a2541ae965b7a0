//! Runs one round: its body up to the first failure, then its teardown, whatever happened before.

use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::site::{Site, driver, hidden};
use super::{Notice, RunError, Runner, StepError};
use crate::artifacts::{Event, Measured, RoundResult, Status, read_files, write_new};
use crate::database::{Effective, Process, Work};
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
    /// It failed, and the experiment says to stop then.
    Stop(String),
}

/// What has happened in an attempt so far.
#[derive(Default)]
struct Attempt {
    failure: Option<String>,
    /// The data could not be put back: a fault of the deployment, not a result of the round.
    unrestorable: bool,
    stopped: bool,
    steps: Vec<(String, f64)>,
    /// When the driver was started, its warm-up included.
    began: Option<std::time::SystemTime>,
    /// The driver that ran to its end.
    measured: Option<Driver>,
    load: Option<LoadResult>,
    /// What was not quiet when the measurement began.
    restless: Option<String>,
    /// What the driver said on its standard error.
    log: String,
}

impl Runner<'_> {
    /// Runs a round, again as often as the experiment says.
    pub(super) async fn round_with_retries(&mut self, round: &Round) -> Result<Ended, RunError> {
        loop {
            let attempt = self.attempts(&round.id) + 1;
            let attempted = self.attempt(round, attempt).await?;
            let failed = match &attempted {
                Some((result, _)) => result.status == Status::Failed,
                None => self.context.control.is_stopping(),
            };
            if !failed {
                // Another run may have taken the host meanwhile: then nothing of this round counts.
                self.confirm_leases().await?;
            }
            let Some((result, unrestorable)) = attempted else {
                return Ok(Ended::Cancelled);
            };
            let failures =
                self.state.rounds.get(&round.id).map_or(0, |r| r.failures) + u32::from(failed);
            let retry = failed && self.retries(failures);
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
            if failed {
                self.stale.insert(round.deployment.clone());
            }
            if !retry {
                let stop = failed && self.context.plan.on_failure == OnFailure::Stop;
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
        if so_far.stopped {
            return Ok(None);
        }
        let unrestorable = so_far.unrestorable;
        let result = self.result(round, attempt, started, so_far);
        let text = serde_json::to_vec_pretty(&result).expect("a result is plain data");
        write_new(&folder.join("result.json"), &text)?;
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
            so_far.failure = Some(format!("{name} failed: {error}"));
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
                so_far.restless = site.database.settle(settle, work).await?;
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
        so_far.began = Some((self.context.clock)().into());
        let driven = self.drive(site, &order, bounds, &mut so_far.log).await;
        let after = self.processes(site, bounds).await;
        if driven.is_ok() {
            so_far.measured = Some(measure.workload.driver);
        }
        // A process that ended meanwhile is a better reason than what its driver says of it.
        let after = after?;
        let is_same = |was: &&Process| !after.contains(was);
        if let Some(process) = before.iter().find(is_same) {
            let instance = process.instance.clone();
            return Err(StepError::Restarted { instance });
        }
        driven?;
        Ok(())
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
            status: if so_far.failure.is_some() {
                Status::Failed
            } else {
                Status::Ok
            },
            reason: so_far.failure,
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
    let began = so_far.began.unwrap_or(std::time::SystemTime::UNIX_EPOCH);
    for (name, content) in load.to_files(began) {
        if !files.contains_key(&name) {
            write_new(&folder.join(name), &content)?;
        }
    }
    if load.count() == 0 {
        return Err(StepError::NoSuccess(load.errors()));
    }
    Ok(())
}

fn stop_reason(result: &RoundResult) -> String {
    format!(
        "round `{}` failed: {}",
        result.round,
        result.reason.as_deref().unwrap_or("for no known reason")
    )
}
