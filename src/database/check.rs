//! What of an experiment its systems cannot do: roles, instances, ports, folders, versions, tunables, drivers.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::{sqlite, tunables};
use crate::pack::{Pack, PackError, Packs, Programs, Protocol, Role};
use crate::plan::{self, COMMON, Instance};
use crate::spec::{
    Driver, Engine, Experiment, Inventory, Name, Placement, Problem, Restore, Variant,
};

/// Checks an experiment against the packs of its systems. What is wrong with a pack itself is not told here.
#[must_use]
pub fn check(experiment: &Experiment, inventory: &Inventory, packs: &Packs) -> Vec<Problem> {
    let mut check = Check {
        experiment,
        packs,
        found: Vec::new(),
    };
    let Some(pack) = check.system("cluster.system", &experiment.cluster.system) else {
        return check.found;
    };
    if pack.form.programs == Programs::Builtin {
        check.found.extend(sqlite::check(experiment, inventory));
        return check.found;
    }
    check.balancer();
    check.roles("cluster.topology", &pack, &experiment.cluster.topology);
    check.components("cluster.config", &pack, &experiment.cluster.config);
    for (name, variant) in &experiment.variants {
        check.variant(name, variant);
    }
    check.engine(&pack);
    check.drivers(&pack);
    if check.found.is_empty() {
        check.instances(inventory);
    }
    check.found
}

struct Check<'a> {
    experiment: &'a Experiment,
    packs: &'a Packs,
    found: Vec<Problem>,
}

type Topology = indexmap::IndexMap<Name, Vec<Placement>>;

