//! A run's folder as a real run leaves it, with made-up but deterministic latencies.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use assay::artifacts::{
    Event, EventLog, Layout, Manifest, Measured, RoundResult, Run, SpecTexts, Status, create_run,
    write_new,
};
use assay::database::Effective;
use assay::host::{Facts, FileSystem};
use assay::measurement::{Interval, Latency, LoadResult, OperationResult, Phase};
use assay::plan::{Action, Cell, Deployment, Instance, Measure, Plan, Round, Step};
use assay::spec::{
    Dataset, Deploy, Driver, Kind, Method, Metric, Name, OnFailure, Order, Packages, Restore,
    Schema, Workload,
};
use assay::units::Duration;
use indexmap::IndexMap;

/// 2026-03-01 10:00:00 UTC.
const BEGIN: i64 = 1_772_359_200;
/// Seconds of warm-up and window of each round.
const WARMUP: u64 = 2;

/// What a sample run is made of.
#[derive(Clone)]
pub(crate) struct Sample {
    /// The variants; the first is the baseline.
    pub(crate) variants: Vec<&'static str>,
    /// The workloads.
    pub(crate) workloads: Vec<Kind>,
    /// Client threads.
    pub(crate) threads: Vec<u32>,
    /// Target rates; empty is closed loop.
    pub(crate) rates: Vec<f64>,
    /// Rounds of each cell and variant.
    pub(crate) repetitions: u32,
    /// Length of each window, s.
    pub(crate) window: u64,
    /// Round id -> why it fails.
    pub(crate) failing: BTreeMap<String, String>,
    /// Round id -> why it is invalid, though it was measured.
    pub(crate) invalid: BTreeMap<String, String>,
    /// Round id -> what it says of itself.
    pub(crate) noted: BTreeMap<String, String>,
    /// So many keys of the effective configuration differ between the variants.
    pub(crate) keys: usize,
    /// Round id -> why its first attempt fails; the second is good.
    pub(crate) retried: BTreeMap<String, String>,
    /// Variants that cannot be prepared, and why.
    pub(crate) unready: BTreeMap<&'static str, String>,
    /// After so many rounds the run stops, without a word.
    pub(crate) cut: Option<usize>,
    /// After so many rounds the run is resumed with a changed spec.
    pub(crate) changed: Option<usize>,
    /// In this round, from 0, the process dies; the run is taken up again.
    pub(crate) dying: Option<usize>,
    /// Failed operations in every round, by kind of error.
    pub(crate) errors: BTreeMap<String, u64>,
    /// Words put into every free text: host names, versions, configuration.
    pub(crate) hostile: Option<&'static str>,
    /// Successful operations in a second on one thread.
    pub(crate) pace: u64,
    /// A variant on which one thread does all the work and the others wait.
    pub(crate) starved: Option<&'static str>,
    /// Operations of each round that were due at the window's end and had not begun.
    pub(crate) unstarted: u64,
    /// How far the rounds of the later variants differ: with 0.5, between 0.5 and 1.5 times.
    pub(crate) spread: f64,
    /// The version that every variant wants.
    pub(crate) wanted: Option<&'static str>,
    /// `journal_mode` and `synchronous` of the first variant and of the others.
    pub(crate) pragmas: [[&'static str; 2]; 2],
}

impl Default for Sample {
    /// Two variants, two workloads, four numbers of threads, three rounds, all of them good.
    fn default() -> Self {
        Self {
            variants: vec!["delete", "wal"],
            workloads: vec![Kind::YcsbA, Kind::OltpReadWrite],
            threads: vec![1, 2, 4, 8],
            rates: Vec::new(),
            repetitions: 3,
            window: 5,
            failing: BTreeMap::new(),
            invalid: BTreeMap::new(),
            noted: BTreeMap::new(),
            keys: 0,
            retried: BTreeMap::new(),
            unready: BTreeMap::new(),
            cut: None,
            changed: None,
            dying: None,
            errors: BTreeMap::new(),
            hostile: None,
            pace: 240,
            starved: None,
            unstarted: 0,
            spread: 0.03,
            wanted: None,
            pragmas: [["delete", "full"], ["wal", "normal"]],
        }
    }
}

/// The id of a round.
pub(crate) fn round_id(kind: Kind, threads: u32, variant: &str, repetition: u32) -> String {
    format!("{kind}.t{threads}.{variant}.r{repetition}")
}

impl Sample {
    /// Writes the run into `folder/artifacts` and reads it back.
    pub(crate) fn build(&self, folder: &Path) -> Run {
        let plan = self.plan();
        let experiment = self.experiment();
        let texts = SpecTexts {
            experiment: &experiment,
            inventory: "hosts:\n  local:\n    connection: local\n",
        };
        let (layout, log) =
            create_run(&folder.join("artifacts"), &self.manifest(), &texts, &plan).unwrap();
        let writer = Writer {
            sample: self,
            layout: layout.clone(),
            log,
            now: BEGIN as f64,
            texts: &texts,
            plan: &plan,
        };
        writer.write();
        Run::open(layout.folder()).unwrap()
    }

    fn experiment(&self) -> String {
        let mut text = String::from(
            "name: journal\ndescription: journal modes of SQLite, side by side\ncluster:\n  system: sqlite\nvariants:\n",
        );
        for variant in &self.variants {
            text.push_str(&format!("  {variant}: {{}}\n"));
        }
        text.push_str("workloads:\n");
        for kind in &self.workloads {
            text.push_str(&format!("- driver: native\n  workload: {kind}\n"));
        }
        if let Some(hostile) = self.hostile {
            for line in hostile.lines() {
                text.push_str(&format!("# {line}\n"));
            }
            text.push_str("# ${env:BENCH_PASSWORD}\n");
        }
        text
    }

    fn plan(&self) -> Plan {
        let mut rounds = Vec::new();
        for repetition in 1..=self.repetitions {
            for kind in &self.workloads {
                for threads in &self.threads {
                    for rate in self.rates() {
                        self.block(&mut rounds, *kind, *threads, rate, repetition);
                    }
                }
            }
        }
        Plan {
            format: 1,
            experiment: "journal".into(),
            spec: "5f0c1e7a9b3d".into(),
            seed: 42,
            order: Order::Interleaved,
            restore: Restore::EachRound,
            snapshot: Method::Auto,
            on_failure: OnFailure::Continue,
            baseline: self.variants[0].into(),
            metrics: vec![Metric::Throughput, Metric::P95, Metric::P99],
            deployments: self.variants.iter().map(|v| self.deployment(v)).collect(),
            rounds,
        }
    }

    fn rates(&self) -> Vec<Option<f64>> {
        if self.rates.is_empty() {
            vec![None]
        } else {
            self.rates.iter().copied().map(Some).collect()
        }
    }

    fn block(
        &self,
        rounds: &mut Vec<Round>,
        kind: Kind,
        threads: u32,
        rate: Option<f64>,
        repetition: u32,
    ) {
        let block = (rounds.len() / self.variants.len()) as u32 + 1;
        let suffix = rate.map(|r| format!(".q{r}")).unwrap_or_default();
        let mut variants = self.variants.clone();
        // Every other block runs the variants the other way round.
        if block.is_multiple_of(2) {
            variants.reverse();
        }
        for variant in variants {
            rounds.push(Round {
                id: format!("{}{suffix}", round_id(kind, threads, variant, repetition)),
                deployment: variant.into(),
                cell: Cell {
                    id: format!("{kind}.t{threads}{suffix}"),
                    workload: kind.to_string(),
                    threads,
                    rate,
                },
                repetition,
                block,
                steps: vec![Step {
                    action: Action::Measure(self.measure(kind, threads, rate)),
                    limit: Duration::from_secs(60),
                }],
            });
        }
    }

    fn measure(&self, kind: Kind, threads: u32, rate: Option<f64>) -> Measure {
        Measure {
            workload: Workload {
                name: None,
                driver: Driver::Native,
                workload: Some(kind),
                script: None,
                distribution: None,
                max_scan_length: None,
                range_size: None,
                skip_trx: None,
                options: IndexMap::new(),
            },
            dataset: Dataset {
                driver: Driver::Native,
                schema: Some(kind.schema()),
                records: (kind.schema() == Schema::Ycsb).then_some(10_000),
                fields: None,
                field_length: None,
                tables: (kind.schema() == Schema::Sysbench).then_some(1),
                table_size: (kind.schema() == Schema::Sysbench).then_some(10_000),
                threads: None,
                then: Vec::new(),
                options: IndexMap::new(),
            },
            threads,
            rate,
            warmup: Duration::from_secs(WARMUP),
            duration: Duration::from_secs(self.window),
            seed: 7,
        }
    }

    fn deployment(&self, variant: &str) -> Deployment {
        let wal = variant != self.variants[0];
        let [journal_mode, synchronous] = self.pragmas[usize::from(wal)];
        let mut tunables = BTreeMap::from([
            ("cache_size".to_owned(), "-65536".to_owned()),
            ("journal_mode".to_owned(), journal_mode.to_owned()),
            ("synchronous".to_owned(), synchronous.to_owned()),
        ]);
        if let Some(hostile) = self.hostile.filter(|_| wal) {
            tunables.insert("temp_store".into(), hostile.into());
        }
        Deployment {
            id: variant.into(),
            system: "sqlite".into(),
            version: self.wanted.map(str::to_owned),
            topology: BTreeMap::from([("sqlite".to_owned(), vec!["local".to_owned()])]),
            clients: vec!["local".into()],
            config: BTreeMap::from([("sqlite".to_owned(), tunables)]),
            instances: (self.keys > 0)
                .then(|| instance(variant))
                .into_iter()
                .collect(),
            variables: BTreeMap::new(),
            users: Vec::new(),
            database: None,
            packages: Packages::default(),
            run_as: None,
            tls: false,
            deploy: Deploy::default(),
            logins: BTreeMap::new(),
            balancer: None,
            fingerprint: "c0ffee".into(),
            prepare: Vec::new(),
        }
    }

    fn manifest(&self) -> Manifest {
        let facts = Facts {
            hostname: Some(self.hostile.unwrap_or("bench-1").into()),
            os: Some("Debian GNU/Linux 12 (bookworm)".into()),
            kernel: Some("6.1.0-28-amd64".into()),
            architecture: Some("x86_64".into()),
            cpu: Some("AMD EPYC 7543P 32-Core Processor".into()),
            cpus: Some(8),
            governor: Some("performance".into()),
            memory_bytes: Some(33_554_432 * 1024),
            swap_bytes: Some(0),
            thp: Some("madvise".into()),
            file_system: Some(FileSystem {
                mount: "/data".into(),
                kind: "xfs".into(),
                device: "/dev/nvme0n1p1".into(),
                size_bytes: 960_197_124_096,
                free_bytes: 712_964_571_136,
                reflink: Some(true),
                options: Vec::new(),
            }),
            nics: vec!["eth0 10.0.0.7/24".into()],
            ..Facts::default()
        };
        Manifest {
            format: 1,
            assay: "0.1.0".into(),
            run: "2026-03-01T10-00-00Z-a1b2".into(),
            experiment: Name::of("journal").to_string(),
            created: jiff::Timestamp::from_second(BEGIN).unwrap(),
            spec: "5f0c1e7a9b3d".into(),
            seed: 42,
            source: "experiments/journal.yaml".into(),
            inventory: None,
            overrides: vec![format!("rounds.duration={}s", self.window)],
            hosts: BTreeMap::from([("local".to_owned(), facts.into())]),
            programs: BTreeMap::from([("assay".to_owned(), "9f86d081884c7d65".repeat(4))]),
            versions: BTreeMap::from([
                ("assay".to_owned(), "0.1.0".to_owned()),
                ("sqlite".to_owned(), "3.51.0".to_owned()),
            ]),
            secrets: BTreeMap::new(),
        }
    }
}

/// The only instance of a variant.
const INSTANCE: &str = "sqlite-1@local";

fn instance(variant: &str) -> Instance {
    Instance {
        id: INSTANCE.into(),
        system: "sqlite".into(),
        role: "sqlite".into(),
        host: "local".into(),
        address: "10.0.0.7".into(),
        port: 1,
        ports: BTreeMap::new(),
        deploy: format!("journal/{variant}/sqlite-1").into(),
        data: None,
        snapshot: None,
        log: "log".into(),
        settings: BTreeMap::new(),
        config: serde_json::Value::Null,
        resource_control: Default::default(),
    }
}

struct Writer<'a> {
    sample: &'a Sample,
    layout: Layout,
    log: EventLog,
    now: f64,
    texts: &'a SpecTexts<'a>,
    plan: &'a Plan,
}

impl Writer<'_> {
    fn at(&self) -> jiff::Timestamp {
        jiff::Timestamp::from_millisecond((self.now * 1000.0) as i64).unwrap()
    }

