//! One cell on one variant: its rounds, and what they are together.

use std::collections::BTreeMap;
use std::ops::Add;

use crate::artifacts::{RoundResult, Run, Status};
use crate::measurement::{Latency, LoadResult, OperationResult, Percentile};
use crate::plan::{self, Action};
use crate::report::ReportError;
use crate::report::metric;
use crate::report::rows::{Attempt, Counts, Operation, Over, Results, Round, RoundOperation};
use crate::report::timeline::Course;
use crate::spec::Metric;
use crate::statistics::{Summary, mean};

/// What the rounds of a cell are read with.
pub(super) struct Context<'a> {
    pub(super) run: &'a Run,
    pub(super) execution: &'a [Attempt],
}

/// The good rounds so far, merged.
#[derive(Default)]
struct Merged {
    all: Latency,
    operations: BTreeMap<String, MergedOperation>,
}

#[derive(Default)]
struct MergedOperation {
    /// Late ones included.
    latency: Latency,
    late: u64,
    errors: BTreeMap<String, u64>,
    rates: Vec<f64>,
}

impl Merged {
    fn add(&mut self, load: &LoadResult) {
        self.all.merge(&load.all());
        for operation in &load.operations {
            let merged = self.operations.entry(operation.name.clone()).or_default();
            merged.latency.merge(&operation.whole());
            merged.late += operation.late.count();
            merged.rates.push(rate(&operation.latency, load.window_s));
            add_errors(&mut merged.errors, &operation.errors);
        }
    }
}

/// Reads the rounds of one cell on one variant; `rounds` are those of the plan.
pub(super) fn results(
    context: &Context<'_>,
    variant: &str,
    rounds: &[&plan::Round],
    courses: &mut Vec<Course>,
) -> Result<Results, ReportError> {
    let mut merged = Merged::default();
    let mut read = Vec::new();
    for planned in rounds {
        read.push(round(context, planned, &mut merged, courses)?);
    }
    read.sort_by_key(|r| r.repetition);
    let mut errors = BTreeMap::new();
    for operation in merged.operations.values() {
        add_errors(&mut errors, &operation.errors);
    }
    let summary = summary(&read, &merged.all);
    let rate = rounds.first().and_then(|r| r.cell.rate);
    Ok(Results {
        variant: variant.to_owned(),
        counts: counts(&read),
        client_cores: client_cores(&read),
        missed: rate.is_some_and(|rate| missed(rate, &summary, &read)),
        summary,
        rounds: read,
        operations: merged.operations.into_iter().map(operation).collect(),
        errors,
        comparison: BTreeMap::new(),
    })
}

fn round(
    context: &Context<'_>,
    planned: &plan::Round,
    merged: &mut Merged,
    courses: &mut Vec<Course>,
) -> Result<Round, ReportError> {
    let result = context.run.results.get(&planned.id);
    let mut row = blank(context, planned, result);
    let Some(result) = result else {
        return Ok(row);
    };
    let load = match context.run.load_result(result) {
        Ok(load) => load,
        // What a round that is not good left may be incomplete.
        Err(_) if row.status != Some(Status::Ok) => None,
        Err(error) => return Err(error.into()),
    };
    let good = row.status == Some(Status::Ok);
    if let Some(load) = &load {
        row.window_s = Some(load.window_s);
        row.client_cpu_s = load.client_cpu_s;
        row.count = Some(load.count());
        row.late = Some(load.late());
        row.unstarted = planned.cell.rate.map(|_| load.unstarted);
        row.idle_threads = Some(load.idle_threads);
        row.accounted = planned.cell.rate.is_none().then(|| accounted(load));
        row.errors = Some(load.errors());
        let lengths = (warmup_s(planned), load.window_s);
        courses.extend(Course::of(&row.id, good, &load.intervals, lengths));
    }
    match load {
        Some(load) if good => {
            merged.add(&load);
            let all = load.all();
            row.values = values(&all, load.throughput());
            row.thin = metric::thin(&all);
            row.operations = load
                .operations
                .iter()
                .map(|o| (o.name.clone(), round_operation(o, load.window_s)))
                .collect();
        }
        None if good => fail(&mut row, "it measured nothing"),
        _ => {}
    }
    Ok(row)
}

fn warmup_s(planned: &plan::Round) -> f64 {
    let measure = planned.steps.iter().find_map(|s| match &s.action {
        Action::Measure(measure) => Some(measure),
        _ => None,
    });
    measure.map_or(0.0, |m| m.warmup.as_secs_f64())
}

/// A round as the log tells it, without what it measured.
fn blank(context: &Context<'_>, planned: &plan::Round, result: Option<&RoundResult>) -> Round {
    let outcome = context
        .run
        .state
        .rounds
        .get(&planned.id)
        .and_then(|r| r.outcome.as_ref());
    let attempt = outcome.map(|(attempt, ..)| *attempt);
    let executed = context
        .execution
        .iter()
        .find(|a| a.round == planned.id && Some(a.attempt) == attempt);
    let mut row = Round {
        id: planned.id.clone(),
        repetition: planned.repetition,
        block: planned.block,
        position: executed.map(|a| a.position),
        attempt,
        status: outcome.map(|(_, status, _)| *status),
        reason: outcome.and_then(|(.., reason)| reason.clone()),
        notes: result.map(|r| r.notes.clone()).unwrap_or_default(),
        started: result.map(|r| r.started).or(executed.map(|a| a.at)),
        window_s: None,
        client_cpu_s: None,
        count: None,
        late: None,
        unstarted: None,
        idle_threads: None,
        accounted: None,
        errors: None,
        values: BTreeMap::new(),
        operations: BTreeMap::new(),
        thin: Vec::new(),
    };
    if row.status == Some(Status::Ok) && result.is_none() {
        fail(&mut row, "its result.json is missing");
    }
    row
}

