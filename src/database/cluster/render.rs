//! The files, units and commands of an instance, from the templates of its pack.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::Duration;

use serde_json::Value;

use super::{Cluster, DatabaseError, Member, config_file};
use crate::pack::{self, Version, VersionRange};
use crate::service::{Limits, Restart, Unit};

/// A file of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The host.
    pub host: String,
    /// Its absolute path.
    pub path: PathBuf,
    /// What is in it.
    pub content: String,
    /// Whether it can be run.
    pub executable: bool,
}

/// Where units lie.
const UNITS: &str = "/etc/systemd/system";
/// The mode of a file that may hold secrets, and of one that can be run.
pub(super) const PRIVATE: u32 = 0o640;
pub(super) const EXECUTABLE: u32 = 0o755;

impl Cluster {
    /// Every file of every instance, units included (in `/etc/systemd/system`).
    ///
    /// # Errors
    /// A template cannot be rendered.
    pub fn rendered(&self) -> Result<Vec<Rendered>, DatabaseError> {
        let mut all = Vec::new();
        for member in &self.members {
            all.extend(self.files(member)?);
            all.push(Rendered {
                host: member.instance.host.clone(),
                path: Path::new(UNITS).join(&member.unit),
                content: self.unit(member)?,
                executable: false,
            });
        }
        Ok(all)
    }

    /// A text of the member's pack.
    pub(super) fn text(
        &self,
        member: &Member,
        what: &str,
        text: &str,
    ) -> Result<String, DatabaseError> {
        let name = format!("{what} of {}", member.instance.id);
        Ok(self.scene.render(&name, text, &member.context)?)
    }

    /// Texts of the member's pack.
    pub(super) fn texts(
        &self,
        member: &Member,
        what: &str,
        texts: &[String],
    ) -> Result<Vec<String>, DatabaseError> {
        texts
            .iter()
            .map(|text| self.text(member, what, text))
            .collect()
    }

    /// Whether a range of versions holds for the member.
    pub(super) fn applies(&self, range: Option<&str>) -> bool {
        let Some(range) = range.and_then(|range| VersionRange::from_str(range).ok()) else {
            return true;
        };
        let version = self.scene.version.as_deref().map(Version::from_str);
        version.is_none_or(|version| version.is_ok_and(|version| range.contains(&version)))
    }

    /// The files of a member's own.
    pub(super) fn files(&self, member: &Member) -> Result<Vec<Rendered>, DatabaseError> {
        let role = member.role();
        let mut files = Vec::new();
        let rendered = |file: &str, content: String, executable: bool| Rendered {
            host: member.instance.host.clone(),
            path: member.deploy.join(file),
            content,
            executable,
        };
        for file in &role.files {
            if self.applies(file.versions.as_deref()) {
                let content = self.template(member, &file.template)?;
                files.push(rendered(&file.file, content, file.executable));
            }
        }
        if let Some(config) = &role.config {
            let content = match &config.template {
                Some(template) => self.template(member, template)?,
                None => {
                    let values = self.values(member, &member.instance.config)?;
                    let section = config.section.as_deref();
                    let text = config_file::text(config.format, section, &values);
                    let wrong = |why| {
                        let id = &member.instance.id;
                        DatabaseError::Other(format!("the configuration of `{id}` {why}"))
                    };
                    text.map_err(wrong)?.unwrap_or_default()
                }
            };
            files.push(rendered(&config.file, content, false));
        }
        Ok(files)
    }

    fn template(&self, member: &Member, template: &str) -> Result<String, DatabaseError> {
        let text = &member.pack.templates[template];
        let name = format!("{}/{template}", member.pack.name);
        Ok(self.scene.render(&name, text, &member.context)?)
    }

    /// Settings with the templates in them rendered. An empty text that a template gave leaves its key away.
    fn values(&self, member: &Member, value: &Value) -> Result<Value, DatabaseError> {
        Ok(match value {
            Value::String(text) if text.contains("{{") || text.contains("{%") => {
                Value::String(self.text(member, "a setting", text)?)
            }
            Value::Array(items) => {
                let items = items.iter().map(|item| self.values(member, item));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Value::Object(map) => {
                let mut made = serde_json::Map::new();
                for (key, value) in map {
                    let rendered = self.values(member, value)?;
                    let is_empty = |value: &Value| match value {
                        Value::String(text) => text.is_empty(),
                        Value::Object(map) => map.is_empty(),
                        _ => false,
                    };
                    let is_left_away = is_empty(&rendered) && !is_empty(value);
                    if !is_left_away {
                        made.insert(key.clone(), rendered);
                    }
                }
                Value::Object(made)
            }
            other => other.clone(),
        })
    }

    /// The text of a member's unit.
    pub(super) fn unit(&self, member: &Member) -> Result<String, DatabaseError> {
        let (role, instance) = (member.role(), &member.instance);
        let exec = self.texts(member, "the command", &role.run)?;
        let marker = &self.scene.marker;
        let description = format!("{} of {marker}", instance.id);
        let mut unit = Unit::new(description, exec);
        unit.user = member.user.clone();
        unit.directory = Some(member.deploy.clone());
        let limits = &instance.resource_control;
        unit.limits = Limits {
            nofile: role.unit.nofile,
            stack: role.unit.stack,
            core: limits.limit_core.clone(),
        };
        unit.restart = match &*role.unit.restart {
            "no" => Restart::No,
            "on-failure" => Restart::OnFailure,
            _ => Restart::Always,
        };
        unit.restart_sec = role.unit.restart_sec.0;
        unit.timeout_stop = Some(role.unit.timeout_stop.0);
        unit.timeout_start = Some(Duration::from_secs(90));
        for (name, value) in &role.unit.environment {
            let value = self.text(member, "the environment", value)?;
            unit.environment.insert(name.to_string(), value);
        }
        unit.memory_limit.clone_from(&limits.memory_limit);
        unit.cpu_quota.clone_from(&limits.cpu_quota);
        unit.io_read_bandwidth_max = limits.io_read_bandwidth_max.clone().into_iter().collect();
        unit.io_write_bandwidth_max = limits.io_write_bandwidth_max.clone().into_iter().collect();
        Ok(unit.text()?)
    }

    /// The tunables that the experiment asks of a member, by dotted key.
    pub(in crate::database) fn asked(&self, member: &Member) -> pack::settings::Settings {
        let config = self.deployment.config.get(member.component());
        let own = pack::settings::flatten(&member.instance.config).unwrap_or_default();
        let is_balancer = member.instance.system != self.pack.name;
        let by_user = |key: &String| config.is_some_and(|config| config.contains_key(key));
        let defaults = member.role().config.as_ref();
        let by_pack = |key: &String| {
            defaults.is_some_and(|file| {
                let pack = file.defaults.iter().chain(&file.forced);
                let layers: Vec<Value> = pack
                    .map(|(name, value)| serde_json::json!({ name.as_str(): value.0 }))
                    .collect();
                let known = pack::settings::flatten(&pack::layered(&layers));
                known.is_ok_and(|known| known.contains_key(key))
            })
        };
        own.into_iter()
            .filter(|(key, _)| !is_balancer && (by_user(key) || !by_pack(key)))
            .collect()
    }
}
