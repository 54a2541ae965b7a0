//! Packs: what the folder `templates/<system>/` says of a system, as data. They are built into the binary; a folder of the
//! same name beside the experiment goes before the built-in one, whole.

mod check;
mod context;
mod form;
mod host;
pub mod keys;
mod layers;
pub mod settings;
mod version;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rust_embed::RustEmbed;

pub use self::context::{CONTEXT, context_of};
pub use self::form::{
    Account, Condition, ConfigFile, ConfigFormat, Count, Entry, FileTemplate, Form, Programs,
    Protocol, Reading, Role, Run, Sql, Statement, Test, Unit,
};
pub use self::host::{HostSection, Purposes};
use self::keys::{Keys, KeysError};
pub use self::layers::{layered, text};
pub use self::version::{Version, VersionError, VersionRange};
use crate::spec::{self, Problems, Text};

#[derive(RustEmbed)]
#[folder = "templates"]
struct BuiltIn;

/// The file that says what a system is.
const SYSTEM: &str = "system.yaml";
/// The file that says what is known of its tunables.
const KEYS: &str = "keys.yaml";
/// The folder beside an experiment whose packs go before the built-in ones.
const FOLDER: &str = "templates";
/// No file of a pack is larger.
const LIMIT: u64 = 4 << 20;

/// A system as its pack says it is.
#[derive(Clone, Debug)]
pub struct Pack {
    /// The system's name.
    pub name: String,
    /// Where the pack lies; nothing when it is built in.
    pub folder: Option<PathBuf>,
    /// What its `system.yaml` says.
    pub form: Form,
    /// What it wants of its hosts.
    pub host: HostSection,
    /// What is known of its tunables, by version.
    pub keys: Option<Keys>,
    /// Its templates by their names.
    pub templates: BTreeMap<String, String>,
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
    #[error("the pack of `{system}` is wrong")]
    Wrong {
        /// The system.
        system: String,
        /// What is wrong, each with file and line.
        source: Problems,
    },
    /// The catalogue of its tunables is wrong.
    #[error("the pack of `{system}` has a wrong `{KEYS}`")]
    Keys {
        /// The system.
        system: String,
        /// What is wrong.
        source: KeysError,
    },
    /// A file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// The packs that an experiment can use: those beside it, then the built-in ones. Each is read once.
#[derive(Debug, Default)]
pub struct Packs {
    /// The folder that has a folder for each system.
    folder: Option<PathBuf>,
    read: Mutex<BTreeMap<String, Arc<Pack>>>,
}

impl Packs {
    /// The built-in packs only.
    #[must_use]
    pub fn built_in() -> Self {
        Self::default()
    }

    /// The packs for an experiment in `folder`.
    #[must_use]
    pub fn beside(folder: &Path) -> Self {
        Self {
            folder: Some(folder.join(FOLDER)),
            read: Mutex::default(),
        }
    }

    /// The folder that the experiment lies in.
    #[must_use]
    pub fn beside_folder(&self) -> &Path {
        let folder = self.folder.as_deref().and_then(Path::parent);
        folder.unwrap_or(Path::new(""))
    }

    /// The names of all systems, in order.
    #[must_use]
    pub fn systems(&self) -> Vec<String> {
        let files = BuiltIn::iter();
        let name = |file: std::borrow::Cow<'static, str>| {
            let name = file.strip_suffix(SYSTEM)?.strip_suffix('/')?;
            Some(name.to_owned())
        };
        let mut found: Vec<String> = files.filter_map(name).collect();
        found.extend(self.own_systems());
        found.sort();
        found.dedup();
        found
    }

    /// The systems that have a folder beside the experiment.
    fn own_systems(&self) -> Vec<String> {
        let entries = self.folder.iter().filter_map(|f| std::fs::read_dir(f).ok());
        let entries = entries.flatten().filter_map(Result::ok);
        let is_pack = |path: &Path| path.join(SYSTEM).is_file();
        let name = |entry: std::fs::DirEntry| entry.file_name().into_string().ok();
        entries
            .filter(|entry| is_pack(&entry.path()))
            .filter_map(name)
            .collect()
    }

