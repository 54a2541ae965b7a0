//! sysbench's command lines. Each is made for every series of versions: which one a client has, its agent finds out.

use std::path::Path;
use std::time::Duration;

use super::connection;
use super::options::{self, Options, Refusal, Series};
use super::{OUTPUT, RUN, WARMUP};
use crate::measurement::Phase;
use crate::plan::{
    self, Listen, Loading, Measure, Probe, Seconds, SqlTarget, Target, Tool, ToolFile, ToolStep,
    Versions,
};
use crate::spec::{Dataset, Distribution, Kind, Schema};
use crate::units;

/// The script that makes the tables: all of them make the same ones.
const PREPARE: Kind = Kind::OltpReadWrite;
/// Most threads that load if it is not said: each loads a table at a time.
const LOADERS: u32 = 16;
/// The script that looks whether the tables hold what the dataset says.
const CHECK: &str = "check.lua";
/// How long it may take.
const CHECK_LIMIT: Duration = Duration::from_secs(600);
/// How much longer than asked a warm-up may take: threads may need half a minute to connect.
const WARMUP_GRACE: Duration = Duration::from_secs(60);
/// Lines that say why sysbench failed.
const FAILURE: &str = "^FATAL: ";
/// The line of a second, as the OLTP scripts print it.
const SECOND: &str =
    r"^\[ (?<second>\d+)s \] thds: \d+ tps: (?<rate>[0-9.]+) .* err/s:? (?<errors>[0-9.]+)";

/// What loads a dataset.
pub(super) fn load(target: &Target, dataset: &Dataset, seed: u64) -> Result<Tool, Refusal> {
    let sql = sql(target)?;
    if dataset.schema() != Schema::Sysbench {
        return Err(Refusal::Schema);
    }
    let mut tool = tool(connection::files(sql)?);
    for_each_series(&mut tool, |series| {
        let given = options::read(&dataset.options, series)?;
        let (tables, _) = dataset.sysbench_shape();
        let threads = dataset.threads.unwrap_or(tables.min(LOADERS));
        let mut args = connection::args(sql, series)?;
        args.extend(shape(dataset));
        args.push(format!("--threads={threads}"));
        args.extend(random(None, &given, series)?);
        args.push(format!("--rand-seed={}", seed_of(seed)));
        args.extend(
            given
                .iter()
                .map(|(name, value)| format!("--{name}={value}")),
        );
        let mut prepare = step("prepare", sql, PREPARE.as_str(), args, "prepare");
        prepare.listen.loading = Some(loading(dataset, &given));
        Ok(vec![prepare])
    })?;
    Ok(tool)
}

/// What measures, and leaves its files in `output`.
pub(super) fn run(target: &Target, measure: &Measure, output: &Path) -> Result<Tool, Refusal> {
    let sql = sql(target)?;
    let kind = measure.workload.kind();
    if kind.schema() != Schema::Sysbench {
        return Err(Refusal::Script(kind.as_str()));
    }
    let mut files = connection::files(sql)?;
    files.push(ToolFile {
        name: CHECK.into(),
        mode: 0o644,
        content: include_str!("check.lua").into(),
        secret: false,
    });
    let mut tool = tool(files);
    tool.directory = Some(output.to_owned());
    for_each_series(&mut tool, |series| {
        let mut steps = vec![check(sql, measure, series)?];
        let warmup = measure.warmup.0;
        if !warmup.is_zero() && series == Series::Old {
            let (time, seed) = (whole(warmup), seed_of(measure.seed.wrapping_add(1)));
            let args = run_args(sql, measure, series, &[time_of(time)], seed)?;
            let mut step = step("warm-up", sql, kind.as_str(), args, "run");
            step.stdout = WARMUP.into();
            step.limit = Some(units::Duration(warmup + WARMUP_GRACE));
            step.listen.seconds = Some(seconds(Phase::Warmup));
            steps.push(step);
        }
        let mut times = vec![time_of(whole(measure.duration.0))];
        if !warmup.is_zero() && series == Series::New {
            times.push(format!("--warmup-time={}", whole(warmup)));
        }
        let args = run_args(sql, measure, series, &times, seed_of(measure.seed))?;
        let mut step = step(RUN, sql, kind.as_str(), args, "run");
        step.stdout = OUTPUT.into();
        step.listen.seconds = Some(seconds(Phase::Measure));
        steps.push(step);
        Ok(steps)
    })?;
    Ok(tool)
}

