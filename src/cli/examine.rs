//! What a host is, how fast it is, and whether an experiment can run on it: for `run`, `resume` and `hosts`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::error::{Code, Failure};
use super::reach::{AT_ONCE, Hosts};
use super::{hosts_check, text};
use crate::artifacts::HostRecord;
use crate::database::{planned, purposes};
use crate::host::preflight::{
    Directory, Finding, HostView, Leftovers, Looked, Status, Wanted, findings,
};
use crate::host::{
    AgentError, Bounds, Calibration, CalibrationRequest, ClockOffset, Facts, Host, ask,
    clock_offset, fan_out, look,
};
use crate::pack::{HostSection, PackError, Packs, Purposes};
use crate::plan::Plan;

/// The longest that one question to a host may take.
const LIMIT: Duration = Duration::from_secs(60);
/// Other hosts that a host's calibration connects to, at most.
const PEERS: usize = 16;

/// What was found out about a host.
#[derive(Clone, Debug)]
pub(super) struct Examined {
    pub(super) facts: Facts,
    pub(super) clock: ClockOffset,
    pub(super) leftovers: Leftovers,
    pub(super) directory: Directory,
}

/// Asks an agent of a host that needs nothing but its directory.
pub(super) async fn ask_folder<T: DeserializeOwned + Send>(
    host: &dyn Host,
    agent: &str,
) -> Result<T, AgentError> {
    let request = json!({ "directory": host.directory() });
    question(host, agent, &request).await
}

/// Lets an agent of a host change something, once.
pub(super) async fn order<Q: Serialize + Sync, T: DeserializeOwned + Send>(
    host: &dyn Host,
    agent: &str,
    request: &Q,
) -> Result<T, AgentError> {
    ask(host, agent, request, bounds(&CancellationToken::new())).await
}

/// Asks an agent of a host that only looks.
pub(super) async fn question<Q: Serialize + Sync, T: DeserializeOwned + Send>(
    host: &dyn Host,
    agent: &str,
    request: &Q,
) -> Result<T, AgentError> {
    look(host, agent, request, bounds(&CancellationToken::new())).await
}

fn bounds(stop: &CancellationToken) -> Bounds<'_> {
    Bounds { limit: LIMIT, stop }
}

/// Does something on every host, on several at once; one that fails does not hold up the others.
pub(super) async fn on_each<T, F, W>(hosts: &Hosts, work: W) -> BTreeMap<String, T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
    W: Fn(Arc<dyn Host>) -> F,
{
    let works: Vec<F> = hosts.values().map(|host| work(Arc::clone(host))).collect();
    let done = fan_out(works, AT_ONCE, |_, _| {}).await;
    hosts.keys().cloned().zip(done).collect()
}

/// Looks at every host.
pub(super) async fn examine(hosts: &Hosts) -> BTreeMap<String, Result<Examined, AgentError>> {
    on_each(hosts, |host| async move {
        let facts = ask_folder(&*host, "facts").await?;
        let clock = clock_offset(&*host).await?;
        let looked: Looked = ask_folder(&*host, "preflight-look").await?;
        let (mut leftovers, directory) = (looked.leftovers, looked.directory);
        // While this process holds the host, what is there is nobody's any more.
        leftovers.held_by.take_if(|holder| holder.is_this_process());
        Ok(Examined {
            facts,
            clock,
            leftovers,
            directory,
        })
    })
    .await
}

/// Calibrates every host. Those that share a kernel would slow each other down, and take turns.
/// `addresses` says where a host's others can connect to it.
pub(super) async fn calibrate(
    hosts: &Hosts,
    facts: &BTreeMap<String, Facts>,
    addresses: &BTreeMap<String, String>,
) -> BTreeMap<String, Result<Calibration, AgentError>> {
    let boot = |name: &String| facts.get(name).and_then(|f| f.boot_id.clone());
    let boots: BTreeSet<_> = hosts.keys().map(boot).collect();
    let turns: BTreeMap<_, _> = boots
        .into_iter()
        .map(|boot| (boot, Arc::new(Semaphore::new(1))))
        .collect();
    on_each(hosts, |host| {
        let name = host.name().to_owned();
        let turn = Arc::clone(&turns[&boot(&name)]);
        let request = CalibrationRequest {
            directory: host.directory().to_owned(),
            peers: peers(&name, addresses),
        };
        async move {
            let _turn = turn.acquire().await;
            question(&*host, "calibrate", &request).await
        }
    })
    .await
}

/// The hosts that come after this one, at most [`PEERS`], the first after the last.
fn peers(name: &str, addresses: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let others = || addresses.iter().filter(|(other, _)| *other != name);
    let after = others().filter(|(other, _)| other.as_str() > name);
    let before = others().filter(|(other, _)| other.as_str() < name);
    let ring = after.chain(before).take(PEERS);
    ring.map(|(name, address)| (name.clone(), address.clone()))
        .collect()
}

/// What systems want of the hosts of an examination.
pub(super) struct Wants<'a> {
    sections: Vec<HostSection>,
    plan: Option<&'a Plan>,
}

impl<'a> Wants<'a> {
    /// What the systems of a plan want.
    pub(super) fn of_plan(plan: &'a Plan, packs: &Packs) -> Result<Self, Failure> {
        let names: BTreeSet<&str> = plan.deployments.iter().map(|d| &*d.system).collect();
        Self::of(names.into_iter(), packs, Some(plan))
    }