fn fail(row: &mut Round, reason: &str) {
    row.status = Some(Status::Failed);
    row.reason = Some(reason.to_owned());
}

fn round_operation(operation: &OperationResult, window_s: f64) -> RoundOperation {
    let whole = operation.whole();
    RoundOperation {
        values: values(&whole, rate(&operation.latency, window_s)),
        thin: metric::thin(&whole),
    }
}

/// What the driver itself takes between two operations at most, and what rounding to whole µs loses, µs.
const BETWEEN_US: f64 = 1.5;

/// The part of the threads' time that the latencies account for: Little's law, threads = throughput × latency. Where
/// operations are so short that the driver's own time counts, that is taken as accounted for.
fn accounted(load: &LoadResult) -> f64 {
    let all = load.all();
    let there = f64::from(load.threads) * load.window_s * 1e6;
    match all.at(Percentile::P50) {
        Some(typical) if there > 0.0 => {
            let short = 1.0 + BETWEEN_US / typical as f64;
            all.mean_us() * all.count() as f64 * short / there
        }
        _ => 0.0,
    }
}

fn client_cores(rounds: &[Round]) -> Option<f64> {
    let good = rounds.iter().filter(|r| r.status == Some(Status::Ok));
    let cores = good.filter_map(|r| {
        let window = r.window_s.filter(|s| *s > 0.0)?;
        Some(r.client_cpu_s? / window)
    });
    mean(&cores.collect::<Vec<_>>())
}

/// An open loop that reaches less than this part of its target rate has missed it.
pub(super) const REACHED: f64 = 0.95;

/// Whether an open loop did not keep its rate: it was too slow in the window, or still behind at its end by more than ten
/// operations and 1 % of them.
fn missed(rate: f64, summary: &BTreeMap<Metric, Over>, rounds: &[Round]) -> bool {
    let behind = |r: &Round| {
        let count = r.count.unwrap_or(0);
        let left = r.unstarted.unwrap_or(0);
        r.status == Some(Status::Ok) && left > 10 && left > count / 100
    };
    let reached = summary.get(&Metric::Throughput);
    reached.is_some_and(|o| o.value < REACHED * rate) || rounds.iter().any(behind)
}

fn values(latency: &Latency, throughput: f64) -> BTreeMap<Metric, f64> {
    let mut values = metric::latencies(latency);
    values.insert(Metric::Throughput, throughput);
    values
}

fn rate(latency: &Latency, window_s: f64) -> f64 {
    if window_s > 0.0 {
        latency.count() as f64 / window_s
    } else {
        0.0
    }
}

fn counts(rounds: &[Round]) -> Counts {
    let of = |status| rounds.iter().filter(|r| r.status == status).count();
    Counts {
        planned: rounds.len(),
        ok: of(Some(Status::Ok)),
        failed: of(Some(Status::Failed)),
        invalid: of(Some(Status::Invalid)),
        skipped: of(Some(Status::Skipped)),
        pending: of(None),
    }
}

fn summary(rounds: &[Round], merged: &Latency) -> BTreeMap<Metric, Over> {
    let latencies = metric::latencies(merged);
    let mut summary = BTreeMap::new();
    for metric in metric::ALL {
        let each: Vec<f64> = rounds
            .iter()
            .filter_map(|r| r.values.get(&metric))
            .copied()
            .collect();
        let Some(spread) = Summary::of(&each) else {
            continue;
        };
        let beyond = metric::percentile(metric).map(|p| merged.beyond(p));
        let over = Over {
            n: spread.n,
            value: latencies.get(&metric).copied().unwrap_or(spread.mean),
            min: spread.min,
            max: spread.max,
            beyond,
            thin: beyond.is_some_and(|n| n < metric::BEYOND),
        };
        summary.insert(metric, over);
    }
    summary
}

fn operation((name, merged): (String, MergedOperation)) -> Operation {
    Operation {
        name,
        count: merged.latency.count() - merged.late,
        late: merged.late,
        errors: merged.errors,
        values: values(&merged.latency, mean(&merged.rates).unwrap_or_default()),
        thin: metric::thin(&merged.latency),
    }
}

fn add_errors(sum: &mut BTreeMap<String, u64>, errors: &BTreeMap<String, u64>) {
    for (kind, n) in errors {
        *sum.entry(kind.clone()).or_default() += n;
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            planned: self.planned + other.planned,
            ok: self.ok + other.ok,
            failed: self.failed + other.failed,
            invalid: self.invalid + other.invalid,
            skipped: self.skipped + other.skipped,
            pending: self.pending + other.pending,
        }
    }
}
