//! A module uses only rows below its own, and modules of one row do not see each other.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails its test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The rows of `docs/architecture.md`, lowest first.
const ROWS: [&[&str]; 6] = [
    &["units", "measurement"],
    &["spec"],
    &["plan", "statistics", "host"],
    &["artifacts", "database", "snapshot", "driver", "load"],
    &["runner", "report"],
    &["cli"],
];

fn row(module: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&module))
}

fn sources() -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut found,
    );
    found
}

/// The top-level module that a source file belongs to.
fn module(path: &Path) -> String {
    let inner = path
        .strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
        .unwrap();
    let first = inner
        .components()
        .next()
        .unwrap()
        .as_os_str()
        .to_string_lossy()
        .into_owned();
    first.trim_end_matches(".rs").to_owned()
}

/// The top-level modules that a source text names after `crate::`, also in `use crate::{a, b::c}`.
fn named(text: &str) -> BTreeSet<String> {
    let code: String = text
        .lines()
        .filter(|l| !l.trim_start().starts_with("//"))
        .map(|l| format!("{l}\n"))
        .collect();
    let mut found = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        let names: Vec<&str> = match after.strip_prefix('{') {
            Some(list) => top_level(list),
            None => vec![after],
        };
        let word = |name: &str| {
            name.trim()
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect::<String>()
        };
        found.extend(names.into_iter().map(word).filter(|w| !w.is_empty()));
    }
    found
}

/// The entries of a list up to its closing brace, those of inner lists left out.
fn top_level(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                found.push(&list[start..at]);
                return found;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found
}

#[test]
fn every_module_stands_in_a_row() {
    let unplaced: BTreeSet<String> = sources()
        .iter()
        .map(|path| module(path))
        .filter(|m| !matches!(m.as_str(), "lib" | "main") && row(m).is_none())
        .collect();
    assert!(
        unplaced.is_empty(),
        "these modules stand in no row: {unplaced:?}"
    );
}

#[test]
fn a_module_uses_only_rows_below_its_own() {
    let mut wrong = Vec::new();
    for path in sources() {
        let own = module(&path);
        let Some(own_row) = row(&own) else { continue };
        for other in named(&fs::read_to_string(&path).unwrap()) {
            if other != own && row(&other).is_some_and(|r| r >= own_row) {
                wrong.push(format!("{} uses {other}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_the_command_line_reads_the_environment_or_exits() {
    let mut wrong = Vec::new();
    for path in sources()
        .into_iter()
        .filter(|p| !matches!(module(p).as_str(), "cli" | "main"))
    {
        let text = fs::read_to_string(&path).unwrap();
        let product = text.split("#[cfg(test)]").next().unwrap();
        for forbidden in ["env::var", "env::args", "env::current_dir"] {
            if product.contains(forbidden) {
                wrong.push(format!("{} has {forbidden}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_reading_of_imports_sees_what_it_should() {
    let text = "use crate::spec::{Name, Kind};\nuse crate::{host::Host, plan};\n// crate::cli\nlet x = crate::report::rows();";
    assert_eq!(
        named(text).into_iter().collect::<Vec<_>>(),
        ["host", "plan", "report", "spec"]
    );
}
