//! Rules about variants and what is compared.

use super::super::suggest;
use super::super::{Experiment, Inventory, Name};
use super::{Findings, clashes, repeated};

/// Names of variants are names of folders, which some file systems compare without case.
pub(super) fn names(experiment: &Experiment, _: &Inventory, findings: &mut Findings) {
    let names: Vec<&Name> = experiment.variants.keys().collect();
    for (i, first) in clashes(names.iter().map(|name| name.as_str())) {
        let message = format!("`{}` and `{}` differ only in case", names[first], names[i]);
        let help = "variants are folders too; give them names that differ".to_owned();
        findings.key(format!("variants.{}", names[i]), message, help);
    }
}

/// The baseline is one of the variants.
pub(super) fn baseline(experiment: &Experiment, _: &Inventory, findings: &mut Findings) {
    let Some(baseline) = &experiment.compare.baseline else {
        return;
    };
    if !experiment.variants.contains_key(baseline) {
        let names: Vec<&str> = experiment.variants.keys().map(Name::as_str).collect();
        let help = suggest::help(baseline.as_str(), &names, "the variants are");
        let message = format!("unknown variant `{baseline}`");
        findings.value("compare.baseline".to_owned(), message, help);
    }
}

/// Each metric is shown once.
pub(super) fn metrics(experiment: &Experiment, _: &Inventory, findings: &mut Findings) {
    if let Some(again) = repeated(&experiment.compare.metrics) {
        let path = format!("compare.metrics[{again}]");
        findings.value(
            path,
            "the metric stands in the list already".to_owned(),
            None,
        );
    }
}
