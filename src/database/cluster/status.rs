//! How a cluster is: every instance with its state, version, health and, where there is one, who leads. And its removal.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use futures::future::try_join_all;
use serde::Serialize;

use super::install::STOPPING;
use super::{Cluster, DatabaseError, Member, Work, tidb};
use crate::host::{Bounds, Host, ask, look};
use crate::pack;
use crate::service::{Remove, Removed};

/// How long an instance may take to answer.
const ANSWER: Duration = Duration::from_secs(3);

/// How an instance is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstanceStatus {
    /// Its name.
    pub instance: String,
    /// Its role.
    pub role: String,
    /// Its host.
    pub host: String,
    /// Its address and main port.
    pub address: String,
    /// Its unit.
    pub unit: String,
    /// What its unit does: `active`, `absent`, ...
    pub state: String,
    /// Its process.
    pub pid: Option<u32>,
    /// For how long it has run, s.
    pub uptime_s: Option<f64>,
    /// How often it was started again.
    pub restarts: u32,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// The version that it says it has.
    pub version: Option<String>,
    /// Why it is not healthy; nothing when it is.
    pub fault: Option<String>,
    /// Whether it leads the others.
    pub leader: bool,
}

impl Cluster {
    /// How every instance is, in the order in which they are started.
    pub(super) async fn instances(
        &self,
        work: Work<'_>,
    ) -> Result<Vec<InstanceStatus>, DatabaseError> {
        let Work { hosts, bounds, .. } = work;
        let states = self.states(hosts, bounds).await?;
        let leader = tidb::leader(self, hosts, bounds).await;
        let each = self.members.iter().map(async |member| {
            let instance = &member.instance;
            let state = states.get(&(&*instance.host, &*member.unit));
            let runs = state.is_some_and(|state| state.pid.is_some());
            let host = &*hosts[&instance.host];
            let (version, fault) = if runs {
                let version = self.version_of(host, member, bounds).await;
                (version, self.fault_of(host, member, bounds).await?)
            } else {
                (None, Some("it does not run".to_owned()))
            };
            Ok::<_, DatabaseError>(InstanceStatus {
                instance: instance.id.clone(),
                role: instance.role.clone(),
                host: instance.host.clone(),
                address: format!(
                    "{}:{}",
                    crate::template::bracketed(&instance.address),
                    instance.port
                ),
                unit: member.unit.clone(),
                state: state.map_or_else(|| "absent".to_owned(), |s| s.activity.to_string()),
                pid: state.and_then(|s| s.pid),
                uptime_s: state.and_then(|s| s.uptime).map(|us| us as f64 / 1e6),
                restarts: state.map_or(0, |s| s.restarts),
                memory_bytes: state.and_then(|s| s.memory),
                version,
                fault,
                leader: leader.as_deref() == Some(&*instance.id),
            })
        });
        try_join_all(each).await
    }

    async fn version_of(
        &self,
        host: &dyn Host,
        member: &Member,
        bounds: Bounds<'_>,
    ) -> Option<String> {
        let reading = member.role().version.as_ref()?;
        let found = self.reading(host, member, reading, bounds).await.ok()?;
        Some(pack::text(found.pointer("/0/0").unwrap_or(&found)))
    }

    /// Why a member is not ready.
    async fn fault_of(
        &self,
        host: &dyn Host,
        member: &Member,
        bounds: Bounds<'_>,
    ) -> Result<Option<String>, DatabaseError> {
        let brief = Bounds {
            limit: ANSWER,
            stop: bounds.stop,
        };
        for condition in &member.role().ready {
            if !self.applies(condition.versions.as_deref()) {
                continue;
            }
            match self.wait(host, member, condition, brief).await {
                Ok(()) => {}
                Err(error) if error.host().is_some() => return Err(error),
                Err(error) => return Ok(Some(error.to_string())),
            }
        }
        Ok(None)
    }

    /// Removes it from its hosts, or only says what would be removed. By host.
    pub(super) async fn clear_away(
        &self,
        dry_run: bool,
        keep_data: bool,
        work: Work<'_>,
    ) -> Result<BTreeMap<String, Removed>, DatabaseError> {
        let Work { hosts, bounds, .. } = work;
        let mut names = self.host_names();
        names.extend(self.deployment.clients.iter().map(|name| &**name));
        let each = names.into_iter().map(async |name| {
            let host = &*hosts[name];
            let removal = self.removal(name);
            let removed: Removed = if dry_run {
                look(host, "service-removal", &removal, bounds).await?
            } else {
                let request = Remove {
                    removal,
                    keep: if keep_data {
                        self.data_on(name)
                    } else {
                        Vec::new()
                    },
                    limit: STOPPING,
                };
                ask(host, "service-remove", &request, bounds).await?
            };
            Ok::<_, DatabaseError>((name.to_owned(), removed))
        });
        Ok(try_join_all(each).await?.into_iter().collect())
    }

    /// Folders of data and snapshots on a host.
    fn data_on(&self, host: &str) -> Vec<PathBuf> {
        let here = self.members.iter().filter(|m| m.instance.host == host);
        here.flat_map(|m| m.data.clone().into_iter().chain(m.snapshot.clone()))
            .collect()
    }
}
