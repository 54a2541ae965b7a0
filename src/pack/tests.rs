//! Tests of packs: the built-in ones are whole, wrong ones are refused with their lines.

use super::*;
use crate::host::SYSCTLS;

fn of(text: &str) -> Result<Pack, PackError> {
    let files = BTreeMap::from([(SYSTEM.to_owned(), text.to_owned())]);
    Pack::of("x", &files, &|file| format!("templates/x/{file}"), None)
}

/// What is wrong with a pack, as its author sees it.
fn wrong(text: &str) -> String {
    match of(text) {
        Err(PackError::Wrong { source, .. }) => source.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_pack_is_whole_and_wants_only_settings_that_are_read() {
    let packs = Packs::built_in();
    for system in packs.systems() {
        let pack = packs.get(&system).unwrap();
        let wanted = pack.host.wanted(Purposes {
            database: true,
            client: true,
        });
        for key in wanted.sysctl.keys() {
            assert!(SYSCTLS.contains(&key.as_str()), "{system}: {key}");
        }
    }
}

#[test]
fn huge_pages_are_wanted_off_for_tidb_and_on_for_yugabytedb() {
    let thp = |system: &str| {
        Packs::built_in()
            .get(system)
            .unwrap()
            .host
            .database
            .thp
            .clone()
    };
    assert_eq!(thp("tidb").as_deref(), Some("never"));
    assert_eq!(thp("yugabytedb").as_deref(), Some("always"));
    assert_eq!(thp("sqlite"), None);
}

#[test]
fn an_unknown_system_names_those_that_there_are() {
    let packs = Packs::built_in();
    let error = packs.get("mysql").unwrap_err().to_string();
    assert!(
        error.starts_with("there is no system `mysql`; known: "),
        "{error}"
    );
    assert!(packs.get("../report").is_err() && packs.get("report").is_err());
}

#[test]
fn a_wrong_pack_says_where_and_what() {
    let cases = [
        ("host: {database: {thp: never, hugepages: 1}}", "hugepages"),
        ("host:\n  database:\n    memory: lots\n", "lots"),
        ("host: {all: {clock_offset: soon}}", "soon"),
        (
            "host: {all: {governor: performance, warn: [governer]}}",
            "governer",
        ),
        ("hosts: {}", "hosts"),
        ("entry: {role: db, port: port}", "there is no role `db`"),
        ("start: [db]", "there is no role `db`"),
        (
            "roles: {db: {description: a, program: '{{ x', run: [y]}}",
            "it is no template",
        ),
        (
            "roles: {db: {description: a, program: '{{ nonsense }}', run: [y]}}",
            "there is nothing called `nonsense`",
        ),
        (
            "roles: {db: {description: a, program: x}}",
            "the key `run` is missing",
        ),
        (
            "roles: {db: {description: a, program: x, run: [y], ready: [{http: a, sql: b}]}}",
            "expected one of `http`, `sql`, `command` and `listening`",
        ),
        (
            "roles: {db: {description: a, program: x, run: [y], files: [{template: t, file: ../z}]}}",
            "the pack has no file `t`",
        ),
        (
            "roles: {db: {description: a, program: x, run: [y], ports: {port: 70000}}}",
            "65535",
        ),
        (
            "roles: {db: {description: a, program: x, run: [y], version: {sql: a, pattern: '('}}}",
            "it is no regular expression",
        ),
    ];
    for (text, named) in cases {
        let error = wrong(&format!("description: a system\n{text}\n"));
        assert!(error.contains(named), "{text}: {error}");
        assert!(
            error.contains("templates/x/system.yaml:2"),
            "{text}: {error}"
        );
    }
}

#[test]
fn a_folder_beside_the_experiment_goes_before_the_built_in_pack() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("templates/sqlite");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join(SYSTEM), "description: mine\nprograms: builtin\n").unwrap();
    let packs = Packs::beside(folder.path());
    assert_eq!(packs.get("sqlite").unwrap().form.description, "mine");
    assert!(packs.get("tidb").unwrap().folder.is_none());
}
