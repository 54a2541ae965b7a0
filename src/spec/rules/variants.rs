//! Rules about variants and what is compared.

use super::super::Name;
use super::super::suggest;
use super::{Findings, View, clashes, repeated};

/// Names of variants are names of folders, which some file systems compare without case.
pub(super) fn names(view: View<'_>, findings: &mut Findings) {
    let names: Vec<&Name> = view.experiment.variants.keys().collect();
    for (i, first) in clashes(names.iter().map(|name| name.as_str()).enumerate()) {
        let message = format!("`{}` and `{}` differ only in case", names[first], names[i]);
        let help = "variants are folders too; give them names that differ".to_owned();
        findings.key(format!("variants.{}", names[i]), message, help);
    }
}

/// The baseline is one of the variants.
pub(super) fn baseline(view: View<'_>, findings: &mut Findings) {
    let variants = &view.experiment.variants;
    let Some(baseline) = &view.experiment.compare.baseline else {
        return;
    };
    if view.has_keys_of("variants") && !variants.contains_key(baseline) {
        let names: Vec<&str> = variants.keys().map(Name::as_str).collect();
        let help = suggest::help(baseline.as_str(), &names, "the variants are");
        let message = format!("unknown variant `{baseline}`");
        findings.value("compare.baseline".to_owned(), message, help);
    }
}

/// Each metric is shown once.
pub(super) fn metrics(view: View<'_>, findings: &mut Findings) {
    let metrics = view.items("compare.metrics", &view.experiment.compare.metrics);
    for again in repeated(metrics) {
        let path = format!("compare.metrics[{again}]");
        let message = "the metric stands in the list already".to_owned();
        findings.value(path, message, None);
    }
}
