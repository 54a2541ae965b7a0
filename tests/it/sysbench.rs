//! The sysbench driver: recorded outputs, command lines, and the real tool against real servers.

use std::collections::BTreeMap;
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
    near(latency.at(Percentile::P99).unwrap() as f64, 33.116, 0.001);
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
        schema: Schema::Sysbench,
        records: None,
        fields: None,
        field_length: None,
        tables: Some(tables),
        table_size: Some(table_size),
        threads: None,
        options: Default::default(),
    }
}

fn workload(kind: Kind) -> Workload {
    Workload {
        name: None,
        driver: Driver::Sysbench,
        workload: kind,
        script: Some(kind),
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
