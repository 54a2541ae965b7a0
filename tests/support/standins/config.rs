//! Config files: which keys a version knows, with what defaults, and how the real program says what it does not take.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::release::Release;
use crate::{Failure, Start};

/// What is in effect, by dotted key.
pub(crate) type Settings = BTreeMap<String, Value>;

/// What a version knows of a key.
#[derive(Debug, Clone, PartialEq)]
enum Known {
    Default(Value),
    /// Of TiDB's list of removed keys: a warning.
    Removed,
    /// A table whose keys are free, such as labels; its name ends in a dot.
    Free,
}

/// A config file as read.
#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) settings: Settings,
    /// Keys of the file that this version does not know.
    pub(crate) unknown: Vec<String>,
    pub(crate) removed: Vec<String>,
    /// What was asked, effective or not.
    pub(crate) asked: Settings,
    path: String,
}

impl Config {
    /// Reads the file that `--config` names and puts it over the defaults; `ignored` keys keep theirs.
    pub(crate) fn of(start: &Start, ignored: &[String]) -> Result<Self, Failure> {
        let path = start.arguments.get("config").unwrap_or_default().to_owned();
        let text = match path.as_str() {
            "" => String::new(),
            path => std::fs::read_to_string(path)
                .map_err(|error| format!("cannot read config file {path}: {error}"))?,
        };
        let known = known(start.component, &start.release);
        let mut config = Self {
            settings: defaults(&known),
            path,
            ..Self::default()
        };
        config.take(&known, &text, ignored)?;
        Ok(config)
    }

    fn take(
        &mut self,
        known: &BTreeMap<String, Known>,
        text: &str,
        ignored: &[String],
    ) -> Result<(), Failure> {
        let parsed: toml::Table = text
            .parse()
            .map_err(|error| format!("toml: {}: {error}", self.path))?;
        flatten("", &serde_json::to_value(parsed)?, &mut self.asked);
        for (key, value) in &self.asked {
            match known.get(key) {
                Some(Known::Default(default)) => {
                    fits(key, default, value).map_err(|error| format!("{}: {error}", self.path))?;
                    if !ignored.contains(key) {
                        self.settings.insert(key.clone(), value.clone());
                    }
                }
                Some(Known::Removed) => self.removed.push(key.clone()),
                Some(Known::Free) => drop(self.settings.insert(key.clone(), value.clone())),
                None if in_free_table(known, key) => {
                    drop(self.settings.insert(key.clone(), value.clone()));
                }
                None => self.unknown.push(key.clone()),
            }
        }
        Ok(())
    }

    /// TiDB's message on keys that it does not take.
    pub(crate) fn tidb_message(&self, keys: &[String]) -> String {
        format!(
            "config file {} contained invalid configuration options: {}; check TiDB manual to make sure this option has not \
             been deprecated and removed from your TiDB version if the option does not appear to be a typo",
            self.path,
            keys.join(", ")
        )
    }
}

/// The settings below a prefix, such as `server.labels.`, without it.
pub(crate) fn below(settings: &Settings, prefix: &str) -> BTreeMap<String, Value> {
    let keys = settings
        .iter()
        .filter_map(|(key, value)| Some((key.strip_prefix(prefix)?.to_owned(), value.clone())));
    keys.collect()
}

/// Settings as one JSON object with nested tables.
pub(crate) fn nested(settings: &Settings) -> Value {
    let mut root = Map::new();
    for (key, value) in settings {
        let mut table = &mut root;
        let mut parts: Vec<&str> = key.split('.').collect();
        let last = parts.pop().unwrap_or_default();
        for part in parts {
            let entry = table
                .entry(part)
                .or_insert_with(|| Value::Object(Map::new()));
            if !entry.is_object() {
                *entry = Value::Object(Map::new());
            }
            match entry {
                Value::Object(inner) => table = inner,
                _ => unreachable!("it was made an object"),
            }
        }
        table.insert(last.to_owned(), value.clone());
    }
    Value::Object(root)
}

fn flatten(prefix: &str, value: &Value, into: &mut Settings) {
    match value {
        Value::Object(table) => {
            for (key, value) in table {
                let key = if prefix.is_empty() {
                    key.clone()
                } else {
                    format!("{prefix}.{key}")
                };
                flatten(&key, value, into);
            }
        }
        other => drop(into.insert(prefix.to_owned(), other.clone())),
    }
}

/// The leaves of any JSON object by dotted key.
pub(crate) fn leaves(value: &Value) -> Settings {
    let mut into = Settings::new();
    flatten("", value, &mut into);
    into
}

fn in_free_table(known: &BTreeMap<String, Known>, key: &str) -> bool {
    let dots = key.char_indices().filter(|(_, c)| *c == '.');
    dots.map(|(at, _)| &key[..=at])
        .any(|table| known.get(table) == Some(&Known::Free))
}

