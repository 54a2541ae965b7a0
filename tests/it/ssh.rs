//! Hosts over SSH, with real sshds on loopback.

use std::sync::Arc;
use std::time::{Duration, Instant};

use assay::host::{
    Claim, Command, ConnectError, Host, HostError, LocalHost, OnLoss, Output, Program, SshHost,
    Watch,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::support::sshd::{self, Sshd};
use crate::support::{no_sshd, skipped};

const MINUTE: Duration = Duration::from_secs(60);

fn shell(script: &str) -> Command {
    let args = vec!["-c".into(), script.into()];
    Command::new(Program::Path("/bin/sh".into()), args, MINUTE)
}

/// What a command came to, the lines that it printed, and its standard error.
type Ran = (Result<Output, HostError>, Vec<String>, String);

async fn run(host: &SshHost, command: &Command) -> Ran {
    run_until(host, command, &CancellationToken::new(), None).await
}

async fn run_until(
    host: &SshHost,
    command: &Command,
    stop: &CancellationToken,
    heard: Option<mpsc::UnboundedSender<String>>,
) -> Ran {
    let (mut lines, mut errors) = (Vec::new(), String::new());
    let mut line = |text: &str| {
        lines.push(text.to_owned());
        if let Some(heard) = &heard {
            let _ = heard.send(text.to_owned());
        }
    };
    let mut log = |text: &str| errors.push_str(text);
    let watch = Watch {
        stop: stop.clone(),
        line: &mut line,
        log: &mut log,
    };
    let output = host.run(command, watch).await;
    (output, lines, errors)
}

/// Waits until the host is reached again after a cut.
async fn again(host: &SshHost) {
    let command = Command {
        on_loss: OnLoss::Repeat,
        ..shell("true")
    };
    run(host, &command).await.0.unwrap();
}

/// Starts a command in the background; its first line says that it is at work.
async fn begin(
    host: &Arc<SshHost>,
    command: Command,
) -> (tokio::task::JoinHandle<Ran>, CancellationToken, String) {
    let stop = CancellationToken::new();
    let (heard, mut hear) = mpsc::unbounded_channel();
    let (host, token) = (Arc::clone(host), stop.clone());
    let task = tokio::spawn(async move { run_until(&host, &command, &token, Some(heard)).await });
    let first = tokio::time::timeout(MINUTE, hear.recv()).await.unwrap();
    (task, stop, first.unwrap_or_default())
}

fn source(error: &HostError) -> &ConnectError {
    match error {
        HostError::Connect { source, .. } => source,
        other => panic!("{other:?}"),
    }
}

/// Waits until a process has ended.
async fn ends(pid: &str) {
    let deadline = Instant::now() + MINUTE;
    let lives = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat
            .rsplit_once(')')
            .map(|(_, rest)| rest.trim().to_owned());
        state.is_some_and(|state| !state.starts_with(['Z', 'X']))
    };
    while lives() {
        assert!(Instant::now() < deadline, "process {pid} is still there");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_command_gives_its_lines_its_errors_and_its_status_also_127() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("");
    let host = sshd.connect().await;
    let (output, lines, errors) =
        run(&host, &shell("echo a; echo 'b  c'; echo no >&2; exit 127")).await;
    assert_eq!(output.unwrap().status, Some(127));
    assert_eq!(lines, ["a", "b  c"]);
    assert_eq!(errors, "no\n");
    let (output, ..) = run(&host, &shell("kill -KILL $$")).await;
    assert_eq!(output.unwrap().status, None);
}

#[tokio::test]
async fn words_arrive_as_they_are_and_no_shell_reads_them() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("");
    let host = sshd.connect().await;
    let words = ["$HOME `id` \"x' \\n *", "-n", "", "a\nb", "ü;&|<>"];
    let args = std::iter::once("%s|")
        .chain(words)
        .map(str::to_owned)
        .collect();
    let command = Command::new(Program::Path("/usr/bin/printf".into()), args, MINUTE);
    let (_, lines, _) = run(&host, &command).await;
    assert_eq!(
        lines.join("\n"),
        words.map(|word| format!("{word}|")).concat()
    );
}

