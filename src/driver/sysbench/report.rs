//! What a run of sysbench prints, of 1.0 and 1.1, and what makes its numbers worthless.

use regex::{Captures, Regex};

/// A run's output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The version, such as `1.0.20`.
    pub version: String,
    /// Client threads.
    pub threads: u32,
    /// Target rate, transactions/s.
    pub rate: Option<u64>,
    /// Queries by what they do.
    pub queries: Queries,
    /// Transactions that ended, retried ones once.
    pub transactions: u64,
    /// Statements that failed with an error that is ignored; their transactions were tried again.
    pub ignored_errors: u64,
    /// Connections that were made again.
    pub reconnects: u64,
    /// From the start of the load to the end of its last transaction, s; a warm-up of the same run is not in it.
    pub total_s: f64,
    /// Events, which are transactions for the OLTP scripts.
    pub events: u64,
    /// Latencies of transactions.
    pub latency: Latencies,
    /// Events of a thread in the mean.
    pub events_a_thread: f64,
    /// Latencies by bucket, if the histogram was asked for.
    pub histogram: Option<Histogram>,
    /// Its intermediate reports.
    pub seconds: Vec<Second>,
    /// With a target rate: transactions that were due and had not begun, when it last said so.
    pub queue: Option<u64>,
}

/// Queries by what they do, those of transactions that were tried again included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queries {
    /// Reads.
    pub read: u64,
    /// Writes.
    pub write: u64,
    /// Begins, commits, and deletes that hit no row.
    pub other: u64,
    /// All of them.
    pub total: u64,
}

/// Latencies, ms. All but the percentile are exact to two decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latencies {
    /// The smallest.
    pub min: f64,
    /// The mean.
    pub avg: f64,
    /// The largest.
    pub max: f64,
    /// Their sum.
    pub sum: f64,
    /// A percentile and its value.
    pub percentile: Option<(u32, f64)>,
}

/// The centres of buckets, µs, and how many latencies are in each; empty ones are left out. The centres of neighbours differ by
/// 1.8 %.
pub type Histogram = Vec<(u64, u64)>;

/// One intermediate report.
#[derive(Clone, Debug, PartialEq)]
pub struct Second {
    /// Seconds since the start.
    pub end: u64,
    /// Transactions/s.
    pub tps: f64,
    /// Ignored errors/s.
    pub errors: f64,
    /// A percentile and its value, ms.
    pub percentile: (u32, f64),
}

/// Why a run's numbers cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unusable {
    /// It did not end well.
    #[error("it ended {}", .0.map_or("by a signal".to_owned(), |status| format!("with status {status}")))]
    Ended(Option<i32>),
    /// It says that it failed.
    #[error("it failed: {}", .0.join("; "))]
    Fatal(Vec<String>),
    /// It was ended by force, with transactions in flight.
    #[error("it was shut down by force with {0} transactions unfinished, which are in no number")]
    Forced(u64),
    /// It is no output of sysbench.
    #[error("it is no output of sysbench")]
    Foreign,
    /// It is the output of another command than `run`.
    #[error("no load was run")]
    NoLoad,
    /// It ran no SQL.
    #[error("it is no report of an SQL test")]
    NoSql,
    /// It ends too early.
    #[error("it ends without a whole report, as after a kill or a crash{}", last_line(.0))]
    Cut(String),
    /// It covers only a part of the run.
    #[error("it covers only the time since a checkpoint of `--report-checkpoints`")]
    Checkpoint,
    /// Nothing was done.
    #[error("no transaction ended")]
    NoEvents,
    /// Latencies are missing.
    #[error("it has no latency histogram")]
    NoHistogram,
    /// It contradicts itself.
    #[error("it contradicts itself: {0}")]
    Contradiction(String),
}

fn last_line(line: &str) -> String {
    match line {
        "" => "; it is empty".to_owned(),
        line => format!("; its last line is `{line}`"),
    }
}

impl Report {
    /// Reads what a run printed on its standard output.
    ///
    /// # Errors
    /// Its numbers cannot be used.
    pub fn read(text: &str) -> Result<Self, Unusable> {
        let mut reader = Reader::new();
        text.lines().for_each(|line| reader.line(line));
        let report = reader.end()?;
        report.check()?;
        Ok(report)
    }

