//! A short calibration, so that a slow host shows up next to the results. It takes about a second.

use std::collections::BTreeMap;
use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Turns of the CPU loop, and how often it is timed. A build without optimisation makes a tenth of them.
const TURNS: u64 = 10_000_000;
const SHARE: u64 = if cfg!(debug_assertions) { 10 } else { 1 };
const LOOPS: usize = 5;
/// Bytes that are copied, more than most caches hold, and how often.
const BLOCK: usize = 64 << 20;
const COPIES: usize = 3;
/// Flushed writes, the bytes of each, and the longest that all may take.
const FSYNCS: usize = 64;
const PAGE: usize = 4096;
const FSYNC_LIMIT: Duration = Duration::from_secs(3);
/// Connections to each other host, and the longest that one may take.
const CONNECTS: usize = 5;
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// What is to be calibrated.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Request {
    /// The host's directory, whose disk is tried.
    pub directory: PathBuf,
    /// Other hosts by name, each as `address:port` with something that listens.
    #[serde(default)]
    pub peers: BTreeMap<String, String>,
}

/// How fast a host is, roughly.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Calibration {
    /// Ten million dependent multiplications and additions of integers on one thread, the median of five times, ms.
    pub cpu_ms: f64,
    /// 64 MiB copied in memory by one thread, the best of three, GB/s; each byte counts once, not for read and write.
    pub memory_gb_s: f64,
    /// A write of 4 KiB at the end of a file in the host's directory, flushed with `fsync`: the median of 64, ms.
    pub fsync_p50_ms: f64,
    /// The 99th percentile of those (nearest rank: of 64 the longest), ms.
    pub fsync_p99_ms: f64,
    /// Other host -> median of five times until a TCP connection stood, ms; one that cannot be reached is absent.
    pub network_ms: BTreeMap<String, f64>,
}

/// Calibrates this machine. The file that it writes is removed.
///
/// # Errors
/// The directory cannot be written to.
pub fn calibrate(request: &Request) -> std::io::Result<Calibration> {
    let fsyncs = fsyncs(&request.directory)?;
    Ok(Calibration {
        cpu_ms: cpu_ms(),
        memory_gb_s: memory_gb_s(),
        fsync_p50_ms: rank(&fsyncs, 0.5),
        fsync_p99_ms: rank(&fsyncs, 0.99),
        network_ms: network(&request.peers),
    })
}

fn cpu_ms() -> f64 {
    let mut times: Vec<f64> = (0..LOOPS).map(|_| timed(turn)).collect();
    times.sort_by(f64::total_cmp);
    rank(&times, 0.5) * SHARE as f64
}

/// A linear congruential generator: each turn needs the one before.
fn turn() {
    let mut value = black_box(1_u64);
    for _ in 0..TURNS / SHARE {
        value = value
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
    }
    black_box(value);
}

fn memory_gb_s() -> f64 {
    let (from, mut to) = (vec![1_u8; BLOCK], vec![2_u8; BLOCK]);
    let copy = || black_box(&mut to).copy_from_slice(black_box(&from));
    let mut copy = copy;
    let best = (0..COPIES)
        .map(|_| timed(&mut copy))
        .fold(f64::MAX, f64::min);
    BLOCK as f64 / 1e9 / (best / 1e3)
}

/// The times of flushed writes, shortest first, ms.
fn fsyncs(directory: &Path) -> std::io::Result<Vec<f64>> {
    std::fs::create_dir_all(directory)?;
    let mut file: File = tempfile::tempfile_in(directory)?;
    let (block, start) = ([0x5a_u8; PAGE], Instant::now());
    let mut times = Vec::with_capacity(FSYNCS);
    while times.len() < FSYNCS && (times.is_empty() || start.elapsed() < FSYNC_LIMIT) {
        let mut result = Ok(());
        times.push(timed(|| {
            result = file.write_all(&block).and_then(|()| file.sync_all());
        }));
        result?;
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// Every peer at once: one that does not answer must not hold up the others.
fn network(peers: &BTreeMap<String, String>) -> BTreeMap<String, f64> {
    std::thread::scope(|scope| {
        let asked: Vec<_> = peers
            .iter()
            .map(|(name, address)| (name, scope.spawn(|| connects(address))))
            .collect();
        let answers = asked.into_iter();
        answers
            .filter_map(|(name, thread)| Some((name.clone(), thread.join().ok()??)))
            .collect()
    })
}

fn connects(address: &str) -> Option<f64> {
    let address = address.to_socket_addrs().ok()?.next()?;
    let mut times = Vec::with_capacity(CONNECTS);
    for _ in 0..CONNECTS {
        let mut stream = None;
        times.push(timed(|| {
            stream = TcpStream::connect_timeout(&address, CONNECT_LIMIT).ok();
        }));
        stream?;
    }
    times.sort_by(f64::total_cmp);
    Some(rank(&times, 0.5))
}

/// The time that something takes, ms.
fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e3
}

/// The value at a share of sorted values, by nearest rank.
fn rank(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}

/// A host is remarkable if it is worse than its fellows' median by more than this factor.
const WORSE: f64 = 1.5;

/// A value of a host that is much worse than its fellows'.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outlier {
    /// The host.
    pub host: String,
    /// What was measured.
    pub measure: Measure,
    /// Its value, in the unit of [`Measure::unit`].
    pub value: f64,
    /// The median of the other hosts' values.
    pub median: f64,
}