#[tokio::test]
async fn a_program_that_is_not_there_is_said_to_be_missing() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("");
    let host = sshd.connect().await;
    let command = Command::new(Program::Path("/no/such".into()), Vec::new(), MINUTE);
    let (output, ..) = run(&host, &command).await;
    let error = output.unwrap_err();
    assert_eq!(error.to_string(), "cannot run `/no/such` on `kv1`");
    let HostError::Io { source, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
}

#[tokio::test]
async fn a_hundred_commands_at_once_need_two_sessions() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("MaxSessions 2");
    let host = Arc::new(sshd.connect().await);
    let tasks: Vec<_> = (0..100)
        .map(|n| {
            let host = Arc::clone(&host);
            tokio::spawn(async move { run(&host, &shell(&format!("sleep 0.2; echo {n}"))).await })
        })
        .collect();
    for (n, task) in tasks.into_iter().enumerate() {
        let (output, lines, _) = task.await.unwrap();
        assert_eq!(output.unwrap().status, Some(0));
        assert_eq!(lines, [n.to_string()]);
    }
}

#[tokio::test]
async fn ten_connections_at_once_get_by_where_two_may_log_in() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("MaxStartups 2:100:2");
    let connections = (0..10).map(|n| {
        let target = sshd.target(&format!("kv{n}"));
        tokio::spawn(SshHost::connect(target, sshd::binary(), sshd.settings()))
    });
    for connection in connections.collect::<Vec<_>>() {
        let host = connection.await.unwrap().unwrap();
        let (output, ..) = run(&host, &shell("true")).await;
        assert_eq!(output.unwrap().status, Some(0));
    }
}

#[tokio::test]
async fn what_a_start_up_file_prints_and_how_long_it_takes_disturbs_no_command() {
    if no_sshd() {
        return;
    }
    let login = sshd::login_shell();
    if !login.ends_with("/bash") {
        return skipped(&format!(
            "the login shell is {login}, and bash alone reads BASH_ENV"
        ));
    }
    let sshd = Sshd::start("");
    let file = sshd.folder.path().join("rc");
    let readers = sshd.folder.path().join("readers");
    let text = format!(
        "echo $$ >>{}; echo assay; printf 'no end'; sleep 0.3\n",
        readers.display()
    );
    std::fs::write(&file, text).unwrap();
    sshd.configure(&format!(
        "SetEnv BASH_ENV={} XDG_CACHE_HOME={}",
        file.display(),
        sshd::cache()
    ));
    let mut sshd = sshd;
    sshd.down();
    sshd.up();
    let host = sshd.connect().await;
    let at_first = std::fs::read_to_string(&readers).unwrap();
    assert!(!at_first.is_empty());
    for n in 0..10 {
        let (_, lines, _) = run(&host, &shell(&format!("echo {n}"))).await;
        assert_eq!(lines, [n.to_string()]);
    }
    // Only the connection reads it, and waits for it: no command does.
    assert_eq!(std::fs::read_to_string(&readers).unwrap(), at_first);
}

#[tokio::test]
async fn a_command_that_nobody_waits_for_any_more_is_ended_on_the_host() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("");
    let host = Arc::new(sshd.connect().await);
    let (task, _, pid) = begin(&host, shell("echo $$; exec sleep 600")).await;
    task.abort();
    ends(&pid).await;
}

