//! Files that mean harm or are no specs at all: refused in bounded time and memory, with a message.

use std::time::{Duration, Instant};

use assay::spec::Problems;
use proptest::prelude::*;

use super::support::{Folder, SMALL, load_text};

/// Generous for a debug build on a busy machine; what these tests guard against takes minutes or never ends.
const LONG: Duration = Duration::from_secs(60);

/// The problems of a file of bytes, found in bounded time.
fn refuse(bytes: &[u8]) -> Problems {
    let folder = Folder::with(&[]);
    std::fs::write(folder.path().join("x.yaml"), bytes).unwrap();
    refuse_in(&folder, "x.yaml")
}

fn refuse_in(folder: &Folder, name: &str) -> Problems {
    let start = Instant::now();
    let problems = folder.load(name).expect_err("the file should be refused");
    let text = problems.to_string();
    let list = problems.list();
    assert!(start.elapsed() < LONG, "took {:?}", start.elapsed());
    assert!(text.len() < 1_000_000, "{} bytes of messages", text.len());
    assert!(!list.is_empty());
    problems
}

fn first_line(problems: &Problems) -> String {
    problems.to_string().lines().next().unwrap().to_owned()
}

#[test]
fn files_that_are_no_regular_files_are_refused() {
    let folder = Folder::with(&[("folder/x", "")]);
    let fifo = folder.path().join("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    for (name, message) in [
        ("folder", "error: `folder` is a folder, not a file"),
        ("fifo", "error: `fifo` is not a regular file"),
        ("/dev/zero", "error: `/dev/zero` is not a regular file"),
        ("missing.yaml", "error: `missing.yaml` does not exist"),
        (
            "folder/x/y.yaml",
            "error: `folder/x/y.yaml` does not exist: a part of its path is no folder",
        ),
    ] {
        assert_eq!(first_line(&refuse_in(&folder, name)), message);
    }
}

#[test]
fn a_missing_file_is_looked_for_beside_its_name() {
    let folder = Folder::with(&[("quickstart.yaml", SMALL), ("bomb.yaml", SMALL)]);
    for (missing, meant) in [
        ("quikstart.yaml", Some("quickstart.yaml")),
        ("quickstart.yml", Some("quickstart.yaml")),
        ("quickstart", Some("quickstart.yaml")),
        // Of `nope.yaml` and `bomb.yaml`, only the endings are alike.
        ("nope.yaml", None),
    ] {
        let text = refuse_in(&folder, missing).to_string();
        let help = text.split_once("= help: ").map(|(_, help)| help);
        let expected = meant.map(|name| format!("did you mean `{name}`?"));
        assert_eq!(help, expected.as_deref(), "{text}");
    }
}

#[test]
fn large_files_are_refused_unread() {
    let folder = Folder::with(&[("x.yaml", "")]);
    let file = std::fs::File::options()
        .write(true)
        .open(folder.path().join("x.yaml"));
    file.unwrap().set_len(100 << 20).unwrap();
    assert_eq!(
        first_line(&refuse_in(&folder, "x.yaml")),
        "error: `x.yaml` is 100.0 MiB; a spec file may have at most 1.0 MiB"
    );
}

#[test]
fn an_inventory_and_a_base_have_the_same_limits() {
    for key in ["inventory", "extends"] {
        let folder = Folder::with(&[("x.yaml", &format!("{SMALL}{key}: /dev/zero\n"))]);
        let expected = format!("error: {key}: `/dev/zero` is not a regular file");
        assert_eq!(first_line(&refuse_in(&folder, "x.yaml")), expected);
    }
}

