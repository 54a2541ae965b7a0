//! Labels of TiKV, by which PD keeps copies apart.

use std::collections::HashMap;

use super::super::Role;
use super::super::section::Section;
use super::super::settings;
use super::super::written::{Server, Topology};
use super::Check;

/// The setting of PD that names the labels of TiKV.
const LOCATIONS: &str = "replication.location-labels";

const LABELS_HELP: &str = "give each of them `config: {server.labels: {host: …}}` and PD `replication.location-labels`, \
    or import with `--no-labels`";

impl Check<'_> {
    /// Labels are those that PD knows, and there where they are needed.
    pub(super) fn labels(&mut self, no_labels: bool) {
        self.location_labels();
        if !no_labels {
            self.unknown_labels();
            self.missing_labels();
        }
    }

    fn location_labels(&mut self) {
        for (path, server) in self.topology.servers(Section::of(Role::Pd)) {
            let config = server.settings("config");
            if settings::get(&config, LOCATIONS).is_some() {
                let path = format!("{path}.config.{LOCATIONS}");
                self.say(path, format!("`{LOCATIONS}` is one for the whole cluster"));
                self.help("write it into `server_configs.pd`");
            }
        }
    }

    fn unknown_labels(&mut self) {
        let known = locations(self.topology);
        for (path, server) in self.topology.servers(Section::of(Role::Tikv)) {
            for (label, _) in labels_of(server) {
                if known.contains(&label) {
                    continue;
                }
                let path = format!("{path}.config.server.labels.{label}");
                let message =
                    format!("the label `{label}` is not in `{LOCATIONS}` of `server_configs.pd`");
                self.say(path, message);
            }
        }
    }

    /// Several TiKV on a host need labels.
    fn missing_labels(&mut self) {
        let mut hosts: HashMap<&str, usize> = HashMap::new();
        for (_, server) in self.topology.servers(Section::of(Role::Tikv)) {
            *hosts.entry(server.host()).or_default() += 1;
        }
        for (path, server) in self.topology.servers(Section::of(Role::Tikv)) {
            let host = server.host();
            if hosts[host] > 1 && labels_of(server).is_empty() {
                let what = "without labels PD may put two copies of the data on it";
                self.say(path, format!("{host} has several TiKV, and {what}"));
                self.help(LABELS_HELP);
            }
        }
    }
}

fn labels_of(server: &Server) -> Vec<(String, String)> {
    settings::below(&server.settings("config"), "server.labels")
}

/// The labels that PD knows.
fn locations(topology: &Topology) -> Vec<String> {
    let config = topology.server_configs.get("pd");
    let value = config.and_then(|config| settings::get(config, LOCATIONS));
    let texts = value.map(|value| match settings::texts(value) {
        Some(texts) => texts.into_iter().map(str::to_owned).collect(),
        None => settings::text(value)
            .split(',')
            .map(|l| l.trim().to_owned())
            .collect(),
    });
    texts.unwrap_or_default()
}