    fn say(&mut self, event: Event) {
        self.log.append(self.at(), event).unwrap();
    }

    fn write(mut self) {
        self.start(false);
        self.prepare();
        for (n, round) in self.plan.rounds.iter().enumerate() {
            if self.sample.cut == Some(n) {
                return;
            }
            if self.sample.changed == Some(n) {
                self.change();
            }
            if self.sample.dying == Some(n) {
                self.die(round);
                self.attempt(round, 2, None, false);
            } else {
                self.round(round);
            }
        }
        self.finish();
    }

    fn start(&mut self, resumed: bool) {
        self.say(Event::RunStarted {
            pid: 4711,
            version: "0.1.0".into(),
            estimated_s: 410.0,
            resumed,
        });
    }

    fn prepare(&mut self) {
        for variant in &self.sample.variants {
            self.now += 3.5;
            let deployment = (*variant).to_owned();
            self.say(Event::PrepareStarted {
                deployment: deployment.clone(),
                step: 0,
                name: "start".into(),
            });
            if !self.sample.unready.contains_key(variant) {
                self.effective(variant);
            }
            self.say(match self.sample.unready.get(variant) {
                Some(reason) => Event::DeploymentFailed {
                    deployment,
                    reason: reason.clone(),
                },
                None => Event::DeploymentReady {
                    deployment,
                    fingerprint: "c0ffee".into(),
                    snapshot_method: "reflink".into(),
                    bytes: 14_680_064,
                    snapshot: "5eed".into(),
                    effective: Default::default(),
                },
            });
        }
    }

