//! `assay hosts exec` and `trust` as users run them, on sshds of the tests' own.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::no_sshd;
use crate::support::sshd::{self, Sshd};

/// A folder with an inventory of hosts that one sshd serves.
struct Place {
    sshd: Sshd,
}

impl Place {
    /// `hosts` are lines of the inventory; `PORT` and `FINGERPRINT` in them are the sshd's.
    fn new(hosts: &str) -> Self {
        let place = Self {
            sshd: Sshd::start(""),
        };
        place.write(hosts);
        place
    }

    fn write(&self, hosts: &str) {
        let folder = self.sshd.folder.path();
        let list = folder.join("known");
        std::fs::write(
            folder.join("ssh_config"),
            format!("UserKnownHostsFile {}\n", list.display()),
        )
        .unwrap();
        let text = format!(
            "ssh_config: ssh_config\ndefaults: {{address: 127.0.0.1, port: {}, identity_file: user}}\nhosts:\n{hosts}",
            self.sshd.port
        );
        let text = text.replace("FINGERPRINT", &self.sshd.fingerprint());
        let text = text.replace("FOLDER", &folder.display().to_string());
        std::fs::write(self.inventory(), text).unwrap();
    }

    fn inventory(&self) -> PathBuf {
        self.sshd.folder.path().join("inventory.yaml")
    }

    fn command(&self, words: &[&str]) -> Command {
        let folder = self.sshd.folder.path();
        let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
        command
            .current_dir(folder)
            .env("XDG_CACHE_HOME", folder.join("control"))
            .env("XDG_RUNTIME_DIR", folder)
            .env_remove("ASSAY_ARTIFACTS")
            .arg("hosts")
            .args(words)
            .stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(words).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status.code(), text(stdout), text(stderr))
    }
}

/// Three hosts that one sshd serves.
const THREE: &str = "  a: {host_key: FINGERPRINT, directory: FOLDER/a}\n  b: {host_key: FINGERPRINT, directory: FOLDER/b}\n  \
    c: {host_key: FINGERPRINT, directory: FOLDER/c}\n";

#[test]
fn equal_outputs_are_printed_once_under_the_names_of_their_hosts() {
    if no_sshd() {
        return;
    }
    let place = Place::new(THREE);
    let script = "case $ASSAY_X$(pwd) in *) echo same; esac";
    let (code, out, _) = place.run(&["exec", "-i", "inventory.yaml", "--", "sh", "-c", script]);
    assert_eq!((code, out.as_str()), (Some(0), "a, b, c (3 hosts)\nsame\n"));
    // The first of them to make the folder says so.
    let script = format!(
        "mkdir {}/once 2>/dev/null && echo first || echo later",
        place.sshd.folder.path().display()
    );
    let words = [
        "exec",
        "-i",
        "inventory.yaml",
        "--at-once",
        "1",
        "--",
        "sh",
        "-c",
        &script,
    ];
    let (code, out, _) = place.run(&words);
    assert_eq!(code, Some(0));
    // Whichever came first stands alone.
    assert!(
        out.contains(" (1 host)\nfirst\n") && out.contains(" (2 hosts)\nlater\n"),
        "{out}"
    );
}

#[test]
fn an_exit_status_is_shown_and_is_a_failure() {
    if no_sshd() {
        return;
    }
    let place = Place::new(THREE);
    let words = [
        "exec",
        "-i",
        "inventory.yaml",
        "b",
        "--",
        "sh",
        "-c",
        "echo out; echo err >&2; exit 7",
    ];
    let (code, out, err) = place.run(&words);
    assert_eq!(code, Some(3));
    assert_eq!(out, "b (1 host, exit status 7)\nout\n");
    assert_eq!(err, "err\n");
}

