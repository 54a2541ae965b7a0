//! The schema of a topology; that of its instances is made from the table of sections.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::super::section::{HTTP_PORT, Kind, NG_PORT, SECTIONS, Section};
use super::{Arch, Global, Monitored, Resources, Topology};

impl JsonSchema for Topology {
    fn schema_name() -> Cow<'static, str> {
        "Topology".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut keys = Map::new();
        let mut add = |key: &str, schema: Schema, about: &str| {
            let mut schema = schema.to_value();
            schema["description"] = about.into();
            keys.insert(key.to_owned(), schema);
        };
        let global = generator.subschema_for::<Global>();
        add("global", global, "what holds for all instances");
        let monitored = generator.subschema_for::<Monitored>();
        add("monitored", monitored, "the exporters of every host");
        let configs = named(CONFIGS, &settings());
        add("server_configs", configs, "settings by component");
        let versions = named(VERSIONED, &json!({ "type": ["string", "number"] }));
        add(
            "component_versions",
            versions,
            "versions of single components",
        );
        let sources = named(SOURCES, &json!({ "type": "string" }));
        add("component_sources", sources, "other names of packages");
        for section in SECTIONS {
            let items = instance(section, generator);
            let about = format!("the instances of {}", section.component);
            add(
                section.key,
                json_schema!({ "type": "array", "items": items }),
                &about,
            );
        }
        json_schema!({ "type": "object", "properties": keys })
    }
}

/// The components that have settings of their own.
const CONFIGS: &[&str] = &[
    "tidb",
    "tikv",
    "pd",
    "tso",
    "scheduling",
    "resource_manager",
    "router",
    "tidb_dashboard",
    "tiflash",
    "tiflash-learner",
    "tiproxy",
    "pump",
    "drainer",
    "cdc",
    "kvcdc",
    "grafana",
    "ng_monitoring",
];

/// The components that can have versions of their own.
const VERSIONED: &[&str] = &[
    "tidb",
    "tikv",
    "tiflash",
    "pd",
    "tso",
    "scheduling",
    "resource_manager",
    "router",
    "tidb_dashboard",
    "tiproxy",
    "pump",
    "drainer",
    "cdc",
    "kvcdc",
    "prometheus",
    "grafana",
    "alertmanager",
    "node_exporter",
    "blackbox_exporter",
];

/// The components whose packages can have other names.
const SOURCES: &[&str] = &[
    "tidb",
    "tikv",
    "tiflash",
    "pd",
    "tidb_dashboard",
    "pump",
    "drainer",
    "cdc",
    "kvcdc",
];

fn named(names: &[&str], below: &Value) -> Schema {
    let keys = names.iter().map(|name| ((*name).to_owned(), below.clone()));
    json_schema!({ "type": "object", "properties": keys.collect::<Map<_, _>>() })
}

fn settings() -> Value {
    json!({ "type": "object", "additionalProperties": any() })
}

fn any() -> Value {
    json!({ "format": "assay-tree" })
}

/// The schema of an instance.
fn instance(section: &Section, generator: &mut SchemaGenerator) -> Value {
    let mut keys = Map::new();
    let mut add = |key: &str, mut schema: Value, about: &str| {
        schema["description"] = about.into();
        keys.insert(key.to_owned(), schema);
    };
    for known in section.all_keys() {
        add(
            known.name,
            of_kind(known.name, known.kind, generator),
            known.about,
        );
    }
    for port in section.ports {
        add(
            port.key,
            of_kind(port.key, Kind::Port, generator),
            port.about,
        );
    }
    for (key, about) in section.directories() {
        add(key, of_kind(key, Kind::Text, generator), about);
    }
    let mut schema = json!({ "type": "object", "properties": keys, "required": ["host"] });
    if section.role.is_none() {
        schema["additionalProperties"] = any();
    }
    schema
}

fn of_kind(key: &str, kind: Kind, generator: &mut SchemaGenerator) -> Value {
    match kind {
        Kind::Text if key == "host" || key == "manage_host" => {
            json!({ "type": "string", "format": "assay-host" })
        }
        Kind::Text if key == "arch" => generator.subschema_for::<Arch>().to_value(),
        Kind::Text => json!({ "type": "string" }),
        Kind::Port if key == NG_PORT => {
            json!({ "type": "integer", "minimum": -1, "maximum": 65535 })
        }
        Kind::Port if key == HTTP_PORT => {
            json!({ "type": "integer", "minimum": 0, "maximum": 65535 })
        }
        Kind::Port => json!({ "type": "integer", "minimum": 1, "maximum": 65535 }),
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Settings => settings(),
        Kind::Resources => generator.subschema_for::<Resources>().to_value(),
        Kind::Any => any(),
    }
}