fn sql(target: &Target) -> Result<&SqlTarget, Refusal> {
    match target {
        Target::Sql(sql) => Ok(sql),
        Target::Sqlite { .. } | Target::Null => Err(Refusal::Target),
    }
}

fn tool(files: Vec<ToolFile>) -> Tool {
    Tool {
        directory: None,
        probe: Probe {
            program: "sysbench".into(),
            args: vec!["--version".into()],
            package: "sysbench".into(),
        },
        refusals: Vec::new(),
        files,
        steps: Vec::new(),
    }
}

/// Adds the steps of every series, once where they are the same. A series that cannot do it refuses on the client; when none
/// can, nobody has to be asked.
fn for_each_series(
    tool: &mut Tool,
    steps: impl Fn(Series) -> Result<Vec<ToolStep>, Refusal>,
) -> Result<(), Refusal> {
    let [old, new] = Series::ALL.map(&steps);
    match (old, new) {
        (Err(_), Err(why)) => return Err(why),
        (Ok(old), Ok(new)) if old == new => tool.steps = new,
        (old, new) => {
            for (series, steps) in [(Series::Old, old), (Series::New, new)] {
                add(tool, versions(series), steps);
            }
        }
    }
    Ok(())
}

fn add(tool: &mut Tool, versions: Versions, steps: Result<Vec<ToolStep>, Refusal>) {
    match steps {
        Ok(steps) => tool
            .steps
            .extend(steps.into_iter().map(|step| ToolStep { versions, ..step })),
        Err(why) => tool.refusals.push(plan::Refusal {
            versions,
            why: why.to_string(),
        }),
    }
}

fn versions(series: Series) -> Versions {
    let border = Some((1, 1));
    match series {
        Series::Old => Versions {
            from: None,
            below: border,
        },
        Series::New => Versions {
            from: border,
            below: None,
        },
    }
}

/// A run of sysbench: options, then script and command.
fn step(
    name: &str,
    sql: &SqlTarget,
    script: &str,
    mut args: Vec<String>,
    command: &str,
) -> ToolStep {
    args.push(script.to_owned());
    args.push(command.to_owned());
    ToolStep {
        name: name.into(),
        versions: Versions::ALL,
        program: "sysbench".into(),
        args,
        env: connection::env(sql),
        limit: None,
        stdout: format!("{name}.txt"),
        stderr: format!("{name}.err"),
        listen: Listen {
            failure: Some(FAILURE.into()),
            ..Listen::default()
        },
    }
}

fn check(sql: &SqlTarget, measure: &Measure, series: Series) -> Result<ToolStep, Refusal> {
    let mut args = connection::args(sql, series)?;
    args.extend(shape(&measure.dataset));
    args.extend(["--threads=1", "--events=1"].map(String::from));
    args.push(time_of(CHECK_LIMIT.as_secs()));
    let mut step = step("check", sql, &format!("./{CHECK}"), args, "run");
    step.limit = Some(units::Duration(CHECK_LIMIT));
    Ok(step)
}

fn run_args(
    sql: &SqlTarget,
    measure: &Measure,
    series: Series,
    times: &[String],
    seed: u64,
) -> Result<Vec<String>, Refusal> {
    let workload = &measure.workload;
    let given = options::read(&workload.options, series)?;
    let mut args = connection::args(sql, series)?;
    if !given.contains_key("db-ps-mode") {
        args.push("--db-ps-mode=auto".into());
    }
    args.extend(shape(&measure.dataset));
    args.push(format!("--threads={}", measure.threads));
    args.extend_from_slice(times);
    if let Some(rate) = measure.rate {
        args.push(format!("--rate={}", whole_rate(rate)?));
    }
    args.extend(["--report-interval=1", "--percentile=99", "--histogram=on"].map(String::from));
    args.extend(random(workload.distribution, &given, series)?);
    args.push(format!("--rand-seed={seed}"));
    let own = [
        ("range_size", workload.range_size.map(|n| n.to_string())),
        (
            "skip_trx",
            workload
                .skip_trx
                .map(|on| if on { "on" } else { "off" }.to_owned()),
        ),
    ];
    for (name, value) in own {
        let Some(value) = value else { continue };
        if given.contains_key(name) {
            return Err(Refusal::Twice(name.into()));
        }
        args.push(format!("--{name}={value}"));
    }
    args.extend(
        given
            .iter()
            .map(|(name, value)| format!("--{name}={value}")),
    );
    Ok(args)
}

