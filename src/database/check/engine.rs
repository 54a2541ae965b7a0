//! What the engines `external` and `tiup` cannot do.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;

use super::{Check, topology_path};
use crate::pack::Pack;
use crate::plan::{Deployment, Instance};
use crate::spec::{Name, Packages, ResourceControl, Restore, Setting, Variant};
use crate::tiup::Role;

/// The system that TiUP deploys.
const TIDB: &str = "tidb";
/// The exporters, which TiUP puts on hosts by itself.
const EXPORTERS: [&str; 2] = ["node_exporter", "blackbox_exporter"];

impl Check<'_> {
    /// A cluster that is there is neither deployed nor stopped.
    pub(super) fn external(&mut self, pack: &Pack) {
        let experiment = self.experiment;
        if pack.form.entry.is_none() {
            let message = format!("the pack of {} says no `entry` for clients", pack.name);
            self.report("cluster.system", message, None);
        }
        self.addresses();
        self.left_behind();
        if experiment.snapshot.restore != Restore::Never {
            let message =
                "an external cluster is never stopped, so that its data cannot be put back";
            let help = "write `snapshot: {restore: never}`".to_owned();
            self.report("snapshot.restore", message, Some(help));
        }
        let cluster = &experiment.cluster;
        let mut deployed = vec![
            ("load_balancer.host".to_owned(), {
                let balancer = experiment.load_balancer.as_ref();
                balancer.is_some_and(|b| b.host.is_some())
            }),
            ("cluster.config".to_owned(), !cluster.config.is_empty()),
            (
                "cluster.packages".to_owned(),
                cluster.packages != Packages::default(),
            ),
            ("cluster.user".to_owned(), cluster.user.is_some()),
            ("cluster.tls".to_owned(), cluster.tls),
            (
                "cluster.deploy_dir".to_owned(),
                cluster.deploy_dir.is_some(),
            ),
            ("cluster.data_dir".to_owned(), cluster.data_dir.is_some()),
            ("cluster.log_dir".to_owned(), cluster.log_dir.is_some()),
            (
                "cluster.resource_control".to_owned(),
                cluster.resource_control != ResourceControl::default(),
            ),
        ];
        for (name, variant) in &experiment.variants {
            let path = |key: &str| format!("variants.{name}.{key}");
            deployed.push((path("config"), !variant.config.is_empty()));
            deployed.push((path("packages"), variant.packages.is_some()));
        }
        for (path, _) in deployed.into_iter().filter(|(_, set)| *set) {
            let message = "an external cluster is there already: nothing is deployed";
            self.report_key(path, message, None);
        }
    }

    /// Where the clusters of the variants are.
    fn addresses(&mut self) {
        let experiment = self.experiment;
        let help = || Some("where it can be reached: `addresses: [\"HOST:PORT\"]`".to_owned());
        for (name, variant) in &experiment.variants {
            let (addresses, path) = match variant.addresses.is_empty() {
                true => (&experiment.deploy.addresses, "deploy".to_owned()),
                false => (&variant.addresses, format!("variants.{name}")),
            };
            if addresses.is_empty() {
                self.report(&*path, "an external cluster needs `addresses`", help());
            }
            for (i, address) in addresses.iter().enumerate() {
                if !is_address(address) {
                    let message = format!("expected `HOST:PORT`, found `{address}`");
                    self.report(format!("{path}.addresses[{i}]"), message, None);
                }
            }
        }
    }

    /// Variables that one variant sets would stay set for another one of the same cluster.
    fn left_behind(&mut self) {
        let experiment = self.experiment;
        let places = |variant: &Variant| {
            let addresses = experiment.addresses_of(variant).iter();
            addresses.cloned().collect::<BTreeSet<_>>()
        };
        let sets = |variant: &Variant, name: &Name| {
            let everywhere: &IndexMap<Name, Setting> = &experiment.cluster.variables;
            everywhere.contains_key(name) || variant.variables.contains_key(name)
        };
        for (first, one) in &experiment.variants {
            for (second, other) in &experiment.variants {
                if first == second || places(one) != places(other) {
                    continue;
                }
                for name in one.variables.keys().filter(|name| !sets(other, name)) {
                    let message = format!(
                        "`{name}` would stay set for `{second}`, which is the same cluster"
                    );
                    let help = format!("write its value under `variants.{second}.variables` too");
                    let path = format!("variants.{first}.variables.{name}");
                    self.report_key(path, message, Some(help));
                }
            }
        }
    }

    pub(super) fn tiup(&mut self) {
        let experiment = self.experiment;
        let cluster = &experiment.cluster;
        if cluster.tls {
            let message = "with TiUP, assay cannot speak TLS: TiUP keeps the certificates";
            self.report_key("cluster.tls", message, None);
        }
        if experiment
            .load_balancer
            .as_ref()
            .is_some_and(|b| b.host.is_some())
        {
            let message = "TiUP deploys no such balancer";
            let help = "name one that is there, `address`, or give the cluster the role `tiproxy`";
            self.report_key("load_balancer.host", message, Some(help.to_owned()));
        }
        self.only_a_mirror("cluster.packages", &cluster.packages);
        for (name, variant) in &experiment.variants {
            let system = experiment.system_of(variant);
            if system.as_str() != TIDB {
                let path = match variant.system {
                    Some(_) => format!("variants.{name}.system"),
                    None => "deploy.engine".to_owned(),
                };
                self.report(path, format!("TiUP deploys TiDB, not {system}"), None);
                continue;
            }
            if let Some(packages) = &variant.packages {
                self.only_a_mirror(&format!("variants.{name}.packages"), packages);
            }
            let at = topology_path(name, variant);
            for role in experiment.topology_of(variant).keys() {
                let known = Role::ALL.iter().any(|known| known.name() == role.as_str());
                if !known && !EXPORTERS.contains(&role.as_str()) {
                    let message = format!("TiUP deploys no `{role}` for assay");
                    self.report_key(format!("{at}.{role}"), message, None);
                }
            }
        }
    }

    fn only_a_mirror(&mut self, path: &str, packages: &Packages) {
        for (key, set) in [
            ("offline", packages.offline.is_some()),
            ("tarballs", !packages.tarballs.is_empty()),
            ("binaries", !packages.binaries.is_empty()),
        ] {
            if set {
                let message = "TiUP takes packages from a mirror only";
                let help = "name a folder or URL with `mirror`".to_owned();
                self.report_key(format!("{path}.{key}"), message, Some(help));
            }
        }
    }

    /// TiUP keeps the ports of all clusters that it knows apart, also of those that do not run.
    pub(super) fn apart(&mut self, deployments: &[Deployment]) {
        let mut taken: BTreeMap<(&str, u16), (&Deployment, &Instance)> = BTreeMap::new();
        for deployment in deployments {
            for instance in &deployment.instances {
                for port in instance.ports.values().filter(|port| **port != 0) {
                    let place = (&*instance.address, *port);
                    let first = taken.entry(place).or_insert((deployment, instance));
                    if first.0.id != deployment.id {
                        self.shared(first.0, deployment, instance, *port);
                    }
                }
            }
        }
    }

    fn shared(&mut self, first: &Deployment, second: &Deployment, at: &Instance, port: u16) {
        let message = format!(
            "TiUP refuses clusters that share a port: `{}` and `{}` would both have {port} of `{}`",
            first.id, second.id, at.host
        );
        let path = format!("variants.{}", second.id);
        // One port says enough of a variant.
        if !self.found.iter().any(|problem| problem.path == path) {
            let help = format!(
                "give `{}` a `topology` of its own whose instances have other ports",
                second.id
            );
            self.report(path, message, Some(help));
        }
    }

    /// TiUP takes one login for all hosts.
    pub(super) fn one_login(&mut self, deployment: &Deployment) {
        let logins = deployment.logins.values();
        let logins: BTreeSet<_> = logins.map(|l| (&l.user, &l.identity_file)).collect();
        if logins.len() > 1 {
            let message =
                "TiUP logs in to all hosts as one user with one key; the inventory has several";
            self.report("deploy.engine", message, None);
        }
        for login in deployment.logins.values() {
            if let Some(file) = login.identity_file.as_ref().filter(|f| f.starts_with('~')) {
                let message = format!("TiUP takes no `~`: `identity_file` is `{file}`");
                let help = "write the whole path in the inventory".to_owned();
                self.report("deploy.engine", message, Some(help));
            }
        }
    }
}

/// A host and its port: `db1:4000`, `[::1]:4000`.
fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    let is_host = !host.is_empty() && (is_bracketed || !host.contains(':'));
    is_host && port.parse::<u16>().is_ok_and(|port| port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for sound in ["db1:4000", "10.0.0.1:1", "[fd00::1]:4000"] {
            assert!(is_address(sound), "{sound}");
        }
        for wrong in ["db1", "db1:", "db1:0", ":4000", "fd00::1:4000", "db1:70000"] {
            assert!(!is_address(wrong), "{wrong}");
        }
    }
}
