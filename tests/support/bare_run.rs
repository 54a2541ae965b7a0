//! A run's folder with nothing in it but its plan, for tests of the runner.

use std::collections::BTreeMap;
use std::path::Path;

use assay::artifacts::{EventLog, FORMAT, Layout, Manifest, SpecTexts, create_run};
use assay::plan::Plan;

/// Makes the folder of a run of `plan` below `artifacts`.
pub(crate) fn bare_run(artifacts: &Path, plan: &Plan) -> (Layout, EventLog) {
    let manifest = Manifest {
        format: FORMAT,
        assay: "0".into(),
        run: "r".into(),
        experiment: plan.experiment.clone(),
        created: jiff::Timestamp::UNIX_EPOCH,
        spec: plan.spec.clone(),
        seed: plan.seed,
        source: "x.yaml".into(),
        inventory: None,
        overrides: Vec::new(),
        hosts: BTreeMap::new(),
        programs: BTreeMap::new(),
        versions: BTreeMap::new(),
        secrets: BTreeMap::new(),
    };
    let texts = SpecTexts {
        experiment: "",
        inventory: "",
    };
    create_run(artifacts, &manifest, &texts, plan).unwrap()
}
