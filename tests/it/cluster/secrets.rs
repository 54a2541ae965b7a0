//! A secret of an experiment on its way to a host.

use std::fs;

use super::user::{Running, User};
use crate::support::lab::Lab;

/// No process is called by it, no number happens to have it.
const SECRET: &str = "-1618033988";

/// What shows the secret to others: arguments of any process, and environments of those of hosts.
fn shown() -> Vec<String> {
    let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let here = namespace("self");
    let has = |path: String| {
        let text = fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&text).contains(&SECRET[1..])
    };
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        let elsewhere = namespace(&pid).is_some_and(|name| Some(name) != here);
        let arguments = has(format!("/proc/{pid}/cmdline"));
        if arguments || (elsewhere && has(format!("/proc/{pid}/environ"))) {
            found.push(format!("process {pid}"));
        }
    }
    found
}

#[test]
fn a_secret_reaches_the_database_and_nobody_sees_it_on_the_way() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    user.has(&host);
    let mut command = user.one_round("run", "2s", ", cache_size: \"${env:BENCH_SECRET}\"");
    command.env("BENCH_SECRET", SECRET).arg("-v");
    let mut run = Running::start(command);
    let mut looks = 0;
    while run.lives() {
        let found = shown();
        assert!(found.is_empty(), "{found:?}");
        looks += 1;
    }
    assert!(looks > 20, "{looks}");
    let said = run.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!format!("{said:?}").contains(&SECRET[1..]));
    // The run knows that the database has it.
    let ready: Vec<_> = user
        .events()
        .into_iter()
        .filter(|e| e["event"] == "deployment_ready")
        .collect();
    assert!(
        serde_json::to_string(&ready)
            .unwrap()
            .contains("${env:BENCH_SECRET}"),
        "{ready:?}"
    );
    for entry in walkdir::WalkDir::new(user.path("")) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            let content = fs::read(entry.path()).unwrap();
            assert!(
                !String::from_utf8_lossy(&content).contains(&SECRET[1..]),
                "{}",
                entry.path().display()
            );
        }
    }
    let word = &SECRET[1..];
    let found = host.run(&format!(
        "journalctl --no-pager | grep -c {word}; grep -rl {word} {}/.assay-jobs /run /var/log /root /tmp; true",
        user.directory()
    ));
    assert_eq!(found.replace("0\n", ""), "", "{found}");
}
