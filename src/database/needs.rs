//! What a plan needs of each of its hosts, beside what the systems' packs want.

use std::collections::BTreeSet;

use crate::host::preflight::Planned;
use crate::pack::{HostSection, Purposes};
use crate::plan::{Action, Deployment, Plan, estimate};

/// What a plan has a host for.
#[must_use]
pub fn purposes(plan: &Plan, host: &str) -> Purposes {
    let deployments = || plan.deployments.iter();
    Purposes {
        database: deployments().any(|d| {
            let instances = d.instances.iter().map(|i| &i.host);
            d.topology
                .values()
                .flatten()
                .chain(instances)
                .any(|h| h == host)
        }),
        client: deployments().any(|d| d.clients.iter().any(|h| h == host)),
    }
}

/// What a plan needs of a host.
#[must_use]
pub fn planned(plan: &Plan, section: &HostSection, host: &str) -> Planned {
    let there_for = purposes(plan, host);
    let is_client = |id: &str| {
        let deployment = plan.deployments.iter().find(|d| d.id == id);
        deployment.is_some_and(|d| d.clients.iter().any(|h| h == host))
    };
    let rounds = plan.rounds.iter().filter(|r| is_client(&r.deployment));
    let threads = rounds
        .flat_map(|round| &round.steps)
        .filter_map(|step| match &step.action {
            Action::Measure(measure) => Some(measure.threads),
            Action::Deploy
            | Action::Start
            | Action::Load(_)
            | Action::Settle(_)
            | Action::Stop
            | Action::Snapshot
            | Action::Restore
            | Action::Collect => None,
        });
    let instances = |deployment: &Deployment| {
        let storage = |role: &&String| section.storage_roles.contains(role);
        let roles = deployment.topology.keys().filter(storage);
        let hosts = roles.flat_map(|role| &deployment.topology[role]);
        u32::try_from(hosts.filter(|h| *h == host).count()).unwrap_or(u32::MAX)
    };
    Planned {
        connections: threads.max(),
        bytes: there_for.database.then(|| estimate(plan).host_bytes),
        ports: ports(plan, host),
        storage_instances: plan.deployments.iter().map(instances).max(),
        first_timezone: None,
    }
}

/// The ports that instances will listen on, each once: deployments take turns.
fn ports(plan: &Plan, host: &str) -> Vec<u16> {
    let instances = plan.deployments.iter().flat_map(|d| &d.instances);
    let here = instances.filter(|i| i.host == host);
    let ports = here.flat_map(|i| i.ports.values().copied());
    let ports: BTreeSet<u16> = ports.filter(|port| *port != 0).collect();
    ports.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::Packs;
    use crate::plan::build;
    use crate::spec::{Experiment, Inventory};

    fn plan() -> Plan {
        let experiment: Experiment = serde_json::from_value(serde_json::json!({
            "name": "x",
            "cluster": {"system": "sqlite", "topology": {"sqlite": ["local"]}},
            "variants": {"a": {}, "b": {}},
            "dataset": {"driver": "native", "schema": "ycsb", "records": 1000},
            "workloads": [{"driver": "native", "workload": "ycsb_a"}],
            "sweep": {"threads": [4, 64, 16]},
            "rounds": {"duration": "1s", "repetitions": 1},
        }))
        .unwrap();
        build(
            &experiment,
            &Inventory::this_machine(),
            &Packs::built_in(),
            "0",
        )
        .unwrap()
    }

    #[test]
    fn a_plan_needs_connections_for_its_most_threads_and_room_for_its_data() {
        let plan = plan();
        let section = HostSection {
            storage_roles: vec!["sqlite".into()],
            ..HostSection::default()
        };
        let found = planned(&plan, &section, "local");
        assert_eq!(found.connections, Some(64));
        assert_eq!(found.bytes, Some(estimate(&plan).host_bytes));
        assert_eq!(found.storage_instances, Some(1));
        let other = planned(&plan, &section, "elsewhere");
        assert_eq!((other.connections, other.bytes), (None, None));
    }
}
