//! What a run is besides its numbers: how far it came, its variants, hosts and programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde::Serialize;

use crate::artifacts::{End, Event, Run};
use crate::database::Effective;
use crate::host::preflight::{self, Finding};
use crate::host::{Calibration, ClockOffset, Measure, Outlier, outliers};
use crate::report::rows::{Counts, Difference, Disk, Facts, Program, Progress, RunFacts, Variant};

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
pub(super) fn effective(run: &Run, deployment: &str) -> Option<Effective> {
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

/// The hosts, what they are, and how fast each was beside the others.
pub(super) fn hosts(run: &Run) -> Vec<Facts> {
    let hosts = run.manifest.hosts.iter();
    let calibrations = hosts
        .clone()
        .filter_map(|(name, record)| Some((name.clone(), record.calibration.clone()?)));
    let outliers = outliers(&calibrations.collect());
    hosts
        .map(|(name, record)| {
            let own: Vec<&Outlier> = outliers.iter().filter(|o| o.host == *name).collect();
            let labelled = record.facts.labelled().into_iter();
            let mut facts: Vec<_> = labelled.map(|(label, v)| (label.to_owned(), v)).collect();
            facts.extend(record.clock.map(clock));
            facts.extend(record.calibration.iter().flat_map(|c| calibration(c, &own)));
            facts.extend(preflight(&record.preflight));
            Facts {
                name: name.clone(),
                facts,
            }
        })
        .collect()
}

fn clock(clock: ClockOffset) -> (String, String) {
    let doubt = clock.round_trip_ms / 2.0;
    let text = format!("{:+.1} ms ± {doubt:.1} ms", clock.offset_ms);
    ("Clock offset".to_owned(), text)
}

/// The values of a calibration; one that is much worse than the other hosts' says so.
fn calibration(found: &Calibration, outliers: &[&Outlier]) -> Vec<(String, String)> {
    let values = Measure::ALL.into_iter().filter_map(|measure| {
        let (value, unit) = (measure.of(found)?, measure.unit());
        let mark = outliers.iter().find(|o| o.measure == measure);
        let mark = mark.map_or(String::new(), |outlier| {
            format!(
                " (slow: the other hosts' median is {:.3} {unit})",
                outlier.median
            )
        });
        Some((
            measure.label().to_owned(),
            format!("{value:.3} {unit}{mark}"),
        ))
    });
    values.collect()
}

/// What pre-flight warned of.
fn preflight(findings: &[Finding]) -> Option<(String, String)> {
    let bad = |f: &&Finding| matches!(f.status, preflight::Status::Warn | preflight::Status::Fail);
    let texts: Vec<String> = findings
        .iter()
        .filter(bad)
        .map(|f| format!("{}: {}, wanted {}", f.item, f.found, f.wanted))
        .collect();
    (!texts.is_empty()).then(|| ("Pre-flight".to_owned(), texts.join("; ")))
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
    fn a_host_that_is_slower_than_the_others_says_so_beside_its_value() {
        let of = |fsync_p50_ms| Calibration {
            cpu_ms: 30.0,
            memory_gb_s: 10.0,
            fsync_p50_ms,
            fsync_p99_ms: 9.0,
            network_ms: BTreeMap::new(),
        };
        let hosts = [("a", 1.0), ("b", 1.2), ("c", 4.0)];
        let hosts = hosts.map(|(name, ms)| (name.to_owned(), of(ms)));
        let outliers = outliers(&hosts.clone().into());
        let shown = |host: usize| {
            let (name, found) = &hosts[host];
            let own: Vec<_> = outliers.iter().filter(|o| o.host == *name).collect();
            calibration(found, &own)
        };
        let line = |label: &str, value: &str| (label.to_owned(), value.to_owned());
        let fine = [
            line("CPU loop", "30.000 ms"),
            line("Memory copy", "10.000 GB/s"),
        ];
        assert_eq!(shown(0)[..2], fine);
        assert_eq!(shown(0)[2], line("fsync, median", "1.000 ms"));
        let slow = "4.000 ms (slow: the other hosts' median is 1.100 ms)";
        assert_eq!(shown(2)[2], line("fsync, median", slow));
    }

    #[test]
    fn what_pre_flight_warned_of_stands_with_the_host() {
        let of = |item: &str, status| Finding {
            item: item.into(),
            status,
            found: "on".into(),
            wanted: "off".into(),
            why: String::new(),
            fix: None,
        };
        let found = [
            of("swap", preflight::Status::Warn),
            of("thp", preflight::Status::Ok),
        ];
        let expected = ("Pre-flight".to_owned(), "swap: on, wanted off".to_owned());
        assert_eq!(preflight(&found), Some(expected));
        assert_eq!(preflight(&found[1..]), None);
    }

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
