//! `uname -r` on many hosts at once, by each tool in turn.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay::host::{Folders, Host, Program, Settings, SshHost, Target, Watch, fan_out};
use tokio_util::sync::CancellationToken;

use crate::fleet::Fleet;
use crate::{Wanted, load, spread, sshd};

/// How many hosts each tool works on at once.
const AT_ONCE: usize = 32;

/// A way to run the command on all hosts.
struct Way<'a> {
    name: &'static str,
    /// Puts things back to where they are before it.
    before: Box<dyn Fn() + 'a>,
    command: Box<dyn Fn() -> Command + 'a>,
    seconds: Vec<f64>,
}

pub(crate) fn measure(wanted: &Wanted) {
    let (hosts, rounds) = (wanted.hosts, wanted.rounds);
    let fleet = Fleet::start(hosts, &std::env::temp_dir());
    println!(
        "`uname -r` on {hosts} hosts, {AT_ONCE} at once, {rounds} rounds; load before: {}\n",
        load()
    );
    if let Some(kex) = &wanted.kex {
        fleet.set(&format!("KexAlgorithms {kex}"));
    }
    let mut ways = ways(&fleet);
    for _ in 0..rounds {
        for way in &mut ways {
            (way.before)();
            let mut command = (way.command)();
            let begin = Instant::now();
            let output = command.stdin(Stdio::null()).output().unwrap();
            way.seconds.push(begin.elapsed().as_secs_f64());
            check(way.name, &output, hosts);
        }
    }
    let mut results: Vec<(&str, Vec<f64>)> = ways
        .iter()
        .map(|way| (way.name, way.seconds.clone()))
        .collect();
    end(&fleet);
    results.extend(standing(&fleet, rounds));
    end(&fleet);
    table(&results);
}

/// Every host must have said what this machine says.
fn check(name: &str, output: &std::process::Output, hosts: usize) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success(), "{name}: {text}");
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let said = text.matches(kernel.trim()).count();
    let grouped = text.contains(&format!("({hosts} hosts)")) && said == 1;
    assert!(grouped || said >= hosts, "{name}: {text}");
}

fn end(fleet: &Fleet) {
    for folder in ["mux", "cp"] {
        fleet.end_masters(&fleet.path(folder));
    }
}

impl<'a> Way<'a> {
    fn new(name: &'static str, before: impl Fn() + 'a, command: impl Fn() -> Command + 'a) -> Self {
        Self {
            name,
            before: Box::new(before),
            command: Box::new(command),
            seconds: Vec::new(),
        }
    }
}

fn ways(fleet: &Fleet) -> Vec<Way<'_>> {
    let ours = || {
        let mut command = fleet.assay(&["hosts", "exec"]);
        command.args(["--", "uname", "-r"]);
        command
    };
    let open = "$SSH -o ControlPersist=60 -S mux/{} -MNf {}";
    let over = "exec $SSH -n -S mux/{} {} uname -r";
    let multiplexed = each(&format!("sh -c '{open} && {over}'"));
    let mut ways = vec![
        Way::new(
            "assay, first time: it is sent to each host",
            || forget(fleet),
            ours,
        ),
        Way::new("assay", || {}, ours),
        Way::new(
            "plain ssh",
            || {},
            || fleet.shell(&each("$SSH -n {} uname -r")),
        ),
        Way::new(
            "multiplexed ssh: master opened, then the command",
            || fleet.end_masters(&fleet.path("mux")),
            move || fleet.shell(&format!("mkdir mux; {multiplexed}")),
        ),
    ];
    if let Some(ansible) = tool("ansible") {
        ways.extend(ansible_ways(fleet, ansible));
    }
    if let Some(pyinfra) = tool("pyinfra") {
        ways.push(Way::new(
            "pyinfra",
            || {},
            move || {
                let mut command = Command::new(&pyinfra);
                command
                    .args(["--parallel", &AT_ONCE.to_string(), "-y"])
                    .arg(fleet.path("hosts.py"))
                    .args(["exec", "--", "uname", "-r"])
                    .current_dir(fleet.path(""));
                command
            },
        ));
    }
    ways
}

/// ansible with pipelining, its connections left open as it does by itself; ended between the rounds.
fn ansible_ways(fleet: &Fleet, ansible: PathBuf) -> Vec<Way<'_>> {
    let all = move |module: &'static str| {
        let ansible = ansible.clone();
        move || ansible_all(fleet, &ansible, module)
    };
    let end = || fleet.end_masters(&fleet.path("cp"));
    let open = all("raw");
    let opened = move || assert!(open().output().unwrap().status.success());
    vec![
        Way::new("ansible, module command", end, all("command")),
        Way::new("ansible, module raw", end, all("raw")),
        Way::new(
            "ansible, module command, connections still open",
            opened,
            all("command"),
        ),
    ]
}

