//! An inventory with nothing left open: paths are absolute, and every host over SSH has an address and a directory.

use std::path::Path;

use super::super::source::clean;
use super::{Connection, DIRECTORY, Host, Inventory};

/// Resolves an inventory whose file lies in `folder`. `here` is the folder in which assay was started. Both are absolute.
pub(super) fn resolve(inventory: &mut Inventory, folder: &Path, here: &Path) {
    if let Some(path) = &mut inventory.ssh_config {
        *path = absolute(folder, path);
    }
    for (name, host) in &mut inventory.hosts {
        match host.connection {
            Connection::Ssh => over_ssh(host, name.as_str()),
            Connection::Local => {
                let directory = match &host.directory {
                    Some(directory) => absolute(folder, directory),
                    None => absolute(here, ".assay"),
                };
                host.directory = Some(directory);
            }
        }
        if let Some(path) = &mut host.identity_file {
            // ssh expands homes.
            if !path.starts_with('~') {
                *path = absolute(folder, path);
            }
        }
        if let Some(path) = &mut host.assay {
            *path = absolute(folder, path);
        }
    }
}

fn over_ssh(host: &mut Host, name: &str) {
    host.address.get_or_insert_with(|| name.to_owned());
    host.directory = Some(match &host.directory {
        Some(directory) => clean(Path::new(directory)).display().to_string(),
        None => DIRECTORY.to_owned(),
    });
}

fn absolute(folder: &Path, path: &str) -> String {
    clean(&folder.join(path)).display().to_string()
}
