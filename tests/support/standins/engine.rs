//! Files like those of RocksDB: tables written once, a log that is appended to, a manifest that names what belongs to them.
//!
//! What was put together from two moments is noticed when it is opened, as the real one notices it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::process::checksum;

/// Entries in the log before they become a table.
const ENTRIES_A_TABLE: usize = 20;
/// Tables before they become one.
const TABLES: usize = 6;

/// What `MANIFEST-…` holds, as JSON.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Manifest {
    /// What the owner of the engine keeps in it, such as the id of the cluster.
    ident: BTreeMap<String, u64>,
    next: u64,
    /// The last entry that is in a table.
    flushed: u64,
    /// By name of table: its length and checksum.
    tables: BTreeMap<String, (u64, u64)>,
}

/// An open engine.
#[derive(Debug)]
pub(crate) struct Engine {
    folder: PathBuf,
    manifest: Manifest,
    manifest_file: String,
    log: File,
    log_name: String,
    /// Entries in the log, by number.
    pending: Vec<u64>,
    last: u64,
}

impl Engine {
    /// Opens the engine in `folder`, or makes one there.
    pub(crate) fn open(folder: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(folder)?;
        let current = folder.join("CURRENT");
        let old = match fs::read_to_string(&current) {
            Ok(name) => Some(name.trim().to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(format!("cannot read {}: {error}", current.display()).into()),
        };
        let mut manifest = match &old {
            Some(name) => read_manifest(&folder.join(name))?,
            None => Manifest {
                next: 4,
                ..Manifest::default()
            },
        };
        check_tables(folder, &manifest)?;
        let entries = read_logs(folder, manifest.flushed)?;
        let last = entries.last().copied().unwrap_or(manifest.flushed);
        // A new engine has a table from the start.
        if !entries.is_empty() || old.is_none() {
            write_table(
                folder,
                &mut manifest,
                if entries.is_empty() { &[0] } else { &entries },
            )?;
        }
        manifest.flushed = last;
        let log_name = numbered(&mut manifest, "", ".log");
        let log = File::options()
            .create_new(true)
            .append(true)
            .open(folder.join(&log_name))?;
        let mut engine = Self {
            folder: folder.to_owned(),
            manifest,
            manifest_file: String::new(),
            log,
            log_name,
            pending: Vec::new(),
            last,
        };
        engine.roll_manifest()?;
        engine.sweep()?;
        Ok(engine)
    }

    /// A number that the engine keeps under a name.
    pub(crate) fn ident(&self, name: &str) -> Option<u64> {
        self.manifest.ident.get(name).copied()
    }

    pub(crate) fn set_ident(&mut self, name: &str, value: u64) -> Result<(), Failure> {
        self.manifest.ident.insert(name.to_owned(), value);
        self.save()
    }

    /// The number of the last entry.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// How often tables were written since the engine was made.
    pub(crate) fn tables(&self) -> usize {
        self.manifest.tables.len()
    }

    /// Appends the entry after the last one.
    pub(crate) fn append(&mut self) -> Result<(), Failure> {
        self.last += 1;
        writeln!(
            self.log,
            "{} {}",
            self.last,
            checksum(&self.last.to_le_bytes())
        )?;
        self.pending.push(self.last);
        if self.pending.len() >= ENTRIES_A_TABLE {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let entries = std::mem::take(&mut self.pending);
        write_table(&self.folder, &mut self.manifest, &entries)?;
        self.manifest.flushed = self.last;
        let merged = self.compact()?;
        let old = std::mem::replace(&mut self.log_name, numbered(&mut self.manifest, "", ".log"));
        self.log = File::options()
            .create_new(true)
            .append(true)
            .open(self.folder.join(&self.log_name))?;
        self.save()?;
        fs::remove_file(self.folder.join(old))?;
        for table in merged {
            fs::remove_file(self.folder.join(table))?;
        }
        Ok(())
    }

    /// Puts the tables together once there are many; returns those that are to go.
    fn compact(&mut self) -> Result<Vec<String>, Failure> {
        if self.manifest.tables.len() < TABLES {
            return Ok(Vec::new());
        }
        let old: Vec<String> = std::mem::take(&mut self.manifest.tables)
            .into_keys()
            .collect();
        write_table(&self.folder, &mut self.manifest, &[self.last])?;
        Ok(old)
    }

    /// Appends the state to the manifest.
    fn save(&mut self) -> Result<(), Failure> {
        let mut file = File::options()
            .append(true)
            .create(true)
            .open(self.folder.join(&self.manifest_file))?;
        writeln!(file, "{}", serde_json::to_string(&self.manifest)?)?;
        Ok(())
    }

    /// A new manifest, as at every opening, which `CURRENT` comes to name.
    fn roll_manifest(&mut self) -> Result<(), Failure> {
        self.manifest_file = numbered(&mut self.manifest, "MANIFEST-", "");
        self.save()?;
        let temporary = self.folder.join("000000.dbtmp");
        fs::write(&temporary, format!("{}\n", self.manifest_file))?;
        fs::rename(&temporary, self.folder.join("CURRENT"))?;
        let options = numbered(&mut self.manifest, "OPTIONS-", "");
        fs::write(
            self.folder.join(options),
            "[Version]\n  # stand-in\n  rocksdb_version=0.0.0\n",
        )?;
        let identity = self.folder.join("IDENTITY");
        if !identity.exists() {
            fs::write(identity, format!("{:016x}", crate::process::random()))?;
        }
        fs::write(self.folder.join("LOG"), "stand-in\n")?;
        self.save()
    }

    /// Removes what no manifest names any more.
    fn sweep(&self) -> Result<(), Failure> {
        let newest_options = self.manifest.next - 1;
        for file in fs::read_dir(&self.folder)? {
            let file = file?;
            let name = file.file_name().to_string_lossy().into_owned();
            let obsolete = (name.ends_with(".sst") && !self.manifest.tables.contains_key(&name))
                || (name.ends_with(".log") && name != self.log_name)
                || (name.starts_with("MANIFEST-") && name != self.manifest_file)
                || (name.starts_with("OPTIONS-") && name != format!("OPTIONS-{newest_options:06}"));
            if obsolete {
                fs::remove_file(file.path())?;
            }
        }
        Ok(())
    }
}

fn numbered(manifest: &mut Manifest, before: &str, after: &str) -> String {
    let name = format!("{before}{:06}{after}", manifest.next);
    manifest.next += 1;
    name
}

/// The last whole line of a manifest.
fn read_manifest(path: &Path) -> Result<Manifest, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| format!("Corruption: CURRENT names {}: {error}", path.display()))?;
    let manifest = text
        .lines()
        .rev()
        .find_map(|line| serde_json::from_str(line).ok());
    manifest.ok_or_else(|| format!("Corruption: {} holds no state", path.display()).into())
}

