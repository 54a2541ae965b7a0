//! Mirrors: which tarball is what is wanted. One without manifests has its tarballs by name.

use std::fs;
use std::io::ErrorKind;

use super::error::Tried as _;
use super::http::Client;
use super::manifest::{Component, Snapshot, closest};
use super::source::Source;
use super::{PackageError, Wanted, Watch, check};

/// A mirror: a folder or a URL.
pub(super) struct Mirror<'a> {
    pub(super) base: &'a Source,
    /// For a URL.
    pub(super) client: Option<&'a Client>,
    pub(super) watch: &'a Watch,
}

/// A tarball that was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) source: Source,
    /// What a manifest says of it.
    pub(super) expected: Option<Expected>,
    pub(super) version: String,
    pub(super) platform: String,
}

/// What a manifest says of a tarball.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    /// In lower-case hex.
    pub(super) sha256: String,
    /// Bytes.
    pub(super) length: u64,
}

impl Found {
    /// The tarball for every platform that may be in a mirror without manifests instead.
    pub(super) fn for_any(&self, base: &Source, wanted: &Wanted) -> Option<Self> {
        self.expected.is_none().then(|| Self {
            source: base.join(&name_of(wanted, "any-any")),
            expected: None,
            version: self.version.clone(),
            platform: "any/any".to_owned(),
        })
    }
}

/// The name of a tarball in a mirror without manifests.
fn name_of(wanted: &Wanted, platform: &str) -> String {
    let Wanted {
        component, version, ..
    } = wanted;
    format!("{component}-{version}-{platform}.tar.gz")
}

impl Expected {
    /// Refuses another length.
    pub(super) fn same_length(&self, what: &str, found: u64) -> Result<(), PackageError> {
        if found == self.length {
            return Ok(());
        }
        Err(PackageError::Length {
            what: what.to_owned(),
            expected: self.length,
            found,
        })
    }

    /// Refuses another sha256.
    pub(super) fn same_sum(&self, what: &str, found: &str) -> Result<(), PackageError> {
        if found == self.sha256 {
            return Ok(());
        }
        Err(PackageError::Checksum {
            what: what.to_owned(),
            expected: self.sha256.clone(),
            found: found.to_owned(),
        })
    }
}

impl Mirror<'_> {
    /// Finds what is wanted.
    pub(super) async fn find(&self, wanted: &Wanted) -> Result<Found, PackageError> {
        let Some(text) = self.read("snapshot.json").await? else {
            return self.by_name(wanted);
        };
        let snapshot = Snapshot::read(&text).map_err(|e| self.unreadable("snapshot.json", e))?;
        let unknown = || PackageError::UnknownComponent {
            mirror: self.base.quoted(),
            component: wanted.component.clone(),
            close: snapshot.close(&wanted.component),
        };
        let file = snapshot.file_of(&wanted.component).ok_or_else(unknown)?;
        let missing = || PackageError::Missing {
            what: self.base.join(&file).quoted(),
        };
        let text = self.read(&file).await?.ok_or_else(missing)?;
        let component = Component::read(&text).map_err(|e| self.unreadable(&file, e))?;
        let entry = component.find(wanted, &self.base.quoted())?;
        let outside = || self.unreadable(&file, format!("`{}` leads outside", entry.item.url));
        let below = check::below(&entry.item.url).ok_or_else(outside)?;
        let sha256 = entry.item.hashes.sha256.to_ascii_lowercase();
        if sha256.len() != 64 || !sha256.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(self.unreadable(&file, format!("`{sha256}` is no sha256")));
        }
        Ok(Found {
            source: self.base.join(below),
            expected: Some(Expected {
                sha256,
                length: entry.item.length,
            }),
            version: entry.version.to_owned(),
            platform: entry.platform.to_owned(),
        })
    }

    /// A manifest; `None` if there is none.
    async fn read(&self, name: &str) -> Result<Option<String>, PackageError> {
        match (self.base.join(name), self.client) {
            (Source::Url(url), Some(client)) => client.text(&url, self.watch).await,
            (Source::Url(_), None) => unreachable!("a mirror with a URL has a client"),
            (Source::Path(path), _) => match fs::read_to_string(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                read => read.map(Some).tried("read", &path),
            },
        }
    }

    fn unreadable(
        &self,
        file: &str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> PackageError {
        PackageError::Manifest {
            file: self.base.join(file).quoted(),
            source: source.into(),
        }
    }

    /// The tarball with the name that it has in a mirror without manifests.
    fn by_name(&self, wanted: &Wanted) -> Result<Found, PackageError> {
        let name = name_of(wanted, &wanted.platform.dashed());
        let own = Found {
            source: self.base.join(&name),
            expected: None,
            version: wanted.version.clone(),
            platform: wanted.platform.to_string(),
        };
        let Source::Path(folder) = self.base else {
            return Ok(own);
        };
        let entries = fs::read_dir(folder).tried("read the folder", folder)?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let names: Vec<String> = names.filter(|name| name.ends_with(".tar.gz")).collect();
        if names.contains(&name) {
            return Ok(own);
        }
        let any = names.contains(&name_of(wanted, "any-any"));
        let any = any.then(|| own.for_any(self.base, wanted)).flatten();
        any.ok_or_else(|| self.absent(wanted, &names))
    }

    /// Why no tarball of a folder is what is wanted.
    fn absent(&self, wanted: &Wanted, names: &[String]) -> PackageError {
        let prefix = format!("{}-", wanted.component);
        let versions = names.iter().filter_map(|name| {
            let platform = check::platform_in(name)?;
            let version = name.strip_prefix(&prefix)?;
            let version = version.strip_suffix(&format!("-{}.tar.gz", platform.dashed()))?;
            // `tidb-dashboard-v8.5.0` is no version of `tidb`.
            let is_version = version.starts_with(|c: char| c == 'v' || c.is_ascii_digit())
                || version == super::NIGHTLY;
            is_version.then_some((version, platform))
        });
        let versions: Vec<_> = versions.collect();
        let others = versions
            .iter()
            .filter(|(found, _)| *found == wanted.version);
        let known: Vec<String> = others.map(|(_, platform)| platform.to_string()).collect();
        let component = wanted.component.clone();
        if !known.is_empty() {
            return PackageError::WrongPlatform {
                component,
                version: wanted.version.clone(),
                platform: wanted.platform.to_string(),
                known,
            };
        }
        let fitting = versions
            .iter()
            .filter(|(_, platform)| *platform == wanted.platform);
        PackageError::UnknownVersion {
            mirror: self.base.quoted(),
            component,
            version: wanted.version.clone(),
            close: closest(&wanted.version, fitting.map(|(version, _)| *version)),
        }
    }
}
