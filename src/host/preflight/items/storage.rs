//! The file system of the host's directory.

use super::{Finding, HostView, Known, Status, Wanted, by_hand};
use crate::units::Bytes;

/// Whoever works there can write the directory.
pub(super) fn directory(host: &HostView<'_>, _: &Wanted) -> Vec<Finding> {
    let Some(directory) = host.directory else {
        return Vec::new();
    };
    let refusal = directory.refusal.clone();
    let is_writable = refusal.is_none();
    let known = Known {
        item: "directory",
        found: Some(refusal.unwrap_or_else(|| "can be written".to_owned())),
        wanted: format!("{} can be written", directory.path.display()),
        why: "deployments and snapshots are made there",
        fix: by_hand(
            "set `directory` or `become` of the host in the inventory, or change the folder's owner",
        ),
    };
    known.is(is_writable, Status::Fail)
}

/// It is of a kind that the system is made for.
pub(super) fn file_system(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "file_systems";
    if wanted.file_systems.is_empty() {
        return Vec::new();
    }
    let disk = host.facts.file_system.as_ref();
    let kinds: Vec<&str> = wanted.file_systems.keys().map(String::as_str).collect();
    let known = Known {
        item: ITEM,
        found: disk.map(|disk| format!("{} at {}", disk.kind, disk.mount)),
        wanted: kinds.join(" or "),
        why: "the system's makers test it there; others flush and allocate otherwise",
        fix: by_hand("put the host's `directory` on such a file system"),
    };
    let is_one = disk.is_some_and(|disk| kinds.contains(&disk.kind.as_str()));
    known.is(is_one, wanted.otherwise(ITEM))
}

/// It is mounted with the options that its kind needs.
pub(super) fn mount_options(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    let Some(disk) = &host.facts.file_system else {
        return Vec::new();
    };
    let options = wanted.file_systems.get(&disk.kind).into_iter().flatten();
    options
        .flat_map(|option| {
            let is_set = disk.options.contains(option);
            let known = Known {
                item: option,
                found: (!disk.options.is_empty()).then(|| match is_set {
                    true => "set".to_owned(),
                    false => format!("not set on {}", disk.mount),
                }),
                wanted: format!("set on {}", disk.kind),
                why: why(option),
                fix: by_hand(format!(
                    "add `{option}` in /etc/fstab, then `mount -o remount,{option} {}`",
                    disk.mount
                )),
            };
            known.is(is_set, wanted.otherwise(option))
        })
        .collect()
}

fn why(option: &str) -> &'static str {
    match option {
        "nodelalloc" => "ext4 otherwise puts off giving blocks, and pays for it in one flush",
        "noatime" => "else every read may write the time of the read",
        _ => "the system's makers ask for it",
    }
}

/// No two instances that store data share it.
pub(super) fn one_instance(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "one_instance_per_partition";
    let Some(instances) = wanted.planned.storage_instances else {
        return Vec::new();
    };
    if !wanted.one_instance_per_partition || instances == 0 {
        return Vec::new();
    }
    let disk = host.facts.file_system.as_ref();
    let known = Known {
        item: ITEM,
        found: disk.map(|disk| format!("{instances} on {}", disk.mount)),
        wanted: "1 a file system".to_owned(),
        why: "two that store data on one disk take each other's writes, and count its room twice",
        fix: by_hand("spread the instances over hosts"),
    };
    known.is(instances == 1, wanted.otherwise(ITEM))
}

/// It has room for what the plan needs.
pub(super) fn room(host: &HostView<'_>, wanted: &Wanted) -> Vec<Finding> {
    const ITEM: &str = "free_disk";
    let Some(bytes) = wanted.planned.bytes.filter(|_| wanted.free_disk) else {
        return Vec::new();
    };
    let disk = host.facts.file_system.as_ref();
    let known = Known {
        item: ITEM,
        found: disk.map(|disk| format!("{} free on {}", Bytes(disk.free_bytes), disk.mount)),
        wanted: format!("about {}", Bytes(bytes)),
        why: "a disk that fills up ends the run in the middle",
        fix: by_hand("free space there, or name another `directory` in the inventory"),
    };
    let is_enough = disk.is_some_and(|disk| disk.free_bytes >= bytes);
    known.is(is_enough, wanted.otherwise(ITEM))
}
