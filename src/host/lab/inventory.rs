//! The inventory that a lab writes. Its first line says whose it is; any other file in its place is left alone.

use std::fmt::Write as _;
use std::path::Path;

use super::{Lab, LabError, Labs, beside, io, keys};

/// The first line.
fn marker(name: &str) -> String {
    format!("# Made by `assay lab up` for lab `{name}`; `assay lab down {name}` removes it.")
}

/// Whether the lab may write there: nothing is there, or an inventory that a lab by this name wrote.
pub(super) fn check(path: &Path, name: &str) -> Result<(), LabError> {
    if is_free(path)? || is_own(path, name) {
        return Ok(());
    }
    let path = path.to_owned();
    let name = name.to_owned();
    Err(LabError::Inventory { path, name })
}

fn is_free(path: &Path) -> Result<bool, LabError> {
    match path.symlink_metadata() {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(io("read", path)(error)),
    }
}

fn is_own(path: &Path, name: &str) -> bool {
    let is_file = path.symlink_metadata().is_ok_and(|meta| meta.is_file());
    let text = std::fs::read_to_string(path).unwrap_or_default();
    is_file && text.lines().next() == Some(&marker(name))
}

/// Writes the inventory.
pub(super) fn write(labs: &Labs, lab: &Lab) -> Result<(), LabError> {
    let path = &lab.inventory;
    check(path, &lab.name)?;
    let text = text(labs, lab)?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(io("make", folder))?;
    }
    let part = beside(path, "part");
    std::fs::write(&part, text).map_err(io("write", &part))?;
    std::fs::rename(&part, path).map_err(io("write", path))
}

fn text(labs: &Labs, lab: &Lab) -> Result<String, LabError> {
    let mut text = marker(&lab.name);
    let identity = labs.identity_file(&lab.name);
    let _ = write!(
        text,
        "\ndefaults: {{user: root, identity_file: {}, directory: /data/assay}}\nhosts:\n",
        identity.display()
    );
    for host in &lab.hosts {
        let key = keys::public(&labs.paths(lab, host).host_key)?;
        let print = keys::fingerprint(&key).unwrap_or_default();
        let (name, address) = (&host.name, host.address);
        let _ = writeln!(
            text,
            "  {name}: {{address: {address}, host_key: \"{print}\"}}"
        );
    }
    let names: Vec<&str> = lab.hosts.iter().map(|host| host.name.as_str()).collect();
    let _ = writeln!(text, "groups: {{all: [{}]}}", names.join(", "));
    Ok(text)
}

/// Removes the inventory, if it is still the lab's own.
pub(super) fn remove(lab: &Lab) -> Result<(), LabError> {
    let path = &lab.inventory;
    let part = beside(path, "part");
    for path in [path, &part] {
        if is_own(path, &lab.name) {
            std::fs::remove_file(path).map_err(io("remove", path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_inventory_of_the_lab_is_neither_replaced_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lab.yaml");
        check(&path, "lab").unwrap();
        let mut lab = super::super::description::tests::sample("lab", 1);
        lab.inventory = path.clone();
        for foreign in ["", "hosts: {}\n", &marker("other")] {
            std::fs::write(&path, foreign).unwrap();
            assert!(check(&path, "lab").is_err(), "{foreign}");
            remove(&lab).unwrap();
            assert!(path.exists());
        }
        std::fs::write(&path, marker("lab") + "\n").unwrap();
        check(&path, "lab").unwrap();
        remove(&lab).unwrap();
        assert!(!path.exists());
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(check(&path, "lab").is_err());
    }
}