    /// What the started system reads back: what was asked for, and a default.
    fn effective(&self, variant: &str) {
        let deployments = &self.plan.deployments;
        let deployment = deployments.iter().find(|d| d.id == variant).unwrap();
        let mut config = deployment.config.clone();
        let tunables = config.get_mut("sqlite").unwrap();
        tunables.insert("page_size".into(), "4096".into());
        let version = "3.51.0".into();
        let json = serde_json::to_vec(&Effective {
            version,
            config,
            whole: self.whole(variant),
            unasked: Vec::new(),
        })
        .unwrap();
        let path = self.layout.deployment(variant, 1).join("0-start.json");
        write_new(&path, &json).unwrap();
    }

    /// What the only instance says of itself; the first key is one that the experiment asks for.
    fn whole(&self, variant: &str) -> BTreeMap<String, serde_json::Value> {
        let mut keys = serde_json::Map::new();
        for n in 0..self.sample.keys {
            let key = match n {
                0 => "journal-mode".to_owned(),
                n => format!("section.key-{n:02}"),
            };
            keys.insert(key, format!("{variant} {n}").into());
        }
        keys.insert(
            "data-dir".to_owned(),
            format!("/srv/journal/{variant}/data").into(),
        );
        keys.insert("same".to_owned(), 1.into());
        let known = (self.sample.keys > 0).then(|| (INSTANCE.to_owned(), keys.into()));
        known.into_iter().collect()
    }

