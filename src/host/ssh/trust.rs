//! Host keys and the user's list of known hosts: what it holds of a host, and how a key is added to it.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::failure::ConnectError;
use super::keys::{self, HostKey, Presented};
use super::target::{Jump, Target};
use super::{Folders, config, connection};

/// How a host's key stands to what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is pinned, or `ssh` knows it from a list or by its authority.
    Known,
    /// Nothing is known of the host; this would make it known.
    New(Presented),
    /// Others are known of the host.
    Changed {
        /// Their kinds and fingerprints.
        known: Vec<String>,
    },
    /// It is known as one that counts no more.
    Revoked,
}

/// A host's key as it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Such as `ssh-ed25519`.
    pub kind: String,
    /// The fingerprint of the key that it presents: `SHA256:...`.
    pub fingerprint: String,
    /// How that stands to what is known.
    pub standing: Standing,
    /// The user's list of known hosts, for this host.
    pub list: PathBuf,
}

/// Asks a host for its key, without logging in, and has it judged: by the pins of the inventory, else by `ssh`.
pub(super) async fn look(target: &Target, folders: &Folders) -> Result<Look, ConnectError> {
    let list = list_of(target, folders)?;
    let (shown, standing) = if target.host_keys.is_empty() {
        judged(target, folders, &list).await?
    } else {
        pinned(target, folders).await?
    };
    Ok(Look {
        kind: shown.kind,
        fingerprint: shown.fingerprint,
        standing,
        list,
    })
}

/// A key as it is shown.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    kind: String,
    fingerprint: String,
}

impl Shown {
    fn of(key: &HostKey) -> Self {
        Self {
            kind: key.kind.clone(),
            fingerprint: key.fingerprint(),
        }
    }

    /// The key, or the certificate of it, in a log of `ssh`. There is none where the host was not reached.
    fn of_log(log: &str) -> Option<Self> {
        let mut lines = log.lines();
        let words = lines.find_map(|line| {
            let line = line.strip_prefix("debug1: Server host ")?;
            line.strip_prefix("key: ")
                .or_else(|| line.strip_prefix("certificate: "))
        })?;
        let mut words = words.split([' ', ',']);
        Some(Self {
            kind: words.next()?.to_owned(),
            fingerprint: words.next()?.to_owned(),
        })
    }
}

/// By the pins: nothing else counts.
async fn pinned(target: &Target, folders: &Folders) -> Result<(Shown, Standing), ConnectError> {
    let presented = connection::key_of(target, folders).await?;
    let shown = Shown::of(&presented.key);
    let standing = if target.host_keys.contains(&shown.fingerprint) {
        Standing::Known
    } else {
        Standing::Changed {
            known: target.host_keys.clone(),
        }
    };
    Ok((shown, standing))
}

/// By `ssh`, with all lists and settings of the user's. The key itself, which its log does not have, is asked for where it may
/// be made known.
async fn judged(
    target: &Target,
    folders: &Folders,
    list: &Path,
) -> Result<(Shown, Standing), ConnectError> {
    let log = keys::patiently(|| strict(target, folders)).await?;
    let Some(shown) = Shown::of_log(&log) else {
        return Err(ConnectError::Other("ssh names no host key".into()));
    };
    let standing = match Verdict::of_log(&log) {
        Verdict::Accepted => Standing::Known,
        Verdict::Revoked => Standing::Revoked,
        Verdict::Changed => Standing::Changed {
            known: keys::known(&log),
        },
        Verdict::Unknown => {
            let presented = connection::key_of(target, folders).await?;
            if presented.key.fingerprint() != shown.fingerprint {
                let text = "it presents one key and then another".to_owned();
                return Err(ConnectError::Other(text));
            }
            let standing = unlisted(&presented, list)?;
            return Ok((Shown::of(&presented.key), standing));
        }
    };
    Ok((shown, standing))
}

/// What `ssh` says of a host whose key must be known to it, when it got as far as that.
async fn strict(target: &Target, folders: &Folders) -> Result<String, ConnectError> {
    let folder = connection::prepare(target, folders).await?;
    let options = [
        "StrictHostKeyChecking=yes",
        "LogLevel=DEBUG1",
        "FingerprintHash=sha256",
    ];
    let options = options.map(str::to_owned);
    let output = keys::connect(target, &folder.path().join("config"), &options).await?;
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        return Ok(log);
    }
    let error = ConnectError::of_ssh(&said(&log));
    match error {
        ConnectError::Denied(_)
        | ConnectError::UnknownKey { .. }
        | ConnectError::ChangedKey { .. }
            if Shown::of_log(&log).is_some() =>
        {
            Ok(log)
        }
        error => Err(on_the_way(target, error, &log)),
    }
}

/// What a log says to the user.
fn said(log: &str) -> String {
    let lines = log.lines().filter(|line| !line.starts_with("debug1: "));
    lines.collect::<Vec<_>>().join("\n")
}

/// What is wrong before a host has shown its key: with a jump host, if it is about a key or a login.
fn on_the_way(target: &Target, error: ConnectError, log: &str) -> ConnectError {
    let jump = match &target.jump {
        Some(Jump::Host(jump)) => jump.name.clone(),
        Some(Jump::Other(jump)) => jump.clone(),
        None => return error,
    };
    let source = match error {
        ConnectError::UnknownKey { .. } | ConnectError::ChangedKey { .. } => {
            let mut lines = log.lines().map(str::trim);
            let line = lines.find(|line| line.contains("requested strict checking"));
            ConnectError::Other(line.unwrap_or("its host key is not known").to_owned())
        }
        error @ ConnectError::Denied(_) => error,
        error => return error,
    };
    let source = Box::new(source);
    ConnectError::Jump { jump, source }
}

/// What `ssh` makes of a key.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Accepted,
    Unknown,
    Changed,
    Revoked,
}

impl Verdict {
    /// From a log with a key in it. Whoever is then not let in was shown to be the host.
    fn of_log(log: &str) -> Self {
        if keys::is_revoked(log) {
            return Self::Revoked;
        }
        match ConnectError::of_ssh(&said(log)) {
            ConnectError::ChangedKey { .. } => Self::Changed,
            ConnectError::UnknownKey { .. } => Self::Unknown,
            _ => Self::Accepted,
        }
    }
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

/// How a key that `ssh` does not know stands to a list. It calls a host new of which the list has keys of other types only; to
/// people that is a change. Lines of authorities and of revoked keys are not the host's. `ssh-keygen` reads hashed names.
fn unlisted(presented: &Presented, list: &Path) -> Result<Standing, ConnectError> {
    let output = Command::new("ssh-keygen")
        .args(["-F", &presented.name, "-f"])
        .arg(list)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| ConnectError::Other(format!("cannot run ssh-keygen: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter(|line| !line.starts_with('@'));
    let keys = lines.filter_map(HostKey::of_line);
    let known: Vec<String> = keys.map(|(_, key)| key.to_string()).collect();
    if known.is_empty() {
        return Ok(Standing::New(presented.clone()));
    }
    Ok(Standing::Changed { known })
}

/// Adds keys to a list of known hosts, each once, which is made if there is none.
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
    let lines: BTreeSet<String> = keys.iter().map(|key| key.line()).collect();
    text.extend(lines);
    file.write_all(text.as_bytes())
}
