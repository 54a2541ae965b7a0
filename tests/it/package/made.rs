//! Archives, mirrors and stores that the tests make.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assay::host::Retry;
use assay::package::{
    Arch, Network, Origin, Package, PackageError, Platform, Progress, Proxy, Store, Wanted, Watch,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

pub(crate) const TIKV: &str = "tikv-v6.1.2-linux-amd64.tar.gz";

/// An entry of an archive, whatever it says.
pub(crate) fn entry(
    builder: &mut Builder<GzEncoder<Vec<u8>>>,
    name: &str,
    kind: EntryType,
    body: &[u8],
    mode: u32,
) {
    let mut header = Header::new_gnu();
    // Written as it is: the builder refuses what is wrong.
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(1_600_000_000);
    if matches!(kind, EntryType::Symlink | EntryType::Link) {
        header.as_old_mut().linkname[..body.len()].copy_from_slice(body);
        header.set_size(0);
        header.set_cksum();
        builder.append(&header, &[][..]).unwrap();
    } else {
        header.set_size(body.len() as u64);
        header.set_cksum();
        builder.append(&header, body).unwrap();
    }
}

/// A `.tar.gz` of entries: name, kind, content or target, mode.
pub(crate) fn archive(entries: &[(&str, EntryType, &[u8], u32)]) -> Vec<u8> {
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for &(name, kind, body, mode) in entries {
        entry(&mut builder, name, kind, body, mode);
    }
    builder.into_inner().unwrap().finish().unwrap()
}

/// A `.tar.gz` of one program.
pub(crate) fn program(name: &str, content: &[u8]) -> Vec<u8> {
    archive(&[(name, EntryType::Regular, content, 0o755)])
}

/// Bytes that cannot be packed, the same for the same seed.
pub(crate) fn noise(seed: u8, length: usize) -> Vec<u8> {
    let blocks = (0..length as u64 / 32 + 1)
        .flat_map(|i| Sha256::digest([&[seed], &i.to_le_bytes()[..]].concat()));
    blocks.take(length).collect()
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

/// The files of a mirror: tarballs by component, version and platform, and the manifests of them.
#[derive(Default)]
pub(crate) struct Made {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    components: BTreeMap<String, Value>,
}

impl Made {
    /// One with TiKV, whose tarball has some hundred kilobytes.
    pub(crate) fn with_tikv() -> Self {
        let mut made = Self::default();
        made.add(
            "tikv",
            "v6.1.2",
            "linux/amd64",
            program("tikv-server", &noise(1, 300_000)),
        );
        made
    }

    pub(crate) fn add(&mut self, component: &str, version: &str, platform: &str, tarball: Vec<u8>) {
        let name = format!(
            "{component}-{version}-{}.tar.gz",
            platform.replace('/', "-")
        );
        let manifest = self.components.entry(component.to_owned());
        let manifest = manifest.or_insert_with(|| json!({"signatures": [], "signed": {
            "_type": "component", "spec_version": "0.1.0", "version": 7, "expires": "2000-01-01T00:00:00Z",
            "id": component, "description": "", "nightly": "", "platforms": {},
        }}));
        manifest["signed"]["platforms"][platform][version] = json!({
            "url": format!("/{name}"), "entry": "x", "released": "2022-10-24T00:00:00Z", "yanked": false,
            "dependencies": null, "hashes": {"sha256": sha256(&tarball), "sha512": ""}, "length": tarball.len(),
        });
        self.files.insert(name, tarball);
        self.write();
    }

    /// Changes a component's manifest.
    pub(crate) fn change(&mut self, component: &str, pointer: &str, value: Value) {
        let manifest = self.components.get_mut(component).unwrap();
        *manifest.pointer_mut(pointer).unwrap() = value;
        self.write();
    }

    fn write(&mut self) {
        let mut meta = json!({"/root.json": {"version": 1, "length": 1}, "/index.json": {"version": 1, "length": 1}});
        for (name, manifest) in &self.components {
            let text = manifest.to_string();
            meta[format!("/{name}.json")] = json!({"version": 7, "length": text.len()});
            self.files
                .insert(format!("7.{name}.json"), text.into_bytes());
        }
        let snapshot =
            json!({"signatures": [], "signed": {"_type": "snapshot", "version": 0, "meta": meta}});
        self.files.insert(
            "snapshot.json".to_owned(),
            snapshot.to_string().into_bytes(),
        );
    }

    /// Without its manifests.
    pub(crate) fn flat(mut self) -> Self {
        self.files.retain(|name, _| !name.ends_with(".json"));
        self
    }

    pub(crate) fn write_to(&self, folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        for (name, body) in &self.files {
            fs::write(folder.join(name), body).unwrap();
        }
    }
}

/// A store of a test.
pub(crate) struct Shelf {
    pub(crate) folder: TempDir,
    pub(crate) store: Store,
    pub(crate) watch: Watch,
    pub(crate) seen: Arc<Mutex<Vec<Progress>>>,
}

impl Shelf {
    pub(crate) fn new() -> Self {
        Self::with(network(5))
    }

    pub(crate) fn with(network: Network) -> Self {
        let folder = TempDir::new().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let progress = Arc::clone(&seen);
        Self {
            store: Store::new(folder.path().join("packages")).with_network(network),
            watch: Watch {
                progress: Arc::new(move |at| progress.lock().unwrap().push(at)),
                stop: CancellationToken::new(),
                stall: Duration::from_secs(20),
            },
            folder,
            seen,
        }
    }

    pub(crate) async fn obtain(
        &self,
        origin: &Origin,
        wanted: &Wanted,
    ) -> Result<Package, PackageError> {
        self.store.obtain(origin, wanted, &self.watch).await
    }

    pub(crate) async fn tikv(&self, origin: &Origin) -> Result<Package, PackageError> {
        self.obtain(origin, &wanted("tikv", "v6.1.2")).await
    }

    /// What lies in the store but for notes and locks.
    pub(crate) fn names(&self) -> Vec<String> {
        let store = self.folder.path().join("packages");
        let mut names = Vec::new();
        for (folder, prefix) in [(store.clone(), ""), (store.join(".partial"), ".partial/")] {
            let Ok(entries) = fs::read_dir(folder) else {
                continue;
            };
            let found = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let found = found.filter(|name| !name.starts_with('.') && !name.ends_with(".lock"));
            names.extend(found.map(|name| format!("{prefix}{name}")));
        }
        names.sort();
        names
    }

    /// A place for a file of the test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// No proxy, and a lost connection is made again so often.
pub(crate) fn network(times: u32) -> Network {
    Network {
        proxy: Proxy::Never,
        retry: Retry {
            times,
            first: Duration::from_millis(1),
            longest: Duration::from_millis(2),
            seed: 1,
        },
    }
}

pub(crate) fn wanted(component: &str, version: &str) -> Wanted {
    Wanted {
        component: component.to_owned(),
        version: version.to_owned(),
        platform: Platform::linux(Arch::Amd64),
    }
}

/// An error with its causes.
pub(crate) fn whole(error: &PackageError) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        text += &format!(": {cause}");
        next = cause.source();
    }
    text
}
