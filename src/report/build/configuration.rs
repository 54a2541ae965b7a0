//! In which keys the effective configuration of the variants differs, defaults included: what the experiment asks for is a
//! small part of what a system runs with.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::effective;
use crate::artifacts::Run;
use crate::database::Effective;
use crate::pack::{self, settings};
use crate::plan::{Deployment, Instance};
use crate::report::rows::KeyDifference;

/// Keys that tell one server from another whatever it is set to, dashes as underscores.
const NAMES: [&str; 8] = [
    "hostname",
    "server_id",
    "server_uid",
    "server_uuid",
    "gtid_binlog_pos",
    "gtid_binlog_state",
    "gtid_current_pos",
    "gtid_executed",
];

/// A variant: what was asked for and what runs.
struct Side<'a> {
    experiment: &'a str,
    deployment: &'a Deployment,
    /// Component -> its first instance's keys.
    keys: BTreeMap<&'a str, BTreeMap<String, String>>,
}

/// The keys in which the variants that were started differ.
pub(super) fn configuration(run: &Run) -> Vec<KeyDifference> {
    let sides = run.plan.deployments.iter().map(|deployment| {
        let effective = effective(run, &deployment.id).unwrap_or_default();
        Side::of(&run.plan.experiment, deployment, &effective)
    });
    differences(&sides.collect::<Vec<_>>())
}

impl<'a> Side<'a> {
    fn of(experiment: &'a str, deployment: &'a Deployment, effective: &Effective) -> Self {
        let mut side = Self {
            experiment,
            deployment,
            keys: BTreeMap::new(),
        };
        for instance in &deployment.instances {
            let known = side.keys.contains_key(&*instance.role);
            let whole = effective.whole.get(&instance.id).filter(|_| !known);
            let flat = whole.and_then(|whole| settings::flatten(whole).ok());
            let Some(flat) = flat else {
                continue;
            };
            let texts = flat.iter().map(|(key, v)| (key.clone(), pack::text(v)));
            side.keys.insert(&instance.role, texts.collect());
        }
        side
    }

    /// Whether the experiment asks for a key of a component.
    fn asks(&self, component: &str, key: &str) -> bool {
        let config = &self.deployment.config;
        let asked = match config.get(component) {
            Some(tunables) => vec![tunables],
            // A role may take the tunables of another one.
            None => config.values().collect(),
        };
        let wanted = plain(key);
        let mut names = asked.into_iter().flat_map(BTreeMap::keys);
        names.any(|name| plain(name) == wanted)
    }

    /// Whether a value is a path, a name or an address of the deployment itself, in which any two differ.
    fn is_own(&self, key: &str, value: &str) -> bool {
        let id = &self.deployment.id;
        let is_path = value.contains('/')
            && (value.split(['/', ',', '"', ' ']).any(|part| part == id)
                || value.contains("/assay-"));
        let name = format!("{}-{id}", self.experiment);
        let mut instances = self.deployment.instances.iter();
        is_path || value.contains(&name) || instances.any(|one| is_address(one, key, value))
    }
}

/// Whether a value has the address or a port of an instance.
fn is_address(instance: &Instance, key: &str, value: &str) -> bool {
    let is_port_key = plain(key).contains("port");
    let is_port = |port: &u16| {
        let port = port.to_string();
        let after = value.split(':').skip(1);
        let mut digits = after.map(|text| text.split(|c: char| !c.is_ascii_digit()).next());
        is_port_key && value == port || digits.any(|digits| digits == Some(&port))
    };
    let address = &*instance.address;
    let mut words = value.split(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '-' | '_')));
    let has_address =
        words.any(|word| word == address) || address.contains(':') && value.contains(address);
    !address.is_empty() && has_address
        || is_port(&instance.port)
        || instance.ports.values().any(is_port)
}

/// A key as programs write it that take dashes and underscores alike.
fn plain(key: &str) -> String {
    key.replace('-', "_").to_ascii_lowercase()
}

