//! Starts a cluster: role after role, each ready before the next, then its tunables are set and read back.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::future::try_join_all;

use super::{Cluster, DatabaseError, Effective, Member, Process, Work};
use crate::database::Hosts;
use crate::host::{Bounds, Host, ask, look};
use crate::service::{Start, State, Status};

impl Cluster {
    /// Starts everything and reads back what runs.
    pub(super) async fn bring_up(&self, work: Work<'_>) -> Result<Effective, DatabaseError> {
        let Work { hosts, bounds, say } = work;
        let begun = Instant::now();
        let left = || Bounds {
            limit: bounds.limit.saturating_sub(begun.elapsed()),
            stop: bounds.stop,
        };
        for stage in self.stages() {
            let Some(first) = stage.first() else {
                continue;
            };
            say(&format!("start {}", first.instance.role));
            self.start_stage(hosts, stage, left()).await?;
            say(&format!("until {} answers", first.instance.role));
            self.stage_is_ready(hosts, stage, left()).await?;
        }
        self.learn_trust(hosts, left()).await?;
        let bounds = left();
        self.as_asked(Work { hosts, bounds, say }).await
    }

    /// Waits until everything answers that somebody else started, and reads back what runs.
    pub(in crate::database) async fn found(
        &self,
        work: Work<'_>,
    ) -> Result<Effective, DatabaseError> {
        let Work { hosts, bounds, say } = work;
        let begun = Instant::now();
        let left = || Bounds {
            limit: bounds.limit.saturating_sub(begun.elapsed()),
            stop: bounds.stop,
        };
        for stage in self.stages() {
            if let Some(first) = stage.first() {
                say(&format!("until {} answers", first.instance.role));
                self.stage_is_ready(hosts, stage, left()).await?;
            }
        }
        let bounds = left();
        self.as_asked(Work { hosts, bounds, say }).await
    }

    /// Sets the variables, and reads everything back.
    async fn as_asked(&self, work: Work<'_>) -> Result<Effective, DatabaseError> {
        let Work { hosts, bounds, say } = work;
        let begun = Instant::now();
        say("variables");
        self.set_variables(hosts, bounds).await?;
        say("effective configuration");
        let limit = bounds.limit.saturating_sub(begun.elapsed());
        self.effective(hosts, Bounds { limit, ..bounds }).await
    }

    async fn stage_is_ready(
        &self,
        hosts: &Hosts,
        stage: &[Member],
        bounds: Bounds<'_>,
    ) -> Result<(), DatabaseError> {
        let each = stage.iter().map(async |member| {
            let host = &*hosts[&member.instance.host];
            match self.ready(host, member, bounds).await {
                Ok(()) => Ok(()),
                Err(error) => Err(self.why_not(host, member, error, bounds).await),
            }
        });
        try_join_all(each).await.map(|_| ())
    }

    async fn start_stage(
        &self,
        hosts: &Hosts,
        stage: &[Member],
        bounds: Bounds<'_>,
    ) -> Result<(), DatabaseError> {
        let each = by_host(stage).into_iter().map(async |(name, members)| {
            let units = members.iter().map(|m| m.unit.clone()).collect();
            let mut request = Start::new(units, bounds.limit);
            for member in members {
                let logs = self.texts(member, "the logs", &member.role().logs)?;
                let logs = logs.into_iter().map(Into::into).collect();
                request.logs.insert(member.unit.clone(), logs);
            }
            let states: Vec<State> = ask(&*hosts[name], "service-start", &request, bounds).await?;
            Ok::<_, DatabaseError>(states)
        });
        try_join_all(each).await.map(|_| ())
    }

    /// Waits until a member answers.
    async fn ready(
        &self,
        host: &dyn Host,
        member: &Member,
        bounds: Bounds<'_>,
    ) -> Result<(), DatabaseError> {
        let begun = Instant::now();
        for condition in &member.role().ready {
            if self.applies(condition.versions.as_deref()) {
                let left = Bounds {
                    limit: bounds.limit.saturating_sub(begun.elapsed()),
                    stop: bounds.stop,
                };
                self.wait(host, member, condition, left).await?;
            }
        }
        Ok(())
    }

    /// The better reason of a member that is not ready: it does not run.
    async fn why_not(
        &self,
        host: &dyn Host,
        member: &Member,
        error: DatabaseError,
        bounds: Bounds<'_>,
    ) -> DatabaseError {
        if error.host().is_some() {
            return error;
        }
        let request = Status {
            units: vec![member.unit.clone()],
        };
        let bounds = Bounds {
            limit: Duration::from_secs(60),
            stop: bounds.stop,
        };
        let states: Result<Vec<State>, _> = look(host, "service-status", &request, bounds).await;
        let died = states.ok().and_then(|states| {
            let state = states.first()?;
            let exit = state.exit.as_ref()?;
            let times = state.restarts;
            Some(format!(
                "it ended ({exit}) and was started again {times} times"
            ))
        });
        let error = match died {
            Some(died) => DatabaseError::Other(format!("{died}; {error}")),
            None => error,
        };
        error.of("not ready in time:", member)
    }

    /// The processes that run.
    pub(super) async fn running(&self, work: Work<'_>) -> Result<Vec<Process>, DatabaseError> {
        let Work { hosts, bounds, .. } = work;
        let states = self.states(hosts, bounds).await?;
        let running = self.members.iter().filter_map(|member| {
            let state = states.get(&(&*member.instance.host, &*member.unit))?;
            Some(Process {
                instance: member.instance.id.clone(),
                host: member.instance.host.clone(),
                pid: state.pid?,
                started_us: state.started?,
            })
        });
        Ok(running.collect())
    }

    /// The states of all units: by host and unit.
    pub(super) async fn states<'a>(
        &'a self,
        hosts: &Hosts,
        bounds: Bounds<'_>,
    ) -> Result<BTreeMap<(&'a str, &'a str), State>, DatabaseError> {
        let each = by_host(&self.members)
            .into_iter()
            .map(async |(name, members)| {
                let units = members.iter().map(|m| m.unit.clone()).collect();
                let request = Status { units };
                let states: Vec<State> =
                    look(&*hosts[name], "service-status", &request, bounds).await?;
                let named = members.iter().zip(states);
                let named = named.map(|(m, state)| ((name, &*m.unit), state));
                Ok::<_, DatabaseError>(named.collect::<Vec<_>>())
            });
        Ok(try_join_all(each).await?.into_iter().flatten().collect())
    }
}

/// Members by the hosts that they run on.
pub(super) fn by_host(members: &[Member]) -> BTreeMap<&str, Vec<&Member>> {
    let mut found: BTreeMap<&str, Vec<&Member>> = BTreeMap::new();
    for member in members {
        found.entry(&member.instance.host).or_default().push(member);
    }
    found
}
