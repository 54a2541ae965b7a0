//! What a run is besides its numbers: how far it came, its variants, hosts and programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde::Serialize;

use crate::artifacts::{End, Event, Run};
use crate::database::Effective;
use crate::host;
use crate::report::rows::{Counts, Difference, Disk, Facts, Program, Progress, RunFacts, Variant};
use crate::units::Bytes;

/// The run as a whole; its rounds are counted later.
pub(super) fn run(run: &Run, description: Option<String>) -> RunFacts {
    let finished = run.events.iter().rev().find_map(|e| match e.event {
        Event::RunFinished {
            actual_s,
            estimated_bytes,
            actual_bytes,
            ..
        } => Some((
            actual_s,
            Disk {
                estimated_bytes,
                actual_bytes,
            },
        )),
        _ => None,
    });
    let finished = finished.filter(|_| run.state.end == Some(End::Finished));
    let (progress, stopped) = match &run.state.end {
        Some(End::Finished) => (Progress::Finished, None),
        Some(End::Stopped(reason)) => (Progress::Stopped, Some(reason.clone())),
        None if run.live => (Progress::Running, None),
        None => (Progress::Interrupted, None),
    };
    RunFacts {
        experiment: run.manifest.experiment.clone(),
        description,
        id: run.manifest.run.clone(),
        created: run.manifest.created,
        assay: run.manifest.assay.clone(),
        spec: run.plan.spec.clone(),
        seed: run.plan.seed,
        order: word(&run.plan.order),
        restore: word(&run.plan.restore),
        progress,
        stopped,
        rounds: Counts::default(),
        estimated_s: run.state.estimated_s,
        actual_s: finished.map_or(run.state.spent_s, |(actual, _)| actual),
        disk: finished.map(|(_, disk)| disk),
    }
}

/// The word that a plain enum is written as.
fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        other => format!("{other:?}"),
    }
}

/// What is compared.
pub(super) fn variants(run: &Run) -> Vec<Variant> {
    let of = |d: &crate::plan::Deployment| {
        let ready = run.state.ready.get(&d.id);
        let effective = effective(run, &d.id);
        Variant {
            name: d.id.clone(),
            system: word(&d.system),
            version: d.version.clone(),
            topology: d.topology.clone(),
            clients: d.clients.clone(),
            config: d.config.clone(),
            reported_version: effective.as_ref().map(|e| e.version.clone()),
            effective: effective.map(|e| e.config).unwrap_or_default(),
            snapshot_method: ready.map(|r| r.snapshot_method.clone()),
            data_bytes: ready.map(|r| r.bytes),
        }
    };
    run.plan.deployments.iter().map(of).collect()
}

/// What the last preparation of a deployment read back from its system.
fn effective(run: &Run, deployment: &str) -> Option<Effective> {
    let nth = *run.state.preparations.get(deployment)?;
    let files = fs::read_dir(run.layout.deployment(deployment, nth)).ok()?;
    let mut paths: Vec<PathBuf> = files.filter_map(|f| Some(f.ok()?.path())).collect();
    paths.sort();
    let path = paths
        .iter()
        .rfind(|p| p.to_string_lossy().ends_with("-start.json"))?;
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// The settings that are not the same in all variants. Of a variant that was not deployed only what the experiment sets is
/// known; the rest of it differs from nothing.
pub(super) fn differences(variants: &[Variant]) -> Vec<Difference> {
    let settings: Vec<BTreeMap<String, String>> = variants.iter().map(settings).collect();
    let names: BTreeSet<&String> = settings.iter().flat_map(BTreeMap::keys).collect();
    names
        .into_iter()
        .map(|name| Difference {
            setting: name.clone(),
            values: settings.iter().map(|s| s.get(name).cloned()).collect(),
        })
        .filter(|d| {
            let both = d.values.iter().zip(variants);
            let known: Vec<_> = both
                .filter(|(value, v)| value.is_some() || v.reported_version.is_some())
                .map(|(value, _)| value)
                .collect();
            known.windows(2).any(|w| w[0] != w[1])
        })
        .collect()
}

fn settings(variant: &Variant) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::from([("system".to_owned(), variant.system.clone())]);
    let wanted = variant.version.as_ref().map(|v| format!("{v} (wanted)"));
    let version = variant.reported_version.clone().or(wanted);
    settings.extend(version.map(|v| ("version".to_owned(), v)));
    settings.insert("clients".into(), variant.clients.join(", "));
    for (role, hosts) in &variant.topology {
        settings.insert(format!("topology.{role}"), hosts.join(", "));
    }
    // What was read back takes the place of what was asked for.
    for (component, tunables) in variant.config.iter().chain(&variant.effective) {
        for (name, value) in tunables {
            settings.insert(format!("{component}.{name}"), value.clone());
        }
    }
    settings
}