fn shape(dataset: &Dataset) -> [String; 2] {
    let (tables, rows) = dataset.sysbench_shape();
    [format!("--tables={tables}"), format!("--table_size={rows}")]
}

/// How random numbers are drawn. It is always said: the default of 1.0 is `special`, that of 1.1 `uniform`.
fn random(
    distribution: Option<Distribution>,
    given: &Options<'_>,
    series: Series,
) -> Result<Vec<String>, Refusal> {
    let refused = |name| Err(Refusal::Distribution { series, name });
    let missing = match series {
        Series::Old => "zipfian",
        Series::New => "special",
    };
    if let Some(name) = given.get("rand-type") {
        return match (distribution.is_some(), *name == missing) {
            (true, _) => Err(Refusal::TwoDistributions),
            (false, true) => refused(missing),
            (false, false) => Ok(Vec::new()),
        };
    }
    let name = match distribution {
        None | Some(Distribution::Uniform) => "uniform",
        Some(Distribution::Special) => "special",
        Some(Distribution::Zipfian) => "zipfian",
        Some(Distribution::Latest) => return refused("latest"),
    };
    if name == missing {
        return refused(missing);
    }
    let mut args = vec![format!("--rand-type={name}")];
    if name == "zipfian" && !given.contains_key("rand-zipfian-exp") {
        // Its own default is 0.8, less skewed than YCSB and the native driver.
        args.push("--rand-zipfian-exp=0.99".into());
    }
    Ok(args)
}

/// Every table says when its index is made, which is after its rows; without an index, when its rows are begun.
fn loading(dataset: &Dataset, given: &Options<'_>) -> Loading {
    let off = |value: &&str| matches!(*value, "off" | "false" | "0");
    let no_index = given.get("create_secondary").is_some_and(off);
    let line = if no_index || given.contains_key("pgsql_variant") {
        r"^Inserting \d+ records into 'sbtest\d+'"
    } else {
        r"^Creating a secondary index on 'sbtest\d+'"
    };
    Loading {
        line: line.into(),
        rows: dataset.sysbench_shape().1,
        of: dataset.rows(),
    }
}

fn seconds(phase: Phase) -> Seconds {
    Seconds {
        line: SECOND.into(),
        phase,
    }
}

/// A time in whole seconds, rounded up: sysbench knows no others.
fn whole(time: Duration) -> u64 {
    let rest = u64::from(time.subsec_nanos() > 0);
    (time.as_secs() + rest).max(1)
}

fn time_of(seconds: u64) -> String {
    format!("--time={seconds}")
}

fn whole_rate(rate: f64) -> Result<u64, Refusal> {
    if rate >= 1.0 && rate.fract() == 0.0 && rate <= f64::from(i32::MAX) {
        Ok(rate as u64)
    } else {
        Err(Refusal::Rate(rate))
    }
}

/// A seed that sysbench takes: a positive number of 31 bits. 0 would be the time, the same for clients that start together.
fn seed_of(seed: u64) -> u64 {
    const LARGEST: u64 = (1 << 31) - 1;
    match seed % LARGEST {
        0 => LARGEST,
        seed => seed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_positive_numbers_of_31_bits() {
        for (seed, taken) in [(7, 7), (0, 2_147_483_647), (2_147_483_648, 1)] {
            assert_eq!(seed_of(seed), taken);
        }
        assert!((1..1 << 31).contains(&seed_of(u64::MAX)));
    }

    #[test]
    fn times_are_whole_seconds_and_never_endless() {
        for (ms, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (90_000, 90)] {
            assert_eq!(whole(Duration::from_millis(ms)), seconds);
        }
    }
}
