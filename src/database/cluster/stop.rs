//! Stops a cluster: role after role, in the reverse of the order in which they are started. The processes are gone then.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;

use super::start::by_host;
use super::{Cluster, DatabaseError, Member, Work};
use crate::database::Hosts;
use crate::host::{Bounds, HostError, ask};
use crate::service::{Stop, Stopped};

/// What a host is given to kill those that do not end within their limit, and to say so.
const KILLING: Duration = Duration::from_secs(30);

impl Cluster {
    /// Stops everything, also after one that did not stop as it should. Returns the first such failure.
    pub(super) async fn bring_down(&self, work: Work<'_>) -> Result<(), DatabaseError> {
        let Work { hosts, bounds, say } = work;
        let mut done = Ok(());
        let mut unreachable = BTreeSet::new();
        for stage in self.stages().into_iter().rev() {
            let Some(first) = stage.first() else {
                continue;
            };
            say(&format!("stop {}", first.instance.role));
            let limit = first.role().unit.timeout_stop.0.min(bounds.limit);
            let bounds = Bounds {
                limit: limit + KILLING,
                stop: bounds.stop,
            };
            let mut here = by_host(stage);
            here.retain(|name, _| !unreachable.contains(name));
            let each = here.into_iter().map(async |(name, members)| {
                let stopped = stop_on(hosts, name, &members, limit, bounds).await;
                (name, stopped)
            });
            for (name, stopped) in join_all(each).await {
                if stopped.as_ref().is_err_and(is_unreachable) {
                    unreachable.insert(name);
                }
                done = done.and(stopped);
            }
        }
        done
    }
}

/// Whether there is no use in asking the same host for more.
fn is_unreachable(error: &DatabaseError) -> bool {
    matches!(
        error.host(),
        Some(HostError::Connect { .. } | HostError::Lost { .. })
    )
}

/// Stops the members of a role on a host.
async fn stop_on(
    hosts: &Hosts,
    host: &str,
    members: &[&Member],
    limit: Duration,
    bounds: Bounds<'_>,
) -> Result<(), DatabaseError> {
    let request = Stop {
        units: members.iter().map(|m| m.unit.clone()).collect(),
        limit,
    };
    let stopped: Vec<Stopped> = ask(&*hosts[host], "service-stop", &request, bounds).await?;
    let killed = members.iter().zip(&stopped).find(|(_, s)| s.killed);
    match killed {
        None => Ok(()),
        Some((member, _)) => Err(DatabaseError::Killed {
            instance: member.instance.id.clone(),
            limit,
        }),
    }
}
