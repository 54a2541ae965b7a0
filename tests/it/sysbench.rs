//! The sysbench driver: recorded outputs, command lines, and the real tool against real servers.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use assay::driver::sysbench::{Report, Unusable};
use assay::driver::{DriverError, Files, Invocation, LoadDriver as _, Sysbench};
use assay::host::{AgentError, Bounds, Hearing, LocalHost, call};
use assay::measurement::{Percentile, Phase};
use assay::plan::{
    Address, Measure, Progress, Protocol, SqlTarget, Target, Tls, Tool, ToolRecord, Versions,
};
use assay::spec::{Dataset, Distribution, Driver, Kind, Scalar, Schema, Workload};
use assay::units;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::{golden, skipped};

fn fixtures() -> PathBuf {
    golden::project().join("tests/fixtures/driver/sysbench")
}

fn recorded(name: &str) -> String {
    let path = fixtures().join(format!("recorded/{name}.txt"));
    String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()
}

/// What a report says, in the columns of `recorded.tsv`.
fn columns(report: &Report) -> String {
    let (q, l) = (report.queries, report.latency);
    let percentile = match l.percentile {
        Some((percent, ms)) => format!("{percent}:{ms:.2}"),
        None => "-".to_owned(),
    };
    let whole = [
        u64::from(report.threads).to_string(),
        report.events.to_string(),
        format!("{:.4}", report.total_s),
        q.read.to_string(),
        q.write.to_string(),
        q.other.to_string(),
        report.ignored_errors.to_string(),
        report.reconnects.to_string(),
        format!("{:.2}\t{:.2}\t{:.2}", l.min, l.avg, l.max),
        percentile,
        format!("{:.2}", l.sum),
        report.seconds.len().to_string(),
    ];
    format!("report\t{}", whole.join("\t"))
}

fn outcome(read: &Result<Report, Unusable>) -> String {
    match read {
        Ok(report) => columns(report),
        Err(why) => match why {
            Unusable::Ended(_) => "ended",
            Unusable::Fatal(_) => "fatal",
            Unusable::Forced(_) => "forced",
            Unusable::Foreign => "foreign",
            Unusable::NoLoad => "no-load",
            Unusable::NoSql => "no-sql",
            Unusable::Cut(_) => "cut",
            Unusable::Checkpoint => "checkpoint",
            Unusable::NoEvents => "no-events",
            Unusable::NoHistogram => "no-histogram",
            Unusable::Contradiction(_) => "contradiction",
        }
        .to_owned(),
    }
}

/// The numbers in `recorded.tsv` were taken from the recordings by other means.
#[test]
fn every_recording_is_read_to_its_numbers_or_to_its_reason() {
    let table = std::fs::read_to_string(fixtures().join("recorded.tsv")).unwrap();
    let (mut checked, mut reports) = (0, 0);
    for line in table.lines().skip(1) {
        let (name, expected) = line.split_once('\t').unwrap();
        let read = Report::read(&recorded(name));
        assert_eq!(outcome(&read), expected, "{name}: {read:?}");
        checked += 1;
        reports += usize::from(read.is_ok());
    }
    let files = std::fs::read_dir(fixtures().join("recorded")).unwrap();
    assert_eq!(checked, files.count());
    let text = format!("sysbench: {checked} recordings read, {reports} of them to their numbers\n");
    std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes()).unwrap();
}

#[test]
fn reasons_say_what_sysbench_said() {
    for (name, reason) in [
        (
            "run_table_missing",
            "it failed: FATAL: mysql_stmt_prepare() failed; FATAL: MySQL error: 1146 \"Table 'sbtest.sbtest5' doesn't exist\"; \
             FATAL: `thread_init' function failed: /usr/share/sysbench/oltp_common.lua:284: SQL API error; \
             FATAL: Thread initialization failed!",
        ),
        (
            "run_server_stalled_forced",
            "it was shut down by force with 4 transactions unfinished, which are in no number",
        ),
        (
            "run_verbosity0",
            "it ends without a whole report, as after a kill or a crash; it is empty",
        ),
        (
            "v11_reconnect",
            "it ends without a whole report, as after a kill or a crash; its last line is `Threads started!`",
        ),
        ("run_hist_zero_events", "no transaction ended"),
    ] {
        let why = Report::read(&recorded(name)).unwrap_err();
        assert_eq!(why.to_string(), reason, "{name}");
    }
}

