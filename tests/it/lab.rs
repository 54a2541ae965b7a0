//! The lab as its users meet it: real hosts, real faults, and nothing left afterwards.

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::lab::{Lab, LabHost, SHARED_HOSTS, alone, assay, text, unique_name, until};
use crate::support::skipped;

/// Removes a lab of a test that failed.
struct Gone(String);

impl Drop for Gone {
    fn drop(&mut self) {
        let _ = assay().args(["lab", "down", &self.0]).output();
    }
}

/// Ends a child that a test started.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn json(args: &[&str]) -> Value {
    let output = assay().args(args).arg("--json").output().unwrap();
    serde_json::from_str(&text(&output, &args.join(" "))).unwrap()
}

/// Everything on this machine that carries the name of a lab with this id, or lies in its folder.
fn traces(id: &str, name: &str) -> BTreeSet<String> {
    let prefix = format!("al{id}");
    let mut found = BTreeSet::new();
    let folders = [
        "/sys/class/net",
        "/run/netns",
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/systemd",
        "/sys/fs/cgroup/unified",
        "/run/systemd/nspawn/propagate",
    ];
    for folder in folders {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let entry = entry.path();
            if entry.to_string_lossy().contains(&prefix) {
                found.insert(entry.display().to_string());
            }
        }
    }
    let folder = format!("/var/lib/assay/lab/{name}");
    if Path::new(&folder).symlink_metadata().is_ok() {
        found.insert(folder.clone());
    }
    for entry in fs::read_dir("/sys/block").unwrap().flatten() {
        let file = fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        if file.starts_with(&format!("{folder}/")) {
            found.insert(format!("loop of {file}"));
        }
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let ours = mounts
        .lines()
        .filter(|line| line.contains(&folder) || line.contains(&prefix));
    found.extend(ours.map(str::to_owned));
    found.extend(processes(id));
    found
}

/// Processes with the lab's mark in their environment, or in a cgroup of its; a zombie has neither.
fn processes(id: &str) -> Vec<String> {
    let mark = format!("ASSAY_LAB={id}");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let is_marked = environment.split(|byte| *byte == 0).any(|entry| {
            entry == mark.as_bytes() || entry.starts_with(format!("{mark}/").as_bytes())
        });
        let is_dead = fs::read_to_string(entry.path().join("stat")).is_ok_and(|stat| {
            stat.rsplit_once(") ")
                .is_some_and(|(_, rest)| rest.starts_with('Z'))
        });
        let group = fs::read_to_string(entry.path().join("cgroup")).unwrap_or_default();
        if is_marked || (!is_dead && group.contains(&format!("assay-al{id}-"))) {
            found.push(format!("process {}", entry.path().display()));
        }
    }
    found
}

/// The id of a lab, as soon as its description is there.
fn id(name: &str) -> Option<String> {
    let text = fs::read(format!("/var/lib/assay/lab/{name}/lab.json")).ok()?;
    let lab: Value = serde_json::from_slice(&text).ok()?;
    Some(lab["id"].as_str()?.to_owned())
}

#[test]
fn hosts_answer_with_their_pinned_keys_and_are_whole_systems() {
    let Some(lab) = Lab::shared() else { return };
    let inventory = fs::read_to_string(lab.inventory()).unwrap();
    for index in 0..SHARED_HOSTS {
        let host = lab.host(index);
        assert!(inventory.contains(&format!(
            "  {}: {{address: {}, host_key: \"SHA256:",
            host.name, host.address
        )));
    }
    let hosts = lab.take_hosts(2);
    let [host, other] = &hosts[..] else {
        unreachable!()
    };
    assert_eq!(host.run("systemctl is-system-running").trim(), "running");
    assert_eq!(host.run("hostname").trim(), host.name);
    // The fingerprint in the inventory is that of the key in the host.
    let print = host.run("ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub");
    assert!(inventory.contains(print.split(' ').nth(1).unwrap()));
    // Hosts know each other by name.
    let reach = format!("exec 3<>/dev/tcp/{}/22 && head -c 4 <&3", other.name);
    assert_eq!(host.run(&format!("bash -c '{reach}'")), "SSH-");
    // The data folder is a file system of its own that shares blocks.
    assert_eq!(host.run("stat -f -c %T /data/assay").trim(), "xfs");
    host.run("cd /data/assay && head -c 1M /dev/urandom >a && cp --reflink=always a b && cmp a b");
    // One of the two accounts may do everything with sudo, the other nothing.
    let sudo = |user: &str| host.ssh_as(user, "sudo -n id -u").output().unwrap();
    assert_eq!(text(&sudo("assay"), "sudo").trim(), "0");
    assert!(!sudo("guest").status.success());
}

