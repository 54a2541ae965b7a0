//! What earlier runs left.

use super::{Finding, HostView, Status, Wanted};
use crate::host::preflight::Fix;

/// Nothing of an earlier run takes this one's CPUs or disk.
pub(super) fn leftovers(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "leftovers";
    if !wanted.leftovers {
        return Vec::new();
    }
    let finding = |status, found: String, fix| Finding {
        item: ITEM.to_owned(),
        status,
        found,
        wanted: "nothing".to_owned(),
        why: "what still runs takes CPU and disk from this run, and room".to_owned(),
        fix,
    };
    let Some(left) = host.leftovers else {
        return vec![finding(Status::Unknown, "unknown".to_owned(), None)];
    };
    if let Some(holder) = &left.held_by {
        return vec![Finding {
            wanted: "nobody".to_owned(),
            why: "what runs and lies there is the holder's, and takes its CPU and disk".to_owned(),
            ..finding(Status::Warn, format!("held by {}", holder.text), None)
        }];
    }
    let processes = left.processes.iter().map(|process| {
        let found = format!("process {} ({})", process.pid, process.name);
        (found, format!("kill {}", process.pid))
    });
    let units = left.units.iter();
    let units = units.map(|unit| (format!("unit {unit}"), format!("systemctl stop {unit}")));
    let folders = left.folders.iter().map(|folder| {
        let found = format!("unfinished folder {}", folder.display());
        (
            found,
            "the next run of its experiment removes it".to_owned(),
        )
    });
    let all = processes.chain(units).chain(folders);
    let mut found: Vec<Finding> = all
        .map(|(found, what)| finding(Status::Warn, found, Some(Fix::ByHand { what })))
        .collect();
    if found.is_empty() {
        found.push(finding(Status::Ok, "nothing".to_owned(), None));
    }
    found
}