    /// The pack of a system.
    ///
    /// # Errors
    /// There is no such system, or its pack is wrong.
    pub fn get(&self, system: &str) -> Result<Arc<Pack>, PackError> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pack) = read.get(system) {
            return Ok(Arc::clone(pack));
        }
        let pack = Arc::new(self.load(system)?);
        read.insert(system.to_owned(), Arc::clone(&pack));
        Ok(pack)
    }

    fn load(&self, system: &str) -> Result<Pack, PackError> {
        if !self.systems().iter().any(|known| known == system) {
            return Err(PackError::NoSystem {
                name: system.to_owned(),
                known: self.systems(),
            });
        }
        let own = self.folder.as_ref().map(|folder| folder.join(system));
        match own.filter(|folder| folder.join(SYSTEM).is_file()) {
            Some(folder) => {
                let name = |file: &str| folder.join(file).display().to_string();
                Pack::of(system, &files_in(&folder)?, &name, Some(folder.clone()))
            }
            None => {
                let name = |file: &str| format!("templates/{system}/{file}");
                Pack::of(system, &built_in(system), &name, None)
            }
        }
    }
}

/// The files of a built-in pack.
fn built_in(system: &str) -> BTreeMap<String, String> {
    let files = BuiltIn::iter().filter_map(|path| {
        let name = path.strip_prefix(system)?.strip_prefix('/')?.to_owned();
        let text = String::from_utf8_lossy(&BuiltIn::get(&path)?.data).into_owned();
        Some((name, text))
    });
    files.collect()
}

/// The files of a folder, those of folders in it left out.
fn files_in(folder: &Path) -> Result<BTreeMap<String, String>, PackError> {
    let read = |path: &Path| {
        let failed = |source| PackError::Read {
            path: path.to_owned(),
            source,
        };
        let size = path.metadata().map_err(failed)?.len();
        if size > LIMIT {
            let message = format!("it has {size} bytes, more than {LIMIT}");
            return Err(failed(std::io::Error::other(message)));
        }
        std::fs::read_to_string(path).map_err(failed)
    };
    let mut files = BTreeMap::new();
    let entries = std::fs::read_dir(folder).map_err(|source| PackError::Read {
        path: folder.to_owned(),
        source,
    })?;
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        if let Some(name) = entry.file_name().to_str().filter(|_| path.is_file()) {
            files.insert(name.to_owned(), read(&path)?);
        }
    }
    Ok(files)
}

impl Pack {
    /// Reads a pack from the texts of its files; `name` says what a file is called in errors.
    ///
    /// # Errors
    /// Something in it is wrong.
    pub fn of(
        system: &str,
        files: &BTreeMap<String, String>,
        name: &dyn Fn(&str) -> String,
        folder: Option<PathBuf>,
    ) -> Result<Self, PackError> {
        let wrong = |source| PackError::Wrong {
            system: system.to_owned(),
            source,
        };
        let text = Text {
            name: &name(SYSTEM),
            text: files.get(SYSTEM).map_or("", String::as_str),
            nothing_is_absent: false,
        };
        let form: Form =
            spec::read_checked(&text, |form| check::check(form, files)).map_err(wrong)?;
        let host = HostSection::of(&form).expect("a checked pack has a sound `host`");
        let mut templates = files.clone();
        templates.retain(|file, _| file != SYSTEM && file != KEYS);
        let keys = files.get(KEYS).map(|text| Keys::parse(text)).transpose();
        let keys = keys.map_err(|source| PackError::Keys {
            system: system.to_owned(),
            source,
        })?;
        Ok(Self {
            name: system.to_owned(),
            folder,
            form,
            host,
            keys,
            templates,
        })
    }

    /// The role by its name.
    #[must_use]
    pub fn role(&self, name: &str) -> Option<&Role> {
        self.form.roles.get(name)
    }

    /// The roles in the order in which they are started.
    #[must_use]
    pub fn start_order(&self) -> Vec<&str> {
        let named = self.form.start.iter();
        let rest = self
            .form
            .roles
            .keys()
            .filter(|r| !self.form.start.contains(r));
        named.chain(rest).map(spec::Name::as_str).collect()
    }
}

#[cfg(test)]
mod tests;