    fn change(&mut self) {
        self.say(Event::RunStopped {
            reason: "interrupted".into(),
        });
        self.now += 600.0;
        let mut plan = self.plan.clone();
        plan.spec = "77aa01c2d4e6".into();
        assay::artifacts::write_revision(&self.layout, 2, self.texts, &plan).unwrap();
        self.say(Event::HostChanged {
            difference: vec!["local: kernel: 6.1.0 -> 6.12.0".into()],
        });
        self.say(Event::SpecChanged {
            from: "5f0c1e7a9b3d".into(),
            to: plan.spec,
            revision: 2,
            difference: vec!["rounds.repetitions: 2 -> 3".into()],
            outdated: Vec::new(),
        });
        self.start(true);
    }

    fn die(&mut self, round: &Round) {
        self.say(Event::RoundStarted {
            round: round.id.clone(),
            attempt: 1,
        });
        self.now += 90.0;
        self.start(true);
    }

    fn round(&mut self, round: &Round) {
        let sample = self.sample;
        if let Some(reason) = sample.unready.get(round.deployment.as_str()) {
            let reason = format!("deployment `{}` failed: {reason}", round.deployment);
            self.end(round, 1, Status::Skipped, false, Some(reason));
            return;
        }
        let mut attempt = 1;
        if let Some(reason) = sample.retried.get(&round.id) {
            self.attempt(round, 1, Some(reason), true);
            attempt = 2;
        }
        self.attempt(round, attempt, sample.failing.get(&round.id), false);
    }

