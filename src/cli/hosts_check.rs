//! `assay hosts check`: hosts against what a system wants of them; the safe fixes made, or undone.

use std::collections::BTreeMap;

use comfy_table::{ContentArrangement, LineStyle, Table, presets};
use serde_json::json;

use super::args::{Global, HostsCheck};
use super::error::{Code, Failure};
use super::examine::{Wants, examine, on_each, order};
use super::hosts::{Meant, Reached, meant};
use super::reach::{Hosts, close};
use super::session::block_on;
use super::{output, text};
use crate::host::preflight::{Applied, Done, Finding, Fix, Request, Reverted, Status, Undone};
use crate::host::{AgentError, Claim, Lease};
use crate::pack::Packs;

/// The width of the table where no terminal says it, columns.
const WIDTH: u16 = 120;
/// The system that is checked for where none is named: it asks least of a host.
const SYSTEM: &str = "sqlite";

pub(super) fn check(global: &Global, args: &HostsCheck) -> Result<Code, Failure> {
    let meant = meant(&args.which)?;
    block_on(async {
        let reached = meant.reach().await?;
        let outcome = match args.revert {
            true => revert(global, &reached).await,
            false => compare(global, args, &meant, &reached).await,
        };
        close(&reached.hosts).await;
        outcome
    })
}

async fn compare(
    global: &Global,
    args: &HostsCheck,
    meant: &Meant,
    reached: &Reached,
) -> Result<Code, Failure> {
    let built_in = Packs::built_in();
    let packs = meant.planned.as_ref().map_or(&built_in, |(_, packs)| packs);
    let plan = meant.planned.as_ref().map(|(plan, _)| plan);
    let wants = match (&args.system, plan) {
        (Some(system), plan) => Wants::of_system(system, packs, plan)?,
        (None, Some(plan)) => Wants::of_plan(plan, packs)?,
        (None, None) => Wants::of_system(SYSTEM, packs, None)?,
    };
    let mut applied = BTreeMap::new();
    if args.apply {
        let _leases = Leases::take(&reached.hosts, "hosts check --apply").await?;
        let (examined, _) = split(examine(&reached.hosts).await);
        let fixes = fixes(&wants.findings(&examined, |_| {}));
        applied = apply(&reached.hosts, &fixes).await;
    }
    let (examined, mut unreachable) = split(examine(&reached.hosts).await);
    unreachable.extend(reached.unreachable.clone());
    let findings = wants.findings(&examined, |_| {});
    let has_failed = !unreachable.is_empty()
        || findings
            .values()
            .flatten()
            .any(|f| f.status == Status::Fail);
    let code = if has_failed { Code::Host } else { Code::Fine };
    if global.json {
        output::json(&json!({
            "hosts": findings,
            "unreachable": unreachable,
            "applied": applied,
            "exit": code as i32,
        }))?;
    } else {
        let table = table(&findings, text::width(), global.verbose > 0);
        output::line(output::clean(table.trim_end()))?;
        print_applied(&applied, args.apply)?;
        say_unreachable(&unreachable);
    }
    Ok(code)
}

/// Those that could be looked at, and why the others could not.
pub(super) fn split<T>(
    found: BTreeMap<String, Result<T, AgentError>>,
) -> (BTreeMap<String, T>, BTreeMap<String, String>) {
    let (mut good, mut bad) = (BTreeMap::new(), BTreeMap::new());
    for (name, result) in found {
        match result {
            Ok(value) => _ = good.insert(name, value),
            Err(error) => _ = bad.insert(name, Failure::from(error).message()),
        }
    }
    (good, bad)
}

/// Tells which hosts could not be looked at.
pub(super) fn say_unreachable(unreachable: &BTreeMap<String, String>) {
    for (name, why) in unreachable {
        let line = format!("`{name}` cannot be looked at: {why}");
        output::say(format_args!(
            "{}error:{} {}",
            text::RED,
            text::PLAIN,
            output::clean(&line)
        ));
    }
}

/// Hosts that are held while they are changed or measured.
#[derive(Default)]
pub(super) struct Leases {
    _held: Vec<Lease>,
}

impl Leases {
    /// Holds every host.
    ///
    /// # Errors
    /// A run holds one of them.
    pub(super) async fn take(hosts: &Hosts, what: &str) -> Result<Self, Failure> {
        let mut held = Vec::new();
        for host in hosts.values() {
            held.push(host.lease(Claim::of(&format!("`assay {what}`"))).await?);
        }
        Ok(Self { _held: held })
    }
}