#[tokio::test]
async fn a_command_that_is_stopped_outlives_its_limit_or_is_silent_is_ended_on_the_host() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("");
    let host = Arc::new(sshd.connect().await);
    let (task, stop, pid) = begin(&host, shell("echo $$; exec sleep 600")).await;
    stop.cancel();
    let (output, ..) = task.await.unwrap();
    assert!(
        matches!(output, Err(HostError::Stopped { .. })),
        "{output:?}"
    );
    ends(&pid).await;
    let limited = Command {
        limit: Duration::from_millis(300),
        ..shell("echo $$; exec sleep 600")
    };
    let (output, lines, _) = run(&host, &limited).await;
    assert!(matches!(output, Err(HostError::Limit { .. })), "{output:?}");
    ends(&lines[0]).await;
    let silent = Command {
        silence: Some(Duration::from_millis(300)),
        ..shell("echo $$; exec sleep 600")
    };
    let (output, lines, _) = run(&host, &silent).await;
    assert!(
        matches!(output, Err(HostError::Silence { .. })),
        "{output:?}"
    );
    ends(&lines[0]).await;
}

#[tokio::test]
async fn a_cut_connection_ends_what_ran_over_it_and_the_next_command_makes_a_new_one() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("");
    let host = Arc::new(sshd.connect().await);
    let (task, _, pid) = begin(&host, shell("echo $$; exec sleep 600")).await;
    sshd.cut();
    let (output, ..) = task.await.unwrap();
    assert!(matches!(output, Err(HostError::Lost { .. })), "{output:?}");
    ends(&pid).await;
    let (output, lines, _) = run(&host, &shell("echo back")).await;
    assert_eq!(
        (output.unwrap().status, lines),
        (Some(0), vec!["back".into()])
    );
}

#[tokio::test]
async fn what_may_be_repeated_is_run_again_after_a_cut() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("");
    let host = Arc::new(sshd.connect().await);
    let first = sshd.folder.path().join("first");
    let script = format!(
        "echo $$; [ -e {0} ] && exit 7; touch {0}; exec sleep 600",
        first.display()
    );
    let command = Command {
        on_loss: OnLoss::Repeat,
        ..shell(&script)
    };
    let (task, ..) = begin(&host, command).await;
    while !first.exists() {
        tokio::task::yield_now().await;
    }
    sshd.cut();
    let (output, ..) = task.await.unwrap();
    assert_eq!(output.unwrap().status, Some(7));
}

/// A job that prints a line for each line that is written to `feed`, and ends with status 5 after `end`.
fn fed(feed: &std::path::Path) -> Command {
    let made = std::process::Command::new("mkfifo")
        .arg(feed)
        .status()
        .unwrap();
    assert!(made.success());
    let script = format!(
        "echo $$; while read word; do echo $word; [ $word = end ] && {{ echo said >&2; exit 5; }}; done <{}",
        feed.display()
    );
    Command {
        on_loss: OnLoss::Survive,
        ..shell(&script)
    }
}

#[tokio::test]
async fn two_cuts_in_a_row_lose_nothing_of_a_job_and_repeat_nothing() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("");
    let host = Arc::new(sshd.connect().await);
    let feed = sshd.folder.path().join("feed");
    let (task, _, _) = begin(&host, fed(&feed)).await;
    let mut words = std::fs::OpenOptions::new().write(true).open(&feed).unwrap();
    let mut write = |word: &str| std::io::Write::write_all(&mut words, word.as_bytes()).unwrap();
    write("one\n");
    sshd.cut();
    write("two\n");
    // Another command shows that the host is reached again.
    again(&host).await;
    sshd.cut();
    write("three\nend\n");
    let (output, lines, errors) = task.await.unwrap();
    assert_eq!(output.unwrap().status, Some(5));
    assert_eq!(lines[1..], ["one", "two", "three", "end"]);
    // Its log tells of the outages as well.
    assert_eq!(
        errors
            .matches("assay: the connection to `kv1` was lost for")
            .count(),
        2
    );
    assert!(errors.ends_with("\nsaid\n"), "{errors}");
}