#[test]
fn a_dead_host_is_named_with_a_hint_within_ten_seconds_and_the_others_answer() {
    if no_sshd() {
        return;
    }
    let place = Place::new("");
    // A stopped sshd's port accepts, and then nothing is said.
    let silent = Sshd::start("");
    silent
        .pids()
        .iter()
        .for_each(|pid| sshd::kill("STOP", *pid));
    place.write(&format!(
        "{THREE}  dead: {{port: {}, directory: FOLDER/d}}\n  refused: {{port: 1, directory: FOLDER/e}}\n",
        silent.port
    ));
    let begin = Instant::now();
    let mut exec = place
        .command(&["exec", "-i", "inventory.yaml", "--", "echo", "here"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut err, mut named) = (String::new(), Duration::MAX);
    for line in BufReader::new(exec.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        if line.starts_with("dead: ") {
            named = begin.elapsed();
        }
        err += &format!("{line}\n");
    }
    let Output { status, stdout, .. } = exec.wait_with_output().unwrap();
    let out = String::from_utf8(stdout).unwrap();
    silent
        .pids()
        .iter()
        .for_each(|pid| sshd::kill("CONT", *pid));
    assert_eq!(status.code(), Some(3), "{err}");
    assert_eq!(out, "a, b, c (3 hosts)\nhere\n");
    assert!(named < Duration::from_secs(10), "{named:?}: {err}");
    assert!(
        err.contains("dead: cannot connect to `dead` at 127.0.0.1: nothing answered in time"),
        "{err}"
    );
    assert!(
        err.contains("refused: cannot connect to `refused` at 127.0.0.1: connection refused"),
        "{err}"
    );
    assert!(
        err.contains("hint: start its sshd, or set its `port`"),
        "{err}"
    );
}

#[test]
fn a_long_output_is_kept_whole_in_a_file_and_printed_in_part() {
    if no_sshd() {
        return;
    }
    let place = Place::new(THREE);
    let words = [
        "--json",
        "exec",
        "-i",
        "inventory.yaml",
        "a",
        "--",
        "seq",
        "1",
        "50000",
    ];
    let (code, out, _) = place.run(&words);
    assert_eq!(code, Some(0));
    let rows: Value = serde_json::from_str(&out).unwrap();
    let row = &rows[0];
    let whole: String = (1..=50_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(row["stdout_bytes"], whole.len());
    let shown = row["stdout"].as_str().unwrap();
    assert!(shown.len() <= 64 << 10 && whole.starts_with(shown));
    let file = place
        .sshd
        .folder
        .path()
        .join(row["stdout_file"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(file).unwrap(), whole);
}

#[test]
fn lines_are_streamed_after_the_names_of_their_hosts() {
    if no_sshd() {
        return;
    }
    let place = Place::new(THREE);
    let (code, out, _) = place.run(&[
        "exec",
        "-i",
        "inventory.yaml",
        "--stream",
        "--",
        "echo",
        "x",
    ]);
    assert_eq!(code, Some(0));
    let mut lines: Vec<_> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["a: x", "b: x", "c: x"]);
}

#[test]
fn a_host_that_is_not_in_the_inventory_is_an_error_with_a_guess() {
    if no_sshd() {
        return;
    }
    let place = Place::new("  alpha: {directory: FOLDER/a}\n");
    let (code, _, err) = place.run(&["exec", "-i", "inventory.yaml", "alhpa", "--", "true"]);
    assert_eq!(code, Some(2));
    assert_eq!(
        err,
        "error: there is no host or group `alhpa`\nhint: did you mean `alpha`?\n"
    );
}

#[test]
fn a_new_key_is_made_known_only_when_told_so_and_a_changed_one_never() {
    if no_sshd() {
        return;
    }
    let mut place = Place::new("  a: {directory: FOLDER/a}\n");
    let list = place.sshd.folder.path().join("known");
    let first = place.sshd.fingerprint();
    let (code, _, err) = place.run(&["exec", "-i", "inventory.yaml", "--", "true"]);
    assert_eq!(code, Some(3));
    assert!(
        err.contains(&format!(
            "its host key is not known: it presents ssh-ed25519 {first}"
        )),
        "{err}"
    );
    let (code, out, err) = place.run(&["trust", "-i", "inventory.yaml"]);
    assert_eq!(code, Some(3));
    assert!(
        out.contains(&first) && err.contains("1 key not known, and nobody to ask"),
        "{out}{err}"
    );
    assert!(!list.exists());
    std::fs::write(&list, "# without an end").unwrap();
    let (code, _, err) = place.run(&["trust", "-i", "inventory.yaml", "--yes"]);
    assert_eq!((code, err.as_str()), (Some(0), "1 key made known\n"));
    let text = std::fs::read_to_string(&list).unwrap();
    assert!(text.starts_with("# without an end\n[127.0.0.1]:"), "{text}");
    assert_eq!(
        place.run(&["exec", "-i", "inventory.yaml", "--", "true"]).0,
        Some(0)
    );

    place.sshd.renew_key();
    let second = place.sshd.fingerprint();
    let (code, _, err) = place.run(&["trust", "-i", "inventory.yaml", "--yes"]);
    assert_eq!(code, Some(3));
    assert!(
        err.starts_with("error: 1 key changed; nothing was made known for them"),
        "{err}"
    );
    assert_eq!(std::fs::read_to_string(&list).unwrap(), text);
    let (code, _, err) = place.run(&["exec", "-i", "inventory.yaml", "--", "true"]);
    assert_eq!(code, Some(3));
    let both = format!("it presents ssh-ed25519 {second}, known is ssh-ed25519 {first}");
    assert!(err.contains(&both), "{err}");
}

/// The words of the command that a hint names after `assay hosts`.
fn hinted(err: &str) -> Vec<&str> {
    let (_, rest) = err.split_once("`assay hosts ").expect(err);
    let (command, _) = rest.split_once('`').unwrap();
    command.split(' ').collect()
}

#[test]
fn the_hint_for_an_unknown_key_is_a_command_that_shows_that_key() {
    if no_sshd() {
        return;
    }
    let place = Place::new(
        "  gw: {directory: FOLDER/gw}\n  d1: {directory: FOLDER/d1, jump: gw}\n  d2: {directory: FOLDER/d2}\n",
    );
    for (host, shown) in [("d2", "d2"), ("d1", "gw")] {
        let (code, _, err) = place.run(&["exec", "-i", "inventory.yaml", host, "--", "true"]);
        assert_eq!(code, Some(3));
        let words = hinted(&err);
        assert_eq!(words, ["trust", "-i", "INVENTORY", shown]);
        std::fs::copy(
            place.inventory(),
            place.sshd.folder.path().join("INVENTORY"),
        )
        .unwrap();
        let (code, out, err) = place.run(&words);
        assert_eq!(code, Some(3), "{err}");
        assert!(err.contains("1 key not known, and nobody to ask"), "{err}");
        let row = out.lines().last().unwrap();
        assert!(row.trim_start().starts_with(shown), "{out}");
        assert!(row.contains(&place.sshd.fingerprint()), "{out}");
    }
}

#[test]
fn a_program_that_is_missing_on_a_host_is_said_to_be_installed_there_or_named_by_its_path() {
    if no_sshd() {
        return;
    }
    let place = Place::new(THREE);
    let words = ["exec", "-i", "inventory.yaml", "a", "--"];
    let (code, _, err) = place.run(&[&words[..], &["nosuch"]].concat());
    assert_eq!(code, Some(3));
    assert_eq!(
        err,
        "a: cannot run `nosuch` on `a`: No such file or directory (os error 2)\n\
         hint: see that it is installed on the host; if it is, name its path\n"
    );
    let (_, _, err) = place.run(&[&words[..], &["/etc/passwd"]].concat());
    assert!(
        err.ends_with("hint: see that it is a program which the user on the host may run\n"),
        "{err}"
    );
}

#[test]
fn an_interrupt_ends_the_command_on_the_host() {
    if no_sshd() {
        return;
    }
    let place = Place::new(THREE);
    let pid = place.sshd.folder.path().join("pid");
    let script = format!(
        "echo $$ >{0}.new; mv {0}.new {0}; exec sleep 600",
        pid.display()
    );
    let mut exec = place
        .command(&[
            "exec",
            "-i",
            "inventory.yaml",
            "a",
            "--",
            "sh",
            "-c",
            &script,
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !pid.exists() {
        assert!(Instant::now() < deadline, "the command does not begin");
        std::thread::yield_now();
    }
    sshd::kill("INT", exec.id());
    assert_eq!(exec.wait().unwrap().code(), Some(130));
    let pid = std::fs::read_to_string(pid).unwrap();
    let there = || PathBuf::from(format!("/proc/{}", pid.trim())).exists();
    while there() {
        assert!(Instant::now() < deadline, "the command is still there");
        std::thread::yield_now();
    }
}
