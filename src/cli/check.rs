//! `assay check`: all problems of an experiment at once, without touching anything.

use serde_json::json;

use super::args::{Experiment, Global};
use super::error::{Code, Failure};
use super::{inputs, output, text};
use crate::plan::estimate;

pub(super) fn check(global: &Global, args: &Experiment) -> Result<Code, Failure> {
    let (spec, packs) = inputs::load(&args.experiment, &args.changes)?;
    let plan = inputs::plan_of(&spec, &packs)?;
    inputs::judge(&spec, &plan, &packs, &|_| (None, None))?;
    let estimate = estimate(&plan);
    if global.json {
        output::json(&json!({
            "problems": [],
            "experiment": plan.experiment,
            "spec": plan.spec,
            "deployments": plan.deployments.len(),
            "rounds": plan.rounds.len(),
            "estimate": estimate,
        }))?;
    } else if !global.quiet {
        output::line(format_args!(
            "{} is fine: {} variants, {} rounds, about {}",
            args.experiment.display(),
            plan.deployments.len(),
            plan.rounds.len(),
            text::time(estimate.total_s().ceil()),
        ))?;
    }
    Ok(Code::Fine)
}