#[test]
fn empty_files_are_refused() {
    for text in [
        "",
        "\n\n",
        "# nothing\n",
        "---\n",
        "---\n...\n",
        "~\n",
        "\u{FEFF}",
    ] {
        assert_eq!(
            first_line(&refuse(text.as_bytes())),
            "error: `x.yaml` is empty"
        );
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_where_they_stand() {
    for (bytes, line, column, message) in [
        (
            &b"name: x\ndescription: \xff\n"[..],
            2,
            14,
            "error: the file is not UTF-8 from byte 22 on",
        ),
        (
            b"name: x\0\n",
            1,
            8,
            "error: the file has the control character U+0000",
        ),
        (
            b"a: 1\n# \x1b[31m\n",
            2,
            3,
            "error: the file has the control character U+001B",
        ),
        (
            b"a: 1\rb: 2\n",
            1,
            5,
            "error: the file has a carriage return that no line feed follows",
        ),
    ] {
        let problems = refuse(bytes);
        assert_eq!(first_line(&problems), message);
        let located = &problems.list()[0];
        assert_eq!((located.line, located.column), (Some(line), Some(column)));
    }
    assert_eq!(
        first_line(&refuse(b"\xff\xfen\0a\0")),
        "error: `x.yaml` is UTF-16, not UTF-8"
    );
}

#[test]
fn deep_nesting_is_refused() {
    for text in [
        "[".repeat(100_000),
        "{a: ".repeat(100_000),
        "- ".repeat(100_000),
        "? ".repeat(100_000),
        "x: [".repeat(1_000),
        (0..5_000)
            .map(|i| format!("{:i$}a:\n", ""))
            .take(400)
            .collect(),
        (0..70)
            .map(|i| format!("a{i}: &a{i} [[*a{}]]\n", i - 1))
            .collect::<String>()
            .replace("[[*a-1]]", "[]"),
    ] {
        let text = first_line(&refuse(text.as_bytes()));
        let expected = [
            "nested deeper than 64 levels",
            "no YAML",
            "cannot stand here",
        ];
        assert!(expected.iter().any(|part| text.contains(part)), "{text}");
    }
}

#[test]
fn alias_bombs_are_refused_where_they_grow() {
    let bomb: String = (1..10)
        .map(|i| {
            format!(
                "l{i}: &l{i} [{}]\n",
                vec![format!("*l{}", i - 1); 10].join(", ")
            )
        })
        .collect();
    let problems = refuse(format!("l0: &l0 lol\n{bomb}{SMALL}").as_bytes());
    assert_eq!(problems.len(), 1);
    assert_eq!(
        first_line(&problems),
        "error: with its aliases, the value stands for more than 20000 values"
    );
    assert_eq!(problems.list()[0].line, Some(6));
}

#[test]
fn bombs_of_text_merge_keys_and_variables_are_refused() {
    let long = "x".repeat(500_000);
    let aliases = format!("a: &a {long}\nb: [{}]\n", vec!["*a"; 1000].join(", "));
    refuse(aliases.as_bytes());
    let mut merges = String::from("m0: &m0 {a: 1, b: 2, c: 3}\n");
    for i in 1..500 {
        merges += &format!(
            "m{i}: &m{i} {{<<: [{}], k{i}: 1}}\n",
            vec![format!("*m{}", i - 1); 50].join(", ")
        );
    }
    refuse(merges.as_bytes());
    let mut variables = String::from("vars:\n  v0: xxxxxxxxxx\n");
    for i in 1..100 {
        variables += &format!("  v{i}: \"{}\"\n", format!("${{v{}}}", i - 1).repeat(10));
    }
    let text = refuse(format!("{variables}{SMALL}").as_bytes()).to_string();
    assert!(
        text.contains("longer than 65536 bytes with its variables replaced"),
        "{text}"
    );
}

#[test]
fn long_chains_of_variables_and_files_are_refused() {
    let mut variables = String::from("vars:\n  v5000: x\n");
    for i in 0..5000 {
        variables += &format!("  v{i}: ${{v{}}}\n", i + 1);
    }
    let text = refuse(format!("{variables}{SMALL}").as_bytes()).to_string();
    assert!(
        text.contains("need each other over more than 64 steps"),
        "{text}"
    );
    let files: Vec<(String, String)> = (0..30)
        .map(|i| (format!("f{i}.yaml"), format!("extends: f{}.yaml\n", i + 1)))
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(n, t)| (n.as_str(), t.as_str()))
        .collect();
    let text = refuse_in(&Folder::with(&files), "f0.yaml").to_string();
    assert!(
        text.contains("more than 16 files extend each other"),
        "{text}"
    );
}

#[test]
fn thousands_of_mistakes_are_counted_and_the_first_are_shown() {
    let keys: String = (0..9_000)
        .map(|i| format!("key{i}: ${{undefined{i}}}\n"))
        .collect();
    let problems = refuse(format!("{keys}{SMALL}").as_bytes());
    assert_eq!(problems.len(), 18_000);
    let text = problems.to_string();
    assert!(
        text.ends_with("\n\nand 17900 more problems"),
        "{}",
        &text[text.len() - 100..]
    );
    let undefined = "${b}".repeat(200_000);
    refuse(format!("description: \"{undefined}\"\n{SMALL}").as_bytes());
    let anchors: String = (0..9_000).map(|i| format!("- &name{i} x\n")).collect();
    let aliases: String = (0..9_000).map(|i| format!("- *nam{i}\n")).collect();
    refuse(format!("{anchors}{aliases}").as_bytes());
    refuse(format!("a: [{}]", "x, ".repeat(300_000)).as_bytes());
    refuse(format!("{SMALL}description: {}: x\n", "x".repeat(900_000)).as_bytes());
    refuse(format!("{}: 1\n", "é".repeat(400_000)).as_bytes());
}

#[test]
fn thousands_of_unknown_and_repeated_hosts_are_refused_in_bounded_time() {
    let hosts: String = (0..2_000)
        .map(|i| format!("  host{i}: {{connection: local}}\n"))
        .collect();
    let members: Vec<String> = (0..4_500).map(|i| format!("bench{i}, host1")).collect();
    let members = members.join(", ");
    let folder = Folder::with(&[
        (
            "x.yaml",
            &format!("{SMALL}inventory: i.yaml\nclients: [{members}]\n"),
        ),
        (
            "i.yaml",
            &format!("hosts:\n{hosts}groups:\n  all: [{members}]\n"),
        ),
    ]);
    // All hosts have one directory. In the group, 4500 are unknown and 4499 there before; of the clients and the
    // cluster's hosts, 4501 are unknown.
    let problems = refuse_in(&folder, "x.yaml");
    assert_eq!(problems.len(), 1_999 + 4_500 + 4_499 + 4_501);
}

#[test]
fn names_in_messages_cannot_speak_to_the_terminal() {
    let problems = load_text(&format!("{SMALL}\"a\\e[31mb\": 1\n\"\\x9b1m\": 2\n")).unwrap_err();
    let text = format!("{problems}{:?}", problems.list());
    assert!(!text.contains(['\u{1b}', '\u{9b}']), "{text}");
}

/// A text that a mutation puts in.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "(?s).{0,4}",
        prop::sample::select(vec![
            "\n",
            "\r\n",
            "\t",
            "  ",
            ": ",
            "- ",
            "? ",
            "[",
            "]",
            "{",
            "}",
            ",",
            "&a ",
            "*a",
            "<<: ",
            "!!str ",
            "|\n",
            ">-\n",
            "\"",
            "'",
            "#",
            "---\n",
            "...\n",
            "%YAML 1.2\n",
            "~",
            "${",
            "$${",
            "${env:ONE}",
            "${x}",
            "}",
            "1_0",
            "\u{FEFF}",
            "\0",
            "😀",
            "\u{2028}",
            "extends: x.yaml\n",
            "vars: {x: y}\n",
            "inventory: x.yaml\n",
        ])
        .prop_map(str::to_owned),
    ]
}

proptest! {
    #[test]
    fn no_mutation_of_a_spec_makes_it_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0usize..8, piece()), 1..6),
    ) {
        let mut chars: Vec<char> = include_str!("../../../experiments/sqlite-tuning.yaml").chars().collect();
        for (index, removed, piece) in changes {
            let at = index.index(chars.len() + 1);
            let end = (at + removed).min(chars.len());
            chars.splice(at..end, piece.chars());
        }
        let text: String = chars.into_iter().collect();
        let inventory = include_str!("../../../inventories/local.yaml");
        let folder = Folder::with(&[("e/x.yaml", &text), ("inventories/local.yaml", inventory)]);
        let overrides = [text.lines().last().unwrap_or("")];
        for overrides in [&overrides[..], &[]] {
            if let Err(problems) = folder.load_with("e/x.yaml", overrides, &[]) {
                prop_assert!(!problems.render(true).is_empty());
                prop_assert!(!problems.list().is_empty());
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let folder = Folder::with(&[]);
        std::fs::write(folder.path().join("x.yaml"), bytes).unwrap();
        if let Err(problems) = folder.load("x.yaml") {
            prop_assert!(!problems.to_string().is_empty());
        }
    }
}