/// The hosts and what they are.
pub(super) fn hosts(run: &Run) -> Vec<Facts> {
    let hosts = run.manifest.hosts.iter();
    hosts
        .map(|(name, facts)| Facts {
            name: name.clone(),
            facts: host_facts(facts),
        })
        .collect()
}

fn host_facts(facts: &host::Facts) -> Vec<(String, String)> {
    let bytes = |n: u64| Bytes(n).to_string();
    let file_system = facts.file_system.as_ref();
    let all = [
        ("Host name", facts.hostname.clone()),
        ("Operating system", facts.os.clone()),
        ("Kernel", facts.kernel.clone()),
        ("Architecture", facts.architecture.clone()),
        ("CPU", facts.cpu.clone()),
        ("CPUs online", facts.cpus.map(|n| n.to_string())),
        ("Frequency governor", facts.governor.clone()),
        ("Memory", facts.memory_bytes.map(bytes)),
        ("Swap", facts.swap_bytes.map(bytes)),
        ("Transparent huge pages", facts.thp.clone()),
        (
            "File system",
            file_system.map(|f| format!("{} on {}, mounted at {}", f.kind, f.device, f.mount)),
        ),
        (
            "Space",
            file_system.map(|f| format!("{} free of {}", bytes(f.free_bytes), bytes(f.size_bytes))),
        ),
        (
            "Reflinks",
            file_system.map(|f| if f.reflink { "yes" } else { "no" }.to_owned()),
        ),
        (
            "Network interfaces",
            (!facts.nics.is_empty()).then(|| facts.nics.join(", ")),
        ),
    ];
    all.into_iter()
        .filter_map(|(label, value)| Some((label.to_owned(), value?)))
        .collect()
}

/// The programs that were used.
pub(super) fn programs(run: &Run) -> Vec<Program> {
    let manifest = &run.manifest;
    let names: BTreeSet<&String> = manifest
        .programs
        .keys()
        .chain(manifest.versions.keys())
        .collect();
    names
        .into_iter()
        .map(|name| Program {
            name: name.clone(),
            version: manifest.versions.get(name).cloned(),
            sha256: manifest.programs.get(name).cloned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_that_differ_are_differences() {
        let variant = |name: &str, tunables: &[(&str, &str)]| Variant {
            name: name.into(),
            system: "sqlite".into(),
            version: None,
            topology: BTreeMap::new(),
            clients: vec!["local".into()],
            config: BTreeMap::from([(
                "sqlite".to_owned(),
                tunables
                    .iter()
                    .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                    .collect(),
            )]),
            reported_version: Some("3.51.0".into()),
            effective: BTreeMap::new(),
            snapshot_method: None,
            data_bytes: None,
        };
        let found = differences(&[
            variant("a", &[("journal_mode", "wal"), ("cache_size", "100")]),
            variant(
                "b",
                &[
                    ("journal_mode", "delete"),
                    ("cache_size", "100"),
                    ("mmap_size", "0"),
                ],
            ),
        ]);
        let found: Vec<_> = found
            .iter()
            .map(|d| (d.setting.as_str(), d.values.clone()))
            .collect();
        let some = |s: &str| Some(s.to_owned());
        assert_eq!(
            found,
            [
                ("sqlite.journal_mode", vec![some("wal"), some("delete")]),
                ("sqlite.mmap_size", vec![None, some("0")]),
            ]
        );
    }
}