    /// Whether the numbers fit each other.
    fn check(&self) -> Result<(), Unusable> {
        let wrong = |text: String| Err(Unusable::Contradiction(text));
        let Queries {
            read,
            write,
            other,
            total,
        } = self.queries;
        if read + write + other != total {
            return wrong(format!(
                "{read} + {write} + {other} queries are not {total}"
            ));
        }
        let (events, transactions) = (self.events, self.transactions);
        if transactions != events {
            return wrong(format!("{transactions} transactions, but {events} events"));
        }
        if events == 0 {
            return Err(Unusable::NoEvents);
        }
        if self.total_s <= 0.0 {
            return wrong(format!("{events} events in no time"));
        }
        // The mean is printed with four decimals.
        let by_threads = self.events_a_thread * f64::from(self.threads);
        if (by_threads - events as f64).abs() > 0.5 + 1e-4 * f64::from(self.threads) {
            return wrong(format!("its threads had {by_threads} events of {events}"));
        }
        if let Some(histogram) = &self.histogram {
            let held: u64 = histogram.iter().map(|(_, count)| count).sum();
            if held != events {
                return wrong(format!("its histogram holds {held} events of {events}"));
            }
        }
        Ok(())
    }
}

/// The intermediate reports in an output.
pub(super) fn seconds(text: &str) -> Vec<Second> {
    let pattern = Patterns::new().second;
    let lines = text.lines().filter_map(|line| pattern.captures(line));
    lines.filter_map(|found| second(&found)).collect()
}

fn second(found: &Captures<'_>) -> Option<Second> {
    Some(Second {
        end: found["end"].parse().ok()?,
        tps: found["tps"].parse().ok()?,
        errors: found["errors"].parse().ok()?,
        percentile: (found["percent"].parse().ok()?, found["ms"].parse().ok()?),
    })
}

struct Patterns {
    version: Regex,
    second: Regex,
    queue: Regex,
    bucket: Regex,
    percentile: Regex,
}

impl Patterns {
    fn new() -> Self {
        let pattern = |text| Regex::new(text).expect("the pattern is valid");
        Self {
            version: pattern(r"^sysbench (\S+) \(using "),
            second: pattern(concat!(
                r"^\[ (?<end>\d+)s \] thds: \d+ tps: (?<tps>[0-9.]+) qps: [0-9.]+ \(r/w/o: [0-9./]+\) ",
                r"lat \(ms,(?<percent>\d+)%\): (?<ms>[0-9.]+) err/s:? (?<errors>[0-9.]+)",
            )),
            queue: pattern(r"^\[ \d+s \] queue length: (\d+)"),
            bucket: pattern(r"^ *(\d+\.\d{3}) \|[* ]{40} (\d+)$"),
            percentile: pattern(r"^(\d+)th percentile: +([0-9.]+)$"),
        }
    }
}

/// How far an output was read.
struct Reader {
    patterns: Patterns,
    report: Report,
    version: Option<String>,
    fatal: Vec<String>,
    unfinished: Option<u64>,
    in_histogram: bool,
    sql: bool,
    checkpoint: bool,
    /// The parts of the report that were seen.
    seen: Vec<&'static str>,
    last: String,
}

/// The parts of a whole report, in its order.
const PARTS: [&str; 14] = [
    "read",
    "write",
    "other",
    "total",
    "transactions",
    "ignored errors",
    "reconnects",
    "total time",
    "events",
    "min",
    "avg",
    "max",
    "sum",
    "fairness",
];

impl Reader {
    fn new() -> Self {
        Self {
            patterns: Patterns::new(),
            report: Report::default(),
            version: None,
            fatal: Vec::new(),
            unfinished: None,
            in_histogram: false,
            sql: false,
            checkpoint: false,
            seen: Vec::new(),
            last: String::new(),
        }
    }

    fn line(&mut self, line: &str) {
        let text = line.trim();
        if self.in_histogram && self.bucket(line) {
            return;
        }
        if !text.is_empty() {
            text.clone_into(&mut self.last);
        }
        if let Some(found) = self.patterns.version.captures(line) {
            self.version = Some(found[1].to_owned());
        } else if line.starts_with("FATAL: ") {
            if !self.fatal.iter().any(|said| said == text) {
                self.fatal.push(text.to_owned());
            }
        } else if let Some(found) = self.patterns.second.captures(line) {
            self.report.seconds.extend(second(&found));
        } else if let Some(found) = self.patterns.queue.captures(line) {
            self.report.queue = found[1].parse().ok();
        } else if line.ends_with("Checkpoint report:") {
            self.checkpoint = true;
        } else if line.starts_with("Latency histogram (") {
            self.in_histogram = true;
            self.report.histogram = Some(Histogram::new());
        } else {
            self.value(text);
        }
    }