#[test]
fn an_output_that_is_cut_anywhere_is_no_report() {
    let whole = recorded("rw_interval_hist");
    let end = whole.find("events (avg/stddev)").unwrap();
    for length in (0..end).step_by(61) {
        assert!(Report::read(&whole[..length]).is_err(), "at {length}");
    }
}

#[test]
fn numbers_that_contradict_each_other_are_refused() {
    let whole = recorded("rw_interval_hist");
    for (was, is, says) in [
        (
            "read:                            40236",
            "read:                            40237",
            "queries are not",
        ),
        (
            "events:              2873",
            "events:              2874",
            "2873 transactions, but 2874 events",
        ),
        (
            "718.2500",
            "700.0000",
            "its threads had 2800 events of 2873",
        ),
        (
            "       1.608 |*                                        2",
            "       1.608 |*                                        1",
            "its histogram holds 2872",
        ),
    ] {
        assert!(whole.contains(was), "{was}");
        let why = Report::read(&whole.replace(was, is))
            .unwrap_err()
            .to_string();
        assert!(why.contains(says), "{why}");
    }
}

/// Folders with runs of 2 s after 1 s of warm-up, by sysbench 1.0.20 and a build of 1.1 (3ceba0b): seconds of warm-up that were
/// told of, and whether the CPU time is that of the window.
const RUNS: [(&str, usize, bool); 2] = [("run-1.0", 1, true), ("run-1.1", 0, false)];

/// The files of a run that `assay agent tool` left.
fn kept(name: &str) -> Files {
    let mut files = Files::new();
    for entry in std::fs::read_dir(fixtures().join(name)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        files.insert(name, std::fs::read(entry.path()).unwrap());
    }
    files
}

/// A recording as if the agent had run it.
fn as_run(name: &str, status: Option<i32>) -> Files {
    let record = format!(
        r#"{{"version": "sysbench 1.0.20", "steps": [{{"name": "run", "program": "sysbench", "args": [], "status": {}, "seconds": 5}}]}}"#,
        status.map_or("null".to_owned(), |status| status.to_string())
    );
    Files::from([
        ("tool.json".into(), record.into_bytes()),
        ("sysbench.txt".into(), recorded(name).into_bytes()),
    ])
}

#[test]
fn a_run_becomes_a_load_result() {
    let result = Sysbench
        .parse(&as_run("rw_interval_hist", Some(0)))
        .unwrap();
    assert_eq!((result.count(), result.threads), (2873, 4));
    assert_eq!((result.late(), result.errors()), (0, 1));
    assert!(
        (result.throughput() - 573.53).abs() < 0.1,
        "{}",
        result.throughput()
    );
    let [transaction] = result.operations.as_slice() else {
        panic!("one operation is wanted: {:?}", result.operations);
    };
    assert_eq!(transaction.name, "transaction");
    assert_eq!(transaction.errors["ignored"], 1);
    // As printed: 99th percentile 33.12, avg 6.96, min 1.61, max 83.45 ms.
    let near = |us: f64, ms: f64, share: f64| {
        assert!((us / 1000.0 - ms).abs() <= share * ms, "{us} us, {ms} ms");
    };
    let latency = &transaction.latency;
    // sysbench takes the value of rank 2844 of 2873, half a rank below the one that assay takes: its neighbour's bucket.
    near(latency.at(Percentile::P99).unwrap() as f64, 33.12, 0.019);
    near(latency.mean_us(), 6.96, 0.01);
    near(latency.min_us().unwrap() as f64, 1.61, 0.01);
    near(latency.max_us().unwrap() as f64, 83.45, 0.001);
    let all: Vec<_> = result
        .intervals
        .iter()
        .filter(|i| i.operation == "all")
        .collect();
    let counts: Vec<u64> = all.iter().map(|i| i.count).collect();
    assert_eq!(counts, [308, 594, 879, 597, 491]);
    assert_eq!(
        (all[0].second, all[0].errors, all[0].p99_us),
        (0, 1, 41_850)
    );
    assert!(all.iter().all(|i| i.phase == Phase::Measure));
}