#[tokio::test]
async fn the_outcome_of_a_job_arrives_although_sshd_is_down_when_it_ends() {
    if no_sshd() {
        return;
    }
    let mut sshd = Sshd::start("");
    let host = Arc::new(sshd.connect().await);
    let feed = sshd.folder.path().join("feed");
    let (task, _, pid) = begin(&host, fed(&feed)).await;
    sshd.down();
    std::fs::write(&feed, "end\n").unwrap();
    ends(&pid).await;
    sshd.up();
    let (output, lines, _) = task.await.unwrap();
    assert_eq!(output.unwrap().status, Some(5));
    assert_eq!(lines, [pid.as_str(), "end"]);
}

#[tokio::test]
async fn a_job_is_stopped_by_name_also_over_a_later_connection() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("");
    let host = Arc::new(sshd.connect().await);
    let job = Command {
        on_loss: OnLoss::Survive,
        ..shell("echo $$; exec sleep 600")
    };
    let (task, stop, pid) = begin(&host, job).await;
    sshd.cut();
    again(&host).await;
    stop.cancel();
    let (output, ..) = task.await.unwrap();
    assert!(
        matches!(output, Err(HostError::Stopped { .. })),
        "{output:?}"
    );
    ends(&pid).await;
}

#[tokio::test]
async fn a_job_whose_supervisor_is_killed_is_said_to_be_gone() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("");
    let host = Arc::new(sshd.connect().await);
    let job = Command {
        on_loss: OnLoss::Survive,
        ..shell("echo $PPID; exec sleep 600")
    };
    let (task, _, supervisor) = begin(&host, job).await;
    sshd::kill("KILL", supervisor.parse().unwrap());
    let (output, ..) = task.await.unwrap();
    assert!(matches!(output, Err(HostError::Gone { .. })), "{output:?}");
}