    /// Takes a line of the histogram; says whether it still is one.
    fn bucket(&mut self, line: &str) -> bool {
        if let Some(found) = self.patterns.bucket.captures(line) {
            let ms: Option<f64> = found[1].parse().ok();
            let (us, count) = (
                ms.map(|ms| (ms * 1000.0).round() as u64),
                found[2].parse().ok(),
            );
            let histogram = self.report.histogram.get_or_insert_default();
            histogram.extend(us.zip(count));
            return true;
        }
        // Its head, and what the log puts between any two lines.
        let goes_on =
            line.trim_start().starts_with("value  ---") || line.starts_with("(last message");
        self.in_histogram = goes_on;
        goes_on
    }

    /// Takes a line `name: value ...`.
    fn value(&mut self, text: &str) {
        if let Some(found) = self.patterns.percentile.captures(text) {
            let (percent, ms) = (found[1].parse().ok(), found[2].parse().ok());
            self.report.latency.percentile = percent.zip(ms);
            return;
        }
        let Some((name, rest)) = text.split_once(':') else {
            return;
        };
        let first = rest.split_whitespace().next().unwrap_or("");
        let report = &mut self.report;
        let part = match name {
            "SQL statistics" => {
                self.sql = true;
                return;
            }
            "Number of threads" => return set(&mut report.threads, first).unwrap_or_default(),
            "Target transaction rate" => {
                report.rate = first.strip_suffix("/sec").and_then(|n| n.parse().ok());
                return;
            }
            "Number of unfinished transactions on forced shutdown" => {
                self.unfinished = first.parse().ok();
                return;
            }
            "read" => set(&mut report.queries.read, first).map(|()| "read"),
            "write" => set(&mut report.queries.write, first).map(|()| "write"),
            "other" => set(&mut report.queries.other, first).map(|()| "other"),
            "total" => set(&mut report.queries.total, first).map(|()| "total"),
            "transactions" => set(&mut report.transactions, first).map(|()| "transactions"),
            "ignored errors" => set(&mut report.ignored_errors, first).map(|()| "ignored errors"),
            "reconnects" => set(&mut report.reconnects, first).map(|()| "reconnects"),
            "total time" | "time elapsed" => first
                .strip_suffix('s')
                .and_then(|s| set(&mut report.total_s, s))
                .map(|()| "total time"),
            "total number of events" => set(&mut report.events, first).map(|()| "events"),
            "min" => set(&mut report.latency.min, first).map(|()| "min"),
            "avg" => set(&mut report.latency.avg, first).map(|()| "avg"),
            "max" => set(&mut report.latency.max, first).map(|()| "max"),
            "sum" => set(&mut report.latency.sum, first).map(|()| "sum"),
            "events (avg/stddev)" => first
                .split_once('/')
                .and_then(|(avg, _)| set(&mut report.events_a_thread, avg))
                .map(|()| "fairness"),
            _ => return,
        };
        self.seen.extend(part);
    }

    /// The report, unless something says that it is none.
    fn end(mut self) -> Result<Report, Unusable> {
        if let Some(unfinished) = self.unfinished {
            return Err(Unusable::Forced(unfinished));
        }
        if !self.fatal.is_empty() {
            return Err(Unusable::Fatal(self.fatal));
        }
        let Some(version) = self.version.take() else {
            return Err(match self.last.as_str() {
                "" => Unusable::Cut(self.last),
                _ => Unusable::Foreign,
            });
        };
        // Other commands than `run` do not say how many threads they have.
        if self.report.threads == 0 {
            return Err(Unusable::NoLoad);
        }
        self.whole(version)
    }

    fn whole(self, version: String) -> Result<Report, Unusable> {
        let has = |part: &&str| self.seen.contains(part);
        if !self.sql && has(&"total time") {
            return Err(Unusable::NoSql);
        }
        if !PARTS.iter().all(has) {
            return Err(Unusable::Cut(self.last));
        }
        if self.checkpoint {
            return Err(Unusable::Checkpoint);
        }
        Ok(Report {
            version,
            ..self.report
        })
    }
}

fn set<T: std::str::FromStr>(place: &mut T, text: &str) -> Option<()> {
    *place = text.parse().ok()?;
    Some(())
}
