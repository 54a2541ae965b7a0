//! Stops a cluster: role after role, in the reverse of the order in which they are started. The processes are gone then.

use futures::future::try_join_all;

use super::start::by_host;
use super::{Cluster, DatabaseError, Work};
use crate::host::ask;
use crate::service::{Stop, Stopped};

impl Cluster {
    /// Stops everything.
    pub(super) async fn bring_down(&self, work: Work<'_>) -> Result<(), DatabaseError> {
        let Work { hosts, bounds, say } = work;
        for stage in self.stages().into_iter().rev() {
            let Some(first) = stage.first() else {
                continue;
            };
            say(&format!("stop {}", first.instance.role));
            let limit = first.role().unit.timeout_stop.0.min(bounds.limit);
            let each = by_host(stage).into_iter().map(async |(name, members)| {
                let request = Stop {
                    units: members.iter().map(|m| m.unit.clone()).collect(),
                    limit,
                };
                let stopped: Vec<Stopped> =
                    ask(&*hosts[name], "service-stop", &request, bounds).await?;
                for (member, stopped) in members.iter().zip(&stopped) {
                    if stopped.killed {
                        return Err(DatabaseError::Killed {
                            instance: member.instance.id.clone(),
                            limit,
                        });
                    }
                }
                Ok::<_, DatabaseError>(())
            });
            try_join_all(each).await?;
        }
        Ok(())
    }
}
