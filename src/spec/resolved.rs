//! The resolved spec: the text that is archived and reads back as the same values, and its hash.

use std::collections::HashSet;
use std::fmt::Write;

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::reference::escape;
use super::{Experiment, Inventory, Name, Secrets};

/// The file name of an inventory beside its resolved experiment.
pub(super) const INVENTORY_FILE: &str = "inventory.yaml";

/// A resolved value as YAML; placeholders of secrets stay, any other `${` is escaped.
pub(super) fn text(value: &impl Serialize, secrets: &Secrets, what: &str) -> String {
    let mut text = format!("# the {what} as assay resolved it: every value, with its default\n");
    let escape = |text: &str| escape(text, secrets.names());
    mapping(&json(value), 0, &escape, &mut text);
    text
}

/// How a text is changed before it is written.
type Escape<'a> = &'a dyn Fn(&str) -> String;

/// A mapping as a part of an experiment or an inventory, `indent` to the right: all that looks like a variable is escaped.
#[must_use]
pub fn yaml(value: &Value, indent: usize) -> String {
    let mut text = String::new();
    let escape = |text: &str| escape(text, std::iter::empty());
    mapping(value, indent, &escape, &mut text);
    text
}

/// A mapping as YAML for other tools, which know no variables.
#[must_use]
pub fn plain_yaml(value: &Value) -> String {
    let mut text = String::new();
    mapping(value, 0, &str::to_owned, &mut text);
    text
}

/// The SHA-256 of a canonical form, as hex digits.
///
/// Left out is where things are and how they are reached, which may differ between two checkouts of one experiment, and
/// between two labs: the inventory's file name, of a host all but its name, labels and variables, and the hosts and groups
/// that the experiment does not use. The order of keys counts: the first variant is the baseline.
pub(super) fn hash(experiment: &Experiment, inventory: &Inventory) -> String {
    let inventory = used(experiment, inventory);
    let mut experiment = json(experiment);
    if let Value::Object(keys) = &mut experiment {
        keys.shift_remove("inventory");
    }
    let mut inventory = json(&inventory);
    if let Some(Value::Object(hosts)) = inventory.get_mut("hosts") {
        for host in hosts.values_mut().filter_map(Value::as_object_mut) {
            host.retain(|key, _| matches!(key.as_str(), "labels" | "vars"));
        }
    }
    let canonical = json!({ "experiment": experiment, "inventory": inventory }).to_string();
    Sha256::digest(canonical.as_bytes())
        .iter()
        .fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("a string takes all that is written");
            hex
        })
}

/// The groups that an experiment names, and the hosts that it names itself or through them.
fn used(experiment: &Experiment, inventory: &Inventory) -> Inventory {
    let named: HashSet<&Name> = experiment.named_hosts().collect();
    let mut groups = inventory.groups.clone();
    groups.retain(|name, _| named.contains(name));
    let members: HashSet<&Name> = groups.values().flatten().collect();
    let mut hosts = inventory.hosts.clone();
    hosts.retain(|name, _| named.contains(name) || members.contains(name));
    Inventory {
        ssh_config: None,
        hosts,
        groups,
    }
}

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("a spec holds nothing that JSON cannot")
}

fn mapping(value: &Value, indent: usize, escape: Escape<'_>, out: &mut String) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let _ = write!(out, "{:indent$}{}:", "", word(key));
        match value {
            Value::Object(below) if !below.is_empty() => {
                out.push('\n');
                mapping(value, indent + 2, escape, out);
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                out.push('\n');
                for item in items {
                    let mut text = String::new();
                    match item.as_object().filter(|below| !below.is_empty()) {
                        Some(_) => mapping(item, indent + 4, escape, &mut text),
                        None => {
                            let _ = writeln!(text, "{}", flow(item, escape));
                        }
                    }
                    let _ = write!(out, "{:indent$}  - {}", "", text.trim_start());
                }
            }
            _ => {
                let _ = writeln!(out, " {}", flow(value, escape));
            }
        }
    }
}

/// A value on one line.
fn flow(value: &Value, escape: Escape<'_>) -> String {
    match value {
        Value::String(text) => word(&escape(text)),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| flow(item, escape)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(below) => {
            let entries = below.iter();
            let entries =
                entries.map(|(key, value)| format!("{}: {}", word(key), flow(value, escape)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// A text, in quotes where it could be anything else.
fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let meaning = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    if text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '/'))
        && text.chars().all(plain)
        && !meaning.iter().any(|word| text.eq_ignore_ascii_case(word))
    {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}' => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
