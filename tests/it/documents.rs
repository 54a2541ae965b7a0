//! What the documents show is what the program prints.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use crate::support::golden::{assert_kept, project};

/// Runs assay in the project's folder; its standard output, then its standard error.
fn assay(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(args)
        .current_dir(project())
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8(text).unwrap()
}

#[test]
fn completions_and_man_pages_in_docs_are_those_of_the_program() {
    for (shell, file) in [
        ("bash", "assay.bash"),
        ("zsh", "_assay"),
        ("fish", "assay.fish"),
    ] {
        assert_kept(
            &format!("docs/completions/{file}"),
            &assay(&["completions", shell]),
        );
    }
    assert_kept("docs/man/assay.1", &assay(&["man"]));
    for command in assay::cli::command()
        .get_subcommands()
        .filter(|c| !c.is_hide_set())
    {
        let name = command.get_name();
        assert_kept(&format!("docs/man/assay-{name}.1"), &assay(&["man", name]));
    }
}

#[test]
fn the_output_in_the_readme_is_that_of_the_program() {
    let readme = fs::read_to_string(project().join("README.md")).unwrap();
    let mut wanted = String::new();
    let mut lines = readme.lines();
    let mut shown = 0;
    while let Some(line) = lines.next() {
        wanted.push_str(line);
        wanted.push('\n');
        let Some(command) = line
            .strip_prefix("<!-- output of: assay ")
            .and_then(|l| l.strip_suffix(" -->"))
        else {
            continue;
        };
        shown += 1;
        let fence = lines.next().unwrap();
        assert!(fence.starts_with("```"), "{fence}");
        let output = assay(&command.split(' ').collect::<Vec<_>>());
        wanted.push_str(&format!("{fence}\n{}\n```\n", output.trim_end()));
        lines.by_ref().find(|l| *l == "```").unwrap();
    }
    assert!(shown >= 3, "{shown}");
    assert_kept("README.md", &wanted);
}

#[test]
fn every_whole_experiment_in_the_documents_checks() {
    let mut checked = 0;
    for document in ["README.md", "docs/experiment.md"] {
        let text = fs::read_to_string(project().join(document)).unwrap();
        for block in text.split("```yaml\n").skip(1) {
            let block = block.split("```").next().unwrap();
            if !block.lines().any(|l| l.starts_with("name:")) || !block.contains("\nrounds:") {
                continue;
            }
            // They name files of the reader's.
            let own = |l: &&str| !l.starts_with("inventory:") && !l.starts_with("extends:");
            let whole: Vec<&str> = block.lines().filter(own).collect();
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("experiment.yaml");
            fs::write(&file, whole.join("\n")).unwrap();
            let shown = assay(&["check", file.to_str().unwrap()]);
            assert!(shown.contains(" is fine: "), "{document}: {shown}");
            checked += 1;
        }
    }
    assert!(checked >= 2, "{checked}");
}

#[test]
fn every_direct_dependency_stands_in_the_documents() {
    let manifest = fs::read_to_string(project().join("Cargo.toml")).unwrap();
    let documented = fs::read_to_string(project().join("docs/dependencies.md")).unwrap();
    let section = manifest
        .split("[dependencies]")
        .nth(1)
        .unwrap()
        .split("\n[")
        .next()
        .unwrap();
    let names = section
        .lines()
        .filter_map(|l| l.split_once(" = "))
        .map(|(name, _)| name.trim());
    let first_columns = documented
        .lines()
        .filter_map(|l| l.strip_prefix("| ")?.split(" |").next());
    let known: BTreeSet<&str> = first_columns.flat_map(|c| c.split(", ")).collect();
    let missing: Vec<_> = names.filter(|n| !known.contains(n)).collect();
    assert!(missing.is_empty(), "docs/dependencies.md lacks {missing:?}");
}
