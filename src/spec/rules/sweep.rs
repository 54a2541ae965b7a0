//! Rules about the sweep and the rounds: what is repeated, endless or empty.

use std::collections::HashMap;

use super::super::Workload;
use super::workloads::label_is_known;
use super::{Findings, View, repeated};
use crate::units::Duration;

/// The most rounds of an experiment: at a second each, more than a day.
const ROUNDS: usize = 100_000;

/// The longest time; longer ones are slips, and sums of them would not fit a clock.
const LONGEST: Duration = Duration::from_secs(LONGEST_DAYS * 24 * 3600);
const LONGEST_DAYS: u64 = 365;

/// The lowest and the highest rate, operations/s: an operation in a quarter of an hour, one in a nanosecond.
const RATES: std::ops::RangeInclusive<f64> = 0.001..=1e9;

/// Each value of an axis once, and rates that a clock can keep.
pub(super) fn axes(view: View<'_>, findings: &mut Findings) {
    let sweep = &view.experiment.sweep;
    let message = || "the value stands in the list already".to_owned();
    for again in repeated(view.items("sweep.threads", &sweep.threads)) {
        findings.value(format!("sweep.threads[{again}]"), message(), None);
    }
    let rates = view.items("sweep.rate", sweep.rate.as_deref().unwrap_or_default());
    for again in repeated(rates.iter().map(|(i, rate)| (*i, rate.0.to_bits()))) {
        findings.value(format!("sweep.rate[{again}]"), message(), None);
    }
    for (i, rate) in rates {
        if !RATES.contains(&rate.0) {
            let (low, high) = (RATES.start(), RATES.end());
            let message = format!("expected a rate from {low} to {high} operations/s");
            findings.value(format!("sweep.rate[{i}]"), message, None);
        }
    }
}

/// Times above zero and below what a clock holds.
pub(super) fn times(view: View<'_>, findings: &mut Findings) {
    let rounds = &view.experiment.rounds;
    let limits = &rounds.limits;
    let times = [
        ("warmup", rounds.warmup, true),
        ("duration", rounds.duration, false),
        ("settle.timeout", rounds.settle.timeout, false),
        ("limits.load", limits.load, false),
        ("limits.snapshot", limits.snapshot, false),
        ("limits.start", limits.start, false),
        ("limits.grace", limits.grace, false),
    ];
    for (key, time, may_be_zero) in times {
        let path = format!("rounds.{key}");
        if time == Duration::default() && !may_be_zero {
            findings.value(path, "expected a duration above 0".to_owned(), None);
        } else if time > LONGEST {
            findings.value(
                path,
                format!("expected a duration of at most {LONGEST_DAYS} days"),
                None,
            );
        }
    }
}

/// Not too many rounds, and a name for each.
pub(super) fn rounds(view: View<'_>, findings: &mut Findings) {
    let experiment = view.experiment;
    let sweep = &experiment.sweep;
    let rates = sweep.rate.as_ref().map_or(1, Vec::len);
    let factors = [
        ("variants", experiment.variants.len()),
        ("workloads", experiment.workloads.len()),
        ("sweep.threads", sweep.threads.len()),
        ("sweep.rate", rates),
        ("rounds.repetitions", experiment.rounds.repetitions as usize),
    ];
    let known = factors
        .iter()
        .all(|(path, _)| view.has(path) && view.has_keys_of(path));
    let factors = factors.map(|(_, factor)| factor);
    let all = factors.into_iter().fold(1, usize::saturating_mul);
    if all > ROUNDS {
        let message = format!(
            "the experiment has {all} rounds (variants {} x workloads {} x threads {} x rates {} x \
             repetitions {}); at most {ROUNDS} can be run",
            factors[0], factors[1], factors[2], factors[3], factors[4]
        );
        if known {
            findings.key("sweep".to_owned(), message, None);
        }
        return;
    }
    ids(view, findings);
}

/// A round's id is its workload, threads, rate and variant, with dots between, and names may hold dots.
fn ids(view: View<'_>, findings: &mut Findings) {
    let mut seen: HashMap<String, (usize, &str)> = HashMap::new();
    let experiment = view.experiment;
    let threads = view.items("sweep.threads", &experiment.sweep.threads);
    let rates: Vec<String> = match &experiment.sweep.rate {
        Some(rates) => view
            .items("sweep.rate", rates)
            .iter()
            .map(|(_, rate)| format!(".r{}", rate.0))
            .collect(),
        None => vec![String::new()],
    };
    let known = |(i, _): &(usize, &Workload)| label_is_known(view, *i);
    let workloads = experiment.workloads.iter().enumerate().filter(known);
    for (i, workload) in workloads {
        for (_, threads) in &threads {
            for (rate, variant) in rates
                .iter()
                .flat_map(|rate| experiment.variants.keys().map(move |v| (rate, v.as_str())))
            {
                let id = format!("{}.t{threads}{rate}.{variant}", workload.label());
                let other = seen.insert(id.to_ascii_lowercase(), (i, variant));
                // Equal names are reported by themselves.
                if let Some((first, other)) =
                    other.filter(|other| other.0 != i && !other.1.eq_ignore_ascii_case(variant))
                {
                    let message = format!(
                        "the rounds of workloads[{first}] on `{other}` and of workloads[{i}] on \
                         `{variant}` would both be called `{id}`"
                    );
                    let help = "give the workload another `name`".to_owned();
                    findings.value(format!("workloads[{i}]"), message, help);
                    return;
                }
            }
        }
    }
}
