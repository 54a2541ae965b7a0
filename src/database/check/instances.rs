//! What the instances of a variant would share: ports, names, folders; and how many of a role there may be.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::{Check, topology_path};
use crate::database::tunables;
use crate::plan::{self, Deployment, Instance};
use crate::spec::{Engine, Name, Placement, Variant};

impl Check<'_> {
    pub(super) fn instances(&mut self) {
        let Ok(plan) = plan::build(self.experiment, self.inventory, self.packs, "") else {
            return;
        };
        let judged = tunables(self.experiment, &plan, self.packs, &|_| (None, None));
        let errors = judged.into_iter().filter(|judged| judged.is_error);
        self.found.extend(errors.map(|judged| judged.problem));
        let variants = self.experiment.variants.iter();
        for (deployment, (name, variant)) in plan.deployments.iter().zip(variants) {
            let at = topology_path(name, variant);
            let paths = self.paths(&at, variant);
            let topology = self.experiment.topology_of(variant);
            // That a plain name stands for a host twice is told of the whole list.
            let is_plain = |p: &Placement| matches!(p, Placement::Name(_));
            let told = |clash: &Clash| {
                let role = &deployment.instances[clash.second].role;
                let placements = topology.get(role.as_str());
                clash.twins && placements.is_some_and(|all| all.iter().all(is_plain))
            };
            let found = clashes(&deployment.instances);
            for clash in found.into_iter().filter(|clash| !told(clash)) {
                let path = paths.get(clash.second).cloned();
                let path = path.unwrap_or_else(|| "load_balancer".to_owned());
                self.report(path, clash.message, clash.help);
            }
            self.bounds(deployment, &at);
        }
        if self.experiment.deploy.engine == Engine::Tiup {
            self.apart(&plan.deployments);
            plan.deployments.iter().for_each(|d| self.one_login(d));
        }
    }

    /// Where each instance of a variant is written, in the plan's order; those of a balancer are missing at the end.
    fn paths(&self, at: &str, variant: &Variant) -> Vec<String> {
        let hosts = |placement: &Placement| {
            let name = placement.name();
            let group = self.inventory.groups.get(name);
            group.map_or(1, Vec::len)
        };
        let mut paths = Vec::new();
        for (role, placements) in self.experiment.topology_of(variant) {
            for (i, placement) in placements.iter().enumerate() {
                let path = format!("{at}.{role}[{i}]");
                paths.extend(std::iter::repeat_n(path, hosts(placement)));
            }
        }
        paths
    }

    /// How many instances of a role there may be.
    fn bounds(&mut self, deployment: &Deployment, at: &str) {
        let Ok(pack) = self.packs.get(&deployment.system) else {
            return;
        };
        for (name, role) in &pack.form.roles {
            let found = of_role(deployment, name);
            let (min, max) = (role.count.min as usize, role.count.max.map(|n| n as usize));
            let wanted = match max {
                _ if found == 0 && min == 0 => continue,
                _ if found < min => format!("needs at least {min}"),
                Some(max) if found > max => format!("takes at most {max}"),
                _ if role.count.odd && found.is_multiple_of(2) => "needs an odd number".to_owned(),
                _ => continue,
            };
            let message = format!("{} {wanted} of `{name}`, found {found}", pack.name);
            self.report(format!("{at}.{name}"), message, None);
        }
    }
}

fn of_role(deployment: &Deployment, role: &Name) -> usize {
    let instances = deployment.instances.iter();
    let own = instances.filter(|i| i.system == deployment.system);
    own.filter(|i| i.role == role.as_str()).count()
}

/// Something that two instances would both have, told of the second.
struct Clash {
    second: usize,
    message: String,
    help: Option<String>,
    /// They are of one role and have the same main port.
    twins: bool,
}

/// What two instances of a deployment would both use.
fn clashes(instances: &[Instance]) -> Vec<Clash> {
    let mut ports: HashMap<(&str, u16), usize> = HashMap::new();
    let mut names: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut ids: HashMap<&str, usize> = HashMap::new();
    let mut found = Vec::new();
    for (second, instance) in instances.iter().enumerate() {
        let twins = ids.insert(&instance.id, second).is_some();
        let mut clash = |message: String, help: Option<String>| {
            found.push(Clash {
                second,
                message,
                help,
                twins,
            });
        };
        for (name, port) in instance.ports.iter().filter(|(_, port)| **port != 0) {
            let first = ports.insert((&instance.host, *port), second);
            if let Some(first) = first {
                let message = shared_port(&instances[first], instance, *port, first == second);
                let help = twins.then(|| format!("give each a `{name}` of its own"));
                clash(message, help);
            }
        }
        if twins && instance.port == 0 {
            let message = format!("`{}` is there more than once", instance.id);
            clash(message, None);
        }
        if let Some(Value::String(name)) = instance.settings.get("name")
            && !name.contains("{{")
            && let Some(first) = names.insert((&instance.role, name), second)
        {
            let (first, second) = (&instances[first].id, &instance.id);
            let message = format!("`{first}` and `{second}` have the same name `{name}`");
            clash(message, None);
        }
    }
    found
}

fn shared_port(first: &Instance, second: &Instance, port: u16, same: bool) -> String {
    let (id, role, host) = (&second.id, &second.role, &second.host);
    if same {
        format!("`{id}` would listen on port {port} twice")
    } else if first.id == *id {
        format!("two instances of `{role}` would listen on port {port} of `{host}`")
    } else {
        format!(
            "`{}` and `{id}` would both listen on port {port} of `{host}`",
            first.id
        )
    }
}
