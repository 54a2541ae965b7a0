//! Waits until a cluster is quiet: what its pack says, then what its hook compares over time. Each condition is named while it
//! is waited for.

use std::time::Instant;

use super::{Cluster, DatabaseError, Member, Work, tidb};
use crate::host::Bounds;
use crate::pack::Condition;
use crate::spec::{AtLimit, Settle};
use crate::units;

impl Cluster {
    /// Waits. Returns what was not quiet at the limit, where that is only worth a warning.
    pub(super) async fn become_quiet(
        &self,
        settle: &Settle,
        work: Work<'_>,
    ) -> Result<Option<String>, DatabaseError> {
        let Work { hosts, bounds, say } = work;
        let begun = Instant::now();
        let left = || Bounds {
            limit: settle.timeout.0.saturating_sub(begun.elapsed()),
            stop: bounds.stop,
        };
        for condition in &self.pack.form.settle {
            if !self.applies(condition.versions.as_deref()) {
                continue;
            }
            let name = condition.name.clone().unwrap_or_default();
            say(&format!("until {name}"));
            for member in self.asked_of(condition) {
                let host = &*hosts[&member.instance.host];
                let held = self.wait(host, member, condition, left()).await;
                match held {
                    Ok(()) => {}
                    Err(error) if error.host().is_some() => return Err(error),
                    Err(error) => return restless(settle, &format!("{name}: {error}")),
                }
            }
        }
        if self.pack.name == tidb::SYSTEM {
            let quiet = tidb::until_quiet(self, hosts, settle, &left, say).await?;
            if let Some(condition) = quiet {
                return restless(settle, &condition);
            }
        }
        Ok(None)
    }

    /// The members that a condition is asked of.
    fn asked_of(&self, condition: &Condition) -> Vec<&Member> {
        let role = condition.role.as_ref().map(|role| role.as_str());
        let entry = self.scene.entry.as_ref().map(|(role, _)| &**role);
        let role = role.or(entry).unwrap_or_default();
        let of_role = self.members.iter();
        let of_role =
            of_role.filter(|m| m.instance.role == role && m.instance.system == self.pack.name);
        let most = if condition.each { usize::MAX } else { 1 };
        of_role.take(most).collect()
    }
}

fn restless(settle: &Settle, condition: &str) -> Result<Option<String>, DatabaseError> {
    match settle.at_limit {
        AtLimit::Warn => Ok(Some(condition.to_owned())),
        AtLimit::Invalid => Err(DatabaseError::Restless {
            limit: units::Duration(settle.timeout.0).to_string(),
            condition: condition.to_owned(),
        }),
    }
}