#[test]
fn a_host_sees_and_changes_nothing_of_the_machines_own() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    // Another test may have had assay at work there.
    assert_eq!(host.run("ls -A --ignore=.cache /root"), ".ssh\n");
    assert_eq!(host.run("ls -A /home"), "assay\nguest\n");
    assert_eq!(host.run("ls -A /var/lib/assay/lab"), "");
    assert!(!host.run("cat /etc/shadow").contains('$'));
    let mark = format!("/usr/local/share/{}", host.name);
    host.run(&format!(
        "mkdir -p /usr/local/share && echo x >{mark} && rm /etc/os-release"
    ));
    assert!(!Path::new(&mark).exists() && Path::new("/etc/os-release").exists());
    // Nothing that somebody enabled on the machine runs here.
    let units = host.run(
        "systemctl list-units --no-legend --plain --type=service,timer --state=running,waiting",
    );
    for unit in units
        .lines()
        .filter_map(|line| line.split_whitespace().next())
    {
        let is_basic = ["systemd-", "dbus", "ssh.", "sshd.", "user@", "getty@"]
            .iter()
            .any(|own| unit.starts_with(own));
        assert!(is_basic, "{unit} runs");
    }
}

/// A connection to a host's SSH server that has read the greeting.
fn connected(host: &LabHost) -> TcpStream {
    let address: SocketAddr = format!("{}:22", host.address).parse().unwrap();
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_millis(1500)))
        .unwrap();
    let mut byte = [0];
    while byte[0] != b'\n' {
        stream.read_exact(&mut byte).unwrap();
    }
    stream
}

/// What a peer hears: nothing, although it speaks. An end or a reset is another thing.
fn is_silent(stream: &mut TcpStream) -> bool {
    stream.write_all(b"SSH-2.0-test\r\n").unwrap();
    let heard = stream.read(&mut [0; 64]);
    heard.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

fn connects(host: &LabHost) -> Result<(), ErrorKind> {
    let address: SocketAddr = format!("{}:22", host.address).parse().unwrap();
    let tried = TcpStream::connect_timeout(&address, Duration::from_secs(4));
    tried.map(drop).map_err(|error| error.kind())
}

#[test]
fn a_cut_host_is_silent_and_goes_on_where_it_was_when_healed() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let mut stream = connected(&host);
    host.cut();
    assert!(is_silent(&mut stream));
    // Longer than a neighbour that is not entered by hand would take to be reported as gone.
    assert_eq!(connects(&host), Err(ErrorKind::TimedOut));
    host.heal();
    // What was sent while it was cut arrives late.
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    assert!(stream.read(&mut [0; 64]).unwrap() > 0);
    assert!(host.answers());
}

#[test]
fn a_paused_host_acknowledges_and_does_nothing_until_it_is_healed() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    host.run("systemd-run --quiet --unit=ticks sh -c 'while :; do date +%s%N >/run/tick; sleep 0.05; done'");
    let tick = || host.run("cat /run/tick");
    let first = tick();
    until("it ticks", || tick() != first);
    let mut stream = connected(&host);
    host.pause();
    host.pause();
    assert!(is_silent(&mut stream));
    assert_eq!(connects(&host), Ok(()));
    host.heal();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    assert!(stream.read(&mut [0; 64]).unwrap() > 0);
    let next = tick();
    until("it ticks again", || tick() != next);
}

#[test]
fn a_killed_host_is_silent_and_comes_back_with_its_disk_address_and_key() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let boot = host.run("cat /proc/sys/kernel/random/boot_id");
    host.run("echo kept >/data/assay/kept && echo kept >/etc/kept && echo lost >/run/lost && sync -f /data /etc/kept");
    let mut stream = connected(&host);
    host.kill();
    host.kill();
    assert!(is_silent(&mut stream));
    let pause = assay().args(["lab", "pause", &host.name]).output().unwrap();
    assert_eq!(pause.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&pause.stderr).contains("is killed"));
    host.heal();
    assert_eq!(host.run("cat /data/assay/kept /etc/kept"), "kept\nkept\n");
    assert!(!host.ssh("test -e /run/lost").status().unwrap().success());
    assert_ne!(host.run("cat /proc/sys/kernel/random/boot_id"), boot);
    // The old connection belongs to nobody: it is reset, or ended by what the network still had of it.
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let is_over = |end: std::io::Result<usize>| match end {
        Ok(read) => read == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    };
    assert!(is_over(stream.read(&mut [0; 64])) || is_over(stream.read(&mut [0; 64])));
}