fn differences(sides: &[Side<'_>]) -> Vec<KeyDifference> {
    let components: BTreeSet<&str> = sides.iter().flat_map(|s| s.keys.keys().copied()).collect();
    let of = |component| of_component(sides, component);
    components.into_iter().flat_map(of).collect()
}

fn of_component(sides: &[Side<'_>], component: &str) -> Vec<KeyDifference> {
    let all = || sides.iter().map(|side| side.keys.get(component));
    let keys: BTreeSet<&String> = all().flatten().flat_map(BTreeMap::keys).collect();
    let differs = |key: &&String| {
        let known: Vec<_> = all().flatten().map(|keys| keys.get(*key)).collect();
        known.windows(2).any(|pair| pair[0] != pair[1])
    };
    let is_own = |key: &str| {
        let is_name = NAMES.contains(&&*plain(key));
        let own = |side: &Side<'_>| {
            let value = side.keys.get(component).and_then(|keys| keys.get(key));
            value.is_some_and(|value| side.is_own(key, value))
        };
        is_name || sides.iter().any(own)
    };
    keys.into_iter()
        .filter(differs)
        .filter(|key| !is_own(key))
        .map(|key| KeyDifference {
            component: component.to_owned(),
            key: key.clone(),
            values: all().map(|keys| keys?.get(key).cloned()).collect(),
            asked: sides.iter().any(|side| side.asks(component, key)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::{Value, json};

    use super::*;

    fn deployment(id: &str, port: u16, config: Value) -> Deployment {
        let config: BTreeMap<String, String> = serde_json::from_value(config).unwrap();
        let instance = |role: &str, host: &str, port: u16| Instance {
            id: format!("{role}-{port}@{host}"),
            system: "tidb".into(),
            role: role.into(),
            host: host.into(),
            address: format!("10.0.0.{}", host.len()),
            port,
            ports: BTreeMap::from([("status_port".to_owned(), port + 1000)]),
            deploy: PathBuf::from(format!("e/{id}/{role}")),
            data: None,
            snapshot: None,
            log: PathBuf::from("log"),
            settings: BTreeMap::new(),
            config: Value::Null,
            resource_control: Default::default(),
        };
        serde_json::from_value::<Deployment>(json!({
            "id": id, "system": "tidb", "topology": {}, "clients": [], "config": {"tikv": config},
            "instances": [instance("tikv", "kv1", port), instance("tikv", "kv02", port)],
            "fingerprint": "", "prepare": [],
        }))
        .unwrap()
    }

    fn effective(port: u16, whole: Value) -> Effective {
        let other = json!({"raftdb": {"max": "other instance"}});
        Effective {
            whole: BTreeMap::from([
                (format!("tikv-{port}@kv02"), other),
                (format!("tikv-{port}@kv1"), whole),
            ]),
            ..Effective::default()
        }
    }

    fn shown(old: Value, new: Value) -> Vec<KeyDifference> {
        let before = deployment("old", 20160, json!({"log-level": "warn"}));
        let after = deployment("new", 20161, json!({}));
        let (old, new) = (effective(20160, old), effective(20161, new));
        differences(&[
            Side::of("study", &before, &old),
            Side::of("study", &after, &new),
        ])
    }

    #[test]
    fn keys_that_differ_are_told_defaults_included_and_those_asked_for_are_marked() {
        let found = shown(
            json!({"log": {"level": "x"}, "log-level": "warn", "storage": {"pool": 4, "same": true}}),
            json!({"log": {"level": "x"}, "log_level": "info", "storage": {"pool": 8, "same": true, "more": "1s"}}),
        );
        let keys: Vec<_> = found.iter().map(|d| (&*d.key, d.asked)).collect();
        let expected = [
            ("log-level", true),
            ("log_level", true),
            ("storage.more", false),
            ("storage.pool", false),
        ];
        assert_eq!(keys, expected);
        assert_eq!(
            found[3].values,
            [Some("4".to_owned()), Some("8".to_owned())]
        );
        assert_eq!(found[2].values, [None, Some("1s".to_owned())]);
        assert_eq!(found[2].component, "tikv");
    }

    #[test]
    fn paths_addresses_and_ports_of_a_deployment_are_no_difference() {
        let of = |id: &str, port: u16| {
            json!({
                "data-dir": format!("/data/study/{id}/tikv-{port}"),
                "name": format!("assay-study-{id}-tikv"),
                "socket": format!("/tmp/assay-{port:012}.sock"),
                "addr": format!("0.0.0.0:{port}"),
                "urls": [format!("http://10.0.0.3:{}", port + 1000)],
                "port": port,
                "server_uuid": format!("{port}-1"),
                // The value of a setting may look like a name or a port.
                "mode": id,
                "connections": port,
            })
        };
        let found = shown(of("old", 20160), of("new", 20161));
        let keys: Vec<_> = found.iter().map(|d| &*d.key).collect();
        assert_eq!(keys, ["connections", "mode"]);
    }

    #[test]
    fn a_variant_that_was_not_started_differs_in_nothing() {
        let (before, after) = (
            deployment("old", 1, json!({})),
            deployment("new", 2, json!({})),
        );
        let known = effective(1, json!({"a": 1}));
        let sides = [
            Side::of("study", &before, &known),
            Side::of("study", &after, &Effective::default()),
        ];
        assert_eq!(differences(&sides), []);
    }
}
