//! What a system wants of its hosts: the `host` section of its pack, by what a host is there for, and what the plan adds.

use serde::Deserialize;

use crate::host::preflight::{Planned, Wanted};
use crate::plan::{Action, Deployment, Plan, estimate};

/// What a system wants of its hosts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostSection {
    /// The roles whose instances store data.
    pub storage_roles: Vec<String>,
    /// What is wanted of every host.
    pub all: Wanted,
    /// What is wanted besides of a host that carries an instance.
    pub database: Wanted,
    /// What is wanted besides of a host that runs a load tool.
    pub client: Wanted,
}

/// What a host is there for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// It carries an instance.
    pub database: bool,
    /// It runs a load tool.
    pub client: bool,
}

impl Roles {
    /// What a plan has a host for.
    #[must_use]
    pub fn in_plan(plan: &Plan, host: &str) -> Self {
        let deployments = || plan.deployments.iter();
        Self {
            database: deployments().any(|d| d.topology.values().flatten().any(|h| h == host)),
            client: deployments().any(|d| d.clients.iter().any(|h| h == host)),
        }
    }
}

impl HostSection {
    /// What is wanted of a host in these roles.
    #[must_use]
    pub fn wanted(&self, roles: Roles) -> Wanted {
        let mut wanted = Wanted::default();
        if roles.database {
            wanted = wanted.or(self.database.clone());
        }
        if roles.client {
            wanted = wanted.or(self.client.clone());
        }
        wanted.or(self.all.clone())
    }

    /// The first entry of a list of warnings that names nothing that is checked.
    pub(super) fn unknown_warning(&self) -> Option<String> {
        let everything = self.wanted(Roles {
            database: true,
            client: true,
        });
        everything.unknown_warning().map(str::to_owned)
    }
}

/// What a plan needs of a host. No deployment has ports yet.
#[must_use]
pub fn planned(plan: &Plan, section: &HostSection, host: &str) -> Planned {
    let roles = Roles::in_plan(plan, host);
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
        bytes: roles.database.then(|| estimate(plan).host_bytes),
        ports: Vec::new(),
        storage_instances: plan.deployments.iter().map(instances).max(),
        first_timezone: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        build(&experiment, &Inventory::this_machine(), "0")
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

    #[test]
    fn a_host_is_wanted_to_be_what_its_roles_ask_for() {
        let section: HostSection = serde_json::from_value(serde_json::json!({
            "all": {"clock_offset": "500ms", "governor": "performance", "warn": ["governor"]},
            "database": {"thp": "never", "clock_offset": "100ms"},
            "client": {"open_files": true},
        }))
        .unwrap();
        let of = |database, client| section.wanted(Roles { database, client });
        let ms = |wanted: &Wanted| wanted.clock_offset.map(|d| d.0.as_millis());
        let (neither, database, client) = (of(false, false), of(true, false), of(false, true));
        assert_eq!(
            (ms(&neither), ms(&database), ms(&client)),
            (Some(500), Some(100), Some(500))
        );
        assert_eq!(database.thp.as_deref(), Some("never"));
        assert!(!database.open_files && client.open_files && client.thp.is_none());
        assert!(database.warn.contains("governor"));
        let both = of(true, true);
        assert!(both.open_files && both.thp.is_some());
    }
}
