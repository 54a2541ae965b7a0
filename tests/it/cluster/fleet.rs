//! Many hosts at once: facts, fixes, one command everywhere, and a dead one among them.

use std::time::{Duration, Instant};

use super::user::{Running, User};
use crate::support::lab::{Lab, LabHost, Taken};

/// How many hosts a fleet has.
const FLEET: usize = 4;

/// A fleet of the lab's hosts, in an inventory, with their pinned keys.
fn all<'a>(lab: &'a Lab, user: &User) -> Vec<Taken<'a>> {
    let hosts = lab.take_hosts(FLEET);
    let pins: Vec<String> = hosts
        .iter()
        .map(|host| format!(", host_key: \"{}\"", host.fingerprint()))
        .collect();
    let rows: Vec<(&str, &LabHost, &str)> = hosts
        .iter()
        .zip(&pins)
        .map(|(host, pin)| (host.name.as_str(), &**host, pin.as_str()))
        .collect();
    user.inventory(&rows);
    hosts
}

#[test]
fn four_hosts_say_what_they_are_and_how_far_they_are_from_each_other() {
    let Some(lab) = Lab::shared() else { return };
    let user = User::new();
    let hosts = all(lab, &user);
    let said = user.runs(&[
        "hosts",
        "facts",
        "-i",
        "hosts.yaml",
        "--calibrate",
        "--json",
    ]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let found = &said.json()["hosts"];
    for host in &hosts {
        let record = &found[&host.name];
        assert_eq!(record["hostname"], host.name.as_str());
        assert_eq!(
            record["kernel"].as_str().unwrap(),
            host.run("uname -r").trim()
        );
        assert_eq!(
            record["file_system"]["kind"], "xfs",
            "{}",
            record["file_system"]
        );
        assert_eq!(
            record["file_system"]["reflink"], true,
            "{}",
            record["file_system"]
        );
        // One clock, so that the offset is at most half of the round trip.
        let clock = |key: &str| record["clock"][key].as_f64().unwrap();
        assert!(clock("offset_ms").abs() <= clock("round_trip_ms") / 2.0 + 0.001);
        for measure in ["cpu_ms", "memory_gb_s", "fsync_p50_ms"] {
            assert!(record["calibration"][measure].as_f64().unwrap() > 0.0);
        }
        let others = record["calibration"]["network_ms"].as_object().unwrap();
        let names: Vec<&String> = others.keys().collect();
        let expected: Vec<&String> = hosts
            .iter()
            .map(|h| &h.name)
            .filter(|name| **name != host.name)
            .collect();
        let mut expected = expected;
        expected.sort();
        assert_eq!(names, expected);
        assert!(
            others.values().all(|ms| ms.as_f64().unwrap() > 0.0),
            "{others:?}"
        );
    }
}

#[test]
fn a_dead_host_is_named_within_ten_seconds_and_the_outputs_of_the_others_come() {
    let Some(lab) = Lab::shared() else { return };
    let user = User::new();
    let hosts = all(lab, &user);
    let dead = &hosts[1];
    dead.kill();
    let begun = Instant::now();
    let run =
        Running::start(user.assay(&["hosts", "exec", "-i", "hosts.yaml", "--", "echo", "well"]));
    run.until_it_says(
        &format!("{}: cannot connect to `{}`", dead.name, dead.name),
        1,
    );
    let named = begun.elapsed();
    let said = run.end();
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(named < Duration::from_secs(10), "{named:?}");
    said.names(&[
        "nothing answered in time",
        "(3 hosts)",
        "well",
        "hint: see that it is up",
    ]);
}

#[test]
fn fixes_are_made_where_the_kernel_lets_them_and_put_back() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    user.has(&host);
    // Of a container's settings those of its network are its own.
    host.run("mount --bind /proc/sys/net /proc/sys/net && mount -o remount,bind,rw /proc/sys/net");
    let values =
        || host.run("cd /proc/sys && cat net/core/somaxconn net/ipv4/tcp_syncookies vm/swappiness");
    let before = values();
    let check = [
        "hosts",
        "check",
        "-i",
        "hosts.yaml",
        "--system",
        "tidb",
        "--json",
    ];
    let applied = user.runs(&[&check[..], &["--apply"]].concat()).json();
    let done = applied["applied"]["local"]["Ok"].as_array().unwrap();
    let of = |target: &str| {
        let found = done.iter().find(|change| change["target"] == target);
        found.unwrap_or_else(|| panic!("no {target} in {done:?}"))
    };
    assert!(
        of("/proc/sys/vm/swappiness")["done"]["refused"].is_string(),
        "{done:?}"
    );
    for (target, new) in [
        ("net/core/somaxconn", "32768"),
        ("net/ipv4/tcp_syncookies", "0"),
    ] {
        let change = of(&format!("/proc/sys/{target}"));
        assert!(change["done"]["refused"].is_null(), "{change}");
        assert_eq!(host.run(&format!("cat /proc/sys/{target}")).trim(), new);
    }
    let status = |item: &str| {
        let findings = applied["hosts"]["local"].as_array().unwrap();
        let found = findings.iter().find(|f| f["item"] == item).unwrap();
        found["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(status("net.core.somaxconn"), "ok");
    assert_eq!(status("vm.swappiness"), "fail");

    let revert = ["hosts", "check", "-i", "hosts.yaml", "--revert"];
    let said = user.runs(&revert);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(values(), before);
    user.runs(&revert).names(&["nothing to undo"]);
    host.run("umount /proc/sys/net");
}
