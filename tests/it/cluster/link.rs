//! Links that break: under jobs, attached commands, uploads and downloads.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use assay::host::transfer::{self, Source, upload};
use assay::host::{Host, HostError, OnLoss, Retry, SshHost};
use sha2::{Digest as _, Sha256};

use super::user::{MINUTE, User, begin, random_file, run, shell, units};
use crate::support::lab::{Lab, LabHost, until};

/// Counts until `/run/enough` is there, then ends with a status of its own.
const COUNTS: &str = "n=0; while [ ! -e /run/enough ]; do echo $n; n=$((n+1)); sleep 0.05; done; echo all $n; \
                      echo said >&2; exit 5";

/// Cuts the host until a command that was attached to the link is lost, then heals it.
async fn cut(host: &LabHost, over: &Arc<SshHost>) {
    let attached = begin(over, shell("echo; exec sleep 600", OnLoss::End)).await;
    host.cut();
    let (output, ..) = attached.await.unwrap();
    host.heal();
    assert!(matches!(output, Err(HostError::Lost { .. })), "{output:?}");
    // It is reached again.
    let (output, ..) = run(over, "true", OnLoss::Repeat).await;
    assert_eq!(output.unwrap().status, Some(0));
}

/// Lines are `0`, `1`, ... without a gap, then `all N`.
fn assert_counted(lines: &[String]) {
    let count = lines.len() - 1;
    let expected = (0..count)
        .map(|n| n.to_string())
        .chain([format!("all {count}")]);
    assert_eq!(lines, expected.collect::<Vec<_>>());
}