#[tokio::test]
async fn a_job_leaves_nothing_in_the_hosts_directory_when_its_outcome_has_arrived() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("");
    let host = sshd.connect().await;
    let job = Command {
        on_loss: OnLoss::Survive,
        stdin: b"a secret\n".to_vec(),
        ..shell("read word; echo $word")
    };
    let (_, lines, _) = run(&host, &job).await;
    assert_eq!(lines, ["a secret"]);
    let jobs = host.directory().join(".assay-jobs");
    let deadline = Instant::now() + MINUTE;
    while std::fs::read_dir(&jobs).unwrap().count() > 0 {
        assert!(Instant::now() < deadline, "a job is left");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_host_that_stops_answering_is_lost_within_ten_seconds() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("");
    let host = Arc::new(sshd.connect().await);
    let (task, ..) = begin(&host, shell("echo $$; exec sleep 600")).await;
    let pids = sshd.pids();
    let begun = Instant::now();
    pids.iter().for_each(|pid| sshd::kill("STOP", *pid));
    let (output, ..) = task.await.unwrap();
    let took = begun.elapsed();
    pids.iter().for_each(|pid| sshd::kill("CONT", *pid));
    assert!(matches!(output, Err(HostError::Lost { .. })), "{output:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[tokio::test]
async fn an_unknown_key_is_refused_with_its_fingerprint_and_a_known_one_is_not() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("");
    let list = sshd.folder.path().join("known hosts");
    let mut target = sshd.target("kv1");
    target.host_keys.clear();
    let own = format!("UserKnownHostsFile \"{}\"\n", list.display());
    std::fs::write(target.ssh_config.as_ref().unwrap(), own).unwrap();
    let connect = || SshHost::connect(target.clone(), sshd::binary(), sshd.settings());
    let error = connect().await.err().unwrap();
    let presented = format!("ssh-ed25519 {}", sshd.fingerprint());
    assert_eq!(
        *source(&error),
        ConnectError::UnknownKey {
            presented: presented.clone()
        }
    );

    let shown = SshHost::key_of(&target, &sshd.folders()).await.unwrap();
    assert_eq!(shown.key.to_string(), presented);
    std::fs::write(&list, shown.line()).unwrap();
    connect().await.unwrap();

    let mut sshd = sshd;
    sshd.renew_key();
    let error = SshHost::connect(target, sshd::binary(), sshd.settings())
        .await
        .err()
        .unwrap();
    let changed = ConnectError::ChangedKey {
        presented: format!("ssh-ed25519 {}", sshd.fingerprint()),
        known: presented,
    };
    assert_eq!(*source(&error), changed);
}

#[tokio::test]
async fn a_pinned_key_is_the_only_one_that_counts() {
    if no_sshd() {
        return;
    }
    let mut sshd = Sshd::start("");
    drop(sshd.connect().await);
    let pinned = sshd.target("kv1");
    sshd.renew_key();
    for cache in ["control", "empty"] {
        let mut settings = sshd.settings();
        settings.folders.cache = sshd.folder.path().join(cache);
        let error = SshHost::connect(pinned.clone(), sshd::binary(), settings)
            .await
            .err()
            .unwrap();
        let ConnectError::ChangedKey { presented, known } = source(&error) else {
            panic!("{error:?}");
        };
        assert_eq!(*presented, format!("ssh-ed25519 {}", sshd.fingerprint()));
        assert!(known.ends_with(&pinned.host_keys[0]), "{known}");
    }
}

#[tokio::test]
async fn a_host_behind_another_is_reached_and_what_is_wrong_with_that_one_is_said() {
    if no_sshd() {
        return;
    }
    let (near, far) = (Sshd::start(""), Sshd::start(""));
    let mut target = far.target("far");
    let jump = near.target("near");
    target.jump = Some(assay::host::Jump::Host(Box::new(jump.clone())));
    let host = SshHost::connect(target.clone(), sshd::binary(), far.settings())
        .await
        .unwrap();
    let (_, lines, _) = run(&host, &shell("echo through")).await;
    assert_eq!(lines, ["through"]);

    let mut wrong = jump;
    wrong.identity_file = target.identity_file.clone();
    target.jump = Some(assay::host::Jump::Host(Box::new(wrong)));
    let error = SshHost::connect(target, sshd::binary(), far.settings())
        .await
        .err()
        .unwrap();
    let ConnectError::Jump { jump, source } = source(&error) else {
        panic!("{error:?}");
    };
    assert_eq!(jump, "near");
    assert!(matches!(**source, ConnectError::Denied(_)), "{source:?}");
}

#[tokio::test]
async fn nobody_listens_and_nobody_is_let_in_are_different_errors() {
    if no_sshd() {
        return;
    }
    let mut sshd = Sshd::start("");
    let target = sshd.target("kv1");
    let stranger = sshd.folder.path().join("stranger");
    sshd::keygen(&stranger);
    let mut denied = target.clone();
    denied.identity_file = Some(stranger.display().to_string());
    let error = SshHost::connect(denied, sshd::binary(), sshd.settings())
        .await
        .err()
        .unwrap();
    assert!(
        matches!(source(&error), ConnectError::Denied(_)),
        "{error:?}"
    );
    sshd.down();
    let error = SshHost::connect(target, sshd::binary(), sshd.settings())
        .await
        .err()
        .unwrap();
    assert_eq!(*source(&error), ConnectError::Refused);
}

#[tokio::test]
async fn the_binary_is_sent_once() {
    if no_sshd() {
        return;
    }
    let folder = tempfile::TempDir::new().unwrap();
    let cache = folder.path().join("a cache");
    let sshd = Sshd::start(&format!("SetEnv \"XDG_CACHE_HOME={}\"", cache.display()));
    drop(sshd.connect().await);
    let sent = cache
        .join("assay")
        .join(sshd::binary().sha256)
        .join("assay");
    let read = || std::fs::metadata(&sent).unwrap().modified().unwrap();
    let first = read();
    drop(sshd.connect().await);
    assert_eq!(read(), first);
    assert_eq!(
        std::fs::read_dir(sent.parent().unwrap()).unwrap().count(),
        1
    );
}

#[tokio::test]
async fn a_binary_that_does_not_run_there_is_no_fault_of_the_host() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("");
    let path = sshd.folder.path().join("binary");
    std::fs::write(&path, "#!/no/such/interpreter\n").unwrap();
    let binary = assay::host::Binary::read(path, true).unwrap();
    let error = SshHost::connect(sshd.target("kv1"), binary, sshd.settings())
        .await
        .err()
        .unwrap();
    assert!(
        matches!(source(&error), ConnectError::Unfit(_)),
        "{error:?}"
    );
}

