//! Prepares a deployment: empty directories, start, load, stop, snapshot. Nothing of it is measured, so that a
//! preparation that was cut short simply begins again.

use std::path::Path;

use serde_json::json;
use tokio::time::Instant;

use super::site::{Site, attention, driver, hidden};
use super::{RunError, Runner, StepError};
use crate::artifacts::{Event, Tunables, write_new};
use crate::host::{Bounds, ask};
use crate::plan::{Action, Deployment, Step};
use crate::snapshot::MarkedDirectory;

/// What the preparation of a deployment came to.
#[derive(Default)]
struct Prepared {
    method: String,
    bytes: u64,
    snapshot: String,
    effective: Tunables,
    /// What the driver said on its standard error.
    log: String,
}

impl Runner<'_> {
    /// Prepares a deployment, unless it is ready. Says whether the run goes on: not when it was asked to stop.
    pub(super) async fn prepare(&mut self, deployment: &Deployment) -> Result<bool, RunError> {
        let site = Site::of(self.context, deployment);
        if self.is_ready(&site, deployment).await {
            return Ok(true);
        }
        let nth = self
            .state
            .preparations
            .get(&deployment.id)
            .copied()
            .unwrap_or(0)
            + 1;
        let folder = self.context.layout.deployment(&deployment.id, nth);
        let mut prepared = Prepared::default();
        for (index, step) in deployment.prepare.iter().enumerate() {
            if self.context.control.is_stopping() {
                return Ok(false);
            }
            let done = self
                .prepare_step(&site, index, step, &folder, &mut prepared)
                .await;
            if done.is_err() {
                self.leave_stopped(&site, deployment).await;
            }
            match done? {
                Ok(()) => {}
                Err(error) => return self.give_up(&site, deployment, step, &error).await,
            }
        }
        self.stale.remove(&deployment.id);
        self.record(Event::DeploymentReady {
            deployment: deployment.id.clone(),
            fingerprint: deployment.fingerprint.clone(),
            snapshot_method: prepared.method,
            bytes: prepared.bytes,
            snapshot: prepared.snapshot,
            effective: prepared.effective,
        })?;
        Ok(true)
    }

    /// Whether an earlier start of this run prepared the deployment from the same spec and its snapshot is still there:
    /// another run of the experiment may have replaced it since.
    async fn is_ready(&self, site: &Site, deployment: &Deployment) -> bool {
        let Some(known) = self.state.ready.get(&deployment.id) else {
            return false;
        };
        if known.fingerprint != deployment.fingerprint {
            return false;
        }
        let limit = deployment
            .prepare
            .first()
            .expect("preparation begins with a step")
            .limit
            .0;
        let bounds = Bounds {
            limit,
            stop: self.context.control.soon(),
        };
        // Its content is read: what a disk lost since, or somebody changed, must not be measured.
        let trusted = match site.verify(bounds).await {
            Ok(()) => site.digest(bounds).await,
            Err(error) => Err(error),
        };
        match trusted {
            Ok(digest) if digest == known.snapshot => true,
            Ok(_) => self.distrust(site, "another run replaced it"),
            Err(error) => self.distrust(site, &StepError::from(error).text()),
        }
    }

    fn distrust(&self, site: &Site, why: &str) -> bool {
        tracing::warn!(
            "the snapshot of `{}` cannot be used, it is prepared anew: {why}",
            site.id
        );
        false
    }

    async fn prepare_step(
        &mut self,
        site: &Site,
        index: usize,
        step: &Step,
        folder: &Path,
        prepared: &mut Prepared,
    ) -> Result<Result<(), StepError>, RunError> {
        let (deployment, name) = (site.id.clone(), step.action.name().to_owned());
        self.record(Event::PrepareStarted {
            deployment: deployment.clone(),
            step: index,
            name: name.clone(),
        })?;
        let began = Instant::now();
        let done = self.act(site, step, prepared).await;
        let seconds = began.elapsed().as_secs_f64();
        tracing::info!("deployment {deployment}: {name} took {seconds:.3} s");
        if !prepared.log.is_empty() {
            let log = (self.context.hide)(&std::mem::take(&mut prepared.log));
            write_new(&folder.join(format!("{index}-{name}.log")), log.as_bytes())?;
        }
        let error = done.as_ref().err().map(|e| (self.context.hide)(&e.text()));
        self.record(Event::PrepareFinished {
            deployment,
            step: index,
            name: name.clone(),
            seconds,
            error,
        })?;
        Ok(match done {
            Err(error) => Err(error),
            Ok(None) => Ok(()),
            Ok(Some(record)) => {
                let text = serde_json::to_string_pretty(&record).expect("records are plain data");
                write_new(
                    &folder.join(format!("{index}-{name}.json")),
                    (self.context.hide)(&text).as_bytes(),
                )?;
                Ok(())
            }
        })
    }

    /// Does a step; its record is kept with the deployment.
    async fn act(
        &mut self,
        site: &Site,
        step: &Step,
        prepared: &mut Prepared,
    ) -> Result<Option<serde_json::Value>, StepError> {
        let context = self.context;
        let stop = context.control.soon();
        let bounds = Bounds {
            limit: step.limit.0,
            stop,
        };
        match &step.action {
            Action::Deploy => {
                let place = MarkedDirectory {
                    directory: site.data.clone(),
                    marker: site.marker.clone(),
                };
                let () = ask(&*site.host, "deploy", &place, bounds).await?;
                Ok(None)
            }
            Action::Start => {
                let effective = site.database.start(&*site.host, bounds).await?;
                prepared.effective = hidden(&effective.config, context.hide);
                Ok(Some(json!(effective)))
            }
            Action::Load(dataset) => {
                let order = driver(dataset.driver).load(
                    &site.database.target(),
                    dataset,
                    context.plan.seed,
                )?;
                let loaded = self.drive(site, &order, bounds, &mut prepared.log).await?;
                Ok(Some(json!({"dataset": dataset, "loaded": loaded})))
            }
            Action::Stop => {
                site.database.stop(&*site.host, bounds).await?;
                Ok(None)
            }
            Action::Snapshot => {
                let choice = site.choose(context.plan.snapshot, bounds).await?;
                let mut unseen = |_| {};
                let attention = attention(bounds, &mut unseen);
                let done = choice
                    .method
                    .take(&*site.host, &site.order(), attention)
                    .await?;
                prepared.method = choice.method.name().to_owned();
                prepared.bytes = done.bytes;
                prepared.snapshot = site.digest(bounds).await?;
                Ok(Some(
                    json!({"method": prepared.method, "why": choice.why, "done": done, "manifest_sha256": prepared.snapshot}),
                ))
            }
            Action::Restore | Action::Measure(_) | Action::Collect => {
                unreachable!("a step of rounds only")
            }
        }
    }

    /// Records why a deployment failed, unless it was stopped on request, and leaves its database stopped.
    async fn give_up(
        &mut self,
        site: &Site,
        deployment: &Deployment,
        step: &Step,
        error: &StepError,
    ) -> Result<bool, RunError> {
        let stopped = self.stop_database(site, deployment).await;
        if error.is_stop() {
            return Ok(false);
        }
        let mut reason = format!("{} failed: {}", step.action.name(), error.text());
        if let Err(second) = stopped {
            reason.push_str(&format!(
                "; it could not be stopped either: {}",
                second.text()
            ));
        }
        let reason = (self.context.hide)(&reason);
        self.record(Event::DeploymentFailed {
            deployment: deployment.id.clone(),
            reason,
        })?;
        Ok(true)
    }
}
