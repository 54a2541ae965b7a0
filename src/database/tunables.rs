//! Every tunable of an experiment against what its system's pack knows of the version: unknown, gone, renamed, without effect,
//! out of range. Before hosts are known nothing is judged by their CPUs and memory.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use serde_json::Value;

use crate::pack::keys::{Context, Finding, Keys, Severity};
use crate::pack::settings::{Settings, flatten};
use crate::pack::{self, Packs, Version};
use crate::plan::{Deployment, Instance, Plan};
use crate::spec::{Config, Engine, Experiment, Problem};

/// A finding and where the tunable is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Where, and what.
    pub problem: Problem,
    /// Whether nothing can be deployed so.
    pub is_error: bool,
}

/// What a host has that limits depend on: CPUs, and bytes of memory.
pub type Machine = (Option<u32>, Option<u64>);

/// Judges the tunables and variables of every deployment of a plan; `machine` says what a host has.
#[must_use]
pub fn tunables(
    experiment: &Experiment,
    plan: &Plan,
    packs: &Packs,
    machine: &dyn Fn(&str) -> Machine,
) -> Vec<Judged> {
    let mut found = Vec::new();
    for deployment in &plan.deployments {
        let Ok(pack) = packs.get(&deployment.system) else {
            continue;
        };
        let version = deployment.version.as_deref();
        let version = version.and_then(|version| Version::from_str(version).ok());
        let (Some(keys), Some(version)) = (&pack.keys, version) else {
            continue;
        };
        let judge = Judge {
            experiment,
            deployment,
            keys,
            version,
        };
        for instance in deployment
            .instances
            .iter()
            .filter(|i| i.system == pack.name)
        {
            let component = pack.role(&instance.role).and_then(|r| r.component.as_ref());
            let component = component.map_or(&*instance.role, |name| name.as_str());
            let own = pack
                .role(&instance.role)
                .and_then(|r| r.package_version.as_ref());
            let own = own.and_then(|_| instance.settings.get("package_version"));
            let own = own.and_then(|own| Version::from_str(&pack::text(own)).ok());
            let version = own.as_ref().unwrap_or(&judge.version);
            judge.instance(
                (component, version),
                instance,
                machine(&instance.host),
                &mut found,
            );
        }
        judge.variables(&mut found);
    }
    found
}

struct Judge<'a> {
    experiment: &'a Experiment,
    deployment: &'a Deployment,
    keys: &'a Keys,
    version: Version,
}

impl Judge<'_> {
    fn instance(
        &self,
        (component, version): (&str, &Version),
        instance: &Instance,
        (cpus, memory): Machine,
        found: &mut Vec<Judged>,
    ) {
        let all = flatten(&instance.config).unwrap_or_default();
        let context = Context {
            version,
            cpus,
            memory,
            others: &all,
        };
        let written: BTreeSet<String> = self.written(component, instance, &all);
        for key in written {
            let Some(value) = all.get(&key) else {
                continue;
            };
            let findings = self.keys.check(component, &key, value, &context);
            let path = self.place(component, &key, instance);
            push(found, &path, findings);
        }
    }

    /// The keys that the experiment writes, the pack's own left out.
    fn written(&self, component: &str, instance: &Instance, all: &Settings) -> BTreeSet<String> {
        let config = self.deployment.config.get(component);
        let of_config = config.into_iter().flat_map(|config| config.keys().cloned());
        let own = self.own(instance);
        let of_instance = all.keys().filter(|key| own.contains_key(*key)).cloned();
        of_config.chain(of_instance).collect()
    }

    /// The tunables that an instance is written with itself.
    fn own(&self, instance: &Instance) -> Settings {
        let topology = self.topology();
        let placements = topology.1.get(&*instance.role).into_iter().flatten();
        let mut all = Settings::new();
        for placement in placements.filter(|p| p.name().as_str() == instance.host) {
            let config = placement
                .settings()
                .and_then(|settings| settings.get("config"));
            all.extend(config.and_then(|c| flatten(&c.0).ok()).unwrap_or_default());
        }
        all
    }

    fn topology(
        &self,
    ) -> (
        String,
        &indexmap::IndexMap<crate::spec::Name, Vec<crate::spec::Placement>>,
    ) {
        let cluster = &self.experiment.cluster.topology;
        match self.experiment.variants.get(&*self.deployment.id) {
            Some(variant) if !variant.topology.is_empty() => (
                format!("variants.{}.topology", self.deployment.id),
                &variant.topology,
            ),
            _ => ("cluster.topology".to_owned(), cluster),
        }
    }

    /// Where a key is written: by the instance, the variant, or the cluster.
    fn place(&self, component: &str, key: &str, instance: &Instance) -> String {
        let (path, topology) = self.topology();
        let placements = topology.get(&*instance.role).into_iter().flatten();
        for (i, placement) in placements.enumerate() {
            let own = placement
                .settings()
                .and_then(|settings| settings.get("config"));
            let own = own.and_then(|own| flatten(&own.0).ok()).unwrap_or_default();
            if placement.name().as_str() == instance.host && own.contains_key(key) {
                return format!("{path}.{}[{i}].config.{key}", instance.role);
            }
        }
        let has = |config: &Config| {
            config.get(component).is_some_and(|tunables| {
                let layer: serde_json::Map<String, Value> = tunables
                    .iter()
                    .map(|(name, value)| (name.to_string(), value.0.clone()))
                    .collect();
                flatten(&Value::Object(layer)).is_ok_and(|flat| flat.contains_key(key))
            })
        };
        let id = &self.deployment.id;
        let variant = self.experiment.variants.get(&**id);
        if variant.is_some_and(|variant| has(&variant.config)) {
            format!("variants.{id}.config.{component}.{key}")
        } else {
            format!("cluster.config.{component}.{key}")
        }
    }

    fn variables(&self, found: &mut Vec<Judged>) {
        if self.deployment.deploy.engine == Engine::External && self.deployment.version.is_none() {
            return;
        }
        for name in self.deployment.variables.keys() {
            let id = &self.deployment.id;
            let variant = self.experiment.variants.get(&**id);
            let path = match variant.is_some_and(|v| v.variables.contains_key(&**name)) {
                true => format!("variants.{id}.variables.{name}"),
                false => format!("cluster.variables.{name}"),
            };
            push(found, &path, self.keys.check_variable(name, &self.version));
        }
    }
}

fn push(found: &mut Vec<Judged>, path: &str, findings: Vec<Finding>) {
    for finding in findings {
        let judged = Judged {
            problem: Problem {
                path: path.to_owned(),
                message: finding.message,
                help: finding.help,
                key: false,
            },
            is_error: finding.severity == Severity::Error,
        };
        if !found.contains(&judged) {
            found.push(judged);
        }
    }
}