#[test]
fn a_slow_host_takes_as_long_as_its_rate_says_in_both_directions() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    // 250 kB at 1 Mbit/s take 2 s, less what the queue lets through at once.
    let pull = || {
        let begin = Instant::now();
        host.run("head -c 250000 /dev/urandom");
        begin.elapsed()
    };
    let push = || {
        let mut ssh = host.ssh("cat >/dev/null");
        let mut child = ssh.stdin(Stdio::piped()).spawn().unwrap();
        let begin = Instant::now();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(&[7; 250_000])
            .unwrap();
        assert!(child.wait().unwrap().success());
        begin.elapsed()
    };
    let least = Duration::from_millis(1500);
    let fast = pull();
    host.slow(1000);
    let (pulled, pushed) = (pull(), push());
    host.heal();
    assert!(pulled > least && pushed > least, "{pulled:?} {pushed:?}");
    let healed = pull();
    assert!(
        fast < pulled && healed < pulled,
        "{fast:?} {healed:?} {pulled:?}"
    );
}

#[test]
fn a_delay_is_added_or_the_kernel_is_said_to_lack_it() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let args = ["lab", "slow", &host.name, "--delay", "200ms"];
    let output = assay().args(args).output().unwrap();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3));
        assert!(said.contains("CONFIG_NET_SCH_NETEM"), "{said}");
        assert!(host.answers());
        return;
    }
    let begin = Instant::now();
    assert_eq!(connects(&host), Ok(()));
    assert!(begin.elapsed() > Duration::from_millis(390));
}

#[test]
fn one_lab_is_made_and_removed_without_a_trace() {
    let _alone = alone();
    let name = unique_name("d");
    let _gone = Gone(name.clone());
    let folder = tempfile::tempdir().unwrap();
    let inventory = folder.path().join("x.yaml");
    let up = || {
        let mut command = assay();
        command.args([
            "lab",
            "up",
            "--name",
            &name,
            "--hosts",
            "2",
            "--data",
            "xfs:400M",
            "--inventory",
        ]);
        command.arg(&inventory).output().unwrap()
    };
    // A file that is not a lab's is left alone, and nothing is made.
    fs::write(&inventory, "hosts: {}\n").unwrap();
    let refused = up();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert_eq!(fs::read_to_string(&inventory).unwrap(), "hosts: {}\n");
    assert_eq!(id(&name), None);
    fs::remove_file(&inventory).unwrap();

    let Some(_) = Lab::shared() else { return };
    assert_eq!(text(&up(), "up").trim(), inventory.to_str().unwrap());
    let id = id(&name).unwrap();
    assert!(
        traces(&id, &name).len() > 10,
        "the test sees what a lab has: {:?}",
        traces(&id, &name)
    );
    let again = up();
    assert_eq!(again.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&again.stderr).contains(&format!("assay lab down {name}")));
    let all = json(&["lab", "list"]);
    let row = all
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["lab"] == name.as_str())
        .unwrap();
    assert_eq!(row["state"], "up");
    assert_eq!(row["hosts"][1]["state"], "running");

    assert_eq!(
        json(&["lab", "down", &name]),
        serde_json::json!({ "removed": [name] })
    );
    assert_eq!(traces(&id, &name), BTreeSet::new());
    assert!(!inventory.exists());
    let none = assay().args(["lab", "down", &name]).output().unwrap();
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains(&format!("there is no lab `{name}`")));
}

/// How far a lab is, as its traces show.
fn has_come_to(stage: &str, id: &str, name: &str) -> bool {
    match stage {
        "description" => true,
        "keys" => Path::new(&format!("/var/lib/assay/lab/{name}/id_ed25519")).exists(),
        "network" => Path::new(&format!("/sys/class/net/al{id}-br")).exists(),
        "cables" => Path::new(&format!("/sys/class/net/al{id}-3")).exists(),
        "processes" => !processes(id).is_empty() && has_come_to("cables", id, name),
        "loops" => traces(id, name)
            .iter()
            .any(|trace| trace.starts_with("loop of")),
        _ => fs::read_to_string(format!(
            "/var/lib/assay/lab/{name}/hosts/{name}1/console.log"
        ))
        .is_ok_and(|log| log.contains("ssh")),
    }
}

