//! Disks that are full: of an upload, of what a job prints, of a run.

use std::path::Path;

use assay::host::transfer::{self, Fault, Source, TransferError, upload};
use assay::host::{Host as _, HostError, OnLoss, Retry};

use super::user::{Running, User, random_file, run, units};
use crate::support::lab::{Lab, LabHost, until};

/// Leaves so many bytes of the host's data disk free; of the last ones, none.
fn fill(host: &LabHost, left: u64) {
    let most = left.max(1 << 20);
    host.run(&format!(
        "avail=$(df --output=avail -B1 /data | tail -n1); fallocate -l $((avail - {most})) /data/assay/filler"
    ));
    if left == 0 {
        host.run("dd if=/dev/zero of=/data/assay/rest bs=4k 2>/dev/null; sync -f /data; true");
    }
}

fn free(host: &LabHost) {
    host.run("rm -f /data/assay/filler /data/assay/rest");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_does_not_fit_says_what_is_missing_and_goes_on_when_there_is_room() {
    const SIZE: u64 = 32 << 20;
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    let over = user.connect(&host).await;
    let (local, remote) = (user.path("data"), format!("{}/data", user.directory()));
    random_file(&local, SIZE);
    host.run(&format!("echo kept >{}/kept", user.directory()));
    let source = Source::read(&local).await.unwrap();
    let target = transfer::Target {
        channels: &over,
        directory: over.directory(),
    };
    let options = transfer::Options::new(Retry::some(1));
    let upload = || upload(target, &source, Path::new(&remote), false, &options);

    fill(&host, 8 << 20);
    let error = upload().await.unwrap_err();
    let TransferError::OnHost {
        host: name,
        source:
            Fault::Space {
                path,
                wanted,
                free: left,
            },
    } = &error
    else {
        panic!("{error:?}")
    };
    assert_eq!(*name, host.name);
    assert!(path.starts_with(user.directory()), "{path:?}");
    assert!(*wanted >= SIZE && *left <= 8 << 20, "{wanted} {left}");
    free(&host);
    let sent = upload().await.unwrap();
    assert_eq!(sent.bytes, SIZE);
    let found = host.run(&format!(
        "cat {}/kept; stat -c %s {remote}",
        user.directory()
    ));
    assert_eq!(found, format!("kept\n{SIZE}\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_output_fills_the_disk_is_ended_and_says_why() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    let over = user.connect(&host).await;
    fill(&host, 4 << 20);
    let (output, lines, _) = run(
        &over,
        "head -c 200M /dev/zero | tr '\\0' x | fold -w 999; sleep 600",
        OnLoss::Survive,
    )
    .await;
    let Err(HostError::Io { what, source, .. }) = &output else {
        panic!("{output:?}, {} lines", lines.len())
    };
    assert_eq!(what, "keep what it prints");
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    // What was kept before arrives whole.
    let (last, others) = lines.split_last().unwrap();
    assert!(lines.len() > 1000 && others.iter().all(|line| line.len() == 999));
    assert!(last.len() <= 999);
    until("the job is gone", || units(&host).is_empty());
    free(&host);
    let (output, lines, _) = run(&over, "echo again", OnLoss::Survive).await;
    assert_eq!(
        (output.unwrap().status, lines),
        (Some(0), vec!["again".to_owned()])
    );
}

#[test]
fn a_run_that_would_not_fit_is_refused_and_one_that_fills_the_disk_goes_on_when_there_is_room() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    user.has(&host);
    // Without room for a job, too.
    fill(&host, 0);
    let said = Running::start(user.quickstart("run", &[])).end();
    assert_eq!(said.code, Some(3), "{said:?}");
    said.names(&[
        "on `local`",
        "No space left on device",
        "hint: free space there",
    ]);
    free(&host);
    fill(&host, 2 << 20);
    let said = Running::start(user.quickstart("run", &[])).end();
    assert_eq!(said.code, Some(3), "{said:?}");
    said.names(&["local", "disk", "free", "hint:"]);
    assert!(!user.path("artifacts").exists());
    free(&host);

    let settings = [
        "workloads=[{driver: native, workload: ycsb_d}]",
        "sweep.threads=[1]",
        "rounds.repetitions=2",
        "rounds.warmup=50ms",
        "rounds.duration=2s",
        "rounds.on_failure=stop",
    ];
    let mut run = Running::start(user.quickstart("run", &settings));
    user.until_measuring(2, &mut run);
    fill(&host, 0);
    let said = run.end();
    assert!(matches!(said.code, Some(3 | 4)), "{said:?}");
    said.names(&["assay resume"]);
    let before: Vec<_> = user.ended();
    assert!(
        before.iter().any(|(_, status, _)| status == "ok"),
        "{before:?}"
    );
    let verdict = before.last().unwrap();
    assert!(
        verdict.1 != "ok" && (verdict.2.contains("full") || verdict.2.contains("No space left")),
        "{before:?}"
    );
    free(&host);
    let resumed = user.runs(&["resume"]);
    assert!(matches!(resumed.code, Some(0 | 4)), "{resumed:?}");
    let after = user.ended();
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(
        after.iter().filter(|(_, status, _)| status == "ok").count(),
        4 - usize::from(resumed.code == Some(4))
    );
    let verified = user.runs(&["verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}
