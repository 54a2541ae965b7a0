//! This machine as a host, with real programs.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use assay::host::{
    AgentError, Bounds, Claim, Command, Hearing, Host, HostError, LocalHost, Output, Program,
    Watch, call,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const MINUTE: Duration = Duration::from_secs(60);

fn shell(script: &str) -> Command {
    let args = vec!["-c".into(), script.into()];
    Command::new(Program::Path("/bin/sh".into()), args, MINUTE)
}

fn local(folder: &TempDir) -> LocalHost {
    LocalHost::new("here", folder.path().join("data"), "/bin/false")
}

/// Runs a command on this machine and returns what it printed, line by line.
async fn run(command: &Command) -> (Result<Output, HostError>, Vec<String>) {
    let folder = TempDir::new().unwrap();
    let mut lines = Vec::new();
    let mut line = |text: &str| lines.push(text.to_owned());
    let watch = Watch {
        stop: CancellationToken::new(),
        line: &mut line,
        log: &mut |_| {},
    };
    let output = local(&folder).run(command, watch).await;
    (output, lines)
}

/// Waits until a process has ended; a signal takes its time.
fn ends(pid: &str) {
    let deadline = Instant::now() + MINUTE;
    while lives(pid) {
        assert!(Instant::now() < deadline, "process {pid} is still there");
        std::thread::yield_now();
    }
}

/// Whether a process is there and no zombie.
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim());
    state.is_some_and(|state| !state.starts_with(['Z', 'X']))
}

/// A pid that a script wrote, once it has.
fn pid(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    text.trim().to_owned()
}

#[tokio::test]
async fn a_program_that_ends_tells_its_status_its_lines_and_the_end_of_its_errors() {
    let (output, lines) = run(&shell(
        "echo one; echo; printf three; echo oops >&2; exit 7",
    ))
    .await;
    let expected = Output {
        status: Some(7),
        stderr: "oops\n".into(),
    };
    assert_eq!(output.unwrap(), expected);
    assert_eq!(lines, ["one", "", "three"]);
}

#[tokio::test]
async fn a_program_that_a_signal_ended_has_no_status() {
    let (output, _) = run(&shell("kill -9 $$")).await;
    assert_eq!(output.unwrap().status, None);
}

#[tokio::test]
async fn a_program_reads_its_request_and_its_input_stays_open() {
    // `read` fails at the end of the input; it must still be waiting when its own limit of a moment is over.
    let script = "read -r line; echo got $line; timeout 0.2 cat; echo rc=$?";
    let command = Command {
        stdin: b"hello\n".to_vec(),
        ..shell(script)
    };
    let (_, lines) = run(&command).await;
    assert_eq!(lines, ["got hello", "rc=124"]);
}

#[tokio::test]
async fn a_large_request_to_a_program_that_does_not_read_it_hinders_nobody() {
    let command = Command {
        stdin: vec![b'x'; 4 << 20],
        ..shell("echo done")
    };
    let (output, lines) = run(&command).await;
    assert_eq!(output.unwrap().status, Some(0));
    assert_eq!(lines, ["done"]);
}

#[tokio::test]
async fn a_program_that_outlives_its_limit_is_ended_with_its_children() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("pid");
    let script = format!("sleep 600 & echo $! > {}; wait", file.display());
    let command = Command {
        limit: Duration::from_millis(500),
        ..shell(&script)
    };
    let (output, _) = run(&command).await;
    let message = output.unwrap_err().to_string();
    assert_eq!(
        message,
        "`/bin/sh` on `here` took longer than its limit of 500ms and was killed"
    );
    ends(&pid(&file));
}

#[tokio::test]
async fn a_group_that_ignores_the_request_to_end_is_killed() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("pid");
    let script = format!(
        "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo $! > {}; wait",
        file.display()
    );
    let command = Command {
        limit: Duration::from_millis(300),
        ..shell(&script)
    };
    let start = Instant::now();
    let (output, _) = run(&command).await;
    assert!(matches!(output, Err(HostError::Limit { .. })));
    assert!(
        start.elapsed() >= Duration::from_secs(5),
        "it had its grace"
    );
    ends(&pid(&file));
}