#[test]
fn whatever_moment_the_making_of_a_lab_is_killed_at_nothing_is_left_after_its_removal() {
    let _alone = alone();
    let Some(_) = Lab::shared() else { return };
    let stages = [
        "description",
        "keys",
        "network",
        "cables",
        "processes",
        "loops",
        "console",
    ];
    for (n, stage) in stages.into_iter().enumerate() {
        let name = unique_name(&format!("k{n}"));
        let _gone = Gone(name.clone());
        let folder = tempfile::tempdir().unwrap();
        let mut command = assay();
        command
            .args([
                "lab",
                "up",
                "--name",
                &name,
                "--hosts",
                "3",
                "--data",
                "xfs:400M",
                "--inventory",
            ])
            .arg(folder.path().join("x.yaml"))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut up = Ended(command.spawn().unwrap());
        let mut seen = None;
        until(stage, || {
            seen = seen.take().or_else(|| id(&name));
            seen.as_ref()
                .is_some_and(|id| has_come_to(stage, id, &name))
        });
        up.0.kill().unwrap();
        up.0.wait().unwrap();
        let id = seen.unwrap();
        let output = assay().args(["lab", "down", &name]).output().unwrap();
        text(&output, stage);
        assert_eq!(traces(&id, &name), BTreeSet::new(), "killed at: {stage}");
    }
}

#[test]
fn what_a_stopped_making_leaves_is_removed_at_once() {
    let _alone = alone();
    let Some(_) = Lab::shared() else { return };
    let name = unique_name("i");
    let _gone = Gone(name.clone());
    let folder = tempfile::tempdir().unwrap();
    let mut command = assay();
    command
        .args(["lab", "up", "--name", &name, "--hosts", "3", "--inventory"])
        .arg(folder.path().join("x.yaml"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut up = Ended(command.spawn().unwrap());
    let mut seen = None;
    until("processes", || {
        seen = seen.take().or_else(|| id(&name));
        seen.as_ref()
            .is_some_and(|id| has_come_to("processes", id, &name))
    });
    let pid = rustix::process::Pid::from_child(&up.0);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(up.0.wait().unwrap().code(), Some(130));
    assert_eq!(traces(&seen.unwrap(), &name), BTreeSet::new());
}

#[test]
fn where_the_file_system_cannot_hold_a_layer_each_hosts_disk_is_an_image() {
    let _alone = alone();
    let Some(_) = Lab::shared() else { return };
    let place = Overlay::mount();
    let labs = place.folder().join("labs");
    let name = unique_name("o");
    let lab = |args: &[&str]| {
        let mut command = assay();
        command
            .arg("lab")
            .args(args)
            .arg("--labs")
            .arg(&labs)
            .arg("--json");
        let output = command.output().unwrap();
        (
            serde_json::from_str::<Value>(&text(&output, args[0])).unwrap(),
            output,
        )
    };
    let inventory = place.0.path().join("x.yaml");
    let args = [
        "up",
        "--name",
        &name,
        "--hosts",
        "1",
        "--inventory",
        inventory.to_str().unwrap(),
    ];
    let (_, output) = lab(&args);
    assert!(String::from_utf8_lossy(&output.stderr).contains("each host's disk is an image"));
    let image = fs::metadata(labs.join(format!("{name}/hosts/{name}1/disk.img"))).unwrap();
    assert!(
        image.len() > image.blocks() * 512,
        "it takes only what is written"
    );
    // What was written is there after a power cut.
    let host = format!("{name}1");
    assert_eq!(lab(&["kill", &host]).0["state"], "killed");
    assert_eq!(lab(&["heal", &host]).0["state"], "running");
    lab(&["down", &name]);
    assert!(!labs.exists());
    let loops = fs::read_dir("/sys/block")
        .unwrap()
        .flatten()
        .filter(|entry| {
            fs::read_to_string(entry.path().join("loop/backing_file"))
                .is_ok_and(|file| file.contains(&name))
        });
    assert_eq!(loops.count(), 0);
}

/// A mounted overlay, as the root of a container is.
struct Overlay(tempfile::TempDir);

impl Overlay {
    fn mount() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["lower", "upper", "work", "merged"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let path = |name: &str| folder.path().join(name).display().to_string();
        let options = format!(
            "lowerdir={},upperdir={},workdir={}",
            path("lower"),
            path("upper"),
            path("work")
        );
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "overlay", "overlay", "-o", &options, &path("merged")]);
        text(&mount.output().unwrap(), "mount");
        Self(folder)
    }

    fn folder(&self) -> std::path::PathBuf {
        self.0.path().join("merged")
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg(self.folder())
            .status();
    }
}

