//! What PD knows of its cluster, kept in a data directory like PD's.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::config::Settings;
use crate::process::{random, since_epoch};

/// A store that has not been heard of for this long is disconnected.
const DISCONNECTED: Duration = Duration::from_secs(20);
const DOWN: Duration = Duration::from_secs(30 * 60);
/// Preallocated, as the real one does it.
const WAL_SIZE: u64 = 64_000_000;
/// The database is written in whole pages, in place.
const PAGE: usize = 16 * 1024;

/// A store as PD keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Store {
    #[serde(default)]
    pub(crate) id: u64,
    pub(crate) address: String,
    pub(crate) status_address: String,
    pub(crate) version: String,
    pub(crate) git_hash: String,
    pub(crate) deploy_path: String,
    pub(crate) labels: BTreeMap<String, String>,
    /// Seconds since the epoch.
    pub(crate) start_timestamp: u64,
    /// Nanoseconds since the epoch.
    #[serde(default)]
    pub(crate) last_heartbeat: u64,
}

impl Store {
    /// `Up`, `Disconnected` or `Down`.
    pub(crate) fn state(&self) -> &'static str {
        match since_epoch().saturating_sub(Duration::from_nanos(self.last_heartbeat)) {
            silent if silent < DISCONNECTED => "Up",
            silent if silent < DOWN => "Disconnected",
            _ => "Down",
        }
    }
}

/// What a restart finds again.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    cluster_id: u64,
    last_id: u64,
    stores: BTreeMap<u64, Store>,
    bootstrapped: Option<u64>,
    version: String,
    /// `schedule.*` and `replication.*`: the file counts at the first start only.
    settings: Settings,
    records: u64,
}

/// The state and the files of a PD.
#[derive(Debug)]
pub(crate) struct Cluster {
    kept: Kept,
    database: File,
    wal: File,
    /// Where stores have come up last.
    up_since: Instant,
    seen: Vec<u64>,
}

