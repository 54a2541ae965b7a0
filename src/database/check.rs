//! What of an experiment its systems cannot do: roles, instances, ports, folders, versions, tunables, drivers.

mod asked;
mod engine;
mod instances;
mod placement;

use std::str::FromStr as _;
use std::sync::Arc;

use super::sqlite;
use crate::pack::settings::flatten;
use crate::pack::{Pack, PackError, Packs, Programs, Protocol, Role, Version, VersionRange};
use crate::plan;
use crate::spec::{
    Config, Driver, Engine, Experiment, Inventory, Name, Placement, Problem, Variant, did_you_mean,
};

/// Checks an experiment against the packs of its systems. What is wrong with a pack itself is not told here.
#[must_use]
pub fn check(experiment: &Experiment, inventory: &Inventory, packs: &Packs) -> Vec<Problem> {
    let mut check = Check {
        experiment,
        inventory,
        packs,
        found: Vec::new(),
    };
    let cluster = &experiment.cluster;
    if let Some(pack) = check.tested("cluster.system", &cluster.system) {
        if pack.form.programs == Programs::Builtin {
            check.found.extend(sqlite::check(experiment, inventory));
            check.no_servers();
        } else {
            check.servers(&pack);
        }
    }
    check.found
}

struct Check<'a> {
    experiment: &'a Experiment,
    inventory: &'a Inventory,
    packs: &'a Packs,
    found: Vec<Problem>,
}

type Topology = indexmap::IndexMap<Name, Vec<Placement>>;

impl<'a> Check<'a> {
    /// A problem with a value.
    fn report(
        &mut self,
        path: impl Into<String>,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        self.push(path.into(), message.into(), help, false);
    }

    /// A problem with a key: its name, or that it is there.
    fn report_key(
        &mut self,
        path: impl Into<String>,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        self.push(path.into(), message.into(), help, true);
    }

    /// Variants share what the cluster says, so that one problem can be found several times; it is told once.
    fn push(&mut self, path: String, message: String, help: Option<String>, key: bool) {
        let known = |p: &Problem| p.path == path && p.message == message;
        if !self.found.iter().any(known) {
            self.found.push(Problem {
                path,
                message,
                help,
                key,
            });
        }
    }

    /// A cluster of servers and its variants.
    fn servers(&mut self, pack: &Pack) {
        let cluster = &self.experiment.cluster;
        self.balancer();
        self.roles("cluster.topology", pack, &cluster.topology);
        self.components("cluster.config", pack, &cluster.config);
        self.packages("cluster.packages", pack, &cluster.packages);
        self.variables("cluster.variables", pack, &cluster.variables);
        for (name, variant) in &self.experiment.variants {
            self.variant(name, variant);
        }
        self.engine(pack);
        self.users(pack);
        self.folders();
        self.drivers(pack);
        if self.found.is_empty() && self.deploys() {
            self.instances();
        }
    }

    /// Variants of a cluster that is no server have no other system.
    fn no_servers(&mut self) {
        for (name, variant) in &self.experiment.variants {
            if let Some(system) = &variant.system {
                let path = format!("variants.{name}.system");
                if let Some(pack) = self.tested(&path, system) {
                    self.alike(&path, &pack, false);
                }
            }
        }
    }

    /// Whether instances of the experiment's own are deployed.
    fn deploys(&self) -> bool {
        match self.experiment.deploy.engine {
            Engine::Assay | Engine::Tiup => true,
            Engine::External => false,
        }
    }

