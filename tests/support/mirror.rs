//! A mirror of packages in the layout of the public one, with stand-ins of pd-server, tikv-server and tidb-server in it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256, Sha512};

/// The last bytes of a stand-in's file; `standins/release.rs` looks for them.
const MARK: &[u8; 8] = b"STANDIN1";

/// The components, each a package of one program.
const COMPONENTS: [(&str, &str); 3] = [
    ("pd", "pd-server"),
    ("tikv", "tikv-server"),
    ("tidb", "tidb-server"),
];

/// A folder that is a mirror.
pub(crate) struct Mirror {
    folder: PathBuf,
}

impl Mirror {
    /// Makes a mirror in `folder`, with packages of all three components for every version (such as `v5.4.3`).
    pub(crate) fn make(folder: &Path, versions: &[&str]) -> Self {
        let well: Vec<(&str, Value)> = versions
            .iter()
            .map(|version| (*version, json!({})))
            .collect();
        Self::make_misbehaving(folder, &well)
    }

    /// The same with packages that misbehave: by version an object such as `{"tikv-server": {"die-after": 5}}`, of which
    /// `standins/misbehaviour.rs` has the names.
    pub(crate) fn make_misbehaving(folder: &Path, versions: &[(&str, Value)]) -> Self {
        fs::create_dir_all(folder).unwrap();
        let mirror = Self {
            folder: folder.to_owned(),
        };
        let mut released: BTreeMap<&str, serde_json::Map<String, Value>> = BTreeMap::new();
        for (version, misbehaviour) in versions {
            let binary = binary(version, misbehaviour);
            for (component, program) in COMPONENTS {
                let url = format!("/{}", package_name(component, version));
                let package = packed(program, &binary);
                fs::write(folder.join(&url[1..]), &package).unwrap();
                let entry = json!({
                    "url": url, "entry": program, "released": "2020-01-01T00:00:00Z", "yanked": false,
                    "dependencies": null, "length": package.len(),
                    "hashes": {"sha256": hex(&Sha256::digest(&package)), "sha512": hex(&Sha512::digest(&package))},
                });
                released
                    .entry(component)
                    .or_default()
                    .insert((*version).to_owned(), entry);
            }
        }
        mirror.write_manifests(released);
        mirror
    }

    /// The folder, which stands for the mirror's URL.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The package of a component.
    pub(crate) fn package(&self, component: &str, version: &str) -> PathBuf {
        self.folder.join(package_name(component, version))
    }

    fn write_manifests(&self, released: BTreeMap<&str, serde_json::Map<String, Value>>) {
        let mut index = serde_json::Map::new();
        let mut meta = serde_json::Map::new();
        for (component, versions) in released {
            let url = format!("/{component}.json");
            let about = json!({"hidden": false, "owner": "stand-in", "standalone": false, "url": url, "yanked": false});
            index.insert(component.to_owned(), about);
            let nightly: Option<&String> =
                versions.keys().find(|version| version.contains("nightly"));
            let signed = json!({
                "_type": "component", "id": component, "name": component, "description": "a stand-in for tests",
                "nightly": nightly.map_or("", String::as_str), "platforms": {(platform()): versions},
            });
            self.write(&format!("1.{component}.json"), signed, &mut meta);
        }
        let signed = json!({
            "_type": "index", "components": index, "default_components": [],
            "owners": {"stand-in": {"keys": {}, "name": "stand-in", "threshold": 1}},
        });
        self.write("1.index.json", signed, &mut meta);
        let roles = json!({"index": {"keys": {}, "threshold": 1, "url": "/index.json"}});
        for name in ["1.root.json", "root.json"] {
            self.write(name, json!({"_type": "root", "roles": roles}), &mut meta);
        }
        let mut none = serde_json::Map::new();
        self.write(
            "snapshot.json",
            json!({"_type": "snapshot", "meta": meta}),
            &mut none,
        );
        let snapshot = fs::read(self.folder.join("snapshot.json")).unwrap();
        let about = json!({"hashes": {"sha256": hex(&Sha256::digest(&snapshot))}, "length": snapshot.len()});
        self.write(
            "timestamp.json",
            json!({"_type": "timestamp", "meta": {"/snapshot.json": about}}),
            &mut none,
        );
    }

