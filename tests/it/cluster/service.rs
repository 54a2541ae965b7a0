//! Services on real hosts: systemd starts and stops them, and what they do to it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use assay::host::transfer::Source;
use assay::host::{AgentError, Bounds, Host, SshHost, ask};
use assay::service::{
    Activity, Directory, Exit, File, Install, Installed, Ran, Removal, Remove, Removed, Restart,
    Run, Start, State, Status, Stop, Stopped, Unit, UnitFile, unit_name, unit_prefix,
};
use assay::snapshot::Marker;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::user::{MINUTE, User};
use crate::support::lab::{Lab, LabHost, Taken, until};

/// A deployment on a host of the lab.
struct Bench<'a> {
    host: Taken<'a>,
    user: User,
    over: SshHost,
    units: Vec<(String, String, Restart)>,
}

impl<'a> Bench<'a> {
    async fn on(lab: &'a Lab) -> Self {
        let host = lab.take_host();
        let user = User::new();
        let over = user.connect(&host).await;
        let bench = Self {
            host,
            user,
            over,
            units: Vec::new(),
        };
        // What every agent leaves in the host's directory is there before the first listing.
        let none: Vec<State> = bench
            .asks("service-status", &Status::default())
            .await
            .unwrap();
        assert_eq!(none, []);
        bench
    }

    fn marker() -> Marker {
        Marker {
            experiment: "lab-services".into(),
            deployment: "v1".into(),
        }
    }

    fn base(&self) -> PathBuf {
        self.over.directory().join("lab-services/v1")
    }

    /// A further unit that runs a shell's script as `guest`; its name.
    fn has(&mut self, component: &str, script: &str, restart: Restart) -> String {
        let name = unit_name(&Self::marker(), component, 4000);
        self.units.push((component.into(), script.into(), restart));
        name
    }

    fn install(&self) -> Install {
        let base = self.base();
        let guest = Some("guest".to_owned());
        let directory = |path: PathBuf, marked| Directory {
            path,
            owner: guest.clone(),
            mode: 0o755,
            marked,
        };
        let mut directories = vec![
            directory(base.join("log"), false),
            directory("/srv/lab-disk/lab/v1/data".into(), false),
        ];
        let (mut files, mut units) = (Vec::new(), Vec::new());
        for (component, script, restart) in &self.units {
            directories.push(directory(base.join(component).join("data"), true));
            let path = base.join("scripts").join(format!("run_{component}.sh"));
            let mut unit = Unit::new(
                format!("{component} of a test"),
                vec!["/bin/bash".into(), "-c".into(), path.display().to_string()],
            );
            unit.user.clone_from(&guest);
            unit.directory = Some(base.join(component).join("data"));
            unit.restart = *restart;
            unit.limits.nofile = 12345;
            unit.restart_sec = Duration::from_millis(100);
            unit.environment
                .insert("SAYS".into(), "\"100%\" $HOME".into());
            units.push(UnitFile {
                name: unit_name(&Self::marker(), component, 4000),
                content: unit.text().unwrap(),
            });
            files.push(File {
                path,
                content: format!("#!/bin/bash\n{script}\n"),
                mode: 0o755,
                owner: None,
            });
        }
        Install {
            marker: Self::marker(),
            host_directory: self.over.directory().to_owned(),
            base,
            directories,
            files,
            units,
        }
    }

    fn removal(&self) -> Removal {
        Removal {
            marker: Self::marker(),
            host_directory: self.over.directory().to_owned(),
            base: self.base(),
            directories: Vec::new(),
            unit_prefix: unit_prefix(&Self::marker()),
        }
    }

    fn remove(&self, limit: Duration) -> Remove {
        Remove {
            removal: self.removal(),
            keep: Vec::new(),
            limit,
        }
    }

    async fn asks<T: DeserializeOwned + Send>(
        &self,
        name: &str,
        request: &(impl Serialize + Sync),
    ) -> Result<T, AgentError> {
        asks(&self.over, name, request).await
    }

    async fn installs(&self) -> Installed {
        self.asks("service-install", &self.install()).await.unwrap()
    }

