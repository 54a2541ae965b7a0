//! The resolved spec: its text reads back as the same values, and its hash changes with what is run.

use std::path::Path;

use assay::spec::{Request, Spec, load};
use proptest::prelude::*;

use super::support::{Folder, ROOT, SMALL, environment, load_small, load_text};

/// The spec that the archived texts of another read back as.
fn again(spec: &Spec) -> Spec {
    let folder = Folder::with(&[
        ("run/experiment.yaml", &spec.experiment_text),
        ("run/inventory.yaml", &spec.inventory_text),
    ]);
    let read = folder.load("run/experiment.yaml");
    read.unwrap_or_else(|problems| panic!("{problems}\n{}", spec.experiment_text))
}

#[test]
fn archived_texts_read_back_as_the_same_spec() {
    for file in [
        "experiments/quickstart.yaml",
        "experiments/sqlite-tuning.yaml",
        "templates/init/experiment.yaml",
    ] {
        let request = Request {
            path: Path::new(file),
            inventory: None,
            overrides: &[
                "sweep.rate=[0.5, 1e3]".to_owned(),
                "seed=18446744073709551615".to_owned(),
                "rounds.limits.load=364d 1h 1ms 5ns".to_owned(),
            ],
            environment: &environment,
            working_directory: Path::new(ROOT),
        };
        let spec = load(&request, &[]).unwrap();
        assert_eq!(again(&spec), spec, "{file}");
    }
}

#[test]
fn the_archived_text_is_yaml_with_every_value() {
    let spec = load_text(SMALL).unwrap();
    let expected = "\
# the experiment as assay resolved it: every value, with its default
name: small
inventory: inventory.yaml
cluster:
  system: sqlite
  topology:
    sqlite: [local]
variants:
  a: {}
  b: {}
dataset:
  - driver: native
    schema: ycsb
snapshot:
  method: auto
  restore: each-round
workloads:
  - driver: native
    workload: ycsb_c
sweep:
  threads: [1]
rounds:
  warmup: \"0s\"
  duration: \"1s\"
  repetitions: 3
  order: interleaved
  on_failure: continue
  limits:
    load: \"1h\"
    snapshot: \"30m\"
    start: \"5m\"
    grace: \"1m\"
compare:
  metrics: [throughput, p95, p99]
";
    assert_eq!(spec.experiment_text, expected);
}

#[test]
fn archived_texts_hold_the_names_of_secrets_and_escape_what_only_looks_like_one() {
    let text = SMALL.replace(
        "{a: {}, b: {}}",
        "{a: {config: {sqlite: {key: \"${env:BENCH_PASSWORD}\", x: \"$${env:OTHER} $${x}\"}}}, b: {}}",
    );
    let spec = load_text(&text).unwrap();
    assert!(
        spec.experiment_text
            .contains("key: \"${env:BENCH_PASSWORD}\"")
    );
    assert!(spec.experiment_text.contains("x: \"$${env:OTHER} $${x}\""));
    assert!(!spec.experiment_text.contains("hunter2"));
    assert_eq!(
        spec.experiment.variants["a"].config["sqlite"]["x"].0,
        "${env:OTHER} ${x}"
    );
    assert_eq!(again(&spec), spec);
}

#[test]
fn the_hash_is_that_of_the_content() {
    let hash = |text: &str| load_text(text).unwrap().hash;
    let small = hash(SMALL);
    assert_eq!(small.len(), 64);
    // Another folder, comments, quotes, units, defaults and variables are no difference.
    assert_eq!(hash(&format!("# comment\n{SMALL}")), small);
    assert_eq!(
        hash(&SMALL.replace("1s", "\"1000ms\", repetitions: 3")),
        small
    );
    assert_eq!(
        hash(
            &SMALL
                .replace("1s", "${d}, warmup: 0s")
                .replace("{duration: ${d}, warmup: 0s}", "{duration: \"${d}\"}")
                .replace("name: small", "name: small\nvars: {d: 1s}")
        ),
        small
    );
    // Values and the order of variants are.
    assert_ne!(hash(&SMALL.replace("1s", "2s")), small);
    assert_ne!(
        hash(&SMALL.replace("{a: {}, b: {}}", "{b: {}, a: {}}")),
        small
    );
    assert_ne!(
        hash(&SMALL.replace("{a: {}, b: {}}", "{a: {}, b: {version: 1}}")),
        small
    );
}

#[test]
fn where_an_inventory_and_its_directories_are_does_not_enter_the_hash() {
    let text = |path: &str| format!("{SMALL}inventory: {path}\n");
    let hash = |path: &str, inventory: &str| {
        Folder::with(&[("x.yaml", &text(path)), (path, inventory)])
            .load("x.yaml")
            .unwrap()
            .hash
    };
    let one = hash(
        "i.yaml",
        "hosts: {local: {connection: local, directory: a}}\n",
    );
    assert_eq!(
        one,
        hash("b/j.yaml", "hosts: {local: {connection: local}}\n")
    );
    assert_eq!(one, load_text(SMALL).unwrap().hash);
    let more = "hosts: {local: {connection: local}, other: {connection: local, directory: o}}\n";
    assert_eq!(one, hash("i.yaml", more));
    let marked = "hosts: {local: {connection: local, labels: {disk: nvme}}}\n";
    assert_ne!(one, hash("i.yaml", marked));
}

proptest! {
    #[test]
    fn any_text_reads_back_from_the_archive(text in "(?s)[ -~\n\t\u{85}-\u{a0}\u{2028}\u{fffe}ä€😀${}:#'\"\\\\]{0,80}") {
        let quoted = text
            .chars()
            .map(|c| match c {
                '"' | '\\' => format!("\\{c}"),
                '\n' => "\\n".to_owned(),
                '\t' => "\\t".to_owned(),
                c if c == ' ' || c.is_ascii_graphic() || c == 'ä' || c == '€' || c == '😀' => c.to_string(),
                c => format!("\\u{:04X}", u32::from(c)),
            })
            .collect::<String>()
            .replace("${", "$${");
        let control = |c: char| c.is_control() && c != '\n' && c != '\t';
        let line = format!("{}\ndescription: \"{quoted}\"", SMALL.lines().next().unwrap());
        let spec = load_small("name", &line);
        if text.contains(control) {
            prop_assert!(spec.is_err());
        } else {
            let spec = spec.map_err(|problems| TestCaseError::fail(format!("{problems}\n{line}")))?;
            prop_assert_eq!(spec.experiment.description.as_deref(), Some(text.as_str()));
            prop_assert_eq!(&again(&spec), &spec);
        }
    }
}