/// The fixes that each host needs and that assay makes.
fn fixes(findings: &BTreeMap<String, Vec<Finding>>) -> BTreeMap<String, Vec<Fix>> {
    let safe = |findings: &Vec<Finding>| -> Vec<Fix> {
        let fixes = findings.iter().filter_map(|finding| finding.fix.clone());
        fixes.filter(Fix::is_safe).collect()
    };
    findings
        .iter()
        .map(|(name, findings)| (name.clone(), safe(findings)))
        .collect()
}

type Changes<T> = BTreeMap<String, Result<Vec<T>, String>>;

async fn apply(hosts: &Hosts, fixes: &BTreeMap<String, Vec<Fix>>) -> Changes<Applied> {
    let mut hosts = hosts.clone();
    hosts.retain(|name, _| fixes.get(name).is_some_and(|fixes| !fixes.is_empty()));
    let answers = on_each(&hosts, |host| {
        let request = Request {
            directory: host.directory().to_owned(),
            fixes: fixes[host.name()].clone(),
        };
        async move { order(&*host, "preflight-apply", &request).await }
    });
    in_words(answers.await)
}

fn in_words<T>(
    answers: BTreeMap<String, Result<T, AgentError>>,
) -> BTreeMap<String, Result<T, String>> {
    let words = |error| Failure::from(error).message();
    let answers = answers.into_iter();
    answers
        .map(|(name, answer)| (name, answer.map_err(words)))
        .collect()
}

fn print_applied(applied: &Changes<Applied>, asked: bool) -> Result<(), Failure> {
    for (name, answer) in applied {
        match answer {
            Ok(changes) => {
                for change in changes {
                    output::line(output::clean(&applied_line(name, change)))?;
                }
            }
            Err(why) => output::line(output::clean(&format!("{name}: cannot apply: {why}")))?,
        }
    }
    let is_changed = |change: &Applied| matches!(change.done, Done::Changed);
    let mut changes = applied.values().flatten().flatten();
    if applied.is_empty() && asked {
        output::line("there is nothing that assay can mend by itself")?;
    } else if asked && changes.any(is_changed) {
        output::line(
            "these values last until the next boot; `assay hosts check --revert` puts the old ones back",
        )?;
    }
    Ok(())
}

fn applied_line(host: &str, change: &Applied) -> String {
    let target = change.target.display();
    let old = change.old.as_deref().unwrap_or("unknown");
    match &change.done {
        Done::Changed => format!("{host}: {target}: {old} -> {}", change.new),
        Done::AsWanted => format!("{host}: {target} is {old} already"),
        Done::Refused(why) => format!("{host}: {target}: cannot apply: {why}"),
    }
}

async fn revert(global: &Global, reached: &Reached) -> Result<Code, Failure> {
    let _leases = Leases::take(&reached.hosts, "hosts check --revert").await?;
    let answers = on_each(&reached.hosts, |host| {
        let request = Request {
            directory: host.directory().to_owned(),
            fixes: Vec::new(),
        };
        async move { order(&*host, "preflight-revert", &request).await }
    });
    let reverted: Changes<Reverted> = in_words(answers.await);
    let is_refused = |r: &Reverted| matches!(r.done, Undone::Refused(_));
    let has_failed = !reached.unreachable.is_empty()
        || reverted.values().any(|answer| {
            answer
                .as_ref()
                .map_or(true, |all| all.iter().any(is_refused))
        });
    let code = if has_failed { Code::Host } else { Code::Fine };
    if global.json {
        output::json(&json!({
            "reverted": reverted,
            "unreachable": reached.unreachable,
            "exit": code as i32,
        }))?;
        return Ok(code);
    }
    say_unreachable(&reached.unreachable);
    for (name, answer) in &reverted {
        match answer {
            Ok(changes) if changes.is_empty() => {
                output::line(format_args!("{name}: there is nothing to undo"))?;
            }
            Ok(changes) => {
                for change in changes {
                    output::line(output::clean(&reverted_line(name, change)))?;
                }
            }
            Err(why) => output::line(output::clean(&format!("{name}: cannot revert: {why}")))?,
        }
    }
    Ok(code)
}

fn reverted_line(host: &str, change: &Reverted) -> String {
    let (target, old) = (change.target.display(), &change.old);
    match &change.done {
        Undone::Restored(was) => format!("{host}: {target}: {was} -> {old}"),
        Undone::AsBefore => format!("{host}: {target} is {old} again already"),
        Undone::LeftAlone(now) => format!(
            "{host}: {target}: left at {now}, which assay did not set; it was {old} before assay changed it"
        ),
        Undone::Refused(why) => format!("{host}: {target}: cannot put {old} back: {why}"),
    }
}