    /// Writes a manifest around what is signed, and notes its version and length under its name without a number.
    fn write(&self, name: &str, mut signed: Value, meta: &mut serde_json::Map<String, Value>) {
        for (key, value) in [
            ("spec_version", json!("0.1.0")),
            ("expires", json!("2999-01-01T00:00:00Z")),
            ("version", json!(1)),
        ] {
            signed[key] = value;
        }
        let text = json!({"signatures": [], "signed": signed}).to_string();
        let bare = name.strip_prefix("1.").unwrap_or(name);
        meta.insert(
            format!("/{bare}"),
            json!({"version": 1, "length": text.len()}),
        );
        fs::write(self.folder.join(name), text).unwrap();
    }
}

/// Writes the three stand-ins of a version into a folder, without packages.
pub(crate) fn write_programs(folder: &Path, version: &str, misbehaviour: &Value) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::create_dir_all(folder).unwrap();
    let written = folder.join("written");
    fs::write(&written, binary(version, misbehaviour)).unwrap();
    fs::set_permissions(&written, fs::Permissions::from_mode(0o755)).unwrap();
    // Copied by another process: what a test has open for writing, a child that another test starts may hold open as well,
    // and such a file cannot be run.
    let first = folder.join(COMPONENTS[0].1);
    assert!(
        Command::new("cp")
            .arg(&written)
            .arg(&first)
            .status()
            .unwrap()
            .success()
    );
    fs::remove_file(written).unwrap();
    for (_, program) in &COMPONENTS[1..] {
        fs::hard_link(&first, folder.join(program)).unwrap();
    }
}

/// The program that `standins/main.rs` is, with a version at its end.
fn binary(version: &str, misbehaviour: &Value) -> Vec<u8> {
    let mut binary = built().to_vec();
    let git_hash = &hex(&Sha256::digest(version))[..40];
    let trailer =
        json!({"version": version, "git_hash": git_hash, "misbehaviour": misbehaviour}).to_string();
    binary.extend(trailer.as_bytes());
    binary.extend((trailer.len() as u64).to_le_bytes());
    binary.extend(MARK);
    binary
}

/// The example without its symbols, which are most of it; whole where there is no `strip`.
fn built() -> &'static [u8] {
    static BUILT: OnceLock<Vec<u8>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let built = Path::new(env!("CARGO_BIN_EXE_assay"))
            .parent()
            .unwrap()
            .join("examples/tidb-standin");
        let advice = "`cargo test` builds it, and so does `cargo build --example tidb-standin`";
        let whole = fs::read(&built).unwrap_or_else(|error| {
            panic!("no stand-in at {}: {error}; {advice}", built.display())
        });
        let folder = tempfile::tempdir().unwrap();
        let stripped = folder.path().join("stripped");
        let strip = Command::new("strip")
            .arg("-o")
            .arg(&stripped)
            .arg(&built)
            .stderr(Stdio::null())
            .status();
        if strip.is_ok_and(|status| status.success()) {
            fs::read(stripped).unwrap()
        } else {
            whole
        }
    })
}

fn packed(program: &str, binary: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_size(binary.len() as u64);
    header.set_mode(0o755);
    header.set_mtime(0);
    // Unoptimised, compressing takes seconds a package.
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::none()));
    archive.append_data(&mut header, program, binary).unwrap();
    let mut package = archive.into_inner().unwrap();
    package.flush().unwrap();
    package.finish().unwrap()
}

fn package_name(component: &str, version: &str) -> String {
    format!(
        "{component}-{version}-{}.tar.gz",
        platform().replace('/', "-")
    )
}

/// Such as `linux/amd64`.
fn platform() -> String {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("linux/{arch}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