    fn attempt(&mut self, round: &Round, attempt: u32, failure: Option<&String>, retry: bool) {
        let started = self.at();
        self.say(Event::RoundStarted {
            round: round.id.clone(),
            attempt,
        });
        self.now += (WARMUP + self.sample.window) as f64 + 0.8;
        let folder = self.layout.round(&round.id, attempt);
        // Not flushed to disk: nobody pulls the plug on a test.
        std::fs::create_dir_all(&folder).unwrap();
        let invalid = self.sample.invalid.get(&round.id);
        let load = failure.is_none().then(|| self.sample.load(round));
        if let Some(load) = &load {
            for (name, bytes) in load.to_files(SystemTime::UNIX_EPOCH) {
                std::fs::write(folder.join(name), &bytes).unwrap();
            }
        }
        let status = match (failure, invalid) {
            (Some(_), _) => Status::Failed,
            (None, Some(_)) => Status::Invalid,
            (None, None) => Status::Ok,
        };
        let failure = failure.or(invalid);
        let result = RoundResult {
            round: round.id.clone(),
            cell: round.cell.id.clone(),
            variant: round.deployment.clone(),
            repetition: round.repetition,
            attempt,
            status,
            reason: failure.cloned(),
            notes: self
                .sample
                .noted
                .get(&round.id)
                .cloned()
                .into_iter()
                .collect(),
            started,
            ended: self.at(),
            steps: vec![("measure".into(), (WARMUP + self.sample.window) as f64)],
            measured: load.as_ref().map(Measured::of),
        };
        let json = serde_json::to_vec_pretty(&result).unwrap();
        std::fs::write(folder.join("result.json"), &json).unwrap();
        self.end(round, attempt, status, retry, failure.cloned());
    }

    fn end(
        &mut self,
        round: &Round,
        attempt: u32,
        status: Status,
        retry: bool,
        reason: Option<String>,
    ) {
        self.say(Event::RoundFinished {
            round: round.id.clone(),
            attempt,
            status,
            retry,
            reason,
        });
    }

