//! The manifests of a mirror: which versions it has, where, and with what sha256. Text in, values out.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Deserialize;

use super::{NIGHTLY, PackageError, Wanted};

/// How many names an error lists.
const SHOWN: usize = 5;
/// The platform of what runs everywhere.
const ANY: &str = "any/any";

#[derive(Deserialize)]
struct Signed<T> {
    signed: T,
}

/// `snapshot.json`: the current version of every other manifest.
#[derive(Deserialize)]
pub(super) struct Snapshot {
    meta: BTreeMap<String, Meta>,
}

#[derive(Deserialize)]
struct Meta {
    version: u64,
}

/// `N.<component>.json`.
#[derive(Deserialize)]
pub(super) struct Component {
    #[serde(default)]
    nightly: String,
    /// By platform, then by version.
    platforms: BTreeMap<String, BTreeMap<String, Item>>,
}

/// One version of a component for one platform.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Item {
    /// Below the mirror, with a slash before it.
    pub(super) url: String,
    #[serde(default)]
    yanked: bool,
    pub(super) hashes: Hashes,
    pub(super) length: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Hashes {
    pub(super) sha256: String,
}

/// What a component's manifest has of what is wanted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    /// What `nightly` means.
    pub(super) version: &'a str,
    pub(super) platform: &'a str,
    pub(super) item: &'a Item,
}

impl Snapshot {
    pub(super) fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text).map(|read: Signed<Self>| read.signed)
    }

    /// The name of a component's manifest.
    pub(super) fn file_of(&self, component: &str) -> Option<String> {
        let meta = self.meta.get(&format!("/{component}.json"))?;
        Some(format!("{}.{component}.json", meta.version))
    }

    /// Components that could be meant.
    pub(super) fn close(&self, component: &str) -> Vec<String> {
        let names = self.meta.keys().filter_map(|key| {
            let name = key.strip_prefix('/')?.strip_suffix(".json")?;
            (!matches!(name, "root" | "index" | "timestamp" | "snapshot")).then_some(name)
        });
        closest(component, names)
    }
}

impl Component {
    pub(super) fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text).map(|read: Signed<Self>| read.signed)
    }

    /// The entry of what is wanted.
    pub(super) fn find(&self, wanted: &Wanted, mirror: &str) -> Result<Entry<'_>, PackageError> {
        let version = match wanted.version.as_str() {
            NIGHTLY if !self.nightly.is_empty() => &self.nightly,
            version => version,
        };
        let platform = wanted.platform.to_string();
        let found = [platform.as_str(), ANY].into_iter().find_map(|platform| {
            let (platform, versions) = self.platforms.get_key_value(platform)?;
            let (version, item) = versions.get_key_value(version)?;
            Some(Entry {
                version,
                platform,
                item,
            })
        });
        match found {
            Some(entry) if entry.item.yanked => Err(PackageError::Yanked {
                mirror: mirror.to_owned(),
                component: wanted.component.clone(),
                version: entry.version.to_owned(),
            }),
            Some(entry) => Ok(entry),
            None => Err(self.absent(wanted, version, mirror)),
        }
    }

    /// Why a version is not there for a platform.
    fn absent(&self, wanted: &Wanted, version: &str, mirror: &str) -> PackageError {
        let has = |versions: &BTreeMap<String, Item>| versions.contains_key(version);
        let known = self.platforms.iter().filter(|(_, versions)| has(versions));
        let known: Vec<String> = known.map(|(platform, _)| platform.clone()).collect();
        if known.is_empty() {
            PackageError::UnknownVersion {
                mirror: mirror.to_owned(),
                component: wanted.component.clone(),
                version: version.to_owned(),
                close: self.close(&wanted.platform.to_string(), version),
            }
        } else {
            PackageError::WrongPlatform {
                component: wanted.component.clone(),
                version: version.to_owned(),
                platform: wanted.platform.to_string(),
                known,
            }
        }
    }

    /// The versions for a platform that could be meant; daily builds only if nothing else is there.
    fn close(&self, platform: &str, version: &str) -> Vec<String> {
        let versions = [platform, ANY].into_iter().find_map(|platform| {
            let versions = self.platforms.get(platform)?;
            (!versions.is_empty()).then_some(versions)
        });
        let usable = versions.into_iter().flatten();
        let usable = usable.filter(|(_, item)| !item.yanked);
        let (daily, released): (Vec<&str>, Vec<&str>) = usable
            .map(|(version, _)| version.as_str())
            .partition(|version| version.contains(NIGHTLY));
        closest(version, if released.is_empty() { daily } else { released })
    }
}

