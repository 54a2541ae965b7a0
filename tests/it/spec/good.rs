//! What a spec may say, and what it then means.

use assay::pack;
use assay::spec::{Check, Name, Problem, Setting};

use super::support::{Folder, SMALL, load_small, load_text};

/// The value of a tunable of a variant.
fn tunable(spec: &assay::spec::Spec, variant: &str, name: &str) -> String {
    pack::text(&spec.experiment.variants[variant].config["sqlite"][name].0)
}

#[test]
fn whole_numbers_may_have_underscores() {
    let spec = load_small(
        "dataset",
        "dataset: {driver: native, schema: sysbench, table_size: 10_000_000}\nworkloads: [{driver: native, workload: oltp_insert}]",
    );
    // The small experiment has workloads of its own.
    let text = spec.unwrap_err().to_string();
    assert!(text.contains("duplicate key `workloads`"), "{text}");
    let text = SMALL
        .replace("schema: ycsb", "schema: sysbench, table_size: 10_000_000")
        .replace("ycsb_c", "oltp_insert");
    let spec = load_text(&text).unwrap();
    assert_eq!(spec.experiment.dataset.0[0].table_size, Some(10_000_000));
}

#[test]
fn versions_stay_text_everywhere() {
    let text = SMALL.replace(
        "{a: {}, b: {}}",
        "{6.10: {version: 6.10}, b: {version: \"${v}\"}}\nvars: {v: 3.50}",
    );
    let spec = load_text(&text).unwrap();
    let variants = &spec.experiment.variants;
    assert_eq!(variants["6.10"].version.as_deref(), Some("6.10"));
    assert_eq!(variants["b"].version.as_deref(), Some("3.50"));
    for written in [
        "\"6.10\":\n    version: \"6.10\"",
        "  b:\n    version: \"3.50\"",
    ] {
        assert!(
            spec.experiment_text.contains(written),
            "{}",
            spec.experiment_text
        );
    }
}

