//! What a started cluster says of itself: versions, variables and the whole configuration of every process. A tunable that
//! did not take effect is an error.

use std::collections::BTreeMap;

use futures::future::try_join_all;
use serde_json::{Map, Value};

use super::sql::is_same;
use super::{Cluster, DatabaseError, Effective, Member};
use crate::database::Hosts;
use crate::host::Bounds;
use crate::pack::{self, settings};

/// The component that variables are listed under.
const VARIABLES: &str = "variables";

impl Cluster {
    /// Reads everything back and compares it with what was asked for.
    pub(super) async fn effective(
        &self,
        hosts: &Hosts,
        bounds: Bounds<'_>,
    ) -> Result<Effective, DatabaseError> {
        let each = self.members.iter().map(async |member| {
            let host = &*hosts[&member.instance.host];
            let version = match &member.role().version {
                Some(reading) => {
                    let found = self.reading(host, member, reading, bounds).await;
                    Some(found.map_err(|e| e.of("cannot read the version of", member))?)
                }
                None => None,
            };
            let whole = match &member.role().effective {
                Some(reading) => {
                    let found = self.reading(host, member, reading, bounds).await;
                    let found = found.map(by_key);
                    Some(found.map_err(|e| e.of("cannot read the configuration of", member)))
                }
                None => None,
            };
            Ok::<_, DatabaseError>((member, version, whole))
        });
        let mut effective = Effective::default();
        for (member, version, whole) in try_join_all(each).await? {
            if let Some(version) = version {
                let found = pack::text(version.pointer("/0/0").unwrap_or(&version));
                self.same_version(member, &found)?;
                let is_entry = self
                    .entries()
                    .first()
                    .is_some_and(|e| e.instance.id == member.instance.id);
                if is_entry || effective.version.is_empty() {
                    effective.version = found;
                }
            }
            let whole = match whole.transpose() {
                // Who may only use a cluster may not see all of it.
                Err(error) if self.is_foreign && error.host().is_none() => {
                    effective.unasked.push(words(&error));
                    None
                }
                whole => whole?,
            };
            if let Some(whole) = whole {
                let took = self.took_effect(member, &whole, &mut effective.unasked)?;
                let component = member.component().to_owned();
                effective.config.entry(component).or_default().extend(took);
                effective.whole.insert(member.instance.id.clone(), whole);
            }
        }
        let mut variables = BTreeMap::new();
        for name in self.deployment.variables.keys() {
            variables.insert(name.clone(), self.variable(hosts, name, bounds).await?);
        }
        if !variables.is_empty() {
            effective.config.insert(VARIABLES.to_owned(), variables);
        }
        Ok(effective)
    }

    /// Whether a member is of the version that was asked for.
    fn same_version(&self, member: &Member, found: &str) -> Result<(), DatabaseError> {
        let is_own =
            member.instance.system == self.pack.name && member.role().package_version.is_none();
        let Some(wanted) = self.scene.version.as_deref().filter(|_| is_own) else {
            return Ok(());
        };
        let plain = |text: &str| text.trim().trim_start_matches('v').to_ascii_lowercase();
        let (wanted, found) = (plain(wanted), plain(found));
        let is_part = found
            .strip_prefix(&*wanted)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()));
        if is_part || wanted == crate::package::NIGHTLY {
            return Ok(());
        }
        Err(DatabaseError::Version {
            instance: member.instance.id.clone(),
            wanted,
            found,
        })
    }

    /// The tunables that were asked of a member, as it has them.
    fn took_effect(
        &self,
        member: &Member,
        whole: &Value,
        unasked: &mut Vec<String>,
    ) -> Result<BTreeMap<String, String>, DatabaseError> {
        let known = settings::flatten(whole).unwrap_or_default();
        let mut took = BTreeMap::new();
        for (key, wanted) in self.asked(member) {
            let Some(found) = found(&known, &key) else {
                unasked.push(format!(
                    "`{key}` of `{}`, which it does not tell",
                    member.instance.id
                ));
                continue;
            };
            let found = pack::text(found);
            if !is_same(&wanted, &found) {
                return Err(DatabaseError::NotEffective {
                    of: member.instance.id.clone(),
                    name: format!("`{key}`"),
                    wanted: pack::text(&wanted),
                    found,
                });
            }
            took.insert(key, found);
        }
        Ok(took)
    }
}

/// The value of a key: by its own name, or as programs write it that take dashes and underscores alike and know no sections.
fn found<'a>(known: &'a settings::Settings, key: &str) -> Option<&'a Value> {
    let plain = |key: &str| key.replace('-', "_").to_ascii_lowercase();
    let last = key.rsplit('.').next().unwrap_or(key);
    known.get(key).or_else(|| {
        let wanted = [plain(key), plain(last)];
        let mut names = known.iter();
        names
            .find(|(name, _)| wanted.contains(&plain(name)))
            .map(|(_, v)| v)
    })
}

/// An error with its causes.
fn words(error: &DatabaseError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

/// Rows of keys and values, the last two columns, as a mapping; JSON as it is.
fn by_key(found: Value) -> Value {
    let Value::Array(rows) = &found else {
        return found;
    };
    let mut map = Map::new();
    for row in rows {
        if let Some([.., key, value]) = row.as_array().map(Vec::as_slice) {
            map.insert(pack::text(key), value.clone());
        }
    }
    Value::Object(map)
}
