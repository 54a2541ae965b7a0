//! Rules about datasets and workloads: what belongs to which family.

use std::collections::BTreeSet;

use super::super::{Dataset, Distribution, Kind, Schema, Workload};
use super::{Findings, View, clashes};

/// Each schema once, with its own keys only.
pub(super) fn datasets(view: View<'_>, findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (i, dataset) in view.experiment.dataset.0.iter().enumerate() {
        let path = format!("dataset[{i}]");
        if !view.has(&format!("{path}.schema")) {
            continue;
        }
        let schema = word(dataset.schema);
        if !seen.insert(dataset.schema) {
            let message = format!("a dataset with the schema `{schema}` is there already");
            findings.value(format!("{path}.schema"), message, None);
        }
        for (key, owner) in keys(dataset) {
            if owner != dataset.schema {
                let message = format!(
                    "`{key}` is a key of the schema `{}`; this dataset is `{schema}`",
                    word(owner)
                );
                let help = format!("its keys are {}", own_keys(dataset.schema));
                findings.key(format!("{path}.{key}"), message, help);
            }
        }
    }
}

/// The keys that a dataset has set, and whose they are.
fn keys(dataset: &Dataset) -> impl Iterator<Item = (&'static str, Schema)> {
    let keys = [
        ("records", Schema::Ycsb, dataset.records.is_some()),
        ("fields", Schema::Ycsb, dataset.fields.is_some()),
        ("field_length", Schema::Ycsb, dataset.field_length.is_some()),
        ("tables", Schema::Sysbench, dataset.tables.is_some()),
        ("table_size", Schema::Sysbench, dataset.table_size.is_some()),
    ];
    let set = keys.into_iter().filter(|(_, _, set)| *set);
    set.map(|(key, owner, _)| (key, owner))
}

fn own_keys(schema: Schema) -> &'static str {
    match schema {
        Schema::Ycsb => "`records`, `fields` and `field_length`",
        Schema::Sysbench => "`tables` and `table_size`",
    }
}

fn word(schema: Schema) -> &'static str {
    match schema {
        Schema::Ycsb => "ycsb",
        Schema::Sysbench => "sysbench",
    }
}

/// Every workload finds its tables.
pub(super) fn loaded(view: View<'_>, findings: &mut Findings) {
    let datasets = &view.experiment.dataset.0;
    let known = |i: usize| view.has(&format!("dataset[{i}].schema"));
    if !(0..datasets.len()).all(known) {
        return;
    }
    for (i, workload) in view.experiment.workloads.iter().enumerate() {
        let schema = workload.workload.schema();
        if !datasets.iter().any(|d| d.schema == schema) {
            let schema = word(schema);
            let message = format!(
                "`{}` needs a dataset with the schema `{schema}`",
                workload.workload.as_str()
            );
            let help = format!("add `{{driver: native, schema: {schema}}}` to `dataset`");
            findings.value(format!("workloads[{i}].workload"), message, help);
        }
    }
}

/// Names that differ, and keys that have an effect.
pub(super) fn workloads(view: View<'_>, findings: &mut Findings) {
    let workloads = &view.experiment.workloads;
    let labels = workloads.iter().map(Workload::label).enumerate();
    for (i, first) in clashes(labels.filter(|(i, _)| label_is_known(view, *i))) {
        let workload = &workloads[i];
        let message = format!(
            "`{}` is also the name of workloads[{first}]",
            workload.label()
        );
        let key = if workload.name.is_some() {
            "name"
        } else {
            "workload"
        };
        let help = "give each its own `name`".to_owned();
        findings.value(format!("workloads[{i}].{key}"), message, help);
    }
    for (i, workload) in workloads.iter().enumerate() {
        let path = format!("workloads[{i}]");
        if view.has(&format!("{path}.workload")) {
            keys_with_effect(&path, workload, findings);
            distribution(&path, workload, findings);
        }
    }
}

/// Whether what a workload is called is what was written.
pub(super) fn label_is_known(view: View<'_>, i: usize) -> bool {
    let has = |key: &str| view.has(&format!("workloads[{i}].{key}"));
    has("name") && (view.experiment.workloads[i].name.is_some() || has("workload"))
}

fn keys_with_effect(path: &str, workload: &Workload, findings: &mut Findings) {
    use Kind::{OltpReadOnly, OltpReadWrite, OltpWriteOnly, YcsbE};
    let keys: [(&str, bool, &[Kind]); 3] = [
        (
            "max_scan_length",
            workload.max_scan_length.is_some(),
            &[YcsbE],
        ),
        (
            "range_size",
            workload.range_size.is_some(),
            &[OltpReadOnly, OltpReadWrite],
        ),
        (
            "skip_trx",
            workload.skip_trx.is_some(),
            &[OltpReadOnly, OltpReadWrite, OltpWriteOnly],
        ),
    ];
    for (key, set, kinds) in keys {
        if set && !kinds.contains(&workload.workload) {
            let kind = workload.workload.as_str();
            let words: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
            let message = format!("`{key}` has no effect on `{kind}`");
            let help = format!("it is a key of {}", super::super::suggest::list(&words));
            findings.key(format!("{path}.{key}"), message, help);
        }
    }
}

fn distribution(path: &str, workload: &Workload, findings: &mut Findings) {
    use Distribution::{Latest, Special, Uniform, Zipfian};
    let Some(distribution) = workload.distribution else {
        return;
    };
    let (family, fits, words) = match workload.workload.schema() {
        Schema::Ycsb => (
            "YCSB",
            matches!(distribution, Uniform | Zipfian | Latest),
            "`uniform`, `zipfian` or `latest`",
        ),
        Schema::Sysbench => (
            "OLTP",
            matches!(distribution, Uniform | Special),
            "`uniform` or `special`",
        ),
    };
    if !fits {
        let message = format!("expected {words} for a workload of {family}");
        findings.value(format!("{path}.distribution"), message, None);
    }
}
