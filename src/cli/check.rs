//! `assay check`: all problems of an experiment at once, without touching anything.

use serde_json::json;

use super::args::{Experiment, Global};
use super::error::{Code, Failure};
use super::{inputs, text};
use crate::plan::estimate;

pub(super) fn check(global: &Global, args: &Experiment) -> Result<Code, Failure> {
    let spec = inputs::load(global, &args.experiment, &args.changes)?;
    let plan = inputs::plan_of(&spec);
    let estimate = estimate(&plan);
    if global.json {
        text::print_json(&json!({
            "problems": [],
            "experiment": plan.experiment,
            "spec": plan.spec,
            "deployments": plan.deployments.len(),
            "rounds": plan.rounds.len(),
            "estimate": estimate,
        }));
    } else if !global.quiet {
        println!(
            "{} is fine: {} variants, {} rounds, about {}",
            args.experiment.display(),
            plan.deployments.len(),
            plan.rounds.len(),
            text::time(estimate.total_s()),
        );
    }
    Ok(Code::Fine)
}
