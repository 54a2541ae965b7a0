//! Host keys and the user's list of known hosts: what it holds of a host, and how a key is added to it.

use std::fs::OpenOptions;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::failure::ConnectError;
use super::keys::{HostKey, Presented};
use super::target::Target;
use super::{Folders, config, connection};

/// How a host's key stands to what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is pinned, or in the list of known hosts.
    Known,
    /// Nothing is known of the host.
    New,
    /// Others are known of the host.
    Changed {
        /// Their kinds and fingerprints.
        known: Vec<String>,
    },
}

/// A host's key as it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The key that it presents.
    pub presented: Presented,
    /// How that stands to what is known.
    pub standing: Standing,
    /// The user's list of known hosts, for this host.
    pub list: PathBuf,
}

/// Asks a host for its key, without logging in, and looks it up.
pub(super) async fn look(target: &Target, folders: &Folders) -> Result<Look, ConnectError> {
    let presented = connection::key_of(target, folders).await?;
    let list = list_of(target, folders)?;
    let standing = if target.host_keys.is_empty() {
        listed(&presented, &list)?
    } else if target.host_keys.contains(&presented.key.fingerprint()) {
        Standing::Known
    } else {
        Standing::Changed {
            known: target.host_keys.clone(),
        }
    };
    Ok(Look {
        presented,
        standing,
        list,
    })
}

/// The first list of known hosts that `ssh` uses for a host.
fn list_of(target: &Target, folders: &Folders) -> Result<PathBuf, ConnectError> {
    let other = |error: std::io::Error| ConnectError::Other(error.to_string());
    let mut unpinned = target.clone();
    unpinned.host_keys.clear();
    let file = tempfile::NamedTempFile::new_in(&folders.runtime).map_err(other)?;
    std::fs::write(file.path(), config::text(&unpinned, Path::new("/dev/null"))).map_err(other)?;
    let name = config::name(target, target);
    let output = Command::new("ssh")
        .arg("-F")
        .arg(file.path())
        .args(["-G", "--", &name])
        .stdin(Stdio::null())
        .output()
        .map_err(other)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines();
    let lists = lines.find_map(|line| line.strip_prefix("userknownhostsfile "));
    let Some(list) = lists.and_then(|lists| lists.split(" /").next()) else {
        return Err(ConnectError::Other(
            "ssh names no list of known hosts".into(),
        ));
    };
    Ok(match (list.strip_prefix("~/"), &folders.home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(list),
    })
}

/// What a list says of a host, whether its names are hashed or not: `ssh-keygen` reads it.
fn listed(presented: &Presented, list: &Path) -> Result<Standing, ConnectError> {
    let output = Command::new("ssh-keygen")
        .args(["-F", &presented.name, "-f"])
        .arg(list)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| ConnectError::Other(format!("cannot run ssh-keygen: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let keys: Vec<HostKey> = text
        .lines()
        .filter_map(HostKey::of_line)
        .map(|(_, key)| key)
        .collect();
    if keys.contains(&presented.key) {
        return Ok(Standing::Known);
    }
    if keys.is_empty() {
        return Ok(Standing::New);
    }
    let known = keys.iter().map(ToString::to_string).collect();
    Ok(Standing::Changed { known })
}

/// Adds keys to a list of known hosts, which is made if there is none.
///
/// # Errors
/// It cannot be written.
pub fn remember(list: &Path, keys: &[&Presented]) -> std::io::Result<()> {
    if let Some(folder) = list.parent() {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let mut options = OpenOptions::new();
    let mut file = options
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(list)?;
    let mut text = String::new();
    if file.metadata()?.len() > 0 {
        // A last line without its end would swallow the first new one.
        let mut end = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut end)?;
        if end != *b"\n" {
            text.push('\n');
        }
    }
    keys.iter().for_each(|key| text.push_str(&key.line()));
    file.write_all(text.as_bytes())
}