/// Nothing of a job is left.
fn assert_gone(host: &LabHost, user: &User) {
    until("the unit is gone", || units(host).is_empty());
    let jobs = format!("ls -A {}/.assay-jobs", user.directory());
    until("the job's folder is gone", || host.run(&jobs).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_cut_twice_loses_nothing_of_a_job_which_is_a_unit_there() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    host.run("rm -f /run/enough");
    let over = Arc::new(user.connect(&host).await);
    let job = begin(&over, shell(COUNTS, OnLoss::Survive)).await;
    let [unit] = &units(&host)[..] else {
        panic!("{:?}", units(&host))
    };
    assert!(
        unit.starts_with("assay-sh-") && unit.ends_with(".service"),
        "{unit}"
    );
    let show = host.run(&format!(
        "systemctl show {unit} -p ActiveState,Description,KillMode,MainPID --value; \
         cat /proc/$(systemctl show {unit} -p MainPID --value)/cmdline | tr '\\0' ' '"
    ));
    for word in ["active", "a test of clusters", "mixed", "agent supervise"] {
        assert!(show.contains(word), "no `{word}` in {show}");
    }
    cut(&host, &over).await;
    cut(&host, &over).await;
    assert_eq!(units(&host), std::slice::from_ref(unit));
    host.run("touch /run/enough");
    let (output, lines, errors) = job.await.unwrap();
    assert_eq!(output.unwrap().status, Some(5));
    assert!(errors.ends_with("\nsaid\n"), "{errors}");
    // Two cuts that each took the link's patience of six seconds.
    assert!(lines.len() > 100, "{}", lines.len());
    assert_counted(&lines);
    assert_gone(&host, &user);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_sshd_costs_neither_a_job_nor_an_attached_command() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    host.run("rm -f /run/enough");
    let over = Arc::new(user.connect(&host).await);
    let job = begin(&over, shell(COUNTS, OnLoss::Survive)).await;
    let attached = begin(&over, shell(COUNTS, OnLoss::End)).await;
    let main = || host.run("systemctl show ssh -p MainPID --value");
    let before = main();
    host.run("systemctl restart ssh");
    until("another sshd answers", || {
        host.answers() && main() != before
    });
    // Debian's unit ends the listener only; the connections of others go on.
    host.run("touch /run/enough");
    for task in [job, attached] {
        let (output, lines, errors) = task.await.unwrap();
        assert_eq!(output.unwrap().status, Some(5));
        assert_eq!(errors, "said\n");
        assert_counted(&lines);
    }
    assert_gone(&host, &user);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_sshd_that_ends_its_sessions_costs_the_attached_command_and_not_the_job() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    host.run("rm -f /run/enough");
    let over = Arc::new(user.connect(&host).await);
    let job = begin(&over, shell(COUNTS, OnLoss::Survive)).await;
    let attached = begin(&over, shell("echo; exec sleep 600", OnLoss::End)).await;
    // As `KillMode=control-group` does: the daemon and everything that it started.
    let _ = host
        .ssh("systemd-run --quiet sh -c 'pkill -KILL sshd; systemctl restart ssh'")
        .status();
    let (output, ..) = attached.await.unwrap();
    assert!(matches!(output, Err(HostError::Lost { .. })), "{output:?}");
    until("sshd is back", || host.answers());
    until("what was attached is ended", || {
        !host
            .ssh("pgrep -f 'slee[p] 600'")
            .status()
            .unwrap()
            .success()
    });
    host.run("touch /run/enough");
    let (output, lines, _) = job.await.unwrap();
    assert_eq!(output.unwrap().status, Some(5));
    assert_counted(&lines);
    assert_gone(&host, &user);
}

/// How a test's transfers are done: `cut` is called in the middle, after so many bytes.
fn options(
    after: u64,
    in_the_middle: impl Fn() + Send + Sync + 'static,
) -> (transfer::Options, Arc<AtomicU64>) {
    let bytes = Arc::new(AtomicU64::new(0));
    let (count, done) = (Arc::clone(&bytes), AtomicU64::new(0));
    let mut options = transfer::Options::new(Retry::some(1));
    options.progress = Arc::new(move |more| {
        let sum = count.fetch_add(more, Ordering::Relaxed) + more;
        if sum > after && done.swap(1, Ordering::Relaxed) == 0 {
            in_the_middle();
        }
    });
    (options, bytes)
}

fn sha256(path: &Path) -> String {
    let digest = Sha256::digest(std::fs::read(path).unwrap());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Cuts a host, and heals it when the link that was up has been lost.
fn cut_until_lost(
    host: &LabHost,
    over: &Arc<SshHost>,
    runtime: &tokio::runtime::Handle,
) -> tokio::task::JoinHandle<()> {
    host.cut();
    let (host, over) = (host.clone(), Arc::clone(over));
    runtime.spawn(async move {
        let (output, ..) = run(&over, "true", OnLoss::End).await;
        host.heal();
        assert!(output.is_err());
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_goes_on_where_a_cut_left_it() {
    const SIZE: u64 = 48 << 20;
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    let over = Arc::new(user.connect(&host).await);
    let (local, remote) = (user.path("data"), format!("{}/data", user.directory()));
    random_file(&local, SIZE);
    let (lab_host, link, runtime) = (
        (*host).clone(),
        Arc::clone(&over),
        tokio::runtime::Handle::current(),
    );
    let (options, _) = options(SIZE / 3, move || {
        cut_until_lost(&lab_host, &link, &runtime);
    });
    let target = transfer::Target {
        channels: &*over,
        directory: over.directory(),
    };
    let source = Source::read(&local).await.unwrap();
    let sent = upload(target, &source, Path::new(&remote), false, &options);
    let sent = tokio::time::timeout(MINUTE, sent).await.unwrap().unwrap();
    assert_eq!(sent.bytes, SIZE);
    // What was under way when the link broke is sent again, not what had arrived before it.
    assert!(
        sent.sent > SIZE && sent.sent < SIZE + SIZE / 3,
        "{} of {SIZE}",
        sent.sent
    );
    let there = host.run(&format!("sha256sum {remote}"));
    assert_eq!(
        there.split_whitespace().next(),
        Some(sha256(&local).as_str())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_goes_on_where_a_cut_left_it_and_a_fetch_outlives_one() {
    const SIZE: u64 = 48 << 20;
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    let over = Arc::new(user.connect(&host).await);
    let remote = format!("{}/out", user.directory());
    let sum = host.run(&format!(
        "mkdir {remote} && head -c {SIZE} /dev/urandom >{remote}/data && sha256sum <{remote}/data"
    ));
    let sum = sum.split_whitespace().next().unwrap();
    let (lab_host, link, runtime) = (
        (*host).clone(),
        Arc::clone(&over),
        tokio::runtime::Handle::current(),
    );
    let (options, came) = options(SIZE / 3, move || {
        cut_until_lost(&lab_host, &link, &runtime);
    });
    let target = transfer::Target {
        channels: &*over,
        directory: over.directory(),
    };
    let local = user.path("first");
    let received = transfer::download(target, Path::new(&remote), &local, &options);
    tokio::time::timeout(MINUTE, received)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(sha256(&local.join("data")), sum);
    // No byte came twice.
    assert_eq!(came.load(Ordering::Relaxed), SIZE);

    host.cut();
    let local = user.path("second");
    let (fetched, healed) = tokio::join!(over.fetch(Path::new(&remote), &local), async {
        let (lost, ..) = run(&over, "true", OnLoss::End).await;
        host.heal();
        lost
    });
    assert!(healed.is_err());
    fetched.unwrap();
    assert_eq!(sha256(&local.join("data")), sum);
}