fn check_tables(folder: &Path, manifest: &Manifest) -> Result<(), Failure> {
    for (name, (length, sum)) in &manifest.tables {
        let path = folder.join(name);
        let bytes = fs::read(&path)
            .map_err(|error| format!("Corruption: Can't access /{name}: {error}"))?;
        if bytes.len() as u64 != *length || checksum(&bytes) != *sum {
            return Err(
                format!("Corruption: block checksum mismatch in {}", path.display()).into(),
            );
        }
    }
    Ok(())
}

fn write_table(folder: &Path, manifest: &mut Manifest, entries: &[u64]) -> Result<(), Failure> {
    let name = numbered(manifest, "", ".sst");
    // Some kilobytes that compress badly, so that copying and linking differ.
    let mut text = String::from("stand-in table\n");
    for entry in entries {
        let mut word = checksum(&entry.to_le_bytes());
        for _ in 0..64 {
            word = checksum(&word.to_le_bytes());
            text.push_str(&format!("{entry} {word:016x}\n"));
        }
    }
    fs::write(folder.join(&name), &text)?;
    manifest
        .tables
        .insert(name, (text.len() as u64, checksum(text.as_bytes())));
    Ok(())
}

/// The entries of the logs after `flushed`; they must follow each other. A last line may be cut.
fn read_logs(folder: &Path, flushed: u64) -> Result<Vec<u64>, Failure> {
    let mut logs: Vec<PathBuf> = fs::read_dir(folder)?
        .flatten()
        .map(|file| file.path())
        .collect();
    logs.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    logs.sort();
    let mut entries = Vec::new();
    let mut expected = flushed + 1;
    for log in logs {
        let text = fs::read_to_string(&log)?;
        for line in text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
        {
            let number: Option<u64> = line.split(' ').next().and_then(|word| word.parse().ok());
            match number {
                Some(number) if number < expected => {}
                Some(number) if number == expected => {
                    entries.push(number);
                    expected += 1;
                }
                _ => {
                    return Err(
                        format!("Corruption: {} misses entry {expected}", log.display()).into(),
                    );
                }
            }
        }
    }
    Ok(entries)
}