#[test]
fn tunables_have_the_types_that_they_are_written_with() {
    let tunables = "x: \"${v}\", text: \"${t}\", z: 1_000, on: on, yes: true, low: -2.50, \
        quoted: \"3.50\", size: 5MB, list: [1, \"1\"], deep: {a.b: 1, c: [true]}";
    let text = SMALL.replace(
        "{a: {}, b: {}}",
        &format!(
            "{{a: {{}}, b: {{config: {{sqlite: {{{tunables}}}}}}}}}\nvars: {{v: 3.50, t: \"3.50\"}}"
        ),
    );
    let spec = load_text(&text).unwrap();
    let found = &spec.experiment.variants["b"].config["sqlite"];
    let expected = serde_json::json!({
        "x": 3.5, "text": "3.50", "z": 1000, "on": "on", "yes": true, "low": -2.5,
        "quoted": "3.50", "size": "5MB", "list": [1, "1"], "deep": {"a.b": 1, "c": [true]},
    });
    assert_eq!(serde_json::to_value(found).unwrap(), expected);
    for (wrong, instead) in [("0x1F", "write `31`"), ("017", "write `17`")] {
        let tunable = format!("a: {{config: {{sqlite: {{y: {wrong}}}}}}}");
        let problems = load_text(&SMALL.replace("a: {}", &tunable)).unwrap_err();
        let found = problems.to_string();
        assert!(found.contains("variants.a.config.sqlite.y: "), "{found}");
        assert!(found.contains(instead), "{found}");
    }
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_change_nothing() {
    let plain = load_text(SMALL).unwrap();
    let windows = load_text(&format!("\u{FEFF}{}", SMALL.replace('\n', "\r\n"))).unwrap();
    assert_eq!(plain.experiment, windows.experiment);
    assert_eq!(plain.hash, windows.hash);
}

#[test]
fn problems_in_files_with_windows_line_ends_stand_at_their_lines() {
    let text = SMALL.replace("1s", "1").replace('\n', "\r\n");
    let problems = load_text(&format!("\u{FEFF}{text}")).unwrap_err();
    let expected = "\
error: rounds.duration: expected a duration such as `90s`, `20m` or `1h 30m`, found `1`
 --> x.yaml:8:20
  |
8 | rounds: {duration: 1}
  |                    ^
  |
  = help: write a unit: `1s`";
    assert_eq!(problems.to_string(), expected);
    let first = load_text(&format!("\u{FEFF}nam: x\r\n{text}"))
        .unwrap_err()
        .list();
    assert_eq!((first[0].line, first[0].column), (Some(1), Some(1)));
}

#[test]
fn anchors_and_merge_keys_are_followed_and_what_is_written_wins() {
    let text = SMALL.replace(
        "{a: {}, b: {}}",
        "
  a: {config: {sqlite: &a {x: 1, y: 2}}}
  b: {config: {sqlite: {y: 3, <<: *a}}}
  c: {config: {sqlite: {<<: [{z: 4, x: 5}, *a]}}}
  d: {config: {sqlite: *a}}
  e: {config: {sqlite: {\"<<x\": 6}}}",
    );
    let text = text.replace("\"<<x\": 6", "x: 6");
    let spec = load_text(&text).unwrap();
    let values = |variant: &str| {
        let config = &spec.experiment.variants[variant].config["sqlite"];
        config
            .iter()
            .map(|(name, value)| format!("{name}={}", pack::text(&value.0)))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(values("b"), "y=3 x=1");
    assert_eq!(values("c"), "z=4 x=5 y=2");
    assert_eq!(values("d"), "x=1 y=2");
}

#[test]
fn a_merge_key_brings_its_variants_where_it_stands() {
    let text = SMALL.replace(
        "variants: {a: {}, b: {}}",
        "variants: {<<: {base: {}, b: {version: 1}}, b: {}, c: {}}",
    );
    let spec = load_text(&text).unwrap();
    let names: Vec<&str> = spec.experiment.variants.keys().map(Name::as_str).collect();
    assert_eq!(names, ["base", "b", "c"]);
    assert_eq!(spec.experiment.variants["b"].version, None);
}

#[test]
fn a_file_is_laid_over_what_it_extends() {
    let folder = Folder::with(&[
        (
            "base/base.yaml",
            &format!("{SMALL}inventory: hosts.yaml\ndescription: base\n"),
        ),
        (
            "base/hosts.yaml",
            "hosts: {local: {connection: local, directory: data}}\n",
        ),
        (
            "x/middle.yaml",
            "extends: ../base/base.yaml\nrounds: {warmup: 2s}\nsweep: {threads: [2, 3]}\n",
        ),
        (
            "x/top.yaml",
            "name: top\nextends: middle.yaml\nvariants: {b: {version: 2}, c: {}}\n",
        ),
    ]);
    let spec = folder.load("x/top.yaml").unwrap();
    let experiment = &spec.experiment;
    assert_eq!(experiment.name.as_str(), "top");
    assert_eq!(experiment.description.as_deref(), Some("base"));
    let names: Vec<&str> = experiment.variants.keys().map(Name::as_str).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(experiment.variants["b"].version.as_deref(), Some("2"));
    assert_eq!(experiment.sweep.threads, [2, 3]);
    assert!((experiment.rounds.warmup.as_secs_f64() - 2.0).abs() < 1e-9);
    assert!((experiment.rounds.duration.as_secs_f64() - 1.0).abs() < 1e-9);
    // Paths are those of the file that names them.
    let directory = spec.inventory.hosts["local"].directory.as_deref().unwrap();
    let expected = folder.path().canonicalize().unwrap().join("base/data");
    assert_eq!(directory, expected.to_str().unwrap());
}

#[test]
fn arguments_override_single_values() {
    let text = SMALL.replace(
        "{a: {}, b: {}}",
        "{v5.4.3: {version: v5.4.3}, v5: {}}\nvars: {t: 5s}",
    );
    let folder = Folder::with(&[("x.yaml", &text)]);
    let overrides = [
        "rounds.duration=9s",
        "rounds.duration=${t}",
        "vars.t=7s",
        "sweep.threads=[4, 8]",
        "workloads[0].name=reads",
        "variants.v5.4.3.version=5.4.4",
        "variants.\"new.one\".config.sqlite.cache_size=-2000",
        "snapshot.restore=never",
        "description=\"a = b\"",
    ];
    let spec = folder.load_with("x.yaml", &overrides, &[]).unwrap();
    let experiment = &spec.experiment;
    assert!((experiment.rounds.duration.as_secs_f64() - 7.0).abs() < 1e-9);
    assert_eq!(experiment.sweep.threads, [4, 8]);
    assert_eq!(experiment.workloads[0].label(), "reads");
    assert_eq!(
        experiment.variants["v5.4.3"].version.as_deref(),
        Some("5.4.4")
    );
    assert_eq!(experiment.variants["v5"].version, None);
    assert_eq!(tunable(&spec, "new.one", "cache_size"), "-2000");
    assert_eq!(experiment.snapshot.restore, assay::spec::Restore::Never);
    assert_eq!(experiment.description.as_deref(), Some("a = b"));
}

#[test]
fn variables_use_each_other_and_take_any_place() {
    let text = SMALL
        .replace(
            "name: small",
            "name: x-${b}\nvars: {a: 1, b: \"${a}0\", n: 3, free: \"$${b} costs $5 ${a}\"}",
        )
        .replace("[1]", "[\"${n}\", 1]")
        .replace("duration: 1s", "duration: \"${b}s\", repetitions: \"${n}\"")
        + "description: ${free}\n";
    let spec = load_text(&text).unwrap();
    let experiment = &spec.experiment;
    assert_eq!(experiment.name.as_str(), "x-10");
    assert_eq!(experiment.sweep.threads, [3, 1]);
    assert_eq!(experiment.rounds.repetitions, 3);
    assert!((experiment.rounds.duration.as_secs_f64() - 10.0).abs() < 1e-9);
    assert_eq!(experiment.description.as_deref(), Some("${b} costs $5 1"));
    assert!(experiment.vars.is_empty());
}

#[test]
fn a_variable_never_changes_the_structure() {
    let text = format!("{SMALL}vars: {{v: \"a, b: [c]\\nname: other\"}}\ndescription: ${{v}}\n");
    let spec = load_text(&text).unwrap();
    assert_eq!(spec.experiment.name.as_str(), "small");
    assert_eq!(
        spec.experiment.description.as_deref(),
        Some("a, b: [c]\nname: other")
    );
}

#[test]
fn secrets_keep_their_names_until_they_are_used() {
    let text = SMALL.replace(
        "{a: {}, b: {}}",
        "{a: {config: {sqlite: {key: \"<${pw}>\"}}}, b: {}}\nvars: {pw: \"${env:BENCH_PASSWORD}\", unused: \"${env:NOT_SET}\"}",
    );
    let spec = load_text(&text).unwrap();
    let value = tunable(&spec, "a", "key");
    assert_eq!(value, "<${env:BENCH_PASSWORD}>");
    assert_eq!(spec.secrets.reveal(&value), "<hunter2 & co>");
    assert_eq!(
        spec.secrets.hide("bad key <hunter2 & co>"),
        "bad key <${env:BENCH_PASSWORD}>"
    );
    let names: Vec<&str> = spec.secrets.names().collect();
    assert_eq!(names, ["BENCH_PASSWORD"]);
    let everything = format!("{spec:?}");
    assert!(!everything.contains("hunter2"), "{everything}");
}

#[test]
fn a_secret_never_stands_in_a_message() {
    let text = SMALL.replace(
        "duration: 1s",
        "duration: \"${env:BENCH_PASSWORD}\", colour: \"${env:BENCH_PASSWORD}\"",
    );
    let problems = load_text(&text).unwrap_err();
    let text = format!("{problems} {problems:?} {}", problems.render(true));
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn an_experiment_without_inventory_runs_on_this_machine() {
    let folder = Folder::with(&[("x.yaml", SMALL)]);
    let spec = folder.load("x.yaml").unwrap();
    let host = &spec.inventory.hosts["local"];
    let expected = folder.path().join(".assay");
    assert_eq!(host.directory.as_deref(), expected.to_str());
}

#[test]
fn the_inventory_of_the_request_comes_first() {
    let text = format!("{SMALL}inventory: missing.yaml\n");
    let folder = Folder::with(&[
        ("x.yaml", &text),
        (
            "hosts/i.yaml",
            "hosts: {local: {connection: local, directory: ../d}}\n",
        ),
    ]);
    let request = assay::spec::Request {
        path: std::path::Path::new("x.yaml"),
        inventory: Some(std::path::Path::new("hosts/i.yaml")),
        overrides: &[],
        environment: &|_| None,
        working_directory: folder.path(),
    };
    let spec = assay::spec::load(&request, &[]).unwrap();
    let expected = folder.path().canonicalize().unwrap().join("d");
    let directory = spec.inventory.hosts["local"].directory.as_deref();
    assert_eq!(directory, expected.to_str());
}

#[test]
fn a_group_stands_for_its_hosts() {
    let text = SMALL.replace("[local]", "[all]") + "clients: [bench]\ninventory: i.yaml\n";
    let inventory = "hosts: {bench: {connection: local}}\ngroups: {all: [bench]}\n";
    Folder::with(&[("x.yaml", &text), ("i.yaml", inventory)])
        .load("x.yaml")
        .unwrap();
}

fn no_wal(experiment: &assay::spec::Experiment, _: &assay::spec::Inventory) -> Vec<Problem> {
    let variants = experiment.variants.iter();
    let mut problems: Vec<Problem> = variants
        .filter(|(_, v)| {
            v.config
                .get("sqlite")
                .is_some_and(|c| c.get("mode") == Some(&Setting("wal".into())))
        })
        .map(|(name, _)| Problem {
            path: format!("variants.{name}.config.sqlite.mode"),
            message: "wal is not known".to_owned(),
            help: Some("try delete".to_owned()),
            key: true,
        })
        .collect();
    problems.push(Problem {
        path: "variants.b.config.sqlite.absent".to_owned(),
        message: "a tunable is wanted".to_owned(),
        help: None,
        key: false,
    });
    problems
}

#[test]
fn further_checks_are_shown_at_their_places_with_all_other_problems() {
    let text = SMALL
        .replace(
            "{a: {}, b: {}}",
            "{a: {config: {sqlite: {mode: wal}}}, b: {}}",
        )
        .replace("duration: 1s", "duration: 1");
    let folder = Folder::with(&[("x.yaml", &text)]);
    let checks: [Check<'_>; 1] = [&no_wal];
    let problems = folder.load_with("x.yaml", &[], &checks).unwrap_err();
    let places: Vec<_> = problems
        .list()
        .into_iter()
        .map(|p| (p.path, p.line.unwrap(), p.column.unwrap()))
        .collect();
    let expected = [
        ("variants.a.config.sqlite.mode".to_owned(), 3, 34),
        ("variants.b.config.sqlite.absent".to_owned(), 3, 51),
        ("rounds.duration".to_owned(), 8, 20),
    ];
    assert_eq!(places, expected);
}

fn dotted(_: &assay::spec::Experiment, _: &assay::spec::Inventory) -> Vec<Problem> {
    [
        "variants.v5.4.3.config.sqlite.cache.size",
        "variants.v5.version",
        "hosts.local",
        "nowhere.at.all",
    ]
    .map(|path| Problem {
        path: path.to_owned(),
        message: "wrong".to_owned(),
        help: None,
        key: false,
    })
    .into()
}

#[test]
fn paths_lead_through_names_with_dots() {
    let text = SMALL.replace(
        "variants: {a: {}, b: {}}",
        "variants:\n  v5: {version: 1}\n  v5.4.3:\n    config: {sqlite: {cache: 1, cache.size: 2}}",
    );
    let folder = Folder::with(&[
        ("x.yaml", &format!("{text}inventory: i.yaml\n")),
        ("i.yaml", "hosts:\n  local: {connection: local}\n"),
    ]);
    let checks: [Check<'_>; 1] = [&dotted];
    let problems = folder.load_with("x.yaml", &[], &checks).unwrap_err();
    let places: Vec<_> = problems
        .list()
        .into_iter()
        .map(|p| {
            format!(
                "{} {}:{}:{}",
                p.path,
                p.file,
                p.line.unwrap(),
                p.column.unwrap()
            )
        })
        .collect();
    let expected = [
        "nowhere.at.all x.yaml:1:1",
        "variants.v5.version x.yaml:4:17",
        "variants.v5.4.3.config.sqlite.cache.size x.yaml:6:45",
        "hosts.local i.yaml:2:10",
    ];
    assert_eq!(places, expected);
}

#[test]
fn further_checks_run_on_what_is_sound() {
    let text = SMALL.replace(
        "{a: {}, b: {}}",
        "{a: {config: {sqlite: {mode: 0x1F}}}, b: {config: {sqlite: {mode: wal}}}}",
    );
    let paths = |text: &str| -> Vec<String> {
        let folder = Folder::with(&[("x.yaml", text)]);
        let checks: [Check<'_>; 1] = [&no_wal];
        let problems = folder.load_with("x.yaml", &[], &checks).unwrap_err();
        problems.list().into_iter().map(|p| p.path).collect()
    };
    let (a, b, absent) = (
        "variants.a.config.sqlite.mode",
        "variants.b.config.sqlite.mode",
        "variants.b.config.sqlite.absent",
    );
    assert_eq!(paths(&text), [a, absent, b]);
    let other = text.replace("system: sqlite", "system: [sqlite]");
    assert_eq!(paths(&other), ["cluster.system", a]);
}

#[test]
fn nothing_as_a_value_takes_a_key_away() {
    let text = SMALL
        .replace("threads: [1]", "threads: [1], rate: [5]")
        .replace("b: {}", "b: {config: {sqlite: {mmap_size: 0}}}, c: {}")
        .replace("schema: ycsb", "schema: ycsb, records: 5");
    let folder = Folder::with(&[("x.yaml", &format!("{text}inventory: nowhere.yaml\n"))]);
    let overrides = [
        "sweep.rate=null",
        "variants.b.config.sqlite.mmap_size=~",
        "variants.c=",
        "dataset.records=null",
        "inventory=null",
        "compare.baseline=null",
        "variants.a.config.sqlite.cache_size=null",
    ];
    let spec = folder.load_with("x.yaml", &overrides, &[]).unwrap();
    let experiment = spec.experiment;
    assert_eq!(experiment.sweep.rate, None);
    assert!(experiment.variants["b"].config["sqlite"].is_empty());
    assert!(experiment.variants["a"].config.is_empty());
    assert_eq!(experiment.variants.len(), 2);
    assert_eq!(experiment.dataset.0[0].records, None);
    let unknown = folder.load_with("x.yaml", &["sweep.rat=null"], &[]);
    assert!(
        unknown
            .unwrap_err()
            .to_string()
            .contains("unknown key `rat`")
    );
}

#[test]
fn the_list_for_machines_is_json() {
    let problems = load_small("rounds", "rounds: {duration: 1}").unwrap_err();
    let json = serde_json::to_value(problems.list()).unwrap();
    let expected = serde_json::json!([{
        "file": "x.yaml",
        "line": 8,
        "column": 20,
        "path": "rounds.duration",
        "message": "expected a duration such as `90s`, `20m` or `1h 30m`, found `1`",
        "help": "write a unit: `1s`",
    }]);
    assert_eq!(json, expected);
}
