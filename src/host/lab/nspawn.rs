//! How a host's container is run, and what nspawn leaves behind when it is killed.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use super::{Entry, Lab, LabError, io, links, tool};

/// Where nspawn keeps its locks and the mounts that it hands on.
const LOCKS: &str = "/run/systemd/nspawn/locks";
const HANDED_ON: &str = "/run/systemd/nspawn/propagate";

/// The command that a host is.
pub(super) fn command(lab: &Lab, host: &Entry, root: &Path) -> Command {
    let machine = lab.machine(host);
    let mut command = tool::command("systemd-nspawn", &lab.mark(host));
    command
        .args(["--quiet", "--boot", "--register=no", "--keep-unit"])
        .args(["--resolv-conf=off", "--timezone=off", "--link-journal=no"])
        .arg("--console=read-only")
        .arg(format!("--directory={}", root.display()))
        .arg(format!(
            "--network-namespace-path={}/{machine}",
            links::NAMESPACES
        ))
        .arg(format!("--machine={machine}"))
        .arg(format!("--hostname={}", host.name));
    command
}

/// Writes down the name of the lock that nspawn will take for a root, which it leaves behind when it is killed.
pub(super) fn note_lock(root: &Path, note: &Path) -> Result<(), LabError> {
    let meta = root.metadata().map_err(io("read", root))?;
    let name = format!("inode-{}:{}", meta.dev(), meta.ino());
    std::fs::write(note, name).map_err(io("write", note))
}

/// Removes what a killed nspawn left outside the lab's folder.
pub(super) fn clean(lab: &Lab, host: &Entry, note: &Path) -> Result<(), LabError> {
    let handed_on = Path::new(HANDED_ON).join(lab.machine(host));
    gone(std::fs::remove_dir(&handed_on), "remove", &handed_on)?;
    let name = std::fs::read_to_string(note).unwrap_or_default();
    if is_lock_name(&name) {
        let lock = Path::new(LOCKS).join(name);
        gone(std::fs::remove_file(&lock), "remove", &lock)?;
    }
    gone(std::fs::remove_file(note), "remove", note)
}

fn gone(done: std::io::Result<()>, what: &'static str, path: &Path) -> Result<(), LabError> {
    match done {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(what, path)(error)),
        _ => Ok(()),
    }
}

fn is_lock_name(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    name.strip_prefix("inode-")
        .and_then(|rest| rest.split_once(':'))
        .is_some_and(|(device, inode)| is_number(device) && is_number(inode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lock_of_nspawn_is_one() {
        assert!(is_lock_name("inode-39:9995080"));
        for name in [
            "",
            "inode-",
            "inode-1:",
            "inode-1:2/../../x",
            "../x",
            "inode-a:1",
        ] {
            assert!(!is_lock_name(name), "{name}");
        }
    }
}
