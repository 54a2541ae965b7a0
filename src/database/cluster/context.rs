//! What the templates of a pack see: one instance, its deployment, and the other instances.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use minijinja::value::{Serde, Value as Shown};
use minijinja::{Environment, Error, ErrorKind};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::Member;
use crate::pack::Version;
use crate::snapshot::Marker;
use crate::template::{self, TemplateError};

/// A deployment as templates see it.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) marker: Marker,
    pub(super) system: String,
    pub(super) version: Option<String>,
    pub(super) tls: bool,
    /// Role and port that clients connect to.
    pub(super) entry: Option<(String, String)>,
}

/// The hex digits that tell two instances apart.
const SHORT: usize = 12;

impl Scene {
    /// Everything that the templates of an instance can name.
    pub(super) fn context(
        &self,
        member: &Member,
        of_all: &Map<String, Value>,
    ) -> Result<Value, TemplateError> {
        let mut context = self.own(member);
        context.extend(of_all.clone());
        self.settings(member, context)
    }

    /// What the templates of every instance see of all of them.
    pub(super) fn of_all(&self, all: &[Member]) -> Map<String, Value> {
        let port = self.entry.as_ref().map(|(_, port)| port);
        let shown = [
            ("cluster", self.cluster(all)),
            ("entry", self.entries(all)),
            ("entry_port", json!(port)),
        ];
        shown
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect()
    }

    /// What an instance's templates can name that is its own or the deployment's.
    fn own(&self, member: &Member) -> Map<String, Value> {
        let mut context = basics(member);
        let instance = &member.instance;
        let numa = |key: &str| {
            let value = instance.settings.get(key);
            value.map(crate::pack::text).unwrap_or_default()
        };
        let (node, cores) = (numa("numa_node"), numa("numa_cores"));
        let prefix = match (&*node, &*cores) {
            ("", _) => String::new(),
            (node, "") => format!("numactl --cpunodebind={node} --membind={node} "),
            (node, cores) => format!("numactl --cpunodebind={node} --membind={node} -C {cores} "),
        };
        let more = json!({
            "experiment": self.marker.experiment,
            "deployment": self.marker.deployment,
            "system": self.system,
            "version": self.version.clone().unwrap_or_default(),
            "role": instance.role,
            "unit": member.unit,
            "bin": member.deploy.join("bin"),
            "config": instance.config,
            "numa_node": node,
            "numa_cores": cores,
            "numa": prefix,
            "user": member.user.clone().unwrap_or_else(|| "root".to_owned()),
            "short": self.short(member),
            "tls": self.tls,
            "tls_dir": member.deploy.join("tls"),
            "scheme": if self.tls { "https" } else { "http" },
        });
        if let Value::Object(more) = more {
            context.extend(more);
        }
        context
    }

    /// The same with the role's own settings, of which a default may be a template.
    fn settings(
        &self,
        member: &Member,
        mut context: Map<String, Value>,
    ) -> Result<Value, TemplateError> {
        let name = |key: &str| format!("{} of {}", key, member.instance.id);
        let mut made: Vec<(String, Value)> = Vec::new();
        for (key, value) in &member.instance.settings {
            // Only what the pack says is a template: what the experiment says may have braces of its own.
            let default = member.role().settings.get(&**key);
            let is_default = default.is_some_and(|default| default.0 == *value);
            let value = match value {
                Value::String(text) if is_default && text.contains("{{") => {
                    let shown = Value::Object(context.clone());
                    Value::String(self.render(&name(key), text, &shown)?)
                }
                other => other.clone(),
            };
            made.push((key.clone(), value));
        }
        context.extend(made);
        context.insert("program".to_owned(), json!(member.program));
        let program = member.program.to_string_lossy().into_owned();
        if program.contains("{{") {
            let shown = Value::Object(context.clone());
            let program = self.render(&name("program"), &program, &shown)?;
            context.insert("program".to_owned(), program.into());
        }
        Ok(Value::Object(context))
    }

    fn short(&self, member: &Member) -> String {
        let text = format!(
            "{}\n{}\n{}",
            self.marker.experiment, self.marker.deployment, member.instance.id
        );
        let digest = Sha256::digest(text);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        hex[..SHORT].to_owned()
    }

    /// Role -> instances.
    fn cluster(&self, all: &[Member]) -> Value {
        let mut roles: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for member in all {
            let shown = self.settings(member, self.own(member));
            let shown = shown.unwrap_or_else(|_| Value::Object(basics(member)));
            roles.entry(&member.instance.role).or_default().push(shown);
        }
        json!(roles)
    }

    fn entries(&self, all: &[Member]) -> Value {
        let Some((role, port)) = &self.entry else {
            return json!([]);
        };
        let entries = all
            .iter()
            .filter(|m| m.instance.role == *role && m.instance.system == self.system);
        let shown = entries.map(|member| {
            let mut shown = basics(member);
            let port = member.instance.ports.get(port);
            shown.insert("port".to_owned(), json!(port));
            Value::Object(shown)
        });
        Value::Array(shown.collect())
    }

    /// Renders a text with a context.
    pub(super) fn render(
        &self,
        name: &str,
        text: &str,
        context: &Value,
    ) -> Result<String, TemplateError> {
        template::render(
            &self.environment(),
            name,
            text,
            &Shown::from(Serde(context)),
        )
    }

    fn environment(&self) -> Environment<'static> {
        let mut environment = template::environment();
        let version = self.version.clone();
        environment.add_function("since", move |first: String| {
            let first = Version::from_str(&first)
                .map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))?;
            let version = version.as_deref().map(Version::from_str);
            // A system whose version nobody names is the newest.
            Ok::<bool, Error>(version.is_none_or(|v| v.is_ok_and(|v| v.reaches(&first))))
        });
        environment
    }
}

/// What every instance shows of itself, also to the others.
fn basics(member: &Member) -> Map<String, Value> {
    let instance = &member.instance;
    let mut shown = Map::new();
    for (name, port) in &instance.ports {
        shown.insert(name.clone(), json!(port));
    }
    let path = |path: Option<&PathBuf>| path.map_or_else(String::new, |p| shown_path(p));
    for (name, value) in [
        ("instance", json!(instance.id)),
        ("host", json!(instance.host)),
        ("address", json!(instance.address)),
        ("port", json!(instance.port)),
        ("deploy", json!(shown_path(&member.deploy))),
        ("data", json!(path(member.data.as_ref()))),
        ("log", json!(shown_path(&member.log))),
    ] {
        shown.insert(name.to_owned(), value);
    }
    shown
}

fn shown_path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