/// The names that are closest to `name`, the closest first; of those that are equally close, the newest first.
pub(super) fn closest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let order = |other: &str| {
        // Similarities lie between 0 and 1.
        let similarity = (strsim::jaro_winkler(name, other) * 1000.0).round() as u32;
        let version = semver::Version::parse(other.trim_start_matches('v')).ok();
        Reverse((similarity, version, other.to_owned()))
    };
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_by_cached_key(|other| order(other));
    names.truncate(SHOWN);
    names.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::package::{Arch, Platform};

    fn item(name: &str, yanked: bool) -> Value {
        json!({"url": format!("/{name}.tar.gz"), "yanked": yanked, "entry": name, "released": "", "dependencies": null,
            "hashes": {"sha256": "aa", "sha512": "bb"}, "length": 3})
    }

    fn component() -> Component {
        let text = json!({"signatures": [], "signed": {
            "_type": "component", "id": "tikv", "nightly": "v6.2.0-nightly-20220701",
            "platforms": {
                "any/any": {"v1.0.0": item("anywhere", false)},
                "linux/amd64": {
                    "v5.4.3": item("a", false), "v6.1.1": item("b", true), "v6.1.2": item("c", false),
                    "v6.1.0": item("d", false), "v6.2.0-nightly-20220701": item("n", false),
                },
                "darwin/arm64": {"v6.5.0": item("e", false)},
            },
        }});
        Component::read(&text.to_string()).unwrap()
    }

    fn find(version: &str) -> Result<(String, String, String), PackageError> {
        let wanted = Wanted {
            component: "tikv".to_owned(),
            version: version.to_owned(),
            platform: Platform::linux(Arch::Amd64),
        };
        let component = component();
        let entry = component.find(&wanted, "m")?;
        let words = [entry.version, entry.platform, &entry.item.url];
        let [version, platform, url] = words.map(str::to_owned);
        Ok((version, platform, url))
    }

    #[test]
    fn a_version_has_its_entry_and_nightly_is_an_alias() {
        let (version, platform, url) = find("v6.1.2").unwrap();
        assert_eq!(
            [version, platform, url],
            ["v6.1.2", "linux/amd64", "/c.tar.gz"]
        );
        let (version, _, url) = find("nightly").unwrap();
        assert_eq!([version, url], ["v6.2.0-nightly-20220701", "/n.tar.gz"]);
        let (_, platform, _) = find("v1.0.0").unwrap();
        assert_eq!(platform, "any/any");
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        for (version, message) in [
            (
                "v6.1.9",
                "m has no version `v6.1.9` of `tikv`; the closest are `v6.1.2`, `v6.1.0`, `v5.4.3`",
            ),
            (
                "v6.5.0",
                "`tikv` v6.5.0 is not for linux/amd64; there is `darwin/arm64`",
            ),
            (
                "v6.1.1",
                "m has withdrawn `tikv` v6.1.1: its manifest says that it is yanked",
            ),
        ] {
            assert_eq!(find(version).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn a_snapshot_names_the_files_of_components() {
        let text = r#"{"signed": {"meta": {"/root.json": {"version": 1, "length": 5},
            "/tikv.json": {"version": 17, "length": 5}, "/tidb.json": {"version": 3, "length": 5}}}}"#;
        let snapshot = Snapshot::read(text).unwrap();
        assert_eq!(snapshot.file_of("tikv").as_deref(), Some("17.tikv.json"));
        assert_eq!(snapshot.file_of("tkv"), None);
        assert_eq!(snapshot.close("tkv"), ["tikv", "tidb"]);
    }
}
