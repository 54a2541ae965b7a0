//! Packs: what the file `templates/<system>/system.yaml` says of a system. They are built into the binary.

mod host;

use rust_embed::RustEmbed;
use serde::Deserialize;

pub use self::host::{HostSection, Roles, planned};

#[derive(RustEmbed)]
#[folder = "templates"]
struct BuiltIn;

/// What a system's file says.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pack {
    /// What the system wants of its hosts.
    #[serde(default)]
    pub host: HostSection,
}

/// Why a pack cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// There is no system of that name.
    #[error("there is no system `{name}`; known: {}", known.join(", "))]
    NoSystem {
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The file is not what a pack is.
    #[error("`templates/{system}/system.yaml` is wrong: {why}")]
    Wrong {
        /// The system.
        system: String,
        /// What is wrong, with line and column where that is known.
        why: String,
    },
}

/// The names of all systems that have a pack, in order.
#[must_use]
pub fn systems() -> Vec<String> {
    let files = BuiltIn::iter();
    let mut found: Vec<String> = files
        .filter_map(|file| Some(file.strip_suffix("/system.yaml")?.to_owned()))
        .collect();
    found.sort();
    found
}

/// The pack of a system.
///
/// # Errors
/// There is no such system, or its file is wrong.
pub fn pack(system: &str) -> Result<Pack, PackError> {
    let file = BuiltIn::get(&format!("{system}/system.yaml"));
    let Some(file) = file.filter(|_| systems().iter().any(|known| known == system)) else {
        return Err(PackError::NoSystem {
            name: system.to_owned(),
            known: systems(),
        });
    };
    parse(system, &String::from_utf8_lossy(&file.data))
}

fn parse(system: &str, text: &str) -> Result<Pack, PackError> {
    let wrong = |why: String| PackError::Wrong {
        system: system.to_owned(),
        why,
    };
    let pack: Pack = serde_saphyr::from_str(text).map_err(|error| wrong(error.to_string()))?;
    match pack.host.unknown_warning() {
        None => Ok(pack),
        Some(name) => Err(wrong(format!(
            "`warn` names `{name}`, which is no item that is checked"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::SYSCTLS;

    #[test]
    fn every_pack_is_whole_and_wants_only_settings_that_are_read() {
        assert_eq!(systems(), ["sqlite", "tidb", "yugabytedb"]);
        for system in systems() {
            let host = pack(&system).unwrap().host;
            let wanted = host.wanted(Roles {
                database: true,
                client: true,
            });
            assert!(wanted.clock_offset.is_some(), "{system}");
            for key in wanted.sysctl.keys() {
                assert!(SYSCTLS.contains(&key.as_str()), "{system}: {key}");
            }
        }
    }

    #[test]
    fn huge_pages_are_wanted_off_for_tidb_and_on_for_yugabytedb() {
        let thp = |system: &str| pack(system).unwrap().host.database.thp;
        assert_eq!(thp("tidb").as_deref(), Some("never"));
        assert_eq!(thp("yugabytedb").as_deref(), Some("always"));
        assert_eq!(thp("sqlite"), None);
    }

    #[test]
    fn an_unknown_system_names_those_that_there_are() {
        let error = pack("mysql").unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no system `mysql`; known: sqlite, tidb, yugabytedb"
        );
        assert!(pack("../report").is_err() && pack("report").is_err());
    }

    #[test]
    fn a_wrong_pack_says_where_and_what() {
        let wrong = [
            ("host: {database: {thp: never, hugepages: 1}}", "hugepages"),
            ("host:\n  database:\n    memory: lots\n", "lots"),
            ("host: {all: {clock_offset: soon}}", "soon"),
            (
                "host: {database: {sysctl: {vm.swappiness: '>= few'}}}",
                ">= few",
            ),
            (
                "host: {all: {governor: performance, warn: [governer]}}",
                "governer",
            ),
            ("hosts: {}", "hosts"),
        ];
        for (text, named) in wrong {
            let error = parse("x", text).unwrap_err().to_string();
            assert!(
                error.starts_with("`templates/x/system.yaml` is wrong: "),
                "{error}"
            );
            assert!(error.contains(named), "{error}");
        }
        let error = parse("x", "host:\n  database:\n    memory: lots\n").unwrap_err();
        assert!(error.to_string().contains("line 3"), "{error}");
    }
}
