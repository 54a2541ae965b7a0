//! The catalogue as it is written: the fields of `keys.yaml`, whose header says what each is.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::expression::Expression;
use super::value::{Kind, plain};
use crate::pack::settings::Settings;
use crate::pack::version::{Version, VersionRange};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Catalogue {
    pub(super) covers: VersionRange,
    #[serde(default)]
    pub(super) components: BTreeMap<String, Component>,
    #[serde(default)]
    pub(super) variables: BTreeMap<String, Variable>,
    #[serde(default)]
    pub(super) variables_without_effect: BTreeSet<String>,
    #[serde(default)]
    pub(super) changes: Vec<Change>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Component {
    pub(super) covers: Option<VersionRange>,
    #[serde(default)]
    pub(super) complete: bool,
    #[serde(default)]
    pub(super) groups: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub(super) sections: BTreeMap<String, Section>,
    pub(super) keys: BTreeMap<String, Key>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Section {
    #[serde(default)]
    pub(super) free: bool,
    pub(super) complete: Option<bool>,
    #[serde(default)]
    pub(super) no_effect: Vec<Remark>,
    #[serde(default)]
    pub(super) note: Vec<Remark>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Key {
    #[serde(rename = "type")]
    pub(super) kind: Kind,
    pub(super) since: Option<Version>,
    pub(super) until: Option<Version>,
    pub(super) versions: Option<VersionRange>,
    #[serde(default)]
    pub(super) accepted: bool,
    pub(super) renamed: Option<Renamed>,
    pub(super) instead: Option<Instead>,
    #[serde(default)]
    pub(super) no_effect: Vec<Remark>,
    #[serde(default)]
    pub(super) note: Vec<Remark>,
    #[serde(default)]
    pub(super) limits: Vec<Limit>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Variable {
    #[serde(rename = "type")]
    pub(super) kind: Kind,
    pub(super) since: Option<Version>,
    pub(super) until: Option<Version>,
    pub(super) versions: Option<VersionRange>,
    #[serde(default)]
    pub(super) scope: Scope,
    #[serde(default)]
    pub(super) no_effect: Vec<Remark>,
    #[serde(default)]
    pub(super) default: Defaults,
}

/// Whom a variable that is set reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// All servers, and what connects to them from then on.
    #[default]
    Global,
    /// The server that it is set on: it is set on each.
    Instance,
    /// The session that sets it.
    Session,
    /// It cannot be set.
    None,
}

/// A default, or the defaults from certain versions on.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Defaults {
    Always(#[expect(dead_code, reason = "for whoever reads the file")] String),
    From(BTreeMap<Version, String>),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Renamed {
    pub(super) to: String,
    pub(super) at: Version,
}

/// What took the place of a key.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) enum Instead {
    Key(String),
    Variable(String),
}

/// Something that holds for some versions and under some settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Remark {
    versions: Option<VersionRange>,
    #[serde(default)]
    when: BTreeMap<String, Value>,
    #[serde(default)]
    unless: BTreeMap<String, Value>,
    #[serde(alias = "why")]
    pub(super) text: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limit {
    pub(super) versions: Option<VersionRange>,
    pub(super) min: Option<Expression>,
    pub(super) max: Option<Expression>,
}

/// What a system does otherwise from a version on, without any setting being given.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The first version with it.
    pub at: Version,
    /// The component, where a key settles it.
    pub component: Option<String>,
    /// The key that settles it.
    pub key: Option<String>,
    /// The SQL variable that settles it.
    pub variable: Option<String>,
    /// The default before.
    pub from: String,
    /// The default from then on.
    pub to: String,
    /// What it means, in a few words.
    pub what: Option<String>,
}

impl Default for Defaults {
    fn default() -> Self {
        Self::From(BTreeMap::new())
    }
}

impl TryFrom<String> for Instead {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.split_once(' ') {
            Some(("key", name)) => Ok(Self::Key(name.to_owned())),
            Some(("variable", name)) => Ok(Self::Variable(name.to_owned())),
            _ => Err(format!("`{text}` is neither \"key x\" nor \"variable x\"")),
        }
    }
}

impl Remark {
    /// Whether it holds for a key in the section that it stands at: those that it depends on are no part of it.
    pub(super) fn is_about(&self, key: &str) -> bool {
        !self.when.contains_key(key) && !self.unless.contains_key(key)
    }

    pub(super) fn holds(&self, version: &Version, others: &Settings) -> bool {
        let is = |(key, wanted): (&String, &Value)| match others.get(key) {
            Some(value) => plain(value) == plain(wanted) && !wanted.is_null(),
            None => wanted.is_null(),
        };
        self.versions.as_ref().is_none_or(|v| v.contains(version))
            && self.when.iter().all(is)
            && !self.unless.iter().any(is)
    }
}

impl Defaults {
    /// What became another default after one version, up to and with another.
    pub(super) fn change(
        &self,
        variable: &str,
        after: &Version,
        up_to: &Version,
    ) -> Option<Change> {
        let Self::From(values) = self else {
            return None;
        };
        let (_, from) = values.range(..=after).next_back()?;
        let (at, to) = values.range(..=up_to).next_back()?;
        (from != to).then(|| Change {
            at: at.clone(),
            component: None,
            key: None,
            variable: Some(variable.to_owned()),
            from: from.clone(),
            to: to.clone(),
            what: None,
        })
    }
}