/// A program of the path.
fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    if found.is_none() {
        println!("`{name}` is not in the path: not measured");
    }
    found
}

/// A command for every host, in which `{}` is its name.
fn each(command: &str) -> String {
    format!("printf '%s\\n' \"$HOSTS\" | xargs -P{AT_ONCE} -I{{}} {command}")
}

fn ansible_all(fleet: &Fleet, ansible: &Path, module: &str) -> Command {
    let mut command = Command::new(ansible);
    command
        .args([
            "all",
            "-f",
            &AT_ONCE.to_string(),
            "-m",
            module,
            "-a",
            "uname -r",
            "-i",
        ])
        .arg(fleet.path("hosts.ini"))
        .env("ANSIBLE_PIPELINING", "1")
        .env("ANSIBLE_SSH_CONTROL_PATH_DIR", fleet.path("cp"))
        .env(
            "ANSIBLE_SSH_COMMON_ARGS",
            format!("-F {}", fleet.path("ssh_config").display()),
        )
        .current_dir(fleet.path(""));
    command
}

/// Removes assay from every host.
fn forget(fleet: &Fleet) {
    for host in fleet.names() {
        let _ = std::fs::remove_dir_all(fleet.home(&host).join(".cache"));
    }
}

/// The same over connections that stand already: what a run does for each of its steps.
fn standing(fleet: &Fleet, rounds: usize) -> Vec<(&'static str, Vec<f64>)> {
    let open = each("$SSH -o ControlPersist=600 -S mux/{} -MNf {}");
    let opened = fleet.shell(&format!("mkdir mux; {open}")).status().unwrap();
    assert!(opened.success());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let hosts = runtime.block_on(connect(fleet));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let begin = Instant::now();
        runtime.block_on(uname(&hosts));
        ours.push(begin.elapsed().as_secs_f64());
        let mut command = fleet.shell(&each("$SSH -n -S mux/{} {} uname -r"));
        let begin = Instant::now();
        let output = command.output().unwrap();
        theirs.push(begin.elapsed().as_secs_f64());
        check("standing", &output, hosts.len());
    }
    vec![
        ("assay, over connections that stand", ours),
        ("multiplexed ssh, over masters that stand", theirs),
    ]
}

/// Connections to all hosts.
pub(crate) async fn connect(fleet: &Fleet) -> Vec<Arc<SshHost>> {
    let works: Vec<_> = fleet
        .names()
        .map(|name| {
            let target = Target {
                address: name.clone(),
                directory: "~/.assay".to_owned(),
                ssh_config: Some(fleet.path("ssh_config")),
                name,
                ..Target::default()
            };
            let settings = Settings {
                folders: Folders {
                    runtime: fleet.path(""),
                    cache: fleet.path("cache"),
                    home: None,
                },
                owner: "a benchmark".to_owned(),
                patience: Duration::ZERO,
            };
            SshHost::connect(target, sshd::binary(), settings)
        })
        .collect();
    let hosts = fan_out(works, AT_ONCE, |_, _| {}).await;
    hosts
        .into_iter()
        .map(|host| Arc::new(host.unwrap()))
        .collect()
}

async fn uname(hosts: &[Arc<SshHost>]) {
    let works: Vec<_> = hosts
        .iter()
        .cloned()
        .map(|host| async move {
            let program = Program::Path("uname".into());
            let command =
                assay::host::Command::new(program, vec!["-r".into()], Duration::from_secs(60));
            let mut lines = 0;
            let watch = Watch {
                stop: CancellationToken::new(),
                line: &mut |_| lines += 1,
                log: &mut |_| {},
            };
            host.run(&command, watch).await.unwrap();
            assert_eq!(lines, 1);
        })
        .collect();
    fan_out(works, AT_ONCE, |_, ()| {}).await;
}

fn table(results: &[(&str, Vec<f64>)]) {
    println!("| way | s, median | min - max | times of assay's |");
    println!("|---|--:|--:|--:|");
    let mut reference = &results[1].1;
    for (name, seconds) in results {
        if *name == "assay, over connections that stand" {
            reference = seconds;
        }
        // Round by round: the machine's speed drifts.
        let ratios = seconds.iter().zip(reference).map(|(s, r)| s / r).collect();
        let ([min, median, max], [_, ratio, _]) = (spread(seconds.clone()), spread(ratios));
        println!("| {name} | {median:.2} | {min:.2} - {max:.2} | {ratio:.2} |");
    }
}
