//! `assay plan`: what a run would do.

use serde_json::json;

use super::args::{Experiment, Global};
use super::error::{Code, Failure};
use super::{inputs, output};
use crate::plan::{estimate, text as plan_text};

pub(super) fn plan(global: &Global, args: &Experiment) -> Result<Code, Failure> {
    let (spec, packs) = inputs::load(&args.experiment, &args.changes)?;
    let plan = inputs::plan_of(&spec, &packs)?;
    let estimate = estimate(&plan);
    if global.json {
        output::json(&json!({ "plan": plan, "estimate": estimate }))?;
    } else {
        output::print(&plan_text(&plan, &estimate))?;
    }
    Ok(Code::Fine)
}