    /// The pack of a system; one that is not there or wrong is reported.
    fn system(&mut self, path: &str, name: &Name) -> Option<Arc<Pack>> {
        match self.packs.get(name.as_str()) {
            Ok(pack) => Some(pack),
            Err(PackError::NoSystem { known, .. }) => {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let help = did_you_mean(name.as_str(), &known, "the systems are");
                self.report(path, format!("there is no system `{name}`"), help);
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

    /// The pack of a system under test.
    fn tested(&mut self, path: &str, name: &Name) -> Option<Arc<Pack>> {
        let pack = self.system(path, name)?;
        let message = if pack.form.protocol == Protocol::Proxy {
            format!("`{name}` is a load balancer, which stands before a system")
        } else if pack.form.roles.is_empty() {
            format!("assay cannot deploy `{name}`: its pack has no roles")
        } else {
            return Some(pack);
        };
        self.report(path, message, None);
        None
    }

    /// Whether a variant's system is driven as the cluster's is: by a driver over a network, or in the driver itself.
    fn alike(&mut self, path: &str, pack: &Pack, servers: bool) -> bool {
        let alike = servers == (pack.form.programs != Programs::Builtin);
        if !alike {
            let message = format!(
                "no driver drives both `{}` and `{}`",
                self.experiment.cluster.system, pack.name
            );
            self.report(path, message, None);
        }
        alike
    }

    fn balancer(&mut self) {
        let Some(balancer) = &self.experiment.load_balancer else {
            return;
        };
        // One that is there already needs no pack.
        if balancer.host.is_none() {
            return;
        }
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
            let Some(role) = pack.role(name.as_str()) else {
                let message = format!("{} has no role `{name}`", pack.name);
                let help = did_you_mean(name.as_str(), &known, "its roles are");
                self.report_key(path, message, help);
                continue;
            };
            for (i, placement) in placements.iter().enumerate() {
                self.placement(&format!("{path}[{i}]"), role, placement);
            }
        }
    }

    fn components(&mut self, path: &str, pack: &Pack, config: &Config) {
        let component = |(name, role): (&'_ Name, &'_ Role)| {
            let own = role.component.as_ref().unwrap_or(name);
            role.config.is_some().then(|| own.to_string())
        };
        let known: Vec<String> = pack.form.roles.iter().filter_map(component).collect();
        let mut known: Vec<&str> = known.iter().map(String::as_str).collect();
        known.dedup();
        for (name, tunables) in config {
            let layer: serde_json::Map<String, serde_json::Value> = tunables
                .iter()
                .map(|(key, value)| (key.to_string(), value.0.clone()))
                .collect();
            if let Err(error) = flatten(&serde_json::Value::Object(layer)) {
                self.report(format!("{path}.{name}"), error.to_string(), None);
            }
            if !known.contains(&name.as_str()) {
                let message = format!("unknown component `{name}`");
                let help = did_you_mean(name.as_str(), &known, "its components are");
                self.report_key(format!("{path}.{name}"), message, help);
            }
        }
    }

    fn variant(&mut self, name: &Name, variant: &Variant) {
        let path = format!("variants.{name}");
        let experiment: &'a Experiment = self.experiment;
        let at = match &variant.system {
            Some(_) => format!("{path}.system"),
            None => "cluster.system".to_owned(),
        };
        let Some(pack) = self.tested(&at, experiment.system_of(variant)) else {
            return;
        };
        if !self.alike(&at, &pack, true) {
            return;
        }
        self.roles(&format!("{path}.topology"), &pack, &variant.topology);
        if variant.system.is_some() && variant.topology.is_empty() {
            self.roles("cluster.topology", &pack, &experiment.cluster.topology);
        }
        self.components(&format!("{path}.config"), &pack, &variant.config);
        self.variables(&format!("{path}.variables"), &pack, &variant.variables);
        if let Some(packages) = &variant.packages {
            self.packages(&format!("{path}.packages"), &pack, packages);
        }
        if self.deploys() {
            self.missing_roles(&pack, (name, variant));
            self.version(&path, &pack, variant);
        }
    }

    fn version(&mut self, path: &str, pack: &Pack, variant: &Variant) {
        let cluster = &self.experiment.cluster;
        let has_one = variant.version.is_some() || cluster.version.is_some();
        if pack.form.programs == Programs::Packages && !has_one {
            let message = format!("{} needs a `version` here, or under `cluster`", pack.name);
            let help = "such as `version: v8.5.0`".to_owned();
            self.report(path, message, Some(help));
        }
        let (at, version) = match (&variant.version, &cluster.version) {
            (Some(version), _) => (format!("{path}.version"), version),
            (None, Some(version)) => ("cluster.version".to_owned(), version),
            (None, None) => return,
        };
        let Ok(version) = Version::from_str(version) else {
            let message = format!("`{version}` is no version");
            let help = "versions are like `v8.5.0`, or `nightly`".to_owned();
            self.report(at, message, Some(help));
            return;
        };
        let is_outside = |range: &Option<String>| {
            let range = range.as_deref().map(VersionRange::from_str);
            !version.is_nightly()
                && range.is_some_and(|range| range.is_ok_and(|range| !range.contains(&version)))
        };
        if is_outside(&pack.form.versions) {
            let range = pack.form.versions.as_deref().unwrap_or_default();
            let message = format!("the pack of {} is for versions {range}", pack.name);
            self.report(at.clone(), message, None);
        }
        for (name, role) in &pack.form.roles {
            let is_used = self.experiment.topology_of(variant).contains_key(name);
            if is_used && is_outside(&role.versions) {
                let range = role.versions.as_deref().unwrap_or_default();
                let message = format!("the role `{name}` is there in versions {range}");
                self.report(at.clone(), message, None);
            }
        }
    }

    fn missing_roles(&mut self, pack: &Pack, (name, variant): (&Name, &Variant)) {
        let topology = self.experiment.topology_of(variant);
        let at = topology_path(name, variant);
        // An unknown role is likely the one that is missing.
        if !topology
            .keys()
            .all(|role| pack.form.roles.contains_key(role))
        {
            return;
        }
        for (name, role) in &pack.form.roles {
            if role.count.min > 0 && !topology.contains_key(name) {
                let message = format!("{} needs the role `{name}`", pack.name);
                let help = format!("`{name}`: {}", role.description);
                self.report(at.clone(), message, Some(help));
            }
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
            let (word, fits) = match driver {
                Driver::Sysbench => ("sysbench", speaks),
                Driver::Native => ("native", false),
            };
            if !fits {
                let message = format!("the driver `{word}` does not drive {}", pack.name);
                let help = speaks.then(|| "write `sysbench`".to_owned());
                self.report(path, message, help);
            }
        }
        if experiment.clients.is_empty() {
            let name = &pack.name;
            let message = format!("{name} needs `clients`: the hosts that run the driver");
            self.report("clients", message, None);
        }
    }
}

/// Where the topology of a variant is written.
fn topology_path(name: &Name, variant: &Variant) -> String {
    if variant.topology.is_empty() {
        "cluster.topology".to_owned()
    } else {
        format!("variants.{name}.topology")
    }
}