impl Cluster {
    /// Opens PD's data directory, or makes it for a new cluster.
    pub(crate) fn open(
        data: &Path,
        settings: &Settings,
        with_hot_regions: bool,
    ) -> Result<Self, Failure> {
        for folder in ["member/snap", "member/wal", "region-meta"] {
            fs::create_dir_all(data.join(folder))?;
        }
        fs::write(data.join("region-meta/CURRENT"), "MANIFEST-000000\n")?;
        if with_hot_regions {
            fs::create_dir_all(data.join("hot-region"))?;
            fs::write(data.join("hot-region/CURRENT"), "MANIFEST-000000\n")?;
        }
        let path = data.join("member/snap/db");
        let new = !path.exists();
        let database = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)?;
        let kept = if new {
            Self::first(settings)
        } else {
            read(&path)?
        };
        let wal = data.join("member/wal/0000000000000000-0000000000000000.wal");
        if !new && !wal.exists() {
            return Err(format!("{} holds a database without its WAL", data.display()).into());
        }
        let wal = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(wal)?;
        wal.set_len(WAL_SIZE)?;
        File::create(data.join("member/wal/0.tmp"))?.set_len(WAL_SIZE)?;
        let mut cluster = Self {
            kept,
            database,
            wal,
            up_since: Instant::now(),
            seen: Vec::new(),
        };
        cluster.save("open")?;
        Ok(cluster)
    }

    fn first(settings: &Settings) -> Kept {
        let kept = settings.iter().filter(|(key, _)| is_kept(key));
        let settings = kept
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        Kept {
            cluster_id: random() >> 1,
            last_id: 0,
            settings,
            ..Kept::default()
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.kept.cluster_id
    }

    /// Seconds since the epoch at which the first store came.
    pub(crate) fn bootstrapped(&self) -> Option<u64> {
        self.kept.bootstrapped
    }

    pub(crate) fn version(&self) -> &str {
        if self.kept.version.is_empty() {
            "0.0.0"
        } else {
            &self.kept.version
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.kept.settings
    }

    pub(crate) fn set(&mut self, key: &str, value: serde_json::Value) -> Result<(), Failure> {
        self.kept.settings.insert(key.to_owned(), value);
        self.save("set")
    }

    pub(crate) fn stores(&self) -> impl Iterator<Item = &Store> {
        self.kept.stores.values()
    }

    pub(crate) fn store(&self, id: u64) -> Option<&Store> {
        self.kept.stores.get(&id)
    }

    /// Stores that are up, by id.
    pub(crate) fn up(&self) -> Vec<u64> {
        self.stores()
            .filter(|store| store.state() == "Up")
            .map(|store| store.id)
            .collect()
    }

    /// How long the stores have been as they are.
    pub(crate) fn calm(&self) -> Duration {
        self.up_since.elapsed()
    }

    /// Takes a store that starts: a known one by its id, a new one gets an id.
    pub(crate) fn register(&mut self, mut store: Store) -> Result<u64, Failure> {
        if lower(&store.version, self.version()) {
            return Err(format!(
                "version should compatible with version {}, got {}",
                self.version(),
                store.version
            )
            .into());
        }
        let same = self
            .stores()
            .find(|other| other.address == store.address && other.id != store.id);
        if let Some(other) = same {
            return Err(format!(
                "duplicated store address: id:{} address:{:?}",
                other.id, other.address
            )
            .into());
        }
        if store.id == 0 {
            self.kept.last_id += 1;
            store.id = self.kept.last_id;
        } else if !self.kept.stores.contains_key(&store.id) {
            return Err(format!("store {} not found", store.id).into());
        }
        let id = store.id;
        self.kept
            .bootstrapped
            .get_or_insert(since_epoch().as_secs());
        store.last_heartbeat = now();
        self.kept.stores.insert(id, store);
        let lowest = self
            .stores()
            .map(|store| store.version.clone())
            .min_by_key(|version| key(version));
        self.kept.version = lowest.unwrap_or_default();
        self.seen.push(id);
        self.up_since = Instant::now();
        self.save("register")?;
        Ok(id)
    }

    pub(crate) fn heartbeat(&mut self, id: u64) -> Result<(), Failure> {
        let store = self
            .kept
            .stores
            .get_mut(&id)
            .ok_or_else(|| format!("store {id} not found"))?;
        store.last_heartbeat = now();
        if !self.seen.contains(&id) {
            self.seen.push(id);
            self.up_since = Instant::now();
        }
        self.save("heartbeat")
    }

    /// Writes the database in place and a record to the WAL.
    fn save(&mut self, why: &str) -> Result<(), Failure> {
        self.kept.records += 1;
        let record = format!("{:012} {why:<18}\n", self.kept.records);
        self.wal.write_all_at(
            record.as_bytes(),
            self.kept.records * record.len() as u64 % WAL_SIZE,
        )?;
        let mut bytes = serde_json::to_vec(&self.kept)?;
        bytes.resize(bytes.len().next_multiple_of(PAGE), b'\n');
        self.database.write_all_at(&bytes, 0)?;
        Ok(self.database.set_len(bytes.len() as u64)?)
    }
}

/// Whether PD keeps a setting itself once the cluster exists.
pub(crate) fn is_kept(key: &str) -> bool {
    key.starts_with("schedule.") || key.starts_with("replication.")
}

fn read(path: &Path) -> Result<Kept, Failure> {
    let kept = serde_json::from_slice(&fs::read(path)?);
    kept.map_err(|error| format!("Corruption: {}: {error}", path.display()).into())
}

fn now() -> u64 {
    u64::try_from(since_epoch().as_nanos()).unwrap_or(u64::MAX)
}

fn key(version: &str) -> Vec<u64> {
    version
        .split(['.', '-'])
        .map_while(|part| part.parse().ok())
        .collect()
}

/// Whether a version is of an earlier minor line than another.
fn lower(version: &str, than: &str) -> bool {
    let line = |version: &str| key(version).into_iter().take(2).collect::<Vec<_>>();
    line(version) < line(than)
}