    async fn starts(&self, units: &[&str]) -> Result<Vec<State>, AgentError> {
        let units = units.iter().map(|unit| (*unit).to_owned()).collect();
        let mut start = Start::new(units, MINUTE);
        for unit in &start.units {
            let logs = vec![self.base().join("log/own.log")];
            start.logs.insert(unit.clone(), logs);
        }
        self.asks("service-start", &start).await
    }

    async fn stops(&self, unit: &str, limit: Duration) -> Stopped {
        let units = vec![unit.to_owned()];
        let stopped = self.asks("service-stop", &Stop { units, limit }).await;
        let mut stopped: Vec<Stopped> = stopped.unwrap();
        stopped.swap_remove(0)
    }

    async fn state(&self, unit: &str) -> State {
        let units = vec![unit.to_owned()];
        let states = self.asks("service-status", &Status { units }).await;
        let mut states: Vec<State> = states.unwrap();
        states.swap_remove(0)
    }

    /// Everything that an installation may touch: path, kind, mode, owner, size of files.
    fn listing(&self) -> Vec<String> {
        let text = self.host.run(
            "find /etc /srv /data /opt /usr/local /root /home -path '*/.assay-jobs/*' -prune -o \
             -type f -printf '%p %y %m %u:%g %s\\n' -o -printf '%p %y %m %u:%g\\n' | sort",
        );
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Bench<'_> {
    /// A failed test leaves nothing for the next one on the host either.
    fn drop(&mut self) {
        let script = "systemctl kill -s KILL 'assay-lab-services-*'; systemctl stop 'assay-lab-services-*'; \
                      rm -rf /etc/systemd/system/assay-lab-services-* /srv/lab-disk; systemctl daemon-reload";
        let _ = self.host.ssh(script).output();
    }
}

async fn asks<T: DeserializeOwned + Send>(
    over: &SshHost,
    name: &str,
    request: &(impl Serialize + Sync),
) -> Result<T, AgentError> {
    let stop = CancellationToken::new();
    let bounds = Bounds {
        limit: MINUTE * 2,
        stop: &stop,
    };
    ask(over, name, request, bounds).await
}

/// The processes of a user on a host that have `word` in their arguments.
fn pids(host: &LabHost, word: &str) -> String {
    host.run(&format!("pgrep -u guest -f '{word}' || true"))
}

#[tokio::test(flavor = "multi_thread")]
async fn services_run_as_their_user_tell_their_state_and_are_gone_when_stopped() {
    let Some(lab) = Lab::shared() else { return };
    let mut bench = Bench::on(lab).await;
    let script = "echo \"$SAYS $(id -un) $(pwd) $(ulimit -n)\"; exec sleep 86401";
    let plain = bench.has("plain", script, Restart::Always);
    let daemon = bench.has(
        "daemon",
        "setsid nohup sleep 86402 & setsid nohup sleep 86403 & exec sleep 86404",
        Restart::Always,
    );
    assert_eq!(bench.state(&plain).await.activity, Activity::Absent);
    let error = bench.starts(&[&plain]).await.unwrap_err().to_string();
    assert!(error.contains("it was not installed"), "{error}");
    let installed = bench.installs().await;
    assert_eq!((installed.units.len(), installed.reloaded), (2, true));
    let unix = |text: String| text.trim().parse::<i64>().unwrap();
    let before = unix(bench.host.run("date +%s%6N"));
    let states = bench.starts(&[&plain, &daemon]).await.unwrap();
    let after = unix(bench.host.run("date +%s%6N"));
    for state in &states {
        assert_eq!(state.activity, Activity::Active, "{state:?}");
        assert!(
            (before..after).contains(&state.started.unwrap()),
            "{state:?}"
        );
        assert_eq!((state.restarts, state.exit), (0, None));
    }
    let pid = states[0].pid.unwrap();
    assert_eq!(pids(&bench.host, "sleep 86401").trim(), pid.to_string());
    let said = bench.host.run(&format!("journalctl --unit {plain} -o cat"));
    let data = bench.base().join("plain/data");
    let expected = format!("\"100%\" $HOME guest {} 12345", data.display());
    assert!(said.contains(&expected), "no `{expected}` in {said}");
    // Asked again, they go on as they are.
    let again = bench.starts(&[&plain, &daemon]).await.unwrap();
    assert_eq!(again[0].pid, Some(pid));
    assert_eq!(again[0].started, states[0].started);
    assert_eq!(bench.installs().await, Installed::default());
    let state = bench.state(&plain).await;
    assert_eq!(state.started, states[0].started);
    assert!(state.uptime.unwrap() > 0);
    assert!(state.memory.unwrap() > 4096, "{state:?}");
    for unit in [&plain, &daemon] {
        let stopped = bench.stops(unit, MINUTE).await;
        assert_eq!((stopped.before, stopped.killed), (Activity::Active, false));
        let again = bench.stops(unit, MINUTE).await;
        assert_eq!(again.before, Activity::Inactive);
    }
    assert_eq!(pids(&bench.host, "sleep 8640[0-9]"), "");
    let absent = unit_name(&Bench::marker(), "never", 1);
    assert_eq!(bench.stops(&absent, MINUTE).await.before, Activity::Absent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_ignores_the_request_to_end_is_killed_at_the_limit() {
    let Some(lab) = Lab::shared() else { return };
    let mut bench = Bench::on(lab).await;
    let deaf = bench.has(
        "deaf",
        "trap '' TERM; (trap '' TERM; while :; do sleep 86405; done) & while :; do sleep 86405; done",
        Restart::Always,
    );
    bench.installs().await;
    bench.starts(&[&deaf]).await.unwrap();
    let stopped = bench.stops(&deaf, Duration::from_secs(1)).await;
    assert!(stopped.killed, "{stopped:?}");
    assert_eq!(pids(&bench.host, "run_deaf"), "");
    assert_eq!(pids(&bench.host, "sleep 86405"), "");
    assert_eq!(bench.state(&deaf).await.activity, Activity::Inactive);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_dies_says_how_and_what_it_printed_and_one_that_comes_back_is_counted() {
    let Some(lab) = Lab::shared() else { return };
    let mut bench = Bench::on(lab).await;
    let log = bench.base().join("log/own.log");
    let dies = format!(
        "seq 1 30 >{}; for n in $(seq 1 30); do echo line $n; done; echo last words >&2; exit 7",
        log.display()
    );
    let always = bench.has("always", &dies, Restart::Always);
    let once = bench.has("once", "kill -SEGV $$", Restart::No);
    let ends = bench.has("ends", "exit 0", Restart::No);
    let fine = bench.has("fine", "exec sleep 86406", Restart::Always);
    bench.installs().await;
    let error = bench
        .starts(&[&fine, &always])
        .await
        .unwrap_err()
        .to_string();
    for word in [
        format!("the unit `{always}` ended with status 7 instead of running").as_str(),
        "its journal:",
        "\n    last words",
        "\n    line 30",
        "own.log`:\n    11\n",
        "\n    30",
    ] {
        assert!(error.contains(word), "no `{word}` in {error}");
    }
    assert!(!error.contains("line 5\n"), "{error}");
    let error = bench.starts(&[&once]).await.unwrap_err().to_string();
    assert!(error.contains("was ended by signal 11"), "{error}");
    assert_eq!(bench.state(&once).await.exit, Some(Exit::Signal(11)));
    let error = bench.starts(&[&ends]).await.unwrap_err().to_string();
    assert!(
        error.contains("ended without an error instead of running"),
        "{error}"
    );
    // One whose main process is killed comes back, and that is seen.
    let first = bench.state(&fine).await;
    bench.host.run(&format!("kill -9 {}", first.pid.unwrap()));
    until("it was started again", || {
        let now = bench
            .host
            .run(&format!("systemctl show {fine} -p MainPID --value"));
        !["0".to_owned(), first.pid.unwrap().to_string()].contains(&now.trim().to_owned())
    });
    let second = bench.state(&fine).await;
    assert_eq!((first.restarts, second.restarts), (0, 1));
    assert!(second.started > first.started);
    let missing = bench.install().files[3].path.clone();
    bench.stops(&fine, MINUTE).await;
    bench.host.run(&format!("chmod 600 {}", missing.display()));
    let error = bench.starts(&[&fine]).await.unwrap_err().to_string();
    assert!(error.contains("ended with status 126"), "{error}");
    assert!(error.contains("Permission denied"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_died_between_installing_and_starting_is_taken_up_and_others_units_are_left_alone() {
    let Some(lab) = Lab::shared() else { return };
    let mut bench = Bench::on(lab).await;
    let unit = bench.has("plain", "exec sleep 86407", Restart::Always);
    let path = format!("/etc/systemd/system/{unit}");
    bench.host.run(&format!("echo '[Service]' >{path}"));
    let error = bench
        .asks::<Installed>("service-install", &bench.install())
        .await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("it was not made by assay"), "{error}");
    assert!(!bench.host.run("ls /srv").contains("lab-disk"));
    bench.host.run(&format!("rm {path}"));
    bench
        .host
        .run("mkdir -p /srv/lab-disk/lab/v1/data && touch /srv/lab-disk/lab/v1/data/photo");
    let error = bench
        .asks::<Installed>("service-install", &bench.install())
        .await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("carries no marker of assay"), "{error}");
    bench.host.run("rm -r /srv/lab-disk");
    bench.installs().await;
    // systemd has read the unit, and the one that wrote another died before it could say so.
    bench.starts(&[&unit]).await.unwrap();
    bench.units[0].2 = Restart::OnFailure;
    let wanted = &bench.install().units[0].content;
    let header = bench.host.run(&format!("head -1 {path}"));
    bench
        .host
        .run(&format!("cat >{path} <<'END'\n{header}{wanted}END\n"));
    bench.host.run("pkill -9 -f 'agent serve'");
    let over = bench.user.connect(&bench.host).await;
    let installed: Installed = asks(&over, "service-install", &bench.install())
        .await
        .unwrap();
    let reloaded = Installed {
        reloaded: true,
        ..Installed::default()
    };
    assert_eq!(installed, reloaded);
    let start = Start::new(vec![unit.clone()], MINUTE);
    let states: Vec<State> = asks(&over, "service-start", &start).await.unwrap();
    assert_eq!(states[0].activity, Activity::Active);
    let shown = bench
        .host
        .run(&format!("systemctl show {unit} -p Restart --value"));
    assert_eq!(shown.trim(), "on-failure");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_leaves_the_host_as_it_was_also_when_it_is_interrupted() {
    let Some(lab) = Lab::shared() else { return };
    let mut bench = Bench::on(lab).await;
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("program"), "#!/bin/sh\nexec sleep 86408\n").unwrap();
    let program = Source::read(&here.path().join("program")).await.unwrap();
    let silent = || -> assay::host::transfer::Progress { Arc::new(|_| {}) };
    let first = bench.over.directory().join("scratch/program");
    bench
        .over
        .send(&program, &first, false, silent())
        .await
        .unwrap();
    let before = bench.listing();
    let unit = bench.has(
        "deaf",
        "trap '' TERM; while :; do sleep 86408; done",
        Restart::Always,
    );
    bench.installs().await;
    let target = bench.base().join("deaf/bin/program");
    let sent = bench
        .over
        .send(&program, &target, false, silent())
        .await
        .unwrap();
    assert_eq!((sent.sent, sent.files), (0, 1), "the host had it");
    bench.starts(&[&unit]).await.unwrap();
    let installed = bench.listing();
    let said: Removed = bench
        .asks("service-removal", &bench.removal())
        .await
        .unwrap();
    assert_eq!(bench.listing(), installed);
    let new = installed.iter().filter(|line| !before.contains(line));
    for line in new {
        let is_said = said
            .paths
            .iter()
            .any(|path| line.starts_with(&path.display().to_string()));
        assert!(is_said, "`{line}` was not said: {said:?}");
    }
    assert_eq!(said.units, std::slice::from_ref(&unit));
    // It waits for a program that does not end, and is killed.
    let request = bench.remove(MINUTE);
    let removing = bench.asks::<Removed>("service-remove", &request);
    let killing = async {
        tokio::task::block_in_place(|| {
            until("the removal waits", || {
                let state = format!("systemctl show {unit} -p ActiveState --value");
                bench.host.run(&state).trim() == "deactivating"
            });
            bench
                .host
                .run("systemctl kill -s KILL 'assay-service-remove-*'");
        });
    };
    let (removed, ()) = tokio::join!(removing, killing);
    removed.unwrap_err();
    assert!(bench.host.run("ls /etc/systemd/system").contains(&unit));
    let removed: Removed = bench
        .asks("service-remove", &bench.remove(Duration::from_secs(1)))
        .await
        .unwrap();
    assert!(removed.stopped[0].killed, "{removed:?}");
    assert_eq!(bench.listing(), before);
    assert_eq!(bench.state(&unit).await.activity, Activity::Absent);
    let removed: Removed = bench
        .asks("service-remove", &bench.remove(MINUTE))
        .await
        .unwrap();
    assert_eq!(removed, Removed::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_runs_as_another_user_and_is_ended_at_its_limit() {
    let Some(lab) = Lab::shared() else { return };
    let bench = Bench::on(lab).await;
    let mut run = Run {
        program: "/bin/sh".into(),
        args: vec![
            "-c".into(),
            "id -un; id -Gn; echo $HOME; cat; exit 4".into(),
        ],
        env: BTreeMap::new(),
        directory: None,
        owner: Some("guest".into()),
        limit: MINUTE,
        stdin: "read".into(),
    };
    let ran: Ran = bench.asks("service-run", &run).await.unwrap();
    assert_eq!(ran.stdout, "guest\nguest\n/home/guest\nread");
    assert_eq!(ran.status, Some(4));
    run.args[1] = "sleep 86409 & sleep 86409".into();
    run.limit = Duration::from_secs(1);
    let error = bench.asks::<Ran>("service-run", &run).await.unwrap_err();
    assert!(
        error.to_string().contains("longer than its limit of 1s"),
        "{error}"
    );
    assert_eq!(pids(&bench.host, "sleep 86409"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_rights_needs_a_systemd_that_stays() {
    let Some(lab) = Lab::shared() else { return };
    let bench = Bench::on(lab).await;
    let own = bench
        .user
        .as_user(&bench.host, "guest", "/home/guest/assay")
        .await;
    let unit = unit_name(&Bench::marker(), "plain", 4000);
    let status = Status {
        units: vec![unit.clone()],
    };
    let error = asks::<Vec<State>>(&own, "service-status", &status).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("give the host `become: true`"), "{error}");
    bench.host.run("loginctl enable-linger guest");
    until("the user's systemd is at work", || {
        let private = "test -S /run/user/$(id -u guest)/systemd/private";
        bench.host.ssh(private).status().unwrap().success()
    });
    let base = own.directory().join("lab-services/v1");
    let mut program = Unit::new("one of a user", vec!["/bin/sleep".into(), "86410".into()]);
    program.directory = Some(base.clone());
    let install = Install {
        marker: Bench::marker(),
        host_directory: own.directory().to_owned(),
        base: base.clone(),
        directories: Vec::new(),
        files: Vec::new(),
        units: vec![UnitFile {
            name: unit.clone(),
            content: program.text().unwrap(),
        }],
    };
    let installed: Installed = asks(&own, "service-install", &install).await.unwrap();
    assert!(installed.reloaded);
    let start = Start::new(vec![unit.clone()], MINUTE);
    let states: Vec<State> = asks(&own, "service-start", &start).await.unwrap();
    let pid = states[0].pid.unwrap().to_string();
    assert_eq!(pids(&bench.host, "sleep 86410").trim(), pid);
    let removal = Removal {
        host_directory: own.directory().to_owned(),
        base,
        ..bench.removal()
    };
    let remove = Remove {
        removal,
        keep: Vec::new(),
        limit: MINUTE,
    };
    let removed: Removed = asks(&own, "service-remove", &remove).await.unwrap();
    bench.host.run("loginctl disable-linger guest");
    assert_eq!((removed.units.len(), removed.stopped[0].killed), (1, false));
    assert_eq!(pids(&bench.host, "sleep 86410"), "");
    assert!(!bench.host.run("find /home/guest").contains("lab-services"));
}