/// Refuses a value of another type than the default's.
fn fits(key: &str, default: &Value, value: &Value) -> Result<(), String> {
    let size = default
        .as_str()
        .is_some_and(|text| text.ends_with('B') || text == "0");
    let fits = match default {
        Value::Bool(_) => value.is_boolean(),
        Value::Number(number) if number.is_f64() => value.is_number(),
        Value::Number(_) => value.is_i64() || value.is_u64(),
        Value::String(_) => value.is_string() || size && value.is_u64(),
        Value::Array(_) => value.is_array(),
        Value::Object(_) => value.is_object(),
        Value::Null => true,
    };
    if fits {
        Ok(())
    } else {
        Err(format!(
            "invalid type: {value}, expected one like {default} for key `{key}`"
        ))
    }
}

fn defaults(known: &BTreeMap<String, Known>) -> Settings {
    let values = known.iter().filter_map(|(key, known)| match known {
        Known::Default(value) => Some((key.clone(), value.clone())),
        Known::Removed | Known::Free => None,
    });
    values.collect()
}

/// The tables below `keys/`: a key, the versions that it is for, and its default; of several lines the last that holds counts.
fn known(component: &str, release: &Release) -> BTreeMap<String, Known> {
    let table = match component {
        "pd-server" => include_str!("keys/pd.txt"),
        "tikv-server" => include_str!("keys/tikv.txt"),
        _ => include_str!("keys/tidb.txt"),
    };
    let lines = table
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| known_line(line, release)).collect()
}

fn known_line(line: &str, release: &Release) -> Option<(String, Known)> {
    let (left, right) = match line.split_once(" = ") {
        Some((left, right)) => (left, Some(right)),
        None => (line, None),
    };
    let mut words = left.split_whitespace();
    let key = words.next()?;
    for word in words.by_ref().take_while(|word| word.starts_with('[')) {
        let (from, to) = word.trim_matches(['[', ']']).split_once("..")?;
        let over = |to: &str| release.since(to) && !same_line(release, to);
        if !release.since(from) || (!to.is_empty() && over(to)) {
            return None;
        }
    }
    let known = match right {
        Some(value) => Known::Default(default(value, release)),
        None if key.ends_with('*') => {
            return Some((key.trim_end_matches('*').to_owned(), Known::Free));
        }
        None => Known::Removed,
    };
    Some((key.to_owned(), known))
}

/// Whether a release is of the minor version `to`: `[..6.0]` holds for all of v6.0.
fn same_line(release: &Release, to: &str) -> bool {
    let minor = |version: &str| {
        version
            .trim_start_matches('v')
            .split('.')
            .take(2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    if to.split('.').count() > 2 {
        release.bare() == to
    } else {
        minor(&release.version) == minor(to)
    }
}

fn default(text: &str, release: &Release) -> Value {
    let cpus = cpus();
    match text {
        "@scheduler" => Value::from(if cpus >= 16 { 8 } else { 4 }),
        "@unified" => Value::from((cpus * 4 / 5).max(4)),
        "@jobs" if release.since("6.0") => Value::from((cpus - 1).clamp(2, 9)),
        "@jobs" => Value::from(8),
        literal => {
            let table: toml::Table = format!("x = {literal}")
                .parse()
                .expect("the tables hold TOML");
            serde_json::to_value(&table["x"]).expect("TOML without dates is JSON")
        }
    }
}

pub(crate) fn cpus() -> i64 {
    std::thread::available_parallelism().map_or(1, |count| count.get().try_into().unwrap_or(1))
}

/// The ranges that TiKV holds its settings to.
pub(crate) fn tikv_ranges(settings: &Settings, release: &Release) -> Result<(), Failure> {
    let cpus = cpus();
    let number = |key: &str| settings.get(key).and_then(Value::as_i64).unwrap_or(0);
    let (low, high) = (
        number("readpool.unified.min-thread-count"),
        number("readpool.unified.max-thread-count"),
    );
    if low < 1 {
        return Err("readpool.unified.min-thread-count should be > 0".into());
    }
    if high < low {
        return Err(
            "readpool.unified.max-thread-count should be >= readpool.unified.min-thread-count"
                .into(),
        );
    }
    if !release.since("6.0") {
        return Ok(());
    }
    let per_cpu = if release.since("6.5.1") { 10 } else { 1 };
    at_most(
        "readpool.unified.max-thread-count",
        high,
        (cpus * per_cpu).max(4),
    )?;
    at_most(
        "storage.scheduler-worker-pool-size",
        number("storage.scheduler-worker-pool-size"),
        cpus.max(4),
    )?;
    for pool in ["raftstore.store-pool-size", "raftstore.apply-pool-size"] {
        at_most(pool, number(pool), cpus * 10)?;
    }
    for batch in [
        "raftstore.store-max-batch-size",
        "raftstore.apply-max-batch-size",
    ] {
        at_most(batch, number(batch), 10_240)?;
    }
    Ok(())
}

fn at_most(key: &str, value: i64, limit: i64) -> Result<(), Failure> {
    if (1..=limit).contains(&value) {
        return Ok(());
    }
    Err(format!("{key} should be greater than 0 and should be smaller than {limit}").into())
}
