//! Broken specs and their complete messages: `tests/fixtures/spec/broken/NAME.yaml` and `NAME.expected`.
//! A fixture's first lines may give arguments: `# --set path=value`, `# -i inventory`.
//! `ASSAY_BLESS=1` writes the messages anew; read the difference before it is kept.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use assay::pack::Packs;
use assay::spec::{Experiment, Inventory, Problems, Request, load};

use super::support::{ROOT, environment};

fn folder() -> PathBuf {
    Path::new(ROOT).join("tests/fixtures/spec/broken")
}

fn fixtures() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .filter_map(|entry| {
            entry
                .unwrap()
                .file_name()
                .into_string()
                .unwrap()
                .strip_suffix(".yaml")
                .map(str::to_owned)
        })
        .collect();
    names.sort();
    names
}

fn problems(name: &str) -> Problems {
    let file = format!("{name}.yaml");
    let text = std::fs::read_to_string(folder().join(&file)).unwrap();
    let argument = |flag: &'static str| {
        let lines = text.lines().take_while(|line| line.starts_with("# -"));
        lines.filter_map(move |line| line.strip_prefix(flag).map(str::to_owned))
    };
    let overrides: Vec<String> = argument("# --set ").collect();
    let inventory = argument("# -i ").next();
    let request = Request {
        path: Path::new(&file),
        inventory: inventory.as_deref().map(Path::new),
        overrides: &overrides,
        environment: &environment,
        working_directory: &folder(),
    };
    let packs = Packs::beside(&folder());
    let check = |experiment: &Experiment, inventory: &Inventory| {
        assay::database::check(experiment, inventory, &packs)
    };
    load(&request, &[&check]).expect_err(&format!("{file} should be refused"))
}

#[test]
fn every_broken_spec_is_refused_in_exactly_these_words() {
    let bless = std::env::var_os("ASSAY_BLESS").is_some();
    let mut wrong = String::new();
    for name in fixtures() {
        // The version that is built in changes with a dependency, not with what is tested.
        let version = assay::database::sqlite_version();
        let found = format!("{}\n", problems(&name)).replace(version, "(built in)");
        let path = folder().join(format!("{name}.expected"));
        if bless {
            std::fs::write(&path, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        if found != expected {
            writeln!(
                wrong,
                "--- {name}, expected:\n{expected}--- found:\n{found}"
            )
            .unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn there_are_at_least_45_broken_specs() {
    assert!(fixtures().len() >= 45, "{}", fixtures().len());
}

#[test]
fn the_list_for_machines_agrees_with_the_text_for_people() {
    for name in fixtures() {
        let problems = problems(&name);
        let text = problems.to_string();
        let list = problems.list();
        assert_eq!(list.len(), problems.len());
        for located in list {
            if let (Some(line), Some(column)) = (located.line, located.column) {
                let place = format!("--> {}:{line}:{column}\n", located.file);
                assert!(text.contains(&place), "{name}: no {place:?} in\n{text}");
            }
            let first = located.message.lines().next().unwrap();
            assert!(text.contains(first), "{name}: no {first:?} in\n{text}");
        }
    }
}

#[test]
fn colours_change_nothing_but_colours() {
    let problems = problems("several");
    let coloured = problems.render(true);
    assert!(coloured.contains("\u{1b}["));
    assert_eq!(anstream_strip(&coloured), problems.to_string());
}

/// The text without escape sequences.
fn anstream_strip(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}