#[tokio::test]
async fn the_clock_of_this_machine_is_not_ahead_of_itself() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("");
    let host = sshd.connect().await;
    let found = assay::host::clock_offset(&host).await.unwrap();
    assert!(found.offset_ms.abs() <= found.round_trip_ms, "{found:?}");
}

/// The file of a host's lease, as it stands.
fn lease_of(host: &SshHost) -> String {
    std::fs::read_to_string(host.directory().join(".assay-lease")).unwrap()
}

#[tokio::test]
async fn a_host_is_held_by_one_run_and_given_back_when_that_closes_it() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("");
    let (first, second) = (sshd.connect().await, sshd.connect().await);
    let lease = first.lease(Claim::of("run `first`")).await.unwrap();
    let error = second.lease(Claim::of("second")).await.err().unwrap();
    let (message, me) = (error.to_string(), std::process::id());
    let start = format!("host `kv1` is held by run `first` (process {me} on ");
    assert!(message.starts_with(&start), "{message}");
    assert!(message.contains("last heard of 0s ago"), "{message}");
    lease.check().unwrap();
    drop(lease);
    first.close().await;
    second.lease(Claim::of("second")).await.unwrap();
}

#[tokio::test]
async fn a_lease_over_ssh_and_one_on_the_host_itself_keep_each_other_out() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("");
    let remote = sshd.connect().await;
    let local = LocalHost::new("here", remote.directory(), "/bin/false");
    let held = local.lease(Claim::of("local")).await.unwrap();
    let error = remote.lease(Claim::of("remote")).await.err().unwrap();
    assert!(
        error.to_string().contains("held by local (process"),
        "{error}"
    );
    drop(held);
    let held = remote.lease(Claim::of("remote")).await.unwrap();
    let error = local.lease(Claim::of("local")).await.err().unwrap();
    assert!(
        error.to_string().contains("held by remote (process"),
        "{error}"
    );
    drop(held);
    remote.close().await;
    local.lease(Claim::of("local")).await.unwrap();
}

/// Leaves a lease of another machine, last heard of so long ago.
fn leave_lease(host: &SshHost, age: Duration) {
    let path = host.directory().join(".assay-lease");
    let text = r#"{"owner": "run x", "pid": 1, "since": "2026-01-02T03:04:05Z",
        "control": {"machine": "far", "boot": "other", "token": "t"}}"#;
    std::fs::write(&path, text).unwrap();
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(std::time::SystemTime::now() - age)
        .unwrap();
}

#[tokio::test]
async fn only_a_lease_that_seems_dead_is_broken_and_only_when_told_so() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("");
    let host = sshd.connect().await;
    let told = Claim {
        break_dead: true,
        ..Claim::of("me")
    };
    leave_lease(&host, Duration::from_secs(10));
    let error = host.lease(told).await.err().unwrap();
    assert!(
        matches!(
            error,
            HostError::Held {
                seems_dead: false,
                ..
            }
        ),
        "{error:?}"
    );
    leave_lease(&host, Duration::from_secs(180));
    let error = host.lease(Claim::of("me")).await.err().unwrap();
    assert_eq!(
        error.to_string(),
        "host `kv1` is held by run x (process 1 on far) since 2026-01-02T03:04:05Z, last heard of 3m ago"
    );
    assert!(
        matches!(
            error,
            HostError::Held {
                seems_dead: true,
                ..
            }
        ),
        "{error:?}"
    );
    host.lease(told).await.unwrap().check().unwrap();
    assert!(lease_of(&host).contains("\"owner\":\"me\""));
}

