//! Removing a deployment: all of it and nothing else.

use std::collections::BTreeSet;

use super::{Site, lab};
use crate::cluster::user::Running;
use crate::support::lab::LabHost;

/// What changes on a host by itself, or is assay's own and told of in docs/hosts.md.
const OTHERS: [&str; 8] = [
    "/var/log",
    "/var/tmp",
    "/var/cache",
    "/var/lib/systemd",
    "/root/.cache/assay",
    "/tmp/systemd-private-*",
    "/tmp/hsperfdata_*",
    "*/.assay-*",
];

/// A line for everything on a host: mode, owner, kind, size, path and target, and for files the hash of what they hold.
fn listing(host: &LabHost) -> BTreeSet<String> {
    let others: Vec<String> = OTHERS.map(|path| format!("-path '{path}'")).to_vec();
    let others = others.join(" -o ");
    let places = "/etc /data /root /home /opt /srv /tmp /var";
    let hashed = "/etc /data /root /home /srv /tmp";
    let found = host.run(&format!(
        "find {places} -xdev \\( {others} \\) -prune -o -type d -printf '%m %u:%g %y - %p\\n' -o -printf '%m %u:%g %y %s %p %l\\n' 2>/dev/null
         find {hashed} -xdev \\( {others} \\) -prune -o -type f -print0 2>/dev/null | xargs -0 sha256sum"
    ));
    found.lines().map(str::to_owned).collect()
}

/// The paths of a listing's lines that another does not have.
fn new_paths(before: &BTreeSet<String>, after: &BTreeSet<String>) -> BTreeSet<String> {
    let new = after.difference(before);
    let paths = new.filter_map(|line| line.split(' ').nth(4));
    paths.map(str::to_owned).collect()
}

#[test]
fn destroy_leaves_a_host_as_it_was_and_lists_before_what_will_go() {
    let Some(lab) = lab() else { return };
    let site = Site::of_one(lab);
    let host = site.host();
    let directory = site.user.directory();
    let theirs = "/etc/systemd/system/assay-cluster-one-theirs-1.service";
    host.run(&format!(
        "mkdir -p {directory}/cluster/theirs && echo kept >{directory}/cluster/theirs/file
         printf '[Service]\\nExecStart=/bin/true\\n' >{theirs}"
    ));
    // It brings the program itself to the host, which stays there.
    site.does("status", &[]);
    let before = listing(host);
    site.does("deploy", &[]);
    site.does("start", &[]);
    let deployed = listing(host);

    let dry = site.does("destroy", &["--dry-run"]);
    let listed: Vec<&str> = dry
        .out
        .lines()
        .filter_map(|line| line.strip_prefix("db: "))
        .collect();
    let units: Vec<&&str> = listed
        .iter()
        .filter(|line| line.starts_with("unit "))
        .collect();
    assert_eq!(units.len(), 3, "{dry:?}");
    let paths: Vec<&&str> = listed.iter().filter(|line| line.starts_with('/')).collect();
    let new = new_paths(&before, &deployed);
    assert!(new.len() > 20, "{new:?}");
    for path in &new {
        let is_told = |told: &&&str| {
            let rest = path.strip_prefix(**told);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        assert!(paths.iter().any(is_told), "nobody tells of {path}: {dry:?}");
    }
    for path in &paths {
        assert!(new.contains(**path), "{path} was there before: {dry:?}");
    }
    assert_eq!(site.units(host).len(), 3, "a dry run changes nothing");

    let said = site.does("destroy", &[]);
    said.names(&[&format!("db: {theirs} stays: ")]);
    let after = listing(host);
    let left: Vec<&String> = after.difference(&before).collect();
    let lost: Vec<&String> = before.difference(&after).collect();
    assert!(
        left.is_empty() && lost.is_empty(),
        "left {left:?}, lost {lost:?}"
    );
    assert_eq!(site.units(host), Vec::<String>::new());
}

#[test]
fn nothing_is_removed_while_a_run_holds_the_hosts() {
    let Some(lab) = lab() else { return };
    let site = Site::of_one(lab);
    let run = Running::start(site.assay("run", &["--ignore-preflight", "-v"]));
    run.until_it_says("deploy took", 1);
    for command in ["destroy", "stop", "deploy"] {
        let said = site.says(command, &[]);
        assert_eq!(said.code, Some(3), "{said:?}");
        said.names(&["host `db` is held by run artifacts/cluster/"]);
    }
    run.signal("KILL");
    run.end();
    site.does("destroy", &[]);
    assert_eq!(site.units(site.host()), Vec::<String>::new());
}