impl Check<'_> {
    fn report(
        &mut self,
        path: impl Into<String>,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        self.push(path.into(), message.into(), help, false);
    }

    fn report_key(
        &mut self,
        path: impl Into<String>,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        self.push(path.into(), message.into(), help, true);
    }

    fn push(&mut self, path: String, message: String, help: Option<String>, key: bool) {
        self.found.push(Problem {
            path,
            message,
            help,
            key,
        });
    }

    /// The pack of a system; one that is not there or wrong is reported.
    fn system(&mut self, path: &str, name: &Name) -> Option<std::sync::Arc<Pack>> {
        match self.packs.get(name.as_str()) {
            Ok(pack) => Some(pack),
            Err(PackError::NoSystem { known, .. }) => {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let help = closest(name.as_str(), &known, "known");
                self.report(path, format!("there is no system `{name}`"), Some(help));
                None
            }
            Err(
                error @ (PackError::Wrong { .. } | PackError::Keys { .. } | PackError::Read { .. }),
            ) => {
                let help = "see `assay packs check`".to_owned();
                self.report(path, error.to_string(), Some(help));
                None
            }
        }
    }

    fn balancer(&mut self) {
        let Some(balancer) = &self.experiment.load_balancer else {
            return;
        };
        let name = balancer.system.clone();
        let name = name.unwrap_or_else(|| Name::of(plan::BALANCER));
        let Some(pack) = self.system("load_balancer.system", &name) else {
            return;
        };
        if pack.form.protocol != Protocol::Proxy {
            let message = format!("`{name}` is no load balancer");
            self.report("load_balancer.system", message, None);
        }
    }

    fn roles(&mut self, path: &str, pack: &Pack, topology: &Topology) {
        let known: Vec<&str> = pack.form.roles.keys().map(Name::as_str).collect();
        for (name, placements) in topology {
            let path = format!("{path}.{name}");
            match pack.role(name.as_str()) {
                None => {
                    let message = format!("{} has no role `{name}`", pack.name);
                    let help = closest(name.as_str(), &known, "its roles are");
                    self.report_key(path, message, Some(help));
                }
                Some(role) => {
                    for (i, placement) in placements.iter().enumerate() {
                        self.placement(&format!("{path}[{i}]"), role, placement);
                    }
                }
            }
        }
    }

    /// The keys of an instance: those that all have, the ports and settings of its role.
    fn placement(&mut self, path: &str, role: &Role, placement: &Placement) {
        for (key, value) in placement.settings().into_iter().flatten() {
            let at = format!("{path}.{key}");
            let value = &value.0;
            if role.ports.contains_key(key) {
                let port = value.as_u64().filter(|port| (1..=65_535).contains(port));
                if port.is_none() {
                    self.report(at, "expected a port from 1 to 65535", None);
                }
            } else if ["deploy_dir", "data_dir", "log_dir"].contains(&key.as_str()) {
                if !value.as_str().is_some_and(|path| path.starts_with('/')) {
                    self.report(at, "expected an absolute path", None);
                }
            } else if ["config", "resource_control"].contains(&key.as_str()) {
                if !value.is_object() {
                    self.report(at, "expected a mapping", None);
                }
            } else if !role.settings.contains_key(key) && !COMMON.contains(&key.as_str()) {
                let ports = role.ports.keys().map(Name::as_str);
                let settings = role.settings.keys().map(Name::as_str);
                let known: Vec<&str> = ports.chain(settings).chain(COMMON).collect();
                let help = closest(key.as_str(), &known, "the keys here are");
                self.report_key(at, format!("unknown key `{key}`"), Some(help));
            }
        }
    }

    fn components(&mut self, path: &str, pack: &Pack, config: &crate::spec::Config) {
        let component = |(name, role): (&Name, &Role)| {
            let own = role.component.as_ref().unwrap_or(name);
            role.config.is_some().then(|| own.to_string())
        };
        let mut known: Vec<String> = pack.form.roles.iter().filter_map(component).collect();
        known.dedup();
        for name in config.keys() {
            if !known.iter().any(|known| known == name.as_str()) {
                let message = format!("unknown component `{name}`");
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let help = closest(name.as_str(), &known, "its components are");
                self.report_key(format!("{path}.{name}"), message, Some(help));
            }
        }
    }

    fn variant(&mut self, name: &Name, variant: &Variant) {
        let path = format!("variants.{name}");
        let experiment = self.experiment;
        let system = experiment.system_of(variant);
        let at = match &variant.system {
            Some(_) => format!("{path}.system"),
            None => "cluster.system".to_owned(),
        };
        let Some(pack) = self.system(&at, system) else {
            return;
        };
        self.roles(&format!("{path}.topology"), &pack, &variant.topology);
        if variant.system.is_some() && variant.topology.is_empty() {
            self.roles("cluster.topology", &pack, &experiment.cluster.topology);
        }
        self.components(&format!("{path}.config"), &pack, &variant.config);
        self.counts(&path, &pack, variant);
        let needs_version = pack.form.programs == Programs::Packages
            && experiment.deploy.engine != Engine::External;
        let version = variant
            .version
            .as_ref()
            .or(experiment.cluster.version.as_ref());
        if needs_version && version.is_none() {
            let message = format!("{} needs a `version` here, or under `cluster`", pack.name);
            let help = "such as `version: v8.5.0`".to_owned();
            self.report(path, message, Some(help));
        }
    }

    fn counts(&mut self, path: &str, pack: &Pack, variant: &Variant) {
        if self.experiment.deploy.engine == Engine::External {
            return;
        }
        let topology = self.experiment.topology_of(variant);
        let at = if variant.topology.is_empty() {
            "cluster.topology".to_owned()
        } else {
            format!("{path}.topology")
        };
        for (name, role) in &pack.form.roles {
            let found = topology.get(name).map_or(0, Vec::len);
            let count = role.count;
            if found < count.min as usize && !topology.contains_key(name) {
                let message = format!("{} needs the role `{name}`", pack.name);
                let help = format!("`{name}`: {}", role.description);
                self.report(at.clone(), message, Some(help));
            }
        }
    }

    fn engine(&mut self, pack: &Pack) {
        let deploy = &self.experiment.deploy;
        match deploy.engine {
            Engine::External => {
                if deploy.addresses.is_empty() {
                    let message = "an external cluster needs `addresses`: `[host:port, ...]`";
                    self.report("deploy", message, None);
                }
                if self.experiment.snapshot.restore != Restore::Never {
                    let message =
                        "an external cluster is never stopped, so that its data cannot be put back";
                    let help = "write `snapshot: {restore: never}`".to_owned();
                    self.report("snapshot.restore", message, Some(help));
                }
            }
            Engine::Tiup if pack.name != "tidb" => {
                let message = format!("TiUP deploys TiDB, not {}", pack.name);
                self.report("deploy.engine", message, None);
            }
            Engine::Assay | Engine::Tiup => {}
        }
        let users = self.experiment.cluster.users.iter().enumerate();
        let speaks_sql = matches!(pack.form.protocol, Protocol::Mysql | Protocol::Postgres);
        for (i, user) in users {
            if user.name.is_empty() || user.name.contains(['\'', '"', '\\', '`']) {
                let message = "expected a user's name, such as `bench@10.0.%`";
                self.report(format!("cluster.users[{i}].name"), message, None);
            } else if !speaks_sql {
                let message = format!("assay makes no users of {}", pack.name);
                self.report(format!("cluster.users[{i}]"), message, None);
            }
        }
        if self.experiment.cluster.tls && !pack.form.tls {
            let message = format!("the pack of {} knows no TLS", pack.name);
            self.report("cluster.tls", message, None);
        }
    }

    fn drivers(&mut self, pack: &Pack) {
        let experiment = self.experiment;
        let datasets = experiment.dataset.0.iter().enumerate();
        let datasets = datasets.map(|(i, d)| (format!("dataset[{i}].driver"), d.driver));
        let workloads = experiment.workloads.iter().enumerate();
        let workloads = workloads.map(|(i, w)| (format!("workloads[{i}].driver"), w.driver));
        let speaks = matches!(pack.form.protocol, Protocol::Mysql | Protocol::Postgres);
        for (path, driver) in datasets.chain(workloads) {
            let fits = match driver {
                Driver::Sysbench => speaks,
                Driver::Native => false,
            };
            if !fits {
                let message = format!("this driver does not drive {}", pack.name);
                let help = speaks.then(|| "write `sysbench`".to_owned());
                self.report(path, message, help);
            }
        }
        if experiment.clients.is_empty() {
            let message = format!(
                "{} needs `clients`: the hosts that run the driver",
                pack.name
            );
            self.report("clients", message, None);
        }
    }

    /// Ports and folders that two instances of a variant would share.
    fn instances(&mut self, inventory: &Inventory) {
        let Ok(plan) = plan::build(self.experiment, inventory, self.packs, "") else {
            return;
        };
        let judged = tunables(self.experiment, &plan, self.packs, &|_| (None, None));
        let errors = judged.into_iter().filter(|judged| judged.is_error);
        self.found.extend(errors.map(|judged| judged.problem));
        for deployment in &plan.deployments {
            let owner = format!("variants.{}", deployment.id);
            for message in clashes(&deployment.instances) {
                let in_cluster = self.experiment.variants.get(deployment.id.as_str());
                let own = in_cluster.is_some_and(|variant| !variant.topology.is_empty());
                let path = if own {
                    format!("{owner}.topology")
                } else {
                    "cluster.topology".to_owned()
                };
                let is_known = |p: &Problem| p.path == path && p.message == message;
                if !self.found.iter().any(is_known) {
                    self.report(path, message, None);
                }
            }
            self.bounds(deployment, &owner);
        }
    }

    /// How many instances of a role there may be.
    fn bounds(&mut self, deployment: &plan::Deployment, owner: &str) {
        let Ok(pack) = self.packs.get(&deployment.system) else {
            return;
        };
        let own = self.experiment.variants.get(deployment.id.as_str());
        let at = match own.is_some_and(|variant| !variant.topology.is_empty()) {
            true => format!("{owner}.topology"),
            false => "cluster.topology".to_owned(),
        };
        for (name, role) in &pack.form.roles {
            let instances = deployment.instances.iter();
            let found = instances.filter(|i| i.role == name.as_str()).count();
            let (min, max) = (role.count.min as usize, role.count.max.map(|n| n as usize));
            let message = if found == 0 && min == 0 {
                continue;
            } else if found < min {
                format!(
                    "{} needs at least {min} of `{name}`, found {found}",
                    pack.name
                )
            } else if max.is_some_and(|max| found > max) {
                let max = max.unwrap_or_default();
                format!(
                    "{} takes at most {max} of `{name}`, found {found}",
                    pack.name
                )
            } else if role.count.odd && found % 2 == 0 {
                format!(
                    "{} needs an odd number of `{name}`, found {found}",
                    pack.name
                )
            } else {
                continue;
            };
            let path = format!("{at}.{name}");
            let is_known = |p: &Problem| p.path == path && p.message == message;
            if !self.found.iter().any(is_known) {
                self.report(path, message, None);
            }
        }
    }
}