/// sysbench's own percentile: the centre of the first bucket that reaches the rank ⌊n·p/100 + 0.5⌋.
#[test]
fn the_histogram_gives_the_percentile_that_sysbench_prints() {
    let runs = ["run-1.0", "run-1.1"].map(|name| kept(name)["sysbench.txt"].clone());
    let mut texts: Vec<String> = runs.map(|run| String::from_utf8(run).unwrap()).into();
    texts.push(recorded("rw_interval_hist"));
    for text in texts {
        let report = Report::read(&text).unwrap();
        let (percent, ms) = report.latency.percentile.unwrap();
        let rank = (report.events as f64 * f64::from(percent) / 100.0 + 0.5).floor() as u64;
        let mut seen = 0;
        let histogram = report.histogram.unwrap();
        let bucket = histogram.iter().find(|(_, count)| {
            seen += count;
            seen >= rank
        });
        assert_eq!(
            format!("{:.2}", bucket.unwrap().0 as f64 / 1000.0),
            format!("{ms:.2}")
        );
    }
}

#[test]
fn what_the_agent_left_is_read_for_both_versions() {
    for (name, warmups, has_cpu) in RUNS {
        let files = kept(name);
        let text = String::from_utf8_lossy(&files["sysbench.txt"]).into_owned();
        // Read by other means: the last number of these lines.
        let printed = |title: &str| {
            let line = text
                .lines()
                .find(|line| line.trim().starts_with(title))
                .unwrap();
            let value = line.split_whitespace().last().unwrap();
            value.trim_end_matches('s').parse::<f64>().unwrap()
        };
        let time = if name == "run-1.0" {
            "total time:"
        } else {
            "time elapsed:"
        };
        let result = Sysbench.parse(&files).unwrap();
        assert_eq!(
            result.count() as f64,
            printed("total number of events:"),
            "{name}"
        );
        assert!((result.window_s - printed(time)).abs() < 1e-9);
        assert_eq!(result.client_cpu_s.is_some(), has_cpu);
        let largest = result.all().max_us().unwrap() as f64 / 1000.0;
        assert!(
            (largest - printed("max:")).abs() <= 0.002 * largest,
            "{largest}"
        );
        let count = |phase| {
            let all = result.intervals.iter().filter(|i| i.operation == "all");
            all.filter(|i| i.phase == phase).count()
        };
        assert_eq!((count(Phase::Warmup), count(Phase::Measure)), (warmups, 2));
    }
}

#[test]
fn with_a_rate_what_was_left_in_the_queue_is_told() {
    assert_eq!(Report::read(&recorded("run_rate")).unwrap().queue, Some(1));
    assert_eq!(Report::read(&recorded("rw_plain")).unwrap().queue, None);
}

#[test]
fn a_run_that_ended_badly_or_lacks_a_histogram_is_no_result() {
    let why = |files: &Files| match Sysbench.parse(files).unwrap_err() {
        DriverError::Unusable(why) => why,
        other => panic!("{other}"),
    };
    assert_eq!(
        why(&as_run("rw_interval_hist", Some(2))),
        Unusable::Ended(Some(2))
    );
    assert_eq!(
        why(&as_run("rw_interval_hist", None)),
        Unusable::Ended(None)
    );
    assert_eq!(why(&as_run("rw_plain", Some(0))), Unusable::NoHistogram);
    for name in ["tool.json", "sysbench.txt"] {
        let mut files = as_run("rw_interval_hist", Some(0));
        files.remove(name);
        let error = Sysbench.parse(&files).unwrap_err();
        assert_eq!(error.to_string(), format!("the driver left no `{name}`"));
    }
}

fn dataset(tables: u32, table_size: u64) -> Dataset {
    Dataset {
        driver: Driver::Sysbench,
        schema: Some(Schema::Sysbench),
        records: None,
        fields: None,
        field_length: None,
        tables: Some(tables),
        table_size: Some(table_size),
        threads: None,
        then: Vec::new(),
        options: Default::default(),
    }
}