#[tokio::test]
async fn a_program_that_is_stopped_may_clean_up_first() {
    let folder = TempDir::new().unwrap();
    let stop = CancellationToken::new();
    let mut lines = Vec::new();
    let mut line = |text: &str| {
        lines.push(text.to_owned());
        stop.cancel();
    };
    let command = shell("trap 'echo cleaned; exit' TERM; echo ready; while :; do sleep 0.05; done");
    let watch = Watch {
        stop: stop.clone(),
        line: &mut line,
        log: &mut |_| {},
    };
    let error = local(&folder).run(&command, watch).await.unwrap_err();
    assert_eq!(error.to_string(), "`/bin/sh` on `here` was stopped");
    assert_eq!(lines, ["ready", "cleaned"]);
}

#[tokio::test]
async fn nothing_starts_when_the_stop_came_before() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("started");
    let stop = CancellationToken::new();
    stop.cancel();
    let command = shell(&format!("touch {}", file.display()));
    let watch = Watch {
        stop,
        line: &mut |_| {},
        log: &mut |_| {},
    };
    let output = local(&folder).run(&command, watch).await;
    assert!(matches!(output, Err(HostError::Stopped { .. })));
    assert!(!file.exists());
}

#[tokio::test]
async fn a_command_that_nobody_awaits_any_more_is_killed_with_its_children() {
    let folder = TempDir::new().unwrap();
    let (tell, told) = tokio::sync::oneshot::channel();
    let mut tell = Some(tell);
    let mut line = |text: &str| drop(tell.take().map(|tell| tell.send(text.to_owned())));
    let command = shell("sleep 600 & echo $!; wait");
    let host = local(&folder);
    let watch = Watch {
        stop: CancellationToken::new(),
        line: &mut line,
        log: &mut |_| {},
    };
    let run = host.run(&command, watch);
    let child = tokio::select! {
        _ = run => panic!("it does not end by itself"),
        child = told => child.unwrap(),
    };
    ends(&child);
}

#[tokio::test]
async fn what_a_program_leaves_running_does_not_hold_up_its_end() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("pid");
    let script = format!("sleep 600 & echo $! > {}; echo done", file.display());
    let start = Instant::now();
    let (output, lines) = run(&shell(&script)).await;
    assert_eq!(output.unwrap().status, Some(0));
    assert_eq!(lines, ["done"]);
    assert!(start.elapsed() < MINUTE);
    let left = pid(&file);
    assert!(lives(&left), "what ended well keeps what it started");
    let killed = std::process::Command::new("kill").arg(&left).status();
    assert!(killed.unwrap().success());
}

#[tokio::test]
async fn large_output_is_read_in_bounded_lines_and_a_bounded_end_of_the_errors() {
    // 3 MiB without a line's end, then a line; 300 KB of errors with a mark at the end.
    let script = "head -c 3145728 /dev/zero | tr '\\0' a; echo; echo next; \
                  head -c 300000 /dev/zero | tr '\\0' b >&2; printf END >&2";
    let (output, lines) = run(&shell(script)).await;
    assert_eq!(
        lines.iter().map(String::len).collect::<Vec<_>>(),
        [
            (1 << 20) + " [2097152 more bytes of this line are left out]".len(),
            4
        ]
    );
    let stderr = output.unwrap().stderr;
    assert_eq!(stderr.len(), 64 << 10);
    assert!(stderr.ends_with("bbbEND"));
}

