//! The keys of an instance: those that all have, and the ports and settings of its role.

use serde_json::Value;

use super::Check;
use crate::pack::Role;
use crate::pack::settings::flatten;
use crate::plan::COMMON;
use crate::spec::{Name, Placement, did_you_mean};

/// The limits of a process.
const LIMITS: [&str; 5] = [
    "memory_limit",
    "cpu_quota",
    "io_read_bandwidth_max",
    "io_write_bandwidth_max",
    "limit_core",
];

/// Whether a path can be a folder that deployments lie below: absolute, and plain.
pub(super) fn is_folder(path: &str) -> bool {
    let plain = |part: &str| part != ".." && part != "." && !part.contains(char::is_control);
    path.len() < 1024 && path.len() > 1 && path.starts_with('/') && path.split('/').all(plain)
}

impl Check<'_> {
    pub(super) fn placement(&mut self, path: &str, role: &Role, placement: &Placement) {
        for (key, value) in placement.settings().into_iter().flatten() {
            let at = format!("{path}.{key}");
            let value = &value.0;
            if role.ports.contains_key(key) {
                self.port(at, value);
            } else if COMMON.contains(&key.as_str()) {
                self.common(at, key.as_str(), value);
            } else if !role.settings.contains_key(key) {
                self.unknown_key(at, key, role);
            }
        }
    }

    fn port(&mut self, at: String, value: &Value) {
        let port = value.as_u64().filter(|port| (1..=65_535).contains(port));
        if port.is_none() {
            let help = value.as_str().and_then(|text| text.parse::<u16>().ok());
            let help = help.map(|_| "take the quotes away".to_owned());
            self.expected(at, "a port from 1 to 65535", value, help);
        }
    }

    fn common(&mut self, at: String, key: &str, value: &Value) {
        match key {
            "deploy_dir" | "data_dir" | "log_dir" => {
                if !value.as_str().is_some_and(is_folder) {
                    self.expected(at, "an absolute path of a folder", value, None);
                }
            }
            "numa_node" | "numa_cores" => {
                let listed = |text: &str| {
                    let plain = |c: char| c.is_ascii_digit() || matches!(c, ',' | '-');
                    !text.is_empty() && text.chars().all(plain)
                };
                if !value.is_u64() && !value.as_str().is_some_and(listed) {
                    self.expected(at, "a number, or a text such as `0,1`", value, None);
                }
            }
            "resource_control" => self.limits(at, value),
            _ => {
                if !value.is_object() {
                    self.expected(at, "a mapping of tunables", value, None);
                } else if let Err(error) = flatten(value) {
                    self.report(at, error.to_string(), None);
                }
            }
        }
    }

    fn limits(&mut self, at: String, value: &Value) {
        let Value::Object(limits) = value else {
            return self.expected(at, "a mapping of limits", value, None);
        };
        for (key, value) in limits {
            let at = format!("{at}.{key}");
            if !LIMITS.contains(&key.as_str()) {
                let help = did_you_mean(key, &LIMITS, "the keys here are");
                self.report_key(at, format!("unknown key `{key}`"), help);
            } else if !value.is_string() {
                self.expected(at, "a text", value, None);
            }
        }
    }

    fn unknown_key(&mut self, at: String, key: &Name, role: &Role) {
        let ports = role.ports.keys().map(Name::as_str);
        let settings = role.settings.keys().map(Name::as_str);
        let known: Vec<&str> = ports.chain(settings).chain(COMMON).collect();
        let help = did_you_mean(key.as_str(), &known, "the keys here are");
        self.report_key(at, format!("unknown key `{key}`"), help);
    }

    fn expected(&mut self, at: String, expected: &str, value: &Value, help: Option<String>) {
        let found = match value {
            Value::Null => "nothing".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            Value::Object(_) => "a mapping".to_owned(),
            Value::String(text) => format!("the text `{text}`"),
            Value::Bool(_) | Value::Number(_) => format!("`{value}`"),
        };
        self.report(at, format!("expected {expected}, found {found}"), help);
    }
}