fn workload(kind: Kind) -> Workload {
    Workload {
        name: None,
        driver: Driver::Sysbench,
        workload: Some(kind),
        script: None,
        options: Default::default(),
        distribution: None,
        max_scan_length: None,
        range_size: None,
        skip_trx: None,
    }
}

fn measure(kind: Kind) -> Measure {
    Measure {
        workload: workload(kind),
        dataset: dataset(4, 10_000),
        threads: 16,
        rate: None,
        warmup: units::Duration::from_secs(60),
        duration: units::Duration::from_secs(300),
        seed: 7,
    }
}

fn address(host: &str, port: u16) -> Address {
    Address {
        host: host.into(),
        port,
    }
}

fn sql(protocol: Protocol, addresses: Vec<Address>) -> SqlTarget {
    SqlTarget {
        protocol,
        addresses,
        user: "bench".into(),
        password: Some("5up3r s3cret".into()),
        database: "sbtest".into(),
        tls: None,
    }
}

fn order(invocation: Result<Invocation, DriverError>) -> Tool {
    let invocation = invocation.unwrap();
    assert_eq!(invocation.agent, "tool");
    serde_json::from_value(invocation.request).unwrap()
}

/// An order as a person would read it.
fn read_out(title: &str, tool: &Tool) -> String {
    let which = |versions: Versions| match (versions.from, versions.below) {
        (None, None) => String::new(),
        (Some((a, b)), _) => format!(" (from {a}.{b})"),
        (None, Some((a, b))) => format!(" (below {a}.{b})"),
    };
    let mut text = format!("== {title}\n");
    for refusal in &tool.refusals {
        writeln!(text, "refused{}: {}", which(refusal.versions), refusal.why).unwrap();
    }
    for file in &tool.files {
        let secret = if file.secret { ", secret" } else { "" };
        writeln!(text, "file {} {:o}{secret}", file.name, file.mode).unwrap();
    }
    for step in &tool.steps {
        let limit = step
            .limit
            .map_or(String::new(), |limit| format!(" within {limit}"));
        writeln!(
            text,
            "{}{}{limit}, to {}:",
            step.name,
            which(step.versions),
            step.stdout
        )
        .unwrap();
        for (name, value) in &step.env {
            writeln!(text, "  {name}={value}").unwrap();
        }
        writeln!(text, "  {} {}", step.program, step.args.join(" ")).unwrap();
    }
    text.push('\n');
    text
}

#[test]
fn command_lines_are_those_that_were_reviewed() {
    let mysql = Target::Sql(sql(
        Protocol::Mysql,
        vec![address("10.0.0.1", 4000), address("10.0.0.2", 4000)],
    ));
    let output = Path::new("/data/out");
    let mut text = read_out(
        "load",
        &order(Sysbench.load(&mysql, &dataset(16, 1_000_000), 7)),
    );
    let mut loaded = dataset(2, 1000);
    loaded.threads = Some(8);
    loaded
        .options
        .insert("create-secondary".into(), Scalar("false".into()));
    text += &read_out(
        "load with options",
        &order(Sysbench.load(&mysql, &loaded, 7)),
    );
    let mut plain = measure(Kind::OltpPointSelect);
    text += &read_out("run", &order(Sysbench.run(&mysql, &plain, output)));
    plain.warmup = units::Duration::default();
    plain.rate = Some(500.0);
    text += &read_out(
        "rate, no warm-up",
        &order(Sysbench.run(&mysql, &plain, output)),
    );
    plain.workload.distribution = Some(Distribution::Special);
    text += &read_out("1.0 only", &order(Sysbench.run(&mysql, &plain, output)));
    let mut full = measure(Kind::OltpReadWrite);
    full.workload.distribution = Some(Distribution::Zipfian);
    (full.workload.range_size, full.workload.skip_trx) = (Some(50), Some(true));
    for (name, value) in [
        ("db-ps-mode", "disable"),
        ("mysql_ignore_errors", "1213,8028"),
        ("point_selects", "5"),
    ] {
        full.workload
            .options
            .insert(name.into(), Scalar(value.into()));
    }
    text += &read_out(
        "1.1 only, options",
        &order(Sysbench.run(&mysql, &full, output)),
    );
    let mut postgres = sql(Protocol::Postgres, vec![address("::1", 5432)]);
    postgres.tls = Some(Tls {
        ca: Some("CA".into()),
        ..Tls::default()
    });
    let postgres = Target::Sql(postgres);
    let only = measure(Kind::OltpReadOnly);
    text += &read_out(
        "PostgreSQL, TLS",
        &order(Sysbench.run(&postgres, &only, output)),
    );
    assert!(!text.contains("5up3r"));
    golden::check("driver/sysbench/commands.txt", &text);
}