#[tokio::test]
async fn output_that_is_no_utf_8_is_replaced_and_stays_bounded() {
    let script = "printf 'a\\377b\\n'; head -c 100000 /dev/zero | tr '\\0' '\\377' >&2";
    let (output, lines) = run(&shell(script)).await;
    assert_eq!(lines, ["a\u{fffd}b"]);
    assert!(output.unwrap().stderr.len() <= 64 << 10);
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let command = Command {
        program: Program::Path("/no/such/program".into()),
        ..shell("")
    };
    let error = run(&command).await.0.unwrap_err();
    assert_eq!(error.to_string(), "cannot run `/no/such/program` on `here`");
    let HostError::Io { source, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
}

/// A stand-in for the assay binary.
fn agent(folder: &TempDir, script: &str) -> LocalHost {
    let path = folder.path().join("assay");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    LocalHost::new("here", folder.path().join("data"), path)
}

async fn ask(host: &dyn Host) -> (Result<Value, AgentError>, Vec<Value>) {
    let stop = CancellationToken::new();
    let mut seen = Vec::new();
    let mut progress = |value: Value| seen.push(value);
    let bounds = Bounds {
        limit: MINUTE,
        stop: &stop,
    };
    let hearing = Hearing {
        progress: &mut progress,
        log: &mut |_| {},
    };
    let answer = call(host, "work", &json!({"n": 1}), bounds, hearing).await;
    (answer, seen)
}

#[tokio::test]
async fn an_agent_gets_its_name_and_one_line_and_answers_with_progress_and_an_outcome() {
    let folder = TempDir::new().unwrap();
    let host = agent(
        &folder,
        "read -r line; echo \"{\\\"progress\\\": $line}\"; echo noise; echo \"{\\\"done\\\": \\\"$*\\\"}\"",
    );
    let (answer, seen) = ask(&host).await;
    assert_eq!(answer.unwrap(), json!("agent work"));
    assert_eq!(seen, [json!({"n": 1})]);
}

#[tokio::test]
async fn an_agent_that_ends_without_an_outcome_is_an_error_with_its_last_words() {
    let folder = TempDir::new().unwrap();
    let host = agent(&folder, "echo out of memory >&2; exit 137");
    let (answer, _) = ask(&host).await;
    assert_eq!(
        answer.unwrap_err().to_string(),
        "`assay agent work` on `here` ended with status 137 without an outcome: out of memory"
    );
}

#[tokio::test]
async fn a_folder_is_fetched_whole_and_links_stay_links() {
    let folder = TempDir::new().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    std::fs::create_dir_all(from.join("a/empty")).unwrap();
    std::fs::write(from.join("a/file"), "text").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", from.join("link")).unwrap();
    local(&folder).fetch(&from, &to).await.unwrap();
    assert_eq!(std::fs::read_to_string(to.join("a/file")).unwrap(), "text");
    assert!(to.join("a/empty").is_dir());
    assert_eq!(
        std::fs::read_link(to.join("link")).unwrap(),
        PathBuf::from("/etc/passwd")
    );
}

#[tokio::test]
async fn a_fetch_leaves_the_marker_and_makes_the_folders_above() {
    let folder = TempDir::new().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("a/b/to"));
    std::fs::create_dir_all(from.join("deep")).unwrap();
    for name in [".assay-marker", "result", "deep/.assay-marker"] {
        std::fs::write(from.join(name), name).unwrap();
    }
    local(&folder).fetch(&from, &to).await.unwrap();
    let names = |path: &Path| {
        let names = std::fs::read_dir(path).unwrap();
        let mut names: Vec<_> = names.map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&to), ["deep", "result"]);
    // Only the one at the top is a marker.
    assert_eq!(names(&to.join("deep")), [".assay-marker"]);
}

#[tokio::test]
async fn a_link_in_the_place_of_a_folder_is_not_fetched() {
    let folder = TempDir::new().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    std::os::unix::fs::symlink("/etc", &from).unwrap();
    let error = local(&folder).fetch(&from, &to).await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.ends_with("is a symbolic link"), "{cause}");
    assert!(!to.exists());
}

#[tokio::test]
async fn a_fetch_never_writes_into_a_folder_that_is_there() {
    let folder = TempDir::new().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    std::fs::create_dir_all(&from).unwrap();
    std::fs::create_dir_all(&to).unwrap();
    std::fs::write(from.join("file"), "new").unwrap();
    std::fs::write(to.join("file"), "old").unwrap();
    let error = local(&folder).fetch(&from, &to).await.unwrap_err();
    assert!(matches!(error, HostError::Io { .. }), "{error:?}");
    assert_eq!(std::fs::read_to_string(to.join("file")).unwrap(), "old");
}

#[tokio::test]
async fn a_fetch_that_fails_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("to");
    let missing = folder.path().join("missing");
    assert!(local(&folder).fetch(&missing, &to).await.is_err());
    assert!(!to.exists());
}

