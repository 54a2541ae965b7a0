//! How to run it again: command lines for a POSIX shell, and the secrets that they need.

use std::collections::BTreeSet;
use std::path::Path;

use crate::artifacts::{End, Run};
use crate::report::rows::Again;

/// How to run it again. Every path is absolute, so that it does not matter where the commands are run.
pub(super) fn again(run: &Run, experiment: &str, inventory: &str) -> Again {
    let manifest = &run.manifest;
    let folder = absolute(run.layout.folder());
    let revision = run.state.revision;
    let seed = format!("seed={}", run.plan.seed);
    let mut sets = manifest.overrides.clone();
    sets.retain(|s| !s.starts_with("seed="));
    sets.push(seed);
    let mut commands = vec![
        (
            "The experiment file again, with the same seed".to_owned(),
            command(&manifest.source, manifest.inventory.as_deref(), &sets),
        ),
        (
            // The seed is in that file, or follows from its content.
            "Exactly what was run, from this run's folder".to_owned(),
            command(
                &absolute(&run.layout.experiment(revision)),
                Some(&absolute(&run.layout.inventory(revision))),
                &[],
            ),
        ),
    ];
    if run.state.end != Some(End::Finished) {
        commands.push((
            "Finish this run".into(),
            format!("assay resume {}", quoted(&folder)),
        ));
    }
    commands.push((
        "Check that no file of this run has changed".into(),
        format!("assay verify {}", quoted(&folder)),
    ));
    Again {
        commands,
        environment: environment(&[experiment, inventory]),
    }
}

fn absolute(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.to_string_lossy().into_owned()
}

fn command(experiment: &str, inventory: Option<&str>, sets: &[String]) -> String {
    let mut line = format!("assay run {}", quoted(experiment));
    if let Some(inventory) = inventory {
        line.push_str(&format!(" -i {}", quoted(inventory)));
    }
    for set in sets {
        line.push_str(&format!(" --set {}", quoted(set)));
    }
    line
}

/// The word as a POSIX shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The names in `${env:NAME}`.
fn environment(texts: &[&str]) -> Vec<String> {
    let names = texts.iter().flat_map(|text| text.split("${env:").skip(1));
    let names: BTreeSet<&str> = names
        .filter_map(|rest| Some(rest.split_once('}')?.0))
        .collect();
    names.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_special_characters_are_quoted_for_a_shell() {
        assert_eq!(quoted("experiments/a.yaml"), "experiments/a.yaml");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's $x"), r"'it'\''s $x'");
        assert_eq!(quoted("/srv/größe"), "'/srv/größe'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn secrets_are_named_once_each() {
        let text = "a: ${env:B}\nb: ${env:A} ${env:B}\nc: ${env:torn";
        assert_eq!(environment(&[text]), ["A", "B"]);
    }
}