#[test]
fn what_no_version_can_do_is_refused_before_anything_runs() {
    let mysql = Target::Sql(sql(Protocol::Mysql, vec![address("a", 4000)]));
    let output = Path::new("/out");
    let why = |change: &dyn Fn(&mut Measure)| {
        let mut asked = measure(Kind::OltpReadWrite);
        change(&mut asked);
        match Sysbench.run(&mysql, &asked, output).unwrap_err() {
            DriverError::Refused(why) => why.to_string(),
            other => panic!("{other}"),
        }
    };
    let option = |name: &'static str, value: &'static str| {
        move |m: &mut Measure| {
            m.workload.options.insert(name.into(), Scalar(value.into()));
        }
    };
    assert_eq!(
        why(&option("point-selecs", "1")),
        "sysbench has no option `point-selecs`; did you mean `point_selects`?"
    );
    assert!(why(&option("time", "10")).contains("it is `rounds.duration`"));
    assert_eq!(
        why(&|m| m.rate = Some(0.5)),
        "sysbench takes whole rates only, not 0.5/s"
    );
    assert_eq!(
        why(&|m| m.workload.distribution = Some(Distribution::Latest)),
        "sysbench 1.1 has no distribution `latest`"
    );
    assert_eq!(
        why(&|m| m.workload = workload(Kind::YcsbA)),
        "sysbench has no script `ycsb_a`"
    );
    let both = |m: &mut Measure| {
        m.workload.distribution = Some(Distribution::Uniform);
        option("rand-type", "uniform")(m);
    };
    assert!(why(&both).starts_with("both `distribution` and the option `rand-type`"));
    let error = Sysbench.run(&Target::Null, &measure(Kind::OltpReadOnly), output);
    assert!(matches!(error, Err(DriverError::Refused(_))));
}

/// The longest that anything with a real server may take here.
const LIMIT: Duration = Duration::from_secs(120);
/// A password that its config file has to quote.
const PASSWORD: &str = "it's 5up3r, s3cret#";

/// What is missing for tests with a real server, if anything is.
fn missing(programs: &[&str]) -> bool {
    let there = |program: &&&str| {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let mut folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
        folders.push("/usr/sbin".into());
        !folders.iter().any(|folder| folder.join(program).is_file())
    };
    let missing = programs.iter().find(there);
    if let Some(program) = missing {
        skipped(&format!("there is no `{program}`"));
    }
    missing.is_some()
}

/// A MariaDB server of a test's own, which ends with it.
struct MariaDb {
    server: Child,
    folder: TempDir,
    port: u16,
}

