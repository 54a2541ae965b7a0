//! What an experiment asks of the one who deploys: engine, users, packages, variables, folders.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use super::Check;
use crate::pack::{Pack, Programs};
use crate::spec::{Engine, Name, Packages, Setting, did_you_mean};

impl Check<'_> {
    pub(super) fn engine(&mut self, pack: &Pack) {
        let deploy = &self.experiment.deploy;
        match deploy.engine {
            Engine::External => self.external(pack),
            Engine::Tiup => self.tiup(),
            Engine::Assay => {}
        }
        for (name, variant) in &self.experiment.variants {
            if !variant.addresses.is_empty() && deploy.engine != Engine::External {
                let message = "`addresses` is a key of the engine `external`";
                self.report_key(format!("variants.{name}.addresses"), message, None);
            }
        }
        for (key, engine, set) in [
            ("addresses", Engine::External, !deploy.addresses.is_empty()),
            ("tiup", Engine::Tiup, deploy.tiup.is_some()),
        ] {
            if set && deploy.engine != engine {
                let word = match engine {
                    Engine::Assay => "assay",
                    Engine::Tiup => "tiup",
                    Engine::External => "external",
                };
                let message = format!("`{key}` is a key of the engine `{word}`");
                self.report_key(format!("deploy.{key}"), message, None);
            }
        }
        if self.experiment.cluster.tls && !pack.form.tls {
            let message = format!("the pack of {} knows no TLS", pack.name);
            self.report_key("cluster.tls", message, None);
        }
    }

    pub(super) fn users(&mut self, pack: &Pack) {
        let users = &self.experiment.cluster.users;
        if !users.is_empty() && pack.form.sql.create_user.is_empty() {
            let message = format!("assay makes no users of {}", pack.name);
            return self.report_key("cluster.users", message, None);
        }
        let mut seen = BTreeSet::new();
        for (i, user) in users.iter().enumerate() {
            let path = format!("cluster.users[{i}]");
            let name = &user.name;
            if name.is_empty() || name.contains(['\'', '"', '\\', '`']) {
                let message = format!("expected a user's name, found `{name}`");
                let help = "such as `bench`, or `bench@10.0.%`".to_owned();
                self.report(format!("{path}.name"), message, Some(help));
            } else if !seen.insert(name) {
                let message = format!("the user `{name}` is there already");
                self.report(format!("{path}.name"), message, None);
            }
        }
    }

    pub(super) fn packages(&mut self, path: &str, pack: &Pack, packages: &Packages) {
        if *packages == Packages::default() {
            return;
        }
        if pack.form.programs != Programs::Packages {
            let message = format!("assay brings no packages of {} to its hosts", pack.name);
            return self.report_key(path, message, None);
        }
        if packages.mirror.is_some() && packages.offline.is_some() {
            let message = "packages come from a `mirror` or from an `offline` package";
            let help = "leave one away".to_owned();
            self.report_key(format!("{path}.offline"), message, Some(help));
        }
        let roles = pack.form.roles.iter();
        let known: BTreeSet<&str> = roles
            .map(|(name, role)| role.package.as_ref().unwrap_or(name).as_str())
            .collect();
        let known: Vec<&str> = known.into_iter().collect();
        for (key, named) in [
            ("tarballs", &packages.tarballs),
            ("binaries", &packages.binaries),
        ] {
            for name in named.keys().filter(|name| !known.contains(&name.as_str())) {
                let message = format!("{} has no component `{name}`", pack.name);
                let help = did_you_mean(name.as_str(), &known, "its components are");
                self.report_key(format!("{path}.{key}.{name}"), message, help);
            }
        }
    }

    pub(super) fn variables(
        &mut self,
        path: &str,
        pack: &Pack,
        variables: &IndexMap<Name, Setting>,
    ) {
        if !variables.is_empty() && pack.form.sql.set_variable.is_none() {
            let message = format!("assay sets no variables of {}", pack.name);
            self.report_key(path, message, None);
        }
    }

    pub(super) fn folders(&mut self) {
        let cluster = &self.experiment.cluster;
        for (key, folder) in [
            ("deploy_dir", &cluster.deploy_dir),
            ("data_dir", &cluster.data_dir),
            ("log_dir", &cluster.log_dir),
        ] {
            if let Some(folder) = folder.as_ref().filter(|f| !f.starts_with('/')) {
                let message = format!("expected an absolute path, found `{folder}`");
                self.report(format!("cluster.{key}"), message, None);
            }
        }
    }
}
