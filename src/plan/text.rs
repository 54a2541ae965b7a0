//! The text of `assay plan`.

use std::fmt::Write as _;
use std::time::Duration;

use super::{Action, Deployment, Estimate, Plan, Round, Step};
use crate::spec::{Engine, Order, Restore};
use crate::units::Bytes;

impl Action {
    /// The step's name in plans, events and progress.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Deploy => "deploy",
            Self::Start => "start",
            Self::Load(_) => "load",
            Self::Settle(_) => "settle",
            Self::Stop => "stop",
            Self::Snapshot => "snapshot",
            Self::Restore => "restore",
            Self::Measure(_) => "measure",
            Self::Collect => "collect",
        }
    }
}

/// The plan for people: deployments, rounds in order, estimate.
#[must_use]
pub fn text(plan: &Plan, estimate: &Estimate) -> String {
    let mut out = String::new();
    head(&mut out, plan);
    out.push_str("\ndeployments\n");
    plan.deployments
        .iter()
        .for_each(|d| deployment(&mut out, d));
    writeln!(
        out,
        "\nrounds ({}, order {}, restore {})",
        plan.rounds.len(),
        order(plan.order),
        restore(plan.restore)
    )
    .expect(INFALLIBLE);
    let width = plan.rounds.iter().map(|r| r.id.len()).max().unwrap_or(0);
    let digits = plan.rounds.len().to_string().len();
    for (n, r) in plan.rounds.iter().enumerate() {
        writeln!(
            out,
            "  {:>digits$}  block {:<3}  {:<width$}  {}",
            n + 1,
            r.block,
            r.id,
            steps(&r.steps)
        )
        .expect(INFALLIBLE);
    }
    tail(&mut out, estimate);
    out
}

const INFALLIBLE: &str = "writing to a string cannot fail";

fn head(out: &mut String, plan: &Plan) {
    writeln!(out, "experiment  {}", plan.experiment).expect(INFALLIBLE);
    writeln!(out, "spec        {}", &plan.spec[..plan.spec.len().min(16)]).expect(INFALLIBLE);
    writeln!(out, "seed        {}", plan.seed).expect(INFALLIBLE);
    writeln!(out, "baseline    {}", plan.baseline).expect(INFALLIBLE);
    if let Some(Round { steps, .. }) = plan.rounds.first() {
        for step in steps {
            if let Action::Measure(m) = &step.action {
                writeln!(
                    out,
                    "each round  {} warm-up, {} measured",
                    m.warmup, m.duration
                )
                .expect(INFALLIBLE);
            }
        }
    }
}

fn deployment(out: &mut String, d: &Deployment) {
    let roles = d.topology.iter();
    let mut hosts: Vec<String> = roles
        .map(|(role, hosts)| format!("{role} on {}", hosts.join(", ")))
        .collect();
    match d.deploy.engine {
        Engine::Assay => {}
        Engine::Tiup => hosts.push("deployed by TiUP".to_owned()),
        Engine::External => hosts.push(format!("there at {}", d.deploy.addresses.join(", "))),
    }
    writeln!(
        out,
        "  {}  {}  {}",
        d.id,
        hosts.join("; "),
        steps(&d.prepare)
    )
    .expect(INFALLIBLE);
    for (component, tunables) in &d.config {
        for (name, value) in tunables {
            writeln!(out, "      {component}.{name} = {value}").expect(INFALLIBLE);
        }
    }
}

fn steps(steps: &[Step]) -> String {
    let names: Vec<String> = steps
        .iter()
        .map(|s| match &s.action {
            Action::Load(d) => format!("load {} rows", d.rows()),
            other => other.name().to_owned(),
        })
        .collect();
    names.join(", ")
}

fn tail(out: &mut String, estimate: &Estimate) {
    let time =
        |s: f64| humantime::format_duration(Duration::from_secs(s.ceil() as u64)).to_string();
    writeln!(
        out,
        "\nestimate    {} (preparation {}, rounds {}), {} on the hosts, {} in the archive",
        time(estimate.total_s()),
        time(estimate.prepare_s),
        time(estimate.rounds_s),
        Bytes(estimate.host_bytes),
        Bytes(estimate.archive_bytes),
    )
    .expect(INFALLIBLE);
}

const fn order(order: Order) -> &'static str {
    match order {
        Order::Interleaved => "interleaved",
        Order::Blocked => "blocked",
        Order::Random => "random",
    }
}

const fn restore(restore: Restore) -> &'static str {
    match restore {
        Restore::EachRound => "each-round",
        Restore::AfterWrites => "after-writes",
        Restore::EachWorkload => "each-workload",
        Restore::Never => "never",
    }
}