impl MariaDb {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let root = rustix::process::geteuid().is_root();
        let mut install = Command::new("mariadb-install-db");
        install
            .args([
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ])
            .arg(format!("--datadir={}", data.display()));
        if root {
            install.arg("--user=mysql");
            let chown = Command::new("chown")
                .arg("mysql")
                .arg(folder.path())
                .status();
            assert!(chown.unwrap().success());
        }
        let installed = install.output().unwrap();
        let said = String::from_utf8_lossy(&installed.stderr);
        assert!(installed.status.success(), "{said}");
        let port = free_port();
        let mut command = Command::new("mariadbd");
        if !Path::new("/usr/bin/mariadbd").exists() && Path::new("/usr/sbin/mariadbd").exists() {
            command = Command::new("/usr/sbin/mariadbd");
        }
        command
            .args([
                "--no-defaults",
                "--bind-address=127.0.0.1",
                "--innodb-flush-log-at-trx-commit=0",
            ])
            .args(["--skip-name-resolve", "--innodb-buffer-pool-size=64M"])
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--socket={}", folder.path().join("sock").display()))
            .arg(format!(
                "--pid-file={}",
                folder.path().join("pid").display()
            ))
            .arg(format!("--port={port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if root {
            command.arg("--user=mysql");
        }
        let server = command.spawn().unwrap();
        let server = Self {
            server,
            folder,
            port,
        };
        let deadline = Instant::now() + LIMIT;
        while server.sql("SELECT 1").is_err() {
            assert!(Instant::now() < deadline, "mariadbd does not answer");
            std::thread::yield_now();
        }
        server
            .sql(&format!(
                "CREATE DATABASE sbtest; CREATE USER bench@'127.0.0.1' IDENTIFIED BY '{}'; \
                 GRANT ALL ON sbtest.* TO bench@'127.0.0.1'",
                PASSWORD.replace('\'', "''")
            ))
            .unwrap();
        server
    }