/// What two instances of a deployment would both use.
fn clashes(instances: &[Instance]) -> Vec<String> {
    let mut ports: HashMap<(&str, u16), &Instance> = HashMap::new();
    let mut names: BTreeMap<(&str, &str), &Instance> = BTreeMap::new();
    let mut found = Vec::new();
    for instance in instances {
        for port in instance.ports.values().filter(|port| **port != 0) {
            if let Some(first) = ports.insert((&instance.host, *port), instance) {
                found.push(format!(
                    "`{}` and `{}` would both listen on port {port} of `{}`",
                    first.id, instance.id, instance.host
                ));
            }
        }
        if let Some(Value::String(name)) = instance.settings.get("name")
            && !name.contains("{{")
            && let Some(first) = names.insert((&instance.role, name), instance)
        {
            found.push(format!(
                "`{}` and `{}` have the same name `{name}`",
                first.id, instance.id
            ));
        }
    }
    found
}

/// The known name that was likely meant, or all of them.
fn closest(name: &str, known: &[&str], are: &str) -> String {
    let scored = known.iter().map(|k| (strsim::jaro_winkler(k, name), *k));
    match scored.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((score, close)) if score > 0.8 => format!("did you mean `{close}`?"),
        _ => format!("{are} {}", known.join(", ")),
    }
}
