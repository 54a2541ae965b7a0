//! What one load run measured, and the HdrHistogram log that holds its latencies.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};

use serde::{Deserialize, Serialize};

use super::{HistogramError, Interval, Latency, read_intervals, write_intervals};

/// What a driver measured in one round, merged over its clients.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadResult {
    /// Length of the measurement window that was really used, s.
    pub window_s: f64,
    /// One entry for each operation, in name order.
    pub operations: Vec<OperationResult>,
    /// Per-second intervals of warm-up and window, in order of time.
    pub intervals: Vec<Interval>,
    /// Client threads that ran.
    pub threads: u32,
    /// CPU time that the client itself used during the window, s, where it is known.
    pub client_cpu_s: Option<f64>,
    /// Threads without a success that ended in the window. In a closed loop they waited all through it.
    pub idle_threads: u32,
    /// Operations of an open loop that were due by the window's end and had not begun.
    pub unstarted: u64,
}

/// What one kind of operation did within the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationResult {
    /// `read`, `update`, `transaction`, ...
    pub name: String,
    /// Latencies of the operations that succeeded and ended in the window; its count is their number.
    pub latency: Latency,
    /// Latencies of those that were in flight when the window ended, and succeeded. They are in no throughput, but without
    /// them the slowest operations would be in no percentile.
    pub late: Latency,
    /// Operations that failed, by kind of error, late ones included. They are in no histogram and no throughput.
    pub errors: BTreeMap<String, u64>,
}

impl OperationResult {
    /// The latencies of all that succeeded, late ones included: what percentiles, mean and extremes are read from.
    #[must_use]
    pub fn whole(&self) -> Latency {
        let mut whole = self.latency.clone();
        whole.merge(&self.late);
        whole
    }
}

impl LoadResult {
    /// Operations that succeeded and ended in the window.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.operations.iter().map(|o| o.latency.count()).sum()
    }

    /// Operations that succeeded but were in flight when the window ended.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.operations.iter().map(|o| o.late.count()).sum()
    }

    /// Operations that failed, late ones included.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.operations.iter().flat_map(|o| o.errors.values()).sum()
    }

    /// Successful operations per second of the window; 0 for an empty window.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        if self.window_s > 0.0 {
            self.count() as f64 / self.window_s
        } else {
            0.0
        }
    }

    /// The latencies of all operations, late ones included, merged exactly.
    #[must_use]
    pub fn all(&self) -> Latency {
        let mut all = Latency::new();
        for operation in &self.operations {
            all.merge(&operation.latency);
            all.merge(&operation.late);
        }
        all
    }
}

/// The names of the files that a load result is kept in.
const SUMMARY: &str = "load.json";
const INTERVALS: &str = "intervals.csv";
const LATENCY: &str = "latency.hlog";
/// What follows an operation's name in the tag of its late latencies.
const LATE: &str = "+late";

/// What `load.json` holds: all of a load result that is in neither the intervals nor the latency log.
#[derive(Serialize, Deserialize)]
struct Summary {
    window_s: f64,
    threads: u32,
    client_cpu_s: Option<f64>,
    #[serde(default)]
    idle_threads: u32,
    #[serde(default)]
    unstarted: u64,
    /// Operation -> kind of error -> count; every operation is listed, also without errors.
    errors: BTreeMap<String, BTreeMap<String, u64>>,
}

impl LoadResult {
    /// The names of the files of a load result.
    pub const FILES: [&str; 3] = [SUMMARY, INTERVALS, LATENCY];

    /// The files that hold this result, by name; `start` is when the window began.
    #[must_use]
    pub fn to_files(&self, start: SystemTime) -> BTreeMap<String, Vec<u8>> {
        let summary = Summary {
            window_s: self.window_s,
            threads: self.threads,
            client_cpu_s: self.client_cpu_s,
            idle_threads: self.idle_threads,
            unstarted: self.unstarted,
            errors: self
                .operations
                .iter()
                .map(|o| (o.name.clone(), o.errors.clone()))
                .collect(),
        };
        let window = Duration::from_secs_f64(self.window_s.max(0.0));
        BTreeMap::from([
            (
                SUMMARY.into(),
                serde_json::to_vec_pretty(&summary).expect("a summary is plain data"),
            ),
            (
                INTERVALS.into(),
                write_intervals(&self.intervals).into_bytes(),
            ),
            (
                LATENCY.into(),
                write_latency_log(&self.operations, start, window),
            ),
        ])
    }

    /// Reads what [`LoadResult::to_files`] writes.
    ///
    /// # Errors
    /// The name of the file at fault and what is wrong with it.
    pub fn from_files(files: &BTreeMap<String, Vec<u8>>) -> Result<Self, (String, String)> {
        let get = |name: &str| {
            files
                .get(name)
                .ok_or_else(|| (name.to_owned(), "it is missing".to_owned()))
        };
        let wrong = |name: &str, why: String| (name.to_owned(), why);
        let summary: Summary =
            serde_json::from_slice(get(SUMMARY)?).map_err(|e| wrong(SUMMARY, e.to_string()))?;
        let text =
            std::str::from_utf8(get(INTERVALS)?).map_err(|e| wrong(INTERVALS, e.to_string()))?;
        let intervals = read_intervals(text).map_err(|e| wrong(INTERVALS, e.to_string()))?;
        let mut latencies =
            read_latency_log(get(LATENCY)?).map_err(|e| wrong(LATENCY, e.to_string()))?;
        let mut operations = Vec::new();
        for (name, errors) in summary.errors {
            let latency = latencies
                .remove(&name)
                .ok_or_else(|| wrong(LATENCY, format!("no latencies of `{name}`")))?;
            let late = latencies.remove(&format!("{name}{LATE}"));
            operations.push(OperationResult {
                name,
                latency,
                late: late.unwrap_or_default(),
                errors,
            });
        }
        Ok(Self {
            window_s: summary.window_s,
            operations,
            intervals,
            threads: summary.threads,
            client_cpu_s: summary.client_cpu_s,
            idle_threads: summary.idle_threads,
            unstarted: summary.unstarted,
        })
    }
}