    fn sql(&self, statements: &str) -> Result<String, String> {
        let output = Command::new("mariadb")
            .args(["--no-defaults", "-uroot", "-N", "-e", statements])
            .arg(format!(
                "--socket={}",
                self.folder.path().join("sock").display()
            ))
            .output()
            .unwrap();
        if output.status.success() {
            Ok(String::from_utf8(output.stdout).unwrap())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    fn target(&self) -> SqlTarget {
        let mut target = sql(Protocol::Mysql, vec![address("127.0.0.1", self.port)]);
        target.password = Some(PASSWORD.into());
        target
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Has the agent carry out what a driver asks for.
async fn carry_out(
    invocation: Result<Invocation, DriverError>,
) -> (Result<ToolRecord, AgentError>, Vec<Progress>) {
    let invocation = invocation.unwrap();
    let here = LocalHost::new("here", std::env::temp_dir(), env!("CARGO_BIN_EXE_assay"));
    let mut heard = Vec::new();
    let hearing = Hearing {
        progress: &mut |p: Progress| heard.push(p),
        log: &mut |_| {},
    };
    let stop = CancellationToken::new();
    let bounds = Bounds {
        limit: LIMIT,
        stop: &stop,
    };
    let done = call(
        &here,
        invocation.agent,
        &invocation.request,
        bounds,
        hearing,
    )
    .await;
    (done, heard)
}

/// The files in a folder.
fn files_of(folder: &Path) -> Files {
    let mut files = Files::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        files.insert(name, std::fs::read(entry.path()).unwrap());
    }
    files
}

/// A short measurement of two small tables.
fn short(kind: Kind) -> Measure {
    Measure {
        dataset: dataset(2, 2000),
        threads: 4,
        warmup: units::Duration::from_secs(1),
        duration: units::Duration::from_secs(2),
        ..measure(kind)
    }
}

async fn fails(invocation: Result<Invocation, DriverError>) -> String {
    carry_out(invocation).await.0.unwrap_err().to_string()
}

/// Loads, measures a workload, and looks at what came of it.
async fn load_and_measure(target: &Target, kind: Kind) -> Files {
    let output = tempfile::tempdir().unwrap();
    let (loaded, heard) = carry_out(Sysbench.load(target, &dataset(2, 2000), 7)).await;
    loaded.unwrap();
    assert_eq!(
        heard.last(),
        Some(&Progress::Loaded {
            rows: 4000,
            of: 4000
        })
    );
    let asked = short(kind);
    let (done, heard) = carry_out(Sysbench.run(target, &asked, output.path())).await;
    let record = done.unwrap();
    let is_old = record.version.starts_with("sysbench 1.0");
    let names: Vec<&str> = record.steps.iter().map(|s| s.name.as_str()).collect();
    let wanted: &[&str] = if is_old {
        &["check", "warm-up", "run"]
    } else {
        &["check", "run"]
    };
    assert_eq!(names, wanted);
    let files = files_of(output.path());
    assert!(!files.contains_key("sysbench.cnf"), "the password is left");
    for (name, content) in &files {
        let text = String::from_utf8_lossy(content);
        assert!(!text.contains("5up3r"), "the password is in {name}");
    }
    let result = Sysbench.parse(&files).unwrap();
    assert!(result.count() > 0 && result.window_s >= 2.0, "{result:?}");
    assert_eq!((result.threads, result.operations.len()), (4, 1));
    assert_eq!(result.client_cpu_s.is_some_and(|s| s > 0.0), is_old);
    let seconds = |phase| result.intervals.iter().filter(|i| i.phase == phase).count();
    assert!(seconds(Phase::Measure) >= 2);
    let told = |wanted| {
        heard
            .iter()
            .any(|p| matches!(p, Progress::Second { phase, count: 1.., .. } if *phase == wanted))
    };
    assert!(told(Phase::Measure));
    assert_eq!(told(Phase::Warmup), is_old && seconds(Phase::Warmup) > 0);
    files
}

#[tokio::test]
async fn a_mariadb_is_loaded_and_measured_by_real_sysbench() {
    if missing(&["sysbench", "mariadbd", "mariadb-install-db", "mariadb"]) {
        return;
    }
    let server = MariaDb::start();
    let target = Target::Sql(server.target());
    let files = load_and_measure(&target, Kind::OltpReadWrite).await;
    // How the recordings in `run-1.0` and `run-1.1` were made.
    if let Some(keep) = std::env::var_os("ASSAY_KEEP_RUN") {
        std::fs::create_dir_all(&keep).unwrap();
        for (name, content) in &files {
            std::fs::write(Path::new(&keep).join(name), content).unwrap();
        }
    }
    let rows = server
        .sql("SELECT COUNT(*), MAX(id) FROM sbtest.sbtest2")
        .unwrap();
    assert_eq!(rows, "2000\t2000\n");
    failures(&server, &target).await;
}

/// What goes wrong is told as what it is.
async fn failures(server: &MariaDb, target: &Target) {
    let output = tempfile::tempdir().unwrap();
    let run = |target: &Target, measure: &Measure| Sysbench.run(target, measure, output.path());
    let again = fails(Sysbench.load(target, &dataset(2, 2000), 7)).await;
    assert!(again.contains("Table 'sbtest1' already exists"), "{again}");
    let mut stranger = server.target();
    stranger.password = Some("wrong".into());
    let stranger = Target::Sql(stranger);
    let denied = fails(run(&stranger, &short(Kind::OltpReadOnly))).await;
    assert!(denied.contains("error 1045: Access denied"), "{denied}");
    let denied = fails(Sysbench.load(&stranger, &dataset(4, 10), 7)).await;
    assert!(denied.contains("error 1045: Access denied"), "{denied}");
    let mut larger = short(Kind::OltpReadOnly);
    larger.dataset = dataset(2, 3000);
    let larger = fails(run(target, &larger)).await;
    assert!(
        larger.contains("table sbtest1 ends with row 2000, its dataset has 3000 rows"),
        "{larger}"
    );
    let mut more = short(Kind::OltpReadOnly);
    more.dataset = dataset(3, 2000);
    let more = fails(run(target, &more)).await;
    assert!(
        more.contains("Table 'sbtest.sbtest3' doesn't exist"),
        "{more}"
    );
    let mut nowhere = server.target();
    nowhere.addresses[0].port = free_port();
    let nowhere = fails(run(&Target::Sql(nowhere), &short(Kind::OltpReadOnly))).await;
    assert!(
        nowhere.contains("unable to connect to MySQL server"),
        "{nowhere}"
    );
    assert!(!output.path().join("sysbench.cnf").exists());
}

/// A PostgreSQL server of a test's own, which ends with it.
struct Postgres {
    folder: TempDir,
    port: u16,
}

impl Postgres {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Self {
            folder,
            port: free_port(),
        };
        let password = server.folder.path().join("password");
        std::fs::write(&password, PASSWORD).unwrap();
        if rustix::process::geteuid().is_root() {
            let chown = Command::new("chown")
                .args(["-R", "postgres"])
                .arg(server.folder.path())
                .status();
            assert!(chown.unwrap().success());
        }
        server.control(
            "initdb",
            &[
                "-o".into(),
                format!(
                    "--auth=scram-sha-256 --username=bench --pwfile={} --no-sync",
                    password.display()
                ),
            ],
        );
        let options = format!(
            "-c listen_addresses=127.0.0.1 -p {} -k {} -c fsync=off",
            server.port,
            server.folder.path().display()
        );
        let log = server.folder.path().join("log").display().to_string();
        server.control(
            "start",
            &["-w".into(), "-l".into(), log, "-o".into(), options],
        );
        server
    }

    fn control(&self, what: &str, args: &[String]) {
        let mut command = Command::new("pg_ctl");
        if rustix::process::geteuid().is_root() {
            command = Command::new("runuser");
            command.args(["-u", "postgres", "--", "pg_ctl"]);
        }
        let data = self.folder.path().join("data");
        // The server inherits the streams: nobody may wait for their end.
        let status = command
            .arg(what)
            .arg("-D")
            .arg(data)
            .args(args)
            .current_dir(self.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.unwrap().success(), "pg_ctl {what}");
    }

    fn target(&self) -> SqlTarget {
        let mut target = sql(Protocol::Postgres, vec![address("127.0.0.1", self.port)]);
        target.password = Some(PASSWORD.into());
        target.database = "postgres".into();
        target
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.folder.path().join("data/postmaster.pid").exists() {
            self.control("stop", &["-m".into(), "immediate".into()]);
        }
    }
}

#[tokio::test]
async fn a_postgresql_is_loaded_and_measured_by_real_sysbench() {
    if missing(&["sysbench", "pg_ctl", "postgres", "runuser"]) {
        return;
    }
    let server = Postgres::start();
    let target = Target::Sql(server.target());
    load_and_measure(&target, Kind::OltpReadOnly).await;
    let output = tempfile::tempdir().unwrap();
    let mut more = short(Kind::OltpReadOnly);
    more.dataset = dataset(3, 2000);
    // Without the look at the tables sysbench crashes here.
    let more = fails(Sysbench.run(&target, &more, output.path())).await;
    assert!(
        more.contains("relation \"sbtest3\" does not exist"),
        "{more}"
    );
    let mut stranger = server.target();
    stranger.password = Some("wrong".into());
    let stranger = Target::Sql(stranger);
    let denied = fails(Sysbench.run(&stranger, &short(Kind::OltpReadOnly), output.path())).await;
    assert!(
        denied.contains("password authentication failed"),
        "{denied}"
    );
}

/// The agent is killed as its caller dies, or as a supervisor does it; what it runs, and secrets, must not stay.
#[test]
fn a_tool_ends_with_its_agent_and_leaves_no_secret() {
    for by_signal in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let request = serde_json::json!({
            "directory": folder.path(),
            "probe": {"program": "echo", "args": ["1.0"], "package": "none"},
            "files": [{"name": "secret", "mode": 0o600, "content": "x", "secret": true}],
            "steps": [{"name": "endless", "program": "sh", "stdout": "out", "stderr": "err",
                "args": ["-c", "echo $$ >pid.new; mv pid.new pid; sleep 1000"]}],
        });
        let mut agent = Command::new(env!("CARGO_BIN_EXE_assay"))
            .args(["agent", "tool"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = agent.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, format!("{request}\n").as_bytes()).unwrap();
        let (deadline, pid) = (Instant::now() + LIMIT, folder.path().join("pid"));
        while !pid.exists() {
            assert!(Instant::now() < deadline, "the tool does not start");
            std::thread::yield_now();
        }
        if by_signal {
            let pid = rustix::process::Pid::from_child(&agent);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        } else {
            drop(stdin);
        }
        assert!(!agent.wait().unwrap().success());
        let pid = std::fs::read_to_string(pid).unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        assert!(stat.is_err(), "the tool goes on: {stat:?}");
        assert!(!folder.path().join("secret").exists());
    }
}