/// Hosts with the same finding.
pub(super) struct Group<'a> {
    pub(super) finding: &'a Finding,
    hosts: Vec<&'a str>,
    /// Whether these are all hosts.
    all: bool,
}

impl Group<'_> {
    /// The hosts, in few words.
    pub(super) fn names(&self) -> String {
        match (self.all, self.hosts.len()) {
            (true, 2..) => "all".to_owned(),
            _ => ranges(&self.hosts),
        }
    }
}

/// Equal findings of several hosts put together; what is worst comes first, else the order of the checks is kept.
pub(super) fn groups(findings: &BTreeMap<String, Vec<Finding>>) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (host, found) in findings {
        for finding in found {
            match groups.iter_mut().find(|group| group.finding == finding) {
                Some(group) => group.hosts.push(host),
                None => groups.push(Group {
                    finding,
                    hosts: vec![host],
                    all: false,
                }),
            }
        }
    }
    for group in &mut groups {
        group.all = group.hosts.len() == findings.len();
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.finding.status));
    groups
}

/// A name with a number at its end: what stands before that, and the number.
type Numbered<'a> = (&'a str, u64);

fn numbered(name: &str) -> Option<Numbered<'_>> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    Some((stem, name[stem.len()..].parse().ok()?))
}

/// Names with equal beginnings and numbers that follow each other are put together: `kv1-kv3, lb`.
fn ranges(names: &[&str]) -> String {
    let mut sorted = names.to_vec();
    sorted.sort_by_key(|name| (numbered(name), *name));
    let follows = |last: &&str, next: &&str| match (numbered(last), numbered(next)) {
        (Some((a, n)), Some((b, m))) => a == b && n.checked_add(1) == Some(m),
        _ => false,
    };
    let runs = sorted.chunk_by(follows);
    let words = runs.map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        [one] => (*one).to_owned(),
        [] => String::new(),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The findings of all hosts for people: what is not fine as rows, the worst first, and below them what mends it, so that
/// commands stay in one piece; what is fine in one line, or as rows as well if `every` is asked for.
pub(super) fn table(
    findings: &BTreeMap<String, Vec<Finding>>,
    width: Option<u16>,
    every: bool,
) -> String {
    let groups = groups(findings);
    let is_bad = |g: &&Group<'_>| matches!(g.finding.status, Status::Fail | Status::Warn);
    let shown: Vec<&Group<'_>> = groups.iter().filter(|g| every || is_bad(g)).collect();
    let mut text = String::new();
    if !shown.is_empty() {
        text.push_str(&rows(&shown, width.unwrap_or(WIDTH)));
        text.push_str(&fixes_of(&shown));
    }
    for (status, words) in [(Status::Unknown, "nobody can tell"), (Status::Ok, "fine")] {
        let items = items(&groups, status);
        if !every && !items.is_empty() {
            text.push_str(&format!("{words}: {}\n", items.join(", ")));
        }
    }
    text
}

fn rows(groups: &[&Group<'_>], width: u16) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.style_mut().row_separator = LineStyle::none();
    table.force_no_tty();
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width);
    table.set_header(["", "item", "hosts", "found", "wanted", "why it matters"]);
    for group in groups {
        table.add_row(row(group));
    }
    format!("{}\n", table.trim_fmt())
}

/// What mends each item, each fix once; a star marks those that `--apply` makes.
fn fixes_of(groups: &[&Group<'_>]) -> String {
    let mut text = String::new();
    let mut told: Vec<(&str, &Fix)> = Vec::new();
    for group in groups {
        let item = group.finding.item.as_str();
        let fix = group.finding.fix.as_ref();
        let Some(fix) = fix.filter(|fix| !told.contains(&(item, fix))) else {
            continue;
        };
        told.push((item, fix));
        let star = if fix.is_safe() { '*' } else { ' ' };
        text.push_str(&format!("{star} {item}: {fix}\n"));
        if let Some(line) = fix.to_keep() {
            text.push_str(&format!("    beyond the next boot: {line}\n"));
        }
    }
    match (text.is_empty(), text.contains("* ")) {
        (true, _) => text,
        (false, true) => format!("fixes (* `assay hosts check --apply` makes it)\n{text}"),
        (false, false) => format!("fixes\n{text}"),
    }
}

/// The items of a status, each once, with the hosts where it is not so on all of them.
fn items(groups: &[Group<'_>], status: Status) -> Vec<String> {
    let of_status = groups.iter().filter(|group| group.finding.status == status);
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for group in of_status {
        let item = group.finding.item.as_str();
        match found.iter_mut().find(|(known, _)| *known == item) {
            Some((_, hosts)) => hosts.extend(&group.hosts),
            None => found.push((item, group.hosts.clone())),
        }
    }
    let elsewhere = |item: &str| {
        let other = |g: &&Group<'_>| g.finding.item == item && g.finding.status != status;
        groups.iter().any(|group| other(&group))
    };
    found
        .into_iter()
        .map(|(item, hosts)| match elsewhere(item) {
            true => format!("{item} ({})", ranges(&hosts)),
            false => item.to_owned(),
        })
        .collect()
}

fn row(group: &Group<'_>) -> [String; 6] {
    let finding = group.finding;
    let status = match finding.status {
        Status::Fail => "FAIL",
        Status::Warn => "warn",
        Status::Unknown => "?",
        Status::Ok => "ok",
    };
    [
        status.to_owned(),
        finding.item.clone(),
        group.names(),
        finding.found.clone(),
        finding.wanted.clone(),
        finding.why.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(item: &str, status: Status, found: &str) -> Finding {
        Finding {
            item: item.into(),
            status,
            found: found.into(),
            wanted: "never".into(),
            why: "it stalls".into(),
            fix: (status != Status::Ok).then(|| Fix::WriteSysctl {
                key: "vm.swappiness".into(),
                value: "0".into(),
            }),
        }
    }

    fn hosts(all: &[(&str, Vec<Finding>)]) -> BTreeMap<String, Vec<Finding>> {
        let pairs = all
            .iter()
            .map(|(name, found)| ((*name).to_owned(), found.clone()));
        pairs.collect()
    }

    #[test]
    fn names_that_follow_each_other_are_put_together() {
        assert_eq!(
            ranges(&["kv1", "kv10", "kv2", "kv3", "lb"]),
            "lb, kv1-kv3, kv10"
        );
        assert_eq!(ranges(&["a", "b"]), "a, b");
        assert_eq!(ranges(&["kv1", "tidb2"]), "kv1, tidb2");
        assert_eq!(ranges(&["10.0.0.1", "10.0.0.2"]), "10.0.0.1-10.0.0.2");
    }

    #[test]
    fn equal_findings_are_one_row_and_the_worst_comes_first() {
        let thp = |found: &str| finding("thp", Status::Fail, found);
        let swap = || finding("swap", Status::Warn, "on");
        let fine = || finding("clock_offset", Status::Ok, "+0.1 ms");
        let all = hosts(&[
            ("lab1", vec![fine(), swap(), thp("always")]),
            ("lab2", vec![fine(), swap(), thp("always")]),
            ("lab3", vec![fine(), swap(), thp("madvise")]),
        ]);
        let shown = table(&all, None, false);
        let lines: Vec<&str> = shown.lines().filter(|l| !l.starts_with('─')).collect();
        let row = |n: usize| lines[n].split_whitespace().take(4).collect::<Vec<_>>();
        assert_eq!(row(2), ["FAIL", "thp", "lab1-lab2", "always"], "{shown}");
        assert_eq!(row(3), ["FAIL", "thp", "lab3", "madvise"], "{shown}");
        assert_eq!(row(4), ["warn", "swap", "all", "on"], "{shown}");
        assert!(lines[2].contains("it stalls"), "{shown}");
        // A fix is told once for each item.
        assert_eq!(shown.matches("* thp: sysctl -w vm.swappiness=0").count(), 1);
        assert_eq!(shown.matches("sysctl -w").count(), 2);
        assert_eq!(lines.last(), Some(&"fine: clock_offset"));
    }

    #[test]
    fn an_item_that_is_fine_on_some_hosts_only_names_them() {
        let all = hosts(&[
            ("lab1", vec![finding("swap", Status::Ok, "off")]),
            ("lab2", vec![finding("swap", Status::Warn, "on")]),
        ]);
        let shown = table(&all, None, false);
        assert!(shown.ends_with("fine: swap (lab1)\n"), "{shown}");
    }

    #[test]
    fn only_safe_fixes_of_what_is_not_fine_are_made() {
        let mut stop = finding("firewalld", Status::Fail, "on");
        stop.fix = Some(Fix::StopService {
            name: "firewalld".into(),
        });
        let found = fixes(&hosts(&[(
            "a",
            vec![
                finding("x", Status::Ok, "0"),
                finding("y", Status::Warn, "1"),
                stop,
            ],
        )]));
        assert_eq!(found["a"].len(), 1);
    }
}