    fn finish(&mut self) {
        self.say(Event::RunFinished {
            ok: 0,
            failed: 0,
            invalid: 0,
            estimated_s: 410.0,
            actual_s: self.now - BEGIN as f64,
            estimated_bytes: 60_000_000,
            actual_bytes: 58_720_256,
        });
    }
}

/// What a made-up system does: saturates near eight threads, the later variants faster, a little noise.
impl Sample {
    fn load(&self, round: &Round) -> LoadResult {
        let mut noise = Noise::of(&round.id);
        let variant = self
            .variants
            .iter()
            .position(|v| *v == round.deployment)
            .unwrap();
        let threads = f64::from(round.cell.threads);
        let scale = if round.cell.workload.starts_with("oltp") {
            0.2
        } else {
            1.0
        };
        let speed = self.pace as f64
            * scale
            * (1.0 + 1.3 * variant as f64)
            * (1.0 + noise.near(if variant == 0 { 0.03 } else { self.spread }));
        let capacity = speed * 6.0 * threads / (threads + 5.0);
        let throughput = round.cell.rate.map_or(capacity, |r| r.min(capacity));
        let starved = self.starved == Some(round.deployment.as_str());
        // In closed loop threads = throughput * latency.
        let latency_us = if starved { 1.0 } else { threads } / capacity * 1e6;
        let mut intervals = Vec::new();
        for (phase, seconds) in [(Phase::Warmup, WARMUP), (Phase::Measure, self.window)] {
            for second in 0..seconds {
                let count = (throughput * (1.0 + noise.near(0.06))) as u64;
                let p99_us = (latency_us * (3.6 + noise.near(0.8))) as u64;
                intervals.push(interval(phase, second, count, p99_us));
            }
        }
        let total = (throughput * self.window as f64) as u64;
        let names = if round.cell.workload.starts_with("oltp") {
            vec![("transaction", 1.0, 1.0)]
        } else {
            vec![("read", 0.5, 0.4), ("update", 0.5, 1.6)]
        };
        let operations = names
            .into_iter()
            .map(|(name, share, slowness)| OperationResult {
                name: name.into(),
                latency: noise.latencies((total as f64 * share) as u64, latency_us * slowness),
                late: Latency::new(),
                errors: if name == "read" {
                    BTreeMap::new()
                } else {
                    self.errors.clone()
                },
            })
            .collect();
        LoadResult {
            window_s: self.window as f64,
            operations,
            intervals,
            threads: round.cell.threads,
            client_cpu_s: Some(0.25 * self.window as f64),
            idle_threads: if starved { round.cell.threads - 1 } else { 0 },
            unstarted: self.unstarted,
        }
    }
}

fn interval(phase: Phase, second: u64, count: u64, p99_us: u64) -> Interval {
    Interval {
        phase,
        second,
        operation: "all".into(),
        count,
        errors: 0,
        mean_us: p99_us as f64 / 4.0,
        p50_us: p99_us / 5,
        p95_us: p99_us / 2,
        p99_us,
        max_us: p99_us * 2,
    }
}

/// A small generator of its own (SplitMix64), so that the sample is the same with any version of a crate.
struct Noise(u64);

impl Noise {
    fn of(text: &str) -> Self {
        let start = 0xcbf2_9ce4_8422_2325;
        Self(text.bytes().fold(start, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    /// Uniform in [0, 1).
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform within `spread` of 0.
    fn near(&mut self, spread: f64) -> f64 {
        (self.uniform() * 2.0 - 1.0) * spread
    }

    /// Latencies around `typical` µs with a long tail, at most 10,000 of them recorded one by one.
    fn latencies(&mut self, count: u64, typical: f64) -> Latency {
        let mut latency = Latency::new();
        for _ in 0..count.min(10_000) {
            let u = self.uniform();
            // A rational tail rather than logarithms, whose last bit differs between platforms.
            let factor = 0.66 + 0.45 * u + 0.02 * u / (1.001 - u);
            latency.record_us((typical * factor) as u64);
        }
        latency
    }
}