/// The HdrHistogram interval log (1.3 text) with one line for each operation, tagged with its name, over the whole window;
/// an operation with late ones has another, tagged `<name>+late`.
#[must_use]
pub fn write_latency_log(
    operations: &[OperationResult],
    start: SystemTime,
    window: Duration,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(1_000.0)
        .begin_log_with(&mut bytes, &mut serializer)
        .expect("writing to memory cannot fail");
    let mut write = |tag: &str, latency: &Latency| {
        let tag = Tag::new(tag).expect("operation names hold no separators");
        log.write_histogram(latency.inner(), Duration::ZERO, window, Some(tag))
            .expect("writing to memory cannot fail");
    };
    for operation in operations {
        write(&operation.name, &operation.latency);
        if operation.late.count() > 0 {
            write(&format!("{}{LATE}", operation.name), &operation.late);
        }
    }
    bytes
}

/// The latencies by tag that an HdrHistogram log holds; lines of the same tag are merged.
///
/// # Errors
/// A line that is no log entry, or a histogram with other settings.
pub fn read_latency_log(bytes: &[u8]) -> Result<BTreeMap<String, Latency>, HistogramError> {
    let mut found: BTreeMap<String, Latency> = BTreeMap::new();
    for entry in IntervalLogIterator::new(bytes) {
        match entry {
            Ok(LogEntry::Interval(line)) => {
                let name = line.tag().map_or("all", |t| t.as_str());
                let latency = Latency::decode(line.encoded_histogram())?;
                found.entry(name.to_owned()).or_default().merge(&latency);
            }
            Ok(_) => {}
            Err(e) => return Err(HistogramError::Encoding(format!("{e:?}"))),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_log_gives_back_every_operation() {
        let mut operations = Vec::new();
        for (name, us) in [("read", 100), ("update", 250)] {
            let mut latency = Latency::new();
            (0..50).for_each(|n| latency.record_us(us + n));
            operations.push(OperationResult {
                name: name.into(),
                latency,
                ..Default::default()
            });
        }
        let log = write_latency_log(&operations, SystemTime::UNIX_EPOCH, Duration::from_secs(10));
        let read = read_latency_log(&log).unwrap();
        assert_eq!(read.len(), 2);
        assert!(operations.iter().all(|o| read[&o.name] == o.latency));
    }

    #[test]
    fn a_load_result_survives_its_files() {
        let mut latency = Latency::new();
        latency.record_us(70);
        let errors = BTreeMap::from([("busy".to_owned(), 2)]);
        let operations = vec![
            OperationResult {
                name: "read".into(),
                latency: latency.clone(),
                late: latency,
                ..Default::default()
            },
            OperationResult {
                name: "update".into(),
                errors,
                ..Default::default()
            },
        ];
        let result = LoadResult {
            window_s: 1.5,
            operations,
            threads: 2,
            idle_threads: 1,
            unstarted: 7,
            ..Default::default()
        };
        let mut files = result.to_files(SystemTime::UNIX_EPOCH);
        assert_eq!(LoadResult::from_files(&files).unwrap(), result);
        files.remove("latency.hlog");
        assert_eq!(
            LoadResult::from_files(&files).unwrap_err().0,
            "latency.hlog"
        );
    }

    #[test]
    fn late_operations_are_in_the_percentiles_and_in_no_throughput() {
        let (mut latency, mut late) = (Latency::new(), Latency::new());
        (0..98).for_each(|_| latency.record_us(10));
        (0..2).for_each(|_| late.record_us(2_000_000));
        let operation = OperationResult {
            name: "read".into(),
            latency,
            late,
            errors: BTreeMap::new(),
        };
        assert!(operation.whole().at(super::super::Percentile::P99) >= Some(2_000_000));
        let result = LoadResult {
            window_s: 1.0,
            operations: vec![operation],
            ..Default::default()
        };
        assert_eq!((result.count(), result.late()), (98, 2));
        assert!((result.throughput() - 98.0).abs() < 1e-12);
        assert_eq!(result.all(), result.operations[0].whole());
    }

    #[test]
    fn files_without_late_operations_name_none_and_older_ones_are_read() {
        let mut latency = Latency::new();
        latency.record_us(70);
        let result = LoadResult {
            operations: vec![OperationResult {
                name: "read".into(),
                latency,
                ..Default::default()
            }],
            ..Default::default()
        };
        let mut files = result.to_files(SystemTime::UNIX_EPOCH);
        assert!(!String::from_utf8_lossy(&files["latency.hlog"]).contains("late"));
        let older =
            r#"{"window_s": 0.0, "threads": 0, "client_cpu_s": null, "errors": {"read": {}}}"#;
        files.insert("load.json".into(), older.into());
        assert_eq!(LoadResult::from_files(&files).unwrap(), result);
    }

    #[test]
    fn failed_operations_are_no_throughput() {
        let mut latency = Latency::new();
        latency.record_us(5);
        let operation = OperationResult {
            name: "read".into(),
            latency,
            errors: BTreeMap::from([("busy".into(), 9)]),
            ..Default::default()
        };
        let result = LoadResult {
            window_s: 2.0,
            operations: vec![operation],
            ..Default::default()
        };
        assert!((result.throughput() - 0.5).abs() < 1e-12);
        assert_eq!(result.errors(), 9);
    }
}
