//! What a system wants of its hosts: the `host` section of its pack, by what a host is there for.

use serde::Deserialize;

use super::form::Form;
use crate::host::preflight::Wanted;

/// What a system wants of its hosts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostSection {
    /// The roles whose instances store data.
    pub storage_roles: Vec<String>,
    /// What is wanted of every host.
    pub all: Wanted,
    /// What is wanted besides of a host that carries an instance.
    pub database: Wanted,
    /// What is wanted besides of a host that runs a load tool.
    pub client: Wanted,
}

/// What a host is there for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purposes {
    /// It carries an instance.
    pub database: bool,
    /// It runs a load tool.
    pub client: bool,
}

impl HostSection {
    /// The section of a pack.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn of(form: &Form) -> Result<Self, String> {
        let value = &form.host.0;
        if value.is_null() {
            return Ok(Self::default());
        }
        // JSON is YAML, whose single values are read by the type that is asked for.
        let section: Self =
            serde_saphyr::from_str(&value.to_string()).map_err(|error| plain(&error))?;
        match section.unknown_warning() {
            None => Ok(section),
            Some(name) => Err(format!(
                "`warn` names `{name}`, which is no item that is checked"
            )),
        }
    }

    /// What is wanted of a host that is there for this.
    #[must_use]
    pub fn wanted(&self, purposes: Purposes) -> Wanted {
        let mut wanted = Wanted::default();
        if purposes.database {
            wanted = wanted.or(self.database.clone());
        }
        if purposes.client {
            wanted = wanted.or(self.client.clone());
        }
        wanted.or(self.all.clone())
    }

    /// The first entry of a list of warnings that names nothing that is checked.
    pub(super) fn unknown_warning(&self) -> Option<String> {
        let everything = self.wanted(Purposes {
            database: true,
            client: true,
        });
        everything.unknown_warning().map(str::to_owned)
    }
}

/// The first line of an error without its place, which is one in a text that nobody wrote.
fn plain(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let first = text.lines().next().unwrap_or_default();
    let message = first
        .split_once(": ")
        .filter(|(place, _)| place.contains("line ") || place.starts_with("error"));
    message.map_or(first, |(_, message)| message).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_wanted_to_be_what_its_roles_ask_for() {
        let section: HostSection = serde_json::from_value(serde_json::json!({
            "all": {"clock_offset": "500ms", "governor": "performance", "warn": ["governor"]},
            "database": {"thp": "never", "clock_offset": "100ms"},
            "client": {"open_files": true},
        }))
        .unwrap();
        let of = |database, client| section.wanted(Purposes { database, client });
        let ms = |wanted: &Wanted| wanted.clock_offset.map(|d| d.0.as_millis());
        let (neither, database, client) = (of(false, false), of(true, false), of(false, true));
        assert_eq!(
            (ms(&neither), ms(&database), ms(&client)),
            (Some(500), Some(100), Some(500))
        );
        assert_eq!(database.thp.as_deref(), Some("never"));
        assert!(!database.open_files && client.open_files && client.thp.is_none());
        assert!(database.warn.contains("governor"));
        let both = of(true, true);
        assert!(both.open_files && both.thp.is_some());
    }
}
