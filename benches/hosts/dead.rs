//! A dead host among many: when it is named, and what the rest notices of it.

use std::io::{BufRead as _, BufReader, Read};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Instant;

use crate::fleet::{Fleet, name};
use crate::{load, sshd};

pub(crate) fn measure(hosts: usize, dead: Option<&str>) {
    let fleet = Fleet::start(hosts, &std::env::temp_dir());
    println!("\none dead host among {hosts}; load before: {}\n", load());
    println!("| dead | named after, s | the others are done after, s | all, s |");
    println!("|---|--:|--:|--:|");
    exec(&fleet, "", None);
    exec(&fleet, "none", None);
    let middle = hosts / 2;
    let victim = name(middle);
    let daemon = &fleet.hosts[middle - 1];
    for pid in daemon.pids() {
        sshd::kill("STOP", pid);
    }
    exec(
        &fleet,
        "its sshd is stopped: it accepts and says nothing",
        Some(&victim),
    );
    for pid in daemon.pids() {
        sshd::kill("CONT", pid);
    }
    if let Some(address) = dead {
        fleet.move_to(&victim, address);
        exec(
            &fleet,
            &format!("{address} drops every packet"),
            Some(&victim),
        );
    }
}

/// Runs the command everywhere, and notes when each host is heard of.
fn exec(fleet: &Fleet, what: &str, dead: Option<&str>) {
    let mut command = fleet.assay(&["hosts", "exec", "--stream"]);
    command.args(["--", "uname", "-r"]).stdin(Stdio::null());
    let begin = Instant::now();
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (tell, told) = mpsc::channel();
    let streams: [Box<dyn Read + Send>; 2] = [
        Box::new(child.stdout.take().unwrap()),
        Box::new(child.stderr.take().unwrap()),
    ];
    for stream in streams {
        let tell = tell.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines() {
                let _ = tell.send((line.unwrap(), begin.elapsed().as_secs_f64()));
            }
        });
    }
    drop(tell);
    let lines: Vec<(String, f64)> = told.iter().collect();
    let status = child.wait().unwrap();
    let all = begin.elapsed().as_secs_f64();
    assert_eq!(status.success(), dead.is_none(), "{lines:?}");
    let of = |host: &str| {
        let start = format!("{host}: ");
        lines
            .iter()
            .find(|(line, _)| line.starts_with(&start))
            .map(|(_, time)| *time)
    };
    let live = fleet.names().filter(|host| dead != Some(host.as_str()));
    let others =
        live.map(|host| of(&host).unwrap_or_else(|| panic!("no word of {host}: {lines:?}")));
    let others = others.fold(0.0, f64::max);
    let named = dead.map_or("-".to_owned(), |host| format!("{:.1}", of(host).unwrap()));
    if !what.is_empty() {
        println!("| {what} | {named} | {others:.2} | {all:.2} |");
    }
}