#[tokio::test]
async fn one_run_at_a_time_holds_a_host_and_the_other_learns_who() {
    let folder = TempDir::new().unwrap();
    let host = local(&folder);
    let lease = host.lease(Claim::of("run `first`")).await.unwrap();
    let message = host
        .lease(Claim::of("second"))
        .await
        .err()
        .unwrap()
        .to_string();
    let start = format!(
        "host `here` is held by run `first` (process {}) since 20",
        std::process::id()
    );
    assert!(message.starts_with(&start), "{message}");
    drop(lease);
    let lease = host.lease(Claim::of("second")).await;
    assert!(lease.is_ok(), "it is free again");
}

/// What is said when `plant` put something into the directory of a host before its lease is taken; the causes follow.
async fn refused_lease(plant: impl Fn(&Path)) -> String {
    let folder = TempDir::new().unwrap();
    let host = local(&folder);
    std::fs::create_dir_all(host.directory()).unwrap();
    plant(host.directory());
    let error = host.lease(Claim::of("me")).await.err().unwrap();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    format!("{error}: {cause}").replace(&format!("{}/", host.directory().display()), "")
}

#[tokio::test]
async fn a_foreign_file_in_the_directory_of_a_host_is_never_emptied() {
    let folder = TempDir::new().unwrap();
    let host = local(&folder);
    std::fs::create_dir_all(host.directory()).unwrap();
    let foreign = host.directory().join("lease");
    std::fs::write(&foreign, "of a house").unwrap();
    drop(host.lease(Claim::of("me")).await.unwrap());
    assert_eq!(std::fs::read_to_string(&foreign).unwrap(), "of a house");
}

#[tokio::test]
async fn what_has_the_name_of_a_lease_and_is_none_is_left_alone() {
    for text in ["of a house", "{}", "\n", "{\"owner\": \"me\"}"] {
        let said = refused_lease(|directory| {
            std::fs::write(directory.join(".assay-lease"), text).unwrap();
        });
        let end = "`.assay-lease` is left alone, for it is no lease of assay: it names no holder";
        assert!(said.await.ends_with(end));
    }
    let folder = TempDir::new().unwrap();
    let host = local(&folder);
    std::fs::create_dir_all(host.directory()).unwrap();
    let path = host.directory().join(".assay-lease");
    std::fs::write(&path, "of a house").unwrap();
    assert!(host.lease(Claim::of("me")).await.is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "of a house");
}

#[tokio::test]
async fn a_link_by_the_name_of_a_lease_does_not_lead_to_the_emptying_of_a_file() {
    for target in ["thesis", "not-there"] {
        let outside = TempDir::new().unwrap();
        let thesis = outside.path().join("thesis");
        std::fs::write(&thesis, "years of work").unwrap();
        let said = refused_lease(|directory| {
            let link = directory.join(".assay-lease");
            std::os::unix::fs::symlink(outside.path().join(target), link).unwrap();
        });
        assert!(said.await.ends_with("it is a symbolic link"));
        assert_eq!(std::fs::read_to_string(&thesis).unwrap(), "years of work");
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    }
    let said = refused_lease(|directory| {
        std::fs::write(directory.join("second"), "").unwrap();
        std::fs::hard_link(directory.join("second"), directory.join(".assay-lease")).unwrap();
    });
    assert!(said.await.ends_with("it has another name"));
}

#[tokio::test]
async fn a_folder_or_a_fifo_by_the_name_of_a_lease_is_refused_and_nothing_hangs() {
    let said = refused_lease(|directory| {
        std::fs::create_dir(directory.join(".assay-lease")).unwrap();
    });
    assert!(said.await.ends_with("it is no file"));
    let said = refused_lease(|directory| {
        let mut mkfifo = std::process::Command::new("mkfifo");
        let made = mkfifo.arg(directory.join(".assay-lease")).status();
        assert!(made.unwrap().success());
    });
    assert!(said.await.ends_with("it is no file"));
}

/// What the check of a lease says after something happened to the directory of its host.
async fn checked(happen: impl Fn(&Path)) -> Option<String> {
    let folder = TempDir::new().unwrap();
    let host = local(&folder);
    let lease = host.lease(Claim::of("me")).await.unwrap();
    happen(host.directory());
    let error = lease.check().err()?;
    let start = format!(
        "cannot keep the lease `{}/.assay-lease` on `here`",
        host.directory().display()
    );
    assert_eq!(error.to_string(), start);
    std::error::Error::source(&error).map(ToString::to_string)
}