/// What of a calibration is compared between hosts. The longest `fsync` is not: one of 64 says little.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// [`Calibration::cpu_ms`].
    Cpu,
    /// [`Calibration::memory_gb_s`].
    Memory,
    /// [`Calibration::fsync_p50_ms`].
    Fsync,
    /// The median of [`Calibration::network_ms`].
    Network,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Memory, Self::Fsync, Self::Network];

    /// Its unit.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Cpu | Self::Fsync | Self::Network => "ms",
            Self::Memory => "GB/s",
        }
    }

    /// Its name for people.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Cpu => "CPU loop",
            Self::Memory => "Memory copy",
            Self::Fsync => "fsync, median",
            Self::Network => "Connection, median",
        }
    }

    /// The value that a calibration has of it.
    #[must_use]
    pub fn of(self, calibration: &Calibration) -> Option<f64> {
        let value = match self {
            Self::Cpu => calibration.cpu_ms,
            Self::Memory => calibration.memory_gb_s,
            Self::Fsync => calibration.fsync_p50_ms,
            Self::Network => median(calibration.network_ms.values().copied())?,
        };
        (value.is_finite() && value > 0.0).then_some(value)
    }

    /// How many times worse than `reference` a value is; below 1 it is better.
    fn worse(self, value: f64, reference: f64) -> f64 {
        match self {
            Self::Cpu | Self::Fsync | Self::Network => value / reference,
            Self::Memory => reference / value,
        }
    }
}

/// The values that are more than 1.5 times worse than the median of the other hosts'.
#[must_use]
pub fn outliers(hosts: &BTreeMap<String, Calibration>) -> Vec<Outlier> {
    let mut found = Vec::new();
    for (host, own) in hosts {
        for measure in Measure::ALL {
            let fellows = hosts.iter().filter(|(name, _)| *name != host);
            let fellows = fellows.filter_map(|(_, other)| measure.of(other));
            let (Some(value), Some(median)) = (measure.of(own), median(fellows)) else {
                continue;
            };
            if measure.worse(value, median) > WORSE {
                found.push(Outlier {
                    host: host.clone(),
                    measure,
                    value,
                    median,
                });
            }
        }
    }
    found
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cpu_ms: f64, memory_gb_s: f64) -> Calibration {
        Calibration {
            cpu_ms,
            memory_gb_s,
            fsync_p50_ms: 1.0,
            fsync_p99_ms: 2.0,
            network_ms: BTreeMap::new(),
        }
    }

    fn hosts(all: &[(&str, Calibration)]) -> BTreeMap<String, Calibration> {
        let pairs = all.iter().map(|(name, c)| ((*name).to_owned(), c.clone()));
        pairs.collect()
    }

    #[test]
    fn a_host_half_as_fast_as_its_fellows_is_an_outlier_and_a_faster_one_is_none() {
        let all = hosts(&[
            ("a", of(30.0, 10.0)),
            ("b", of(31.0, 10.0)),
            ("c", of(62.0, 4.0)),
            ("d", of(10.0, 40.0)),
        ]);
        let found = outliers(&all);
        let found: Vec<_> = found
            .iter()
            .map(|o| (o.host.as_str(), o.measure, o.value, o.median))
            .collect();
        let expected = [
            ("c", Measure::Cpu, 62.0, 30.0),
            ("c", Measure::Memory, 4.0, 10.0),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_value_at_the_factor_is_no_outlier_and_one_host_has_no_fellows() {
        let all = hosts(&[("a", of(30.0, 10.0)), ("b", of(45.0, 10.0))]);
        assert_eq!(outliers(&all), []);
        assert_eq!(outliers(&hosts(&[("a", of(30.0, 10.0))])), []);
    }

    #[test]
    fn a_host_that_is_far_from_all_others_stands_out_by_its_connections() {
        let with = |ms: &[f64]| {
            let names = (0..).map(|n| format!("peer{n}"));
            Calibration {
                network_ms: names.zip(ms.iter().copied()).collect(),
                ..of(30.0, 10.0)
            }
        };
        let all = hosts(&[
            ("a", with(&[0.2, 0.2, 9.0])),
            ("b", with(&[0.2, 0.3, 9.0])),
            ("c", with(&[0.2, 0.2, 9.0])),
            ("far", with(&[9.0, 9.0, 9.1])),
        ]);
        let found = outliers(&all);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].host.as_str(), found[0].measure),
            ("far", Measure::Network)
        );
    }

    #[test]
    fn this_machine_is_calibrated_and_nothing_is_left() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let bound = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let closed = bound.local_addr().unwrap().to_string();
        drop(bound);
        let folder = tempfile::tempdir().unwrap();
        let request = Request {
            directory: folder.path().to_owned(),
            peers: BTreeMap::from([
                (
                    "open".to_owned(),
                    listener.local_addr().unwrap().to_string(),
                ),
                ("closed".to_owned(), closed),
            ]),
        };
        let found = calibrate(&request).unwrap();
        assert!(
            Measure::ALL.iter().all(|m| m.of(&found).is_some()),
            "{found:?}"
        );
        assert!(found.fsync_p50_ms <= found.fsync_p99_ms);
        assert_eq!(found.network_ms.keys().collect::<Vec<_>>(), ["open"]);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn ranks_are_those_of_the_nearest() {
        let values: Vec<f64> = (1..=64).map(f64::from).collect();
        assert_eq!((rank(&values, 0.5), rank(&values, 0.99)), (32.0, 64.0));
        assert_eq!(rank(&[7.0], 0.5), 7.0);
    }
}
