//! The catalogue of configuration keys and SQL variables of a system by version, and whether settings fit it.
//! It judges values; where they come from and what is done about a finding is for others.

mod catalogue;
mod component;
mod expression;
mod presence;
mod setting;
mod suggest;
mod value;

use serde_json::Value;

pub use self::catalogue::{Change, Scope};
pub use self::value::Kind;

use self::catalogue::Catalogue;
use self::setting::Setting;
use super::settings::Settings;
use super::version::{Version, VersionRange};

/// What is known of the keys and variables of a system.
#[derive(Clone, Debug)]
pub struct Keys(Catalogue);

/// What a setting is judged by, besides itself.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The version of the component.
    pub version: &'a Version,
    /// The CPUs that the component will see; none where they are not known yet.
    pub cpus: Option<u32>,
    /// The memory that it will see, in bytes; none where it is not known yet.
    pub memory: Option<u64>,
    /// All settings of the component, by dotted key.
    pub others: &'a Settings,
}

/// What is wrong or doubtful with a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether it can be carried out at all.
    pub severity: Severity,
    /// What it is, with the key and the version.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The component starts, but does not do what the setting seems to say.
    Warning,
    /// The component, or its check of the configuration, refuses it.
    Error,
}

/// Why a catalogue cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct KeysError {
    /// The line, from 1, where it is known.
    pub line: Option<u64>,
    /// What is wrong.
    pub message: String,
}

impl Finding {
    fn error(message: String) -> Self {
        Self {
            severity: Severity::Error,
            message,
            help: None,
        }
    }

    fn warning(message: String) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(message)
        }
    }

    fn help(self, help: impl Into<Option<String>>) -> Self {
        Self {
            help: help.into(),
            ..self
        }
    }
}

impl Keys {
    /// Reads a catalogue; the header of `templates/tidb/keys.yaml` says how it is written.
    ///
    /// # Errors
    /// The text is no catalogue, or names a group or a key that it does not have.
    pub fn parse(text: &str) -> Result<Self, KeysError> {
        let mut catalogue: Catalogue = serde_saphyr::from_str(text).map_err(|error| {
            let message = error.without_snippet().to_string();
            let end = message.rfind(" at line ").unwrap_or(message.len());
            KeysError {
                line: error.location().map(|at| at.line()),
                message: message[..end].to_owned(),
            }
        })?;
        for (role, component) in &mut catalogue.components {
            component
                .spread_groups()
                .map_err(|(key, message)| KeysError {
                    line: line_of(text, &key),
                    message: format!("{role}: {message}"),
                })?;
        }
        Ok(Self(catalogue))
    }

    /// Judges one setting of a component. A component without a catalogue takes anything.
    #[must_use]
    pub fn check(&self, component: &str, key: &str, value: &Value, at: &Context) -> Vec<Finding> {
        let Some(known) = self.0.components.get(component) else {
            return Vec::new();
        };
        if value.as_object().is_some_and(serde_json::Map::is_empty) {
            return Vec::new();
        }
        let setting = Setting {
            known,
            component,
            name: key,
            at,
            covered: known.covers.as_ref().unwrap_or(&self.0.covers),
            catalogue: &self.0,
        };
        setting.check(value)
    }

    /// Judges the name of a SQL variable that is to be set for all.
    #[must_use]
    pub fn check_variable(&self, name: &str, version: &Version) -> Vec<Finding> {
        let name = name.to_lowercase();
        if self.0.variables_without_effect.contains(&name) {
            let message =
                format!("tidb {version} takes the variable `{name}` and does nothing with it");
            return vec![Finding::warning(message)];
        }
        let Some(variable) = self.0.variables.get(&name) else {
            let there = self.variables_of(version);
            let message = format!("tidb {version} has no variable `{name}`");
            let help = suggest::closest(&name, there).map(|near| format!("did you mean `{near}`?"));
            return vec![self.0.covers.judge(version, message).help(help)];
        };
        if let Some(why) = variable.presence().absent(version) {
            let message = format!("tidb {version} has no variable `{name}`: {why}");
            return vec![self.0.covers.judge(version, message)];
        }
        let mut findings = Vec::new();
        match variable.scope {
            Scope::Global | Scope::Instance => {}
            Scope::Session => findings.push(Finding::error(format!(
                "the variable `{name}` of tidb is of a session; it cannot be set for all"
            ))),
            Scope::None => findings.push(Finding::error(format!(
                "the variable `{name}` of tidb cannot be set"
            ))),
        }
        let none = Settings::new();
        let idle = variable.no_effect.iter().find(|r| r.holds(version, &none));
        findings.extend(idle.map(|remark| ignored("tidb", version, &name, &remark.text)));
        findings
    }

    /// What a SQL variable reaches when it is set; none of one that is not known.
    #[must_use]
    pub fn scope(&self, variable: &str) -> Option<Scope> {
        Some(self.0.variables.get(&variable.to_lowercase())?.scope)
    }

    /// What kind of value a key has; none of a key that is not known.
    #[must_use]
    pub fn kind(&self, component: &str, key: &str) -> Option<Kind> {
        Some(self.0.components.get(component)?.keys.get(key)?.kind)
    }

    /// What kind of value a SQL variable has; none of one that is not known.
    #[must_use]
    pub fn variable_kind(&self, variable: &str) -> Option<Kind> {
        Some(self.0.variables.get(&variable.to_lowercase())?.kind)
    }

    /// What became another default after one version, up to and with another, oldest first: what a comparison of the two
    /// compares besides what the experiment says.
    #[must_use]
    pub fn changes(&self, after: &Version, up_to: &Version) -> Vec<Change> {
        let listed = self.0.changes.iter().cloned();
        let mut changes: Vec<Change> = listed
            .filter(|change| *after < change.at && change.at <= *up_to)
            .collect();
        let forward = after < up_to;
        for (name, variable) in self.0.variables.iter().filter(|_| forward) {
            let told = changes.iter().any(|c| c.variable.as_ref() == Some(name));
            if !told {
                changes.extend(variable.default.change(name, after, up_to));
            }
        }
        changes.sort_by(|a, b| a.at.cmp(&b.at));
        changes
    }

    fn variables_of(&self, version: &Version) -> impl Iterator<Item = &str> {
        let there = self.0.variables.iter();
        there
            .filter(|(_, variable)| variable.presence().absent(version).is_none())
            .map(|(name, _)| name.as_str())
    }
}

impl VersionRange {
    /// An error for a version that the catalogue was made for, else a warning.
    fn judge(&self, version: &Version, message: String) -> Finding {
        if self.contains(version) {
            Finding::error(message)
        } else {
            let help = format!("it is not known for certain: versions {self} are catalogued");
            Finding::warning(message).help(help)
        }
    }
}

fn ignored(component: &str, version: &Version, name: &str, why: &str) -> Finding {
    Finding::warning(format!("{component} {version} ignores `{name}`: {why}"))
}

/// The line, from 1, on which a key stands.
fn line_of(text: &str, key: &str) -> Option<u64> {
    let is = |line: &str| {
        let line = line.trim_start().trim_start_matches('"');
        line.strip_prefix(key)
            .is_some_and(|rest| rest.starts_with([':', '"']))
    };
    let index = text.lines().position(is)?;
    u64::try_from(index + 1).ok()
}

#[cfg(test)]
mod tests;
