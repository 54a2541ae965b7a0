//! Rules about datasets and workloads: what belongs to which family.

use std::collections::BTreeSet;

use super::super::{Dataset, Distribution, Driver, Kind, Schema, Workload};
use super::{Findings, View, clashes};

/// Each schema once, with its own keys only.
pub(super) fn datasets(view: View<'_>, findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (i, dataset) in view.experiment.dataset.0.iter().enumerate() {
        let path = format!("dataset[{i}]");
        if !view.has(&format!("{path}.schema")) || !view.has(&format!("{path}.driver")) {
            continue;
        }
        if !has_schema(&path, dataset, findings) {
            continue;
        }
        let schema = word(dataset.schema());
        if !seen.insert(dataset.schema()) {
            let message = format!("a dataset with the schema `{schema}` is there already");
            findings.value(format!("{path}.schema"), message, None);
        }
        for (key, owner) in keys(dataset) {
            if owner != dataset.schema() {
                let message = format!(
                    "`{key}` is a key of the schema `{}`; this dataset is `{schema}`",
                    word(owner)
                );
                let help = format!("its keys are {}", own_keys(dataset.schema()));
                findings.key(format!("{path}.{key}"), message, help);
            }
        }
        for (key, set) in [
            ("threads", dataset.threads.is_some()),
            ("options", !dataset.options.is_empty()),
        ] {
            if set && dataset.driver == Driver::Native {
                let message = format!("`{key}` is a key of the driver `sysbench`");
                findings.key(format!("{path}.{key}"), message, None);
            }
        }
    }
}

/// Whether the schema is one that the driver loads.
fn has_schema(path: &str, dataset: &Dataset, findings: &mut Findings) -> bool {
    match (dataset.driver, dataset.schema) {
        (Driver::Native, None) => {
            let message = "the key `schema` is missing".to_owned();
            let help = "`schema`: whose tables, `ycsb` or `sysbench`".to_owned();
            findings.value(path.to_owned(), message, help);
            false
        }
        (Driver::Sysbench, Some(Schema::Ycsb)) => {
            let message = "the driver `sysbench` loads its own tables only".to_owned();
            findings.value(format!("{path}.schema"), message, None);
            false
        }
        (Driver::Native, Some(_)) | (Driver::Sysbench, _) => true,
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
    let known = |i: usize| {
        let has = |key: &str| view.has(&format!("dataset[{i}].{key}"));
        has("schema") && has("driver")
    };
    if !(0..datasets.len()).all(known) || datasets.iter().any(|d| !is_whole(d)) {
        return;
    }
    for (i, workload) in view.experiment.workloads.iter().enumerate() {
        let Some((key, kind)) = written(workload) else {
            continue;
        };
        let schema = kind.schema();
        if !datasets.iter().any(|d| d.schema() == schema) {
            let (schema, driver) = (word(schema), driver_word(workload.driver));
            let message = format!(
                "`{}` needs a dataset with the schema `{schema}`",
                kind.as_str()
            );
            let help = format!("add `{{driver: {driver}, schema: {schema}}}` to `dataset`");
            findings.value(format!("workloads[{i}].{key}"), message, help);
        }
    }
}

/// Whether the schema of a dataset is known.
fn is_whole(dataset: &Dataset) -> bool {
    dataset.driver != Driver::Native || dataset.schema.is_some()
}

/// What a workload runs, and the key that says so.
fn written(workload: &Workload) -> Option<(&'static str, Kind)> {
    let workload_key = workload.workload.map(|kind| ("workload", kind));
    workload_key.or(workload.script.map(|kind| ("script", kind)))
}

fn driver_word(driver: Driver) -> &'static str {
    match driver {
        Driver::Native => "native",
        Driver::Sysbench => "sysbench",
    }
}

/// Each driver says what it runs with a key of its own.
pub(super) fn kinds(view: View<'_>, findings: &mut Findings) {
    for (i, workload) in view.experiment.workloads.iter().enumerate() {
        let path = format!("workloads[{i}]");
        if !["driver", "workload", "script"]
            .iter()
            .all(|key| view.has(&format!("{path}.{key}")))
        {
            continue;
        }
        let (own, other, is_missing, is_foreign) = match workload.driver {
            Driver::Native => (
                "workload",
                "script",
                workload.workload.is_none(),
                workload.script.is_some() || !workload.options.is_empty(),
            ),
            Driver::Sysbench => (
                "script",
                "workload",
                workload.script.is_none(),
                workload.workload.is_some(),
            ),
        };
        let driver = driver_word(workload.driver);
        if is_foreign {
            let key = match (workload.driver, workload.script) {
                (Driver::Native, None) => "options",
                _ => other,
            };
            let message = format!("`{key}` is no key of the driver `{driver}`");
            let help = format!("it runs what `{own}` says");
            findings.key(format!("{path}.{key}"), message, help);
        } else if is_missing {
            let message = format!("the key `{own}` is missing");
            let help = format!("`{own}`: what the driver `{driver}` runs");
            findings.value(path.clone(), message, help);
        }
        if let (Driver::Sysbench, Some(kind)) = (workload.driver, workload.script)
            && kind.schema() != Schema::Sysbench
        {
            let message = format!("sysbench has no script `{}`", kind.as_str());
            findings.value(format!("{path}.script"), message, None);
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
        let key = match (&workload.name, workload.script) {
            (Some(_), _) => "name",
            (None, Some(_)) => "script",
            (None, None) => "workload",
        };
        let help = "give each its own `name`".to_owned();
        findings.value(format!("workloads[{i}].{key}"), message, help);
    }
    for (i, workload) in workloads.iter().enumerate() {
        let path = format!("workloads[{i}]");
        if has_kind(view, i) {
            keys_with_effect(&path, workload, findings);
            distribution(&path, workload, findings);
        }
    }
}

/// Whether what a workload is called is what was written.
pub(super) fn label_is_known(view: View<'_>, i: usize) -> bool {
    let has = |key: &str| view.has(&format!("workloads[{i}].{key}"));
    has("name") && (view.experiment.workloads[i].name.is_some() || has_kind(view, i))
}

/// Whether what a workload runs is what was written.
fn has_kind(view: View<'_>, i: usize) -> bool {
    let has = |key: &str| view.has(&format!("workloads[{i}].{key}"));
    written(&view.experiment.workloads[i]).is_some_and(|(key, _)| has(key))
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
        if set && !kinds.contains(&workload.kind()) {
            let kind = workload.kind().as_str();
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
    let (family, fits, words) = match workload.kind().schema() {
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
