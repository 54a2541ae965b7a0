//! Ports and directories that two processes of a host would share.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use super::super::Role;
use super::super::expand::{comparable, ports};
use super::super::section::Section;
use super::super::settings::{self, Settings};
use super::super::written::Server;
use super::Check;

/// Who was the first to take something.
pub(super) struct First<K>(HashMap<K, String>);

impl<K: Hash + Eq> First<K> {
    pub(super) fn new() -> Self {
        Self(HashMap::new())
    }

    /// The one that took it before, if there is one.
    pub(super) fn take(&mut self, key: K, taker: &str) -> Option<String> {
        match self.0.get(&key) {
            Some(first) => Some(first.clone()),
            None => {
                self.0.insert(key, taker.to_owned());
                None
            }
        }
    }
}

impl<'t> Check<'t> {
    pub(super) fn ports(&mut self) {
        let mut taken = First::new();
        let version = self.cluster.version.as_deref();
        for (section, path, server) in self.topology.all() {
            for (key, port) in ports(section, server, version) {
                let path = format!("{path}.{key}");
                if let Some(first) = taken.take((server.host(), port), &path) {
                    self.port_clash(&path, server, port, &first);
                }
            }
        }
        self.exporter_ports(&mut taken);
    }

    /// A clash stands at the exporter where its port is written, else at the instance that has it.
    fn exporter_ports(&mut self, taken: &mut First<(&'t str, u16)>) {
        let (cluster, written) = (self.cluster, &self.topology.monitored);
        let node = (
            "node_exporter",
            cluster.monitored.node_exporter_port,
            written.node_exporter_port.is_some(),
        );
        let blackbox = (
            "blackbox_exporter",
            cluster.monitored.blackbox_exporter_port,
            written.blackbox_exporter_port.is_some(),
        );
        for (exporter, port, is_written) in [node, blackbox] {
            for host in self.exporter_hosts() {
                let path = format!("monitored.{exporter}_port");
                match taken.take((host, port), &path) {
                    Some(first) if is_written => {
                        let message = format!("port {port} of {host} is that of `{first}` already");
                        self.say(path, message);
                    }
                    Some(first) => {
                        let message = format!("port {port} of {host} is that of {exporter}");
                        self.say(first, message);
                    }
                    None => {}
                }
            }
        }
    }

    /// The hosts with exporters, each once.
    fn exporter_hosts(&self) -> Vec<&'t str> {
        let mut hosts = Vec::new();
        for (_, _, server) in self.topology.all() {
            if !server.boolean("ignore_exporter") && !hosts.contains(&server.host()) {
                hosts.push(server.host());
            }
        }
        hosts
    }

    fn port_clash(&mut self, path: &str, server: &Server, port: u16, first: &str) {
        let message = format!(
            "port {port} of {} is that of `{first}` already",
            server.host()
        );
        self.say(path, message);
        let key = path.rsplit('.').next().unwrap_or_default();
        if !server.has(key) {
            self.help(format!(
                "{port} is the default: give the instance another `{key}`"
            ));
        }
    }

    /// No two directories of a host are the same. Relative ones are not compared, nor are those of two instances that TiDB
    /// Ansible installed, which shared them.
    pub(super) fn directories(&mut self) {
        let mut taken = First::new();
        let mut imported = HashSet::new();
        for (section, path, server) in self.topology.all() {
            let is_imported = server.boolean("imported");
            for (key, directory) in self.absolute_directories(section, server) {
                let path = format!("{path}.{key}");
                let first = taken.take((server.host(), directory.clone()), &path);
                let first = first.filter(|first| !(is_imported && imported.contains(first)));
                if let Some(first) = first {
                    let host = server.host();
                    let message = format!("`{directory}` of {host} is that of `{first}` already");
                    self.say(path.clone(), message);
                }
                if is_imported {
                    imported.insert(path);
                }
            }
        }
    }

    /// The directories of programs and data of an instance that are absolute as written or by default.
    fn absolute_directories(
        &self,
        section: &Section,
        server: &Server,
    ) -> Vec<(&'static str, String)> {
        let cluster = self.cluster;
        let ports = ports(section, server, cluster.version.as_deref());
        let main = ports.first().map_or(0, |(_, port)| *port);
        let default = |base: &str| format!("{base}/{}-{main}", section.component);
        let written = |key: &str| server.text(key).map(str::to_owned);
        let deploy = written("deploy_dir").unwrap_or_else(|| default(&cluster.deploy_dir));
        let storage = storages(&server.settings("config"));
        let data = match (written("data_dir"), section.role) {
            (_, Some(Role::Tiflash)) if !storage.is_empty() => storage,
            (Some(data), _) => data.split(',').map(str::to_owned).collect(),
            (None, _) if section.has_data => vec![default(&cluster.data_dir)],
            (None, _) => Vec::new(),
        };
        let data = data.into_iter().map(|directory| ("data_dir", directory));
        std::iter::once(("deploy_dir", deploy))
            .chain(data)
            .filter_map(|(key, directory)| Some((key, comparable(directory.trim())?)))
            .collect()
    }
}

/// The directories that settings of TiFlash name in place of its data directory, each once.
fn storages(config: &Settings) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for key in ["storage.latest.dir", "storage.main.dir"] {
        let texts = settings::get(config, key).and_then(settings::texts);
        for text in texts.into_iter().flatten() {
            if !found.iter().any(|known| known == text) {
                found.push(text.to_owned());
            }
        }
    }
    found
}