    /// What one system wants, by its name.
    pub(super) fn of_system(
        system: &str,
        packs: &Packs,
        plan: Option<&'a Plan>,
    ) -> Result<Self, Failure> {
        Self::of([system].into_iter(), packs, plan)
    }

    fn of<'s>(
        systems: impl Iterator<Item = &'s str>,
        packs: &Packs,
        plan: Option<&'a Plan>,
    ) -> Result<Self, Failure> {
        let sections = systems.map(|system| Ok(packs.get(system)?.host.clone()));
        Ok(Self {
            sections: sections.collect::<Result<_, PackError>>()?,
            plan,
        })
    }

    /// What is wanted of a host; without a plan, of one that does everything.
    fn wanted(&self, host: &str, first_timezone: Option<&(String, String)>) -> Wanted {
        let there_for = self.plan.map_or(
            Purposes {
                database: true,
                client: true,
            },
            |plan| purposes(plan, host),
        );
        let mut wanted = Wanted::default();
        for section in &self.sections {
            wanted = wanted.or(section.wanted(there_for));
            if let Some(plan) = self.plan {
                wanted.planned = planned(plan, section, host);
            }
        }
        wanted.planned.first_timezone = first_timezone.cloned();
        wanted
    }

    /// Compares what was found with what is wanted. `change` has the last word on what is wanted.
    pub(super) fn findings(
        &self,
        examined: &BTreeMap<String, Examined>,
        change: impl Fn(&mut Wanted),
    ) -> BTreeMap<String, Vec<Finding>> {
        let zones = examined
            .iter()
            .filter_map(|(name, host)| Some((name.clone(), host.facts.timezone.clone()?)));
        let first = zones.take(1).next();
        let of = |(name, host): (&String, &Examined)| {
            let mut wanted = self.wanted(name, first.as_ref());
            change(&mut wanted);
            let view = HostView {
                facts: &host.facts,
                clock: Some(host.clock),
                leftovers: Some(&host.leftovers),
                directory: Some(&host.directory),
            };
            (name.clone(), findings(&view, &wanted))
        };
        examined.iter().map(of).collect()
    }
}

/// What was found of every host; the first one that could not be asked is an error.
pub(super) fn all<T>(
    found: BTreeMap<String, Result<T, AgentError>>,
) -> Result<BTreeMap<String, T>, Failure> {
    let each = found.into_iter();
    each.map(|(name, result)| Ok((name, result?))).collect()
}

/// Everything about the hosts of a new run: what they are, how fast, and whether the plan can be carried out on them.
pub(super) async fn records(
    plan: &Plan,
    packs: &Packs,
    hosts: &Hosts,
    addresses: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, HostRecord>, Failure> {
    let examined = all(examine(hosts).await)?;
    let facts = examined.iter().map(|(n, e)| (n.clone(), e.facts.clone()));
    let calibrations = calibrate(hosts, &facts.collect(), addresses).await;
    let mut calibrations = all(calibrations)?;
    let mut findings = Wants::of_plan(plan, packs)?.findings(&examined, |_| {});
    let record = |(name, host): (String, Examined)| {
        let record = HostRecord {
            facts: host.facts,
            clock: Some(host.clock),
            calibration: calibrations.remove(&name),
            preflight: findings.remove(&name).unwrap_or_default(),
        };
        (name, record)
    };
    Ok(examined.into_iter().map(record).collect())
}

/// Lets a run begin or go on: warnings are told, and what failed stops it unless the user says that it does not matter.
///
/// # Errors
/// Something failed.
pub(super) fn admit(
    findings: &BTreeMap<String, Vec<Finding>>,
    ignore: bool,
) -> Result<(), Failure> {
    let failed = lines(findings, Status::Fail);
    if !failed.is_empty() && !ignore {
        let causes = failed.len();
        let table = hosts_check::table(findings, text::width(), false);
        let message = match causes {
            1 => "pre-flight failed; nothing was changed".to_owned(),
            n => format!("pre-flight failed in {n} points; nothing was changed"),
        };
        return Err(Failure::new(Code::Host, message)
            .because(failed)
            .above(table)
            .hint(
                "mend this (`assay hosts check --apply` makes the safe fixes), or go on all the same with `--ignore-preflight`",
            ));
    }
    for line in failed.into_iter().chain(lines(findings, Status::Warn)) {
        tracing::warn!("pre-flight: {line}");
    }
    Ok(())
}

/// A line for each group of equal findings.
fn lines(findings: &BTreeMap<String, Vec<Finding>>, status: Status) -> Vec<String> {
    let groups = hosts_check::groups(findings);
    let of_status = groups.iter().filter(|group| group.finding.status == status);
    of_status
        .map(|group| {
            let Finding {
                item,
                found,
                wanted,
                ..
            } = group.finding;
            format!("{}: {item}: {found}, wanted {wanted}", group.names())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_connects_to_a_few_of_the_others_and_every_one_is_connected_to() {
        let names: Vec<String> = (10..60).map(|n| format!("kv{n}")).collect();
        let all = names
            .iter()
            .map(|n| (n.clone(), format!("{n}:22")))
            .collect();
        let mut reached: BTreeMap<String, usize> = BTreeMap::new();
        for name in &names {
            let peers = peers(name, &all);
            assert_eq!(peers.len(), PEERS);
            assert!(!peers.contains_key(name));
            peers
                .into_keys()
                .for_each(|peer| *reached.entry(peer).or_default() += 1);
        }
        assert!(reached.len() == names.len() && reached.values().all(|n| *n == PEERS));
    }
}
