//! Plans are reviewed like code: golden texts of each order and restore policy.

use std::path::Path;

use assay::pack::Packs;
use assay::plan::{Action, Plan, build, estimate, text};
use assay::spec::{Request, Spec, load};

use crate::support::golden::{assert_kept, project};

fn spec(overrides: &[&str]) -> Spec {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    let path = project().join("tests/fixtures/plan/experiment.yaml");
    let request = Request {
        path: &path,
        inventory: None,
        overrides: &overrides,
        environment: &|_| None,
        working_directory: Path::new("/"),
    };
    load(&request, &[]).unwrap_or_else(|problems| panic!("{problems}"))
}

fn plan(overrides: &[&str]) -> Plan {
    let spec = spec(overrides);
    build(
        &spec.experiment,
        &spec.inventory,
        &Packs::built_in(),
        "0123456789abcdef",
    )
    .unwrap()
}

#[test]
fn each_order_and_restore_policy_has_its_golden_plan() {
    for (name, overrides) in [
        ("interleaved", &["rounds.order=interleaved"][..]),
        ("blocked", &["rounds.order=blocked"]),
        ("random", &["rounds.order=random"]),
        ("after-writes", &["snapshot.restore=after-writes"]),
        ("each-workload", &["snapshot.restore=each-workload"]),
        ("never", &["snapshot.restore=never"]),
        ("rates", &["sweep.rate=[100, 0.5]", "sweep.threads=[2]"]),
    ] {
        let plan = plan(overrides);
        assert_kept(
            &format!("tests/fixtures/plan/{name}.txt"),
            &text(&plan, &estimate(&plan)),
        );
    }
}

#[test]
fn the_plan_survives_its_json() {
    let plan = plan(&[]);
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}

#[test]
fn the_variants_of_a_block_share_their_keys_and_no_two_blocks_do() {
    let plan = plan(&[]);
    let mut seeds = std::collections::BTreeMap::new();
    for round in &plan.rounds {
        for step in &round.steps {
            if let Action::Measure(measure) = &step.action {
                seeds
                    .entry(round.block)
                    .or_insert_with(std::collections::BTreeSet::new)
                    .insert(measure.seed);
            }
        }
    }
    assert!(seeds.values().all(|s| s.len() == 1));
    let distinct: std::collections::BTreeSet<_> = seeds.values().flatten().collect();
    assert_eq!(distinct.len(), seeds.len());
}

#[test]
fn more_repetitions_or_threads_leave_the_ids_of_the_other_rounds_as_they_are() {
    let before: std::collections::BTreeSet<String> =
        plan(&[]).rounds.into_iter().map(|r| r.id).collect();
    for more in ["rounds.repetitions=5", "sweep.threads=[1, 2, 4]"] {
        let after: std::collections::BTreeSet<String> =
            plan(&[more]).rounds.into_iter().map(|r| r.id).collect();
        assert!(
            after.is_superset(&before) && after.len() > before.len(),
            "{more}"
        );
    }
}

#[test]
fn what_shapes_the_data_changes_the_fingerprint_and_what_does_not_leaves_it() {
    let of = |overrides: &[&str]| plan(overrides).deployments.remove(0).fingerprint;
    let before = of(&["seed=1"]);
    assert_eq!(of(&["seed=1", "rounds.repetitions=9"]), before);
    assert_eq!(of(&["seed=1", "sweep.threads=[3]"]), before);
    for change in [
        "dataset[0].records=11",
        "variants.delete.config.sqlite.page_size=8192",
        "variants.delete.version=\"3\"",
        "seed=2",
    ] {
        assert_ne!(of(&["seed=1", change]), before, "{change}");
    }
}

#[test]
fn every_round_has_an_id_of_its_own_and_ends_with_its_teardown() {
    let plan = plan(&[]);
    let ids: std::collections::BTreeSet<_> = plan.rounds.iter().map(|r| &r.id).collect();
    assert_eq!(ids.len(), plan.rounds.len());
    for round in &plan.rounds {
        let names: Vec<_> = round.steps.iter().map(|s| s.action.name()).collect();
        assert_eq!(names, ["restore", "start", "measure", "stop", "collect"]);
    }
}
