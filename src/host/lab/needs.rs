//! What a machine must have to hold a lab. All that is missing is named at once.

use std::path::Path;

use super::tool::{self, find};

/// What every command about labs needs.
pub(super) const ROOT: &str = "the rights of root";
/// Programs, and the Debian packages that hold them.
const PROGRAMS: [(&str, &str); 11] = [
    ("systemd-nspawn", "systemd-container"),
    ("ip", "iproute2"),
    ("bridge", "iproute2"),
    ("tc", "iproute2"),
    ("sshd", "openssh-server"),
    ("ssh", "openssh-client"),
    ("ssh-keygen", "openssh-client"),
    ("mkfs.xfs", "xfsprogs"),
    ("mount", "mount"),
    ("losetup", "mount"),
    ("unshare", "util-linux"),
];

/// Watches on files that systemd, its session for a user, and the bus of one host hold (measured on Debian 12), and those
/// that the rest of a machine may need. All hosts share root's limit; without room for them a host's systemd gives up.
const WATCHES: usize = 10;
const OTHER_WATCHES: usize = 28;

/// What is missing here for so many hosts in all labs; `wants_xfs` if those of a new one get images.
pub(super) fn missing(hosts: usize, wants_xfs: bool) -> Vec<String> {
    if !cfg!(target_os = "linux") {
        return vec!["Linux".to_owned()];
    }
    let mut missing = Vec::new();
    if !rustix::process::geteuid().is_root() {
        missing.push(ROOT.to_owned());
    }
    let is_wanted = |program: &str| wants_xfs || program != "mkfs.xfs";
    let programs = PROGRAMS.iter().filter(|(program, _)| is_wanted(program));
    missing.extend(absent(programs, |program| find(program).is_some()));
    if !["/lib/systemd/systemd", "/usr/lib/systemd/systemd"]
        .iter()
        .any(|path| Path::new(path).exists())
    {
        missing.push("systemd to run in the hosts (Debian package systemd)".to_owned());
    }
    missing.extend(apart().map(|folder| {
        format!("`{folder}` on the file system of `/`, which is the root of every host")
    }));
    let kinds = [("overlay", true), ("xfs", wants_xfs)];
    let kinds = kinds
        .iter()
        .filter(|(kind, is_wanted)| *is_wanted && !has_kind(kind));
    missing.extend(few_watches(hosts));
    missing.extend(kinds.map(|(kind, _)| format!("a kernel with the file system {kind}")));
    missing
}

/// The limit on watches, if it is too low.
fn few_watches(hosts: usize) -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_instances").ok()?;
    too_few(text.trim().parse().ok()?, hosts)
}

fn too_few(limit: usize, hosts: usize) -> Option<String> {
    let wanted = WATCHES * hosts + OTHER_WATCHES;
    (limit < wanted).then(|| {
        let name = "fs.inotify.max_user_instances";
        format!(
            "{name} of {wanted} rather than {limit} for {hosts} hosts (`sysctl -w {name}={wanted}`)"
        )
    })
}

fn absent<'a>(
    programs: impl Iterator<Item = &'a (&'a str, &'a str)>,
    is_there: impl Fn(&str) -> bool,
) -> Vec<String> {
    programs
        .filter(|(program, _)| !is_there(program))
        .map(|(program, package)| format!("{program} (Debian package {package})"))
        .collect()
}

/// Folders of the system that are file systems of their own, so that hosts would not see them.
fn apart() -> impl Iterator<Item = &'static str> {
    let mounts = crate::host::mounts().unwrap_or_default();
    let is_apart = move |folder: &&str| mounts.iter().any(|m| m.point == Path::new(folder));
    ["/usr", "/etc", "/var", "/opt"]
        .into_iter()
        .filter(is_apart)
}

/// Whether the kernel has a kind of file system, or can load it.
fn has_kind(kind: &str) -> bool {
    is_known(kind) || {
        let mut modprobe = tool::command("modprobe", "");
        let _ = tool::run(modprobe.args(["-q", kind]), "load a module");
        is_known(kind)
    }
}

fn is_known(kind: &str) -> bool {
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    known.split_ascii_whitespace().any(|word| word == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_missing_is_named_with_its_package() {
        let named = absent(PROGRAMS.iter(), |program| {
            program != "sshd" && program != "ip"
        });
        assert_eq!(
            named,
            [
                "ip (Debian package iproute2)",
                "sshd (Debian package openssh-server)"
            ]
        );
    }

    #[test]
    fn a_limit_that_is_too_low_for_the_hosts_is_named_with_its_remedy() {
        assert_eq!(too_few(128, 10), None);
        let named = too_few(128, 50).unwrap();
        assert!(
            named.contains("`sysctl -w fs.inotify.max_user_instances=528`"),
            "{named}"
        );
    }

    #[test]
    fn a_file_system_that_the_kernel_lacks_is_seen() {
        assert!(is_known("proc"));
        assert!(!has_kind("nosuchfs"));
    }
}
