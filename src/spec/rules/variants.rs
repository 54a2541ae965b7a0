//! Rules about variants and what is compared.

use super::super::suggest;
use super::super::{Config, Experiment, Inventory, Name, System};
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

/// The components that are configured must be those of the system.
pub(super) fn components(experiment: &Experiment, _: &Inventory, findings: &mut Findings) {
    let known: &[&str] = match experiment.cluster.system {
        System::Sqlite => &["sqlite"],
    };
    let mut check = |path: String, config: &Config| {
        for component in config.keys().filter(|c| !known.contains(&c.as_str())) {
            let message = format!("unknown component `{component}`");
            let help = suggest::help(component.as_str(), known, "the components are");
            findings.key(format!("{path}.{component}"), message, help);
        }
    };
    check("cluster.config".to_owned(), &experiment.cluster.config);
    for (name, variant) in &experiment.variants {
        check(format!("variants.{name}.config"), &variant.config);
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