#[test]
fn a_lab_goes_with_the_process_that_it_was_made_for() {
    let _alone = alone();
    let Some(_) = Lab::shared() else { return };
    let name = unique_name("w");
    let _gone = Gone(name.clone());
    let folder = tempfile::tempdir().unwrap();
    let mut command = assay();
    command.args(["lab", "watch", &name]).stdin(Stdio::piped());
    let mut watch = Ended(command.spawn().unwrap());
    let mut command = assay();
    command.args(["lab", "up", "--name", &name, "--hosts", "1", "--inventory"]);
    text(
        &command.arg(folder.path().join("x.yaml")).output().unwrap(),
        "up",
    );
    let id = id(&name).unwrap();
    drop(watch.0.stdin.take());
    assert!(watch.0.wait().unwrap().success());
    assert_eq!(traces(&id, &name), BTreeSet::new());
}

#[test]
fn a_proxy_a_database_and_a_load_tool_work_across_hosts() {
    let missing: Vec<&str> = [
        ("haproxy", "haproxy"),
        ("mariadbd", "mariadb-server"),
        ("sysbench", "sysbench"),
    ]
    .into_iter()
    .filter(|(program, _)| {
        !["/usr/sbin", "/usr/bin"]
            .iter()
            .any(|folder| Path::new(folder).join(program).exists())
    })
    .map(|(_, package)| package)
    .collect();
    if !missing.is_empty() {
        return skipped(&format!("no Debian packages {missing:?}"));
    }
    let Some(lab) = Lab::shared() else { return };
    let hosts = lab.take_hosts(3);
    let [database, proxy, client] = &hosts[..] else {
        unreachable!()
    };
    database.run(
        "set -e; mkdir -p /data/mysql /run/mysqld; chown mysql: /data/mysql /run/mysqld
         mariadb-install-db --no-defaults --user=mysql --datadir=/data/mysql --skip-test-db >/dev/null
         systemd-run --quiet --unit=db mariadbd --no-defaults --user=mysql --datadir=/data/mysql --bind-address=0.0.0.0 --socket=/run/mysqld/mysqld.sock
         for n in $(seq 100); do mariadb-admin --no-defaults --socket=/run/mysqld/mysqld.sock ping >/dev/null 2>&1 && break; sleep 0.1; done
         mariadb --no-defaults --socket=/run/mysqld/mysqld.sock -e \"CREATE DATABASE sb; CREATE USER sb@'%' IDENTIFIED BY 'sb'; GRANT ALL ON sb.* TO sb@'%'\"",
    );
    proxy.run(&format!(
        "printf 'defaults\\n mode tcp\\n timeout connect 5s\\n timeout client 1m\\n timeout server 1m\\nlisten db\\n bind :3390\\n server a {}:3306\\n' >/root/h.cfg && systemd-run --quiet --unit=proxy haproxy -W -f /root/h.cfg",
        database.name
    ));
    let proxy_is_up = || {
        client
            .ssh(&format!("bash -c '</dev/tcp/{}/3390'", proxy.name))
            .status()
            .unwrap()
            .success()
    };
    until("the proxy listens", proxy_is_up);
    let sysbench = format!(
        "sysbench oltp_point_select --mysql-host={} --mysql-port=3390 --mysql-user=sb --mysql-password=sb --mysql-db=sb --tables=1 --table-size=1000 --threads=2 --time=2",
        proxy.name
    );
    client.run(&format!("{sysbench} prepare"));
    let said = client.run(&format!("{sysbench} run"));
    let line = said
        .lines()
        .find(|line| line.contains("transactions:"))
        .unwrap();
    let count: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(count > 100, "{said}");
}

#[test]
fn who_may_not_make_a_lab_is_told_all_that_is_missing() {
    if rustix::process::geteuid().is_root() {
        // Seen by somebody else: the program is copied to where everybody may run it.
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("assay");
        fs::copy(env!("CARGO_BIN_EXE_assay"), &program).unwrap();
        for path in [folder.path(), &program] {
            fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        let mut command = std::process::Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&program);
        refused(command, folder.path());
    } else {
        let folder = tempfile::tempdir().unwrap();
        refused(assay(), folder.path());
    }
}

fn refused(mut command: std::process::Command, folder: &Path) {
    let output = command
        .args(["lab", "up", "--inventory"])
        .arg(folder.join("x.yaml"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("a lab needs what this machine lacks: the rights of root"),
        "{said}"
    );
}