#[tokio::test]
async fn the_lease_of_a_dead_process_of_this_machine_is_taken_over_and_its_jobs_are_ended() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("");
    let host = Arc::new(sshd.connect().await);
    let job = Command {
        on_loss: OnLoss::Survive,
        ..shell("echo $$; exec sleep 600")
    };
    let (task, _, pid) = begin(&host, job).await;
    let mut dead = std::process::Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let text = serde_json::json!({
        "owner": "run x", "pid": dead.id(), "since": "2026-01-02T03:04:05Z",
        "control": {"machine": "here", "boot": format!("{} {}", boot.trim(), own_namespace()), "token": "t"},
    });
    std::fs::write(host.directory().join(".assay-lease"), text.to_string()).unwrap();
    let next = sshd.connect().await;
    next.lease(Claim::of("me")).await.unwrap();
    ends(&pid).await;
    task.abort();
}

#[tokio::test]
async fn a_lease_outlives_a_cut_and_one_that_another_took_is_lost() {
    if no_sshd() {
        return;
    }
    let sshd = Sshd::start("");
    let host = sshd.connect().await;
    let lease = host.lease(Claim::of("me")).await.unwrap();
    sshd.cut();
    again(&host).await;
    let error = sshd
        .connect()
        .await
        .lease(Claim::of("you"))
        .await
        .err()
        .unwrap();
    assert!(error.to_string().contains("held by me"), "{error}");
    lease.check().unwrap();
    leave_lease(&host, Duration::ZERO);
    let deadline = Instant::now() + MINUTE;
    let error = loop {
        match lease.check() {
            Err(error) => break error,
            Ok(()) => assert!(Instant::now() < deadline, "the lease is not lost"),
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(error.to_string(), "cannot keep the lease on `kv1`");
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        why.starts_with("it is held by run x (process 1 on far)"),
        "{why}"
    );
}

#[tokio::test]
async fn a_lease_from_before_the_clock_was_set_back_can_be_broken() {
    let sshd = Sshd::start("");
    let host = sshd.connect().await;
    leave_lease(&host, Duration::ZERO);
    let path = host.directory().join(".assay-lease");
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let tomorrow = std::time::SystemTime::now() + Duration::from_secs(86_400);
    file.set_modified(tomorrow).unwrap();
    let told = Claim {
        break_dead: true,
        ..Claim::of("me")
    };
    assert!(host.lease(Claim::of("me")).await.is_err());
    host.lease(told).await.unwrap();
}

#[tokio::test]
async fn a_process_of_another_namespace_is_not_taken_for_dead() {
    let sshd = Sshd::start("");
    let host = sshd.connect().await;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let mut dead = std::process::Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    for (namespace, is_free) in [("pid:[1]".to_owned(), false), (own_namespace(), true)] {
        let text = serde_json::json!({
            "owner": "run x", "pid": dead.id(), "since": "2026-01-02T03:04:05Z",
            "control": {"machine": "here", "boot": format!("{} {namespace}", boot.trim()), "token": "t"},
        });
        std::fs::write(host.directory().join(".assay-lease"), text.to_string()).unwrap();
        assert_eq!(
            host.lease(Claim::of("me")).await.is_ok(),
            is_free,
            "{namespace}"
        );
    }
}

fn own_namespace() -> String {
    let link = std::fs::read_link("/proc/self/ns/pid").unwrap();
    link.display().to_string()
}

#[tokio::test]
async fn taking_a_host_removes_nothing_through_a_link_and_nothing_foreign() {
    let sshd = Sshd::start("");
    let host = sshd.connect().await;
    let dear = sshd.folder.path().join("dear");
    std::fs::create_dir(&dear).unwrap();
    for name in ["owner", "lock", "years of work"] {
        std::fs::write(dear.join(name), "").unwrap();
    }
    let jobs = host.directory().join(".assay-jobs");
    let names = |folder: &std::path::Path| std::fs::read_dir(folder).unwrap().count();

    // A job that is a link, and a folder that is no job.
    std::fs::create_dir(&jobs).unwrap();
    std::os::unix::fs::symlink(&dear, jobs.join("assay-evil")).unwrap();
    std::fs::create_dir(jobs.join("assay-foreign")).unwrap();
    std::fs::write(jobs.join("assay-foreign/mine"), "").unwrap();
    drop(host.lease(Claim::of("me")).await.unwrap());
    host.close().await;
    assert_eq!((names(&dear), names(&jobs.join("assay-foreign"))), (3, 1));

    // The folder of all jobs is a link.
    let host = sshd.connect().await;
    std::fs::rename(&jobs, sshd.folder.path().join("moved")).unwrap();
    let elsewhere = sshd.folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::rename(&dear, elsewhere.join("assay-x")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &jobs).unwrap();
    let error = host.lease(Claim::of("me")).await.err().unwrap();
    assert_eq!(
        error.to_string(),
        "cannot end what an earlier run left at work on `kv1`"
    );
    assert_eq!(names(&elsewhere.join("assay-x")), 3);
    // What could not be taken is not kept.
    assert_eq!(lease_of(&host), "");
}

#[tokio::test]
async fn a_binary_that_lost_a_part_is_sent_again() {
    let folder = tempfile::TempDir::new().unwrap();
    let sshd = Sshd::start(&format!(
        "SetEnv XDG_CACHE_HOME={}",
        folder.path().display()
    ));
    let binary = sshd::binary();
    drop(sshd.connect().await);
    let sent = folder
        .path()
        .join("assay")
        .join(&binary.sha256)
        .join("assay");
    for bytes in [0, 1000, binary.bytes - 1] {
        // The former connection's may still be running: it is replaced, not changed.
        let part = sent.with_file_name("part");
        std::fs::copy(&sent, &part).unwrap();
        let file = std::fs::File::options().write(true).open(&part).unwrap();
        file.set_len(bytes).unwrap();
        drop(file);
        std::fs::rename(&part, &sent).unwrap();
        drop(sshd.connect().await);
        assert_eq!(std::fs::metadata(&sent).unwrap().len(), binary.bytes);
    }
}

#[tokio::test]
async fn a_connection_that_is_closed_leaves_no_master() {
    let sshd = Sshd::start("");
    let host = sshd.connect().await;
    let masters = || {
        let config = sshd.folder.path().display().to_string();
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        all.filter(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            line.starts_with(b"ssh\0") && String::from_utf8_lossy(&line).contains(&config)
        })
        .count()
    };
    assert_eq!(masters(), 1);
    host.close().await;
    drop(host);
    // Less than the ten seconds after which it would end by itself.
    let deadline = Instant::now() + Duration::from_secs(8);
    while masters() > 0 {
        assert!(Instant::now() < deadline, "the master is still there");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn many_connections_get_by_a_jump_host_where_two_may_log_in() {
    let (near, far) = (
        Sshd::start("MaxStartups 2:100:2"),
        Sshd::start("MaxStartups 100"),
    );
    let jump = near.target("near");
    let connections = (0..8).map(|n| {
        let mut target = far.target(&format!("far{n}"));
        target.jump = Some(assay::host::Jump::Host(Box::new(jump.clone())));
        tokio::spawn(SshHost::connect(target, sshd::binary(), far.settings()))
    });
    for connection in connections.collect::<Vec<_>>() {
        connection.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_line_that_is_too_long_says_what_is_missing_of_it() {
    let sshd = Sshd::start("");
    let host = sshd.connect().await;
    let script = "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo next";
    let (_, lines, _) = run(&host, &shell(script)).await;
    assert_eq!(lines.len(), 2);
    let kept = 1 << 20;
    let note = format!(
        " [{} more bytes of this line are left out]",
        3_000_000 - kept
    );
    assert!(lines[0].ends_with(&note), "{}", &lines[0][kept..]);
    assert_eq!(lines[0].len(), kept + note.len());
    assert_eq!(lines[1], "next");
}
