//! A module uses only rows below its own, and modules of one row do not see each other.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails its test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The rows of `docs/architecture.md`, lowest first.
const ROWS: [&[&str]; 8] = [
    &["units", "measurement", "template"],
    &["spec"],
    &["statistics", "host", "tiup"],
    &["pack", "package", "probe", "snapshot"],
    &["plan", "service"],
    &["artifacts", "database", "driver", "load"],
    &["runner", "report"],
    &["cli"],
];

fn row(module: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&module))
}

/// A source file.
struct Source {
    /// Its path below `src`.
    path: PathBuf,
    /// Its text without lines that are comments.
    code: String,
}

impl Source {
    /// The modules from the top-level one down to that of the file.
    fn modules(&self) -> Vec<String> {
        let parts = self.path.with_extension("");
        let parts = parts.iter().map(|part| part.to_string_lossy().into_owned());
        parts.filter(|part| part != "mod").collect()
    }

    /// The top-level module that it belongs to.
    fn top(&self) -> String {
        self.modules().swap_remove(0)
    }
}

fn sources() -> Vec<Source> {
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    walk(&root, &mut found);
    let source = |path: PathBuf| Source {
        code: without_comments(&fs::read_to_string(&path).unwrap()),
        path: path.strip_prefix(&root).unwrap().to_owned(),
    };
    found.into_iter().map(source).collect()
}

fn without_comments(text: &str) -> String {
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    code.map(|line| format!("{line}\n")).collect()
}

/// What follows `#[cfg(test)]` on a module: `mod tests {` with its text, or `mod tests;`.
const TEST_MODULE: &str = "#[cfg(test)]\nmod ";

/// Code without a module of tests at its end.
fn product(code: &str) -> &str {
    let at = code.match_indices(TEST_MODULE).find(|(at, _)| {
        let line = code[at + TEST_MODULE.len()..].lines().next();
        line.is_some_and(|line| line.ends_with('{'))
    });
    at.map_or(code, |(at, _)| &code[..at])
}

/// The modules of tests that have files of their own, as [`Source::modules`] gives them.
fn test_files(sources: &[Source]) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    for source in sources {
        for after in source.code.split(TEST_MODULE).skip(1) {
            if let Some(name) = after.lines().next().unwrap().strip_suffix(';') {
                let mut modules = source.modules();
                modules.push(name.to_owned());
                found.insert(modules);
            }
        }
    }
    found
}

/// The top-level modules that code names after `crate::`, also in `use crate::{a, b::c}`, or after as many `super::` as
/// lead from a file's module, `depth` deep, to the crate.
fn named(code: &str, depth: usize) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        found.extend(first_names(after));
    }
    let mut rest = code;
    while let Some((_, after)) = rest.split_once("super::") {
        let end = after.trim_start_matches("super::");
        let steps = 1 + (after.len() - end.len()) / "super::".len();
        if steps >= depth {
            found.extend(first_names(end));
        }
        rest = end;
    }
    found
}

/// The first name, or those of a list in braces.
fn first_names(text: &str) -> Vec<String> {
    let names: Vec<&str> = match text.strip_prefix('{') {
        Some(list) => top_level(list),
        None => vec![text],
    };
    let word = |name: &str| -> String {
        let letters = name.trim().chars();
        letters.take_while(|c| is_of_name(*c)).collect()
    };
    let words = names.into_iter().map(word);
    words.filter(|word| !word.is_empty()).collect()
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// What code has that reads the environment or ends the process.
fn forbidden(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("env::") {
        let names = first_names(&code[at + "env::".len()..]);
        let names = names.into_iter().filter(|name| name != "consts");
        if !code[..at].ends_with(is_of_name) {
            found.extend(names.map(|name| format!("env::{name}")));
        }
    }
    for name in ["exit", "abort"] {
        for (at, _) in code.match_indices(&format!("{name}(")) {
            let before = &code[..at];
            if !before.ends_with(|c| is_of_name(c) || c == '.') && !before.ends_with("fn ") {
                found.insert(name.to_owned());
            }
        }
        // Imported, or handed on as a function.
        for after in code.split("process::").skip(1) {
            let names = first_names(after);
            found.extend(names.into_iter().filter(|found| found == name));
        }
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
        .map(Source::top)
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
    for source in sources() {
        let own = source.top();
        let Some(own_row) = row(&own) else { continue };
        for other in named(&source.code, source.modules().len()) {
            if other != own && row(&other).is_some_and(|r| r >= own_row) {
                wrong.push(format!("{} uses {other}", source.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_the_command_line_reads_the_environment_or_exits() {
    let sources = sources();
    let test_files = test_files(&sources);
    let mut wrong = Vec::new();
    for source in &sources {
        let is_exempt = matches!(source.top().as_str(), "cli" | "main");
        if is_exempt || test_files.contains(&source.modules()) {
            continue;
        }
        for what in forbidden(product(&source.code)) {
            wrong.push(format!("{} has {what}", source.path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_reading_of_imports_sees_what_it_should() {
    let text = "use crate::spec::{Name, Kind};\nuse crate::{host::Host, plan};\n// crate::cli\nlet x = crate::report::rows();";
    let names = |text: &str, depth| Vec::from_iter(named(&without_comments(text), depth));
    assert_eq!(names(text, 1), ["host", "plan", "report", "spec"]);
    let text = "use super::super::{cli, a::b};\nuse super::load;";
    assert_eq!(names(text, 2), ["a", "cli"]);
    assert_eq!(names(text, 3), [""; 0]);
}

#[test]
fn the_reading_of_what_is_forbidden_sees_what_it_should() {
    let seen = |text: &str| Vec::from_iter(forbidden(text));
    assert_eq!(
        seen("std::env::var(name); env::home_dir()"),
        ["env::home_dir", "env::var"]
    );
    assert_eq!(
        seen("use std::env::{args, consts};\nuse std::process::{Stdio, exit};"),
        ["env::args", "exit"]
    );
    assert_eq!(seen("std::process::exit(1)"), ["exit"]);
    assert_eq!(seen(".or_else(process::abort)"), ["abort"]);
    let fine = "env!(NAME); env::consts::ARCH; myenv::x; self.exit(); fn exit() {} on_exit(); process::run()";
    assert_eq!(seen(fine), [""; 0]);
}

#[test]
fn what_follows_a_test_only_module_in_a_file_of_its_own_is_product() {
    let code = "a\n#[cfg(test)]\nmod far;\nb\n#[cfg(test)]\nmod tests {\nc\n}\n";
    assert_eq!(product(code), "a\n#[cfg(test)]\nmod far;\nb\n");
    let source = Source {
        path: "load/mod.rs".into(),
        code: code.to_owned(),
    };
    assert_eq!(
        Vec::from_iter(test_files(&[source])),
        [["load".to_owned(), "far".to_owned()]]
    );
}