#[tokio::test]
async fn a_lease_whose_file_or_directory_is_removed_or_replaced_is_lost() {
    assert_eq!(checked(|_| {}).await, None);
    let removed = |directory: &Path| std::fs::remove_file(directory.join(".assay-lease")).unwrap();
    assert_eq!(checked(removed).await.unwrap(), "it was removed");
    let gone = |directory: &Path| std::fs::remove_dir_all(directory).unwrap();
    assert_eq!(checked(gone).await.unwrap(), "it was removed");
    let replaced = |directory: &Path| {
        let path = directory.join(".assay-lease");
        std::fs::copy(&path, directory.join("copy")).unwrap();
        std::fs::rename(directory.join("copy"), path).unwrap();
    };
    assert_eq!(checked(replaced).await.unwrap(), "it was replaced");
    let moved = |directory: &Path| {
        std::fs::rename(directory, directory.with_file_name("elsewhere")).unwrap();
        std::fs::create_dir(directory).unwrap();
        std::fs::write(directory.join(".assay-lease"), "").unwrap();
    };
    assert_eq!(checked(moved).await.unwrap(), "it was replaced");
}

#[tokio::test]
async fn a_lease_that_was_lost_leaves_that_of_the_next_alone_when_it_ends() {
    let folder = TempDir::new().unwrap();
    let host = local(&folder);
    let lost = host.lease(Claim::of("first")).await.unwrap();
    std::fs::remove_dir_all(host.directory()).unwrap();
    let next = host.lease(Claim::of("next")).await.unwrap();
    drop(lost);
    next.check().unwrap();
    let message = host
        .lease(Claim::of("third"))
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(message.contains("is held by next (process"), "{message}");
}

#[tokio::test]
async fn the_lease_of_a_holder_that_died_is_free() {
    let folder = TempDir::new().unwrap();
    let host = local(&folder);
    std::fs::create_dir_all(host.directory()).unwrap();
    let file = host.directory().join(".assay-lease");
    let dead = r#"{"owner": "dead", "pid": 1, "since": "2026-01-02T03:04:05Z"}"#;
    std::fs::write(&file, dead).unwrap();
    // Held by another process, whose death is the only thing that frees it.
    let mut holder = std::process::Command::new("flock")
        .arg(&file)
        .args(["-c", "echo held; exec sleep 600"])
        .process_group(0)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut held = [0; 5];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut held).unwrap();
    let message = host
        .lease(Claim::of("next"))
        .await
        .err()
        .unwrap()
        .to_string();
    assert_eq!(
        message,
        "host `here` is held by dead (process 1) since 2026-01-02T03:04:05Z"
    );
    kill_group(holder.id());
    holder.wait().unwrap();
    let deadline = Instant::now() + MINUTE;
    while host.lease(Claim::of("next")).await.is_err() {
        assert!(Instant::now() < deadline, "the lease is still held");
    }
}

fn kill_group(leader: u32) {
    let group = rustix::process::Pid::from_raw(i32::try_from(leader).unwrap()).unwrap();
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn an_agent_ends_when_its_caller_dies_and_not_before() {
    let output = tempfile::tempdir().unwrap();
    let request = json!({
        "target": "null",
        "work": {"run": {
            "workload": {"driver": "native", "workload": "ycsb_c"},
            "dataset": {"driver": "native", "schema": "ycsb"},
            "threads": 1,
            "rate": 1.0,
            "warmup": "0s",
            "duration": "10m",
            "output": output.path(),
        }},
        "seed": 1,
    });
    let mut agent = std::process::Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(["agent", "load"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut caller = agent.stdin.take().unwrap();
    writeln!(caller, "{request}").unwrap();
    // Its first words: it is at work.
    let mut words = BufReader::new(agent.stdout.take().unwrap());
    let mut line = String::new();
    words.read_line(&mut line).unwrap();
    assert!(line.contains("progress"), "{line}");
    assert_eq!(agent.try_wait().unwrap(), None);
    drop(caller);
    assert_eq!(agent.wait().unwrap().code(), Some(130));
}
