//! Host keys: their fingerprints, the one that a host presents, and the pinned ones of an inventory.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use sha2::{Digest as _, Sha256};
use tokio::time::timeout;

use super::config;
use super::connection::while_busy;
use super::failure::ConnectError;
use super::target::Target;

/// The longest that asking a host for its key may take.
const ASK: Duration = Duration::from_secs(20);
/// The types of keys that hosts have: how the names of their kinds begin, and what `ssh` calls their signatures.
const TYPES: [(&str, &str); 3] = [
    ("ssh-ed25519", "ssh-ed25519"),
    (
        "ecdsa-sha2-",
        "ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521",
    ),
    ("ssh-rsa", "rsa-sha2-512,rsa-sha2-256"),
];
/// What `ssh` says of a host without a key of a type.
const NO_SUCH_TYPE: &str = "no matching host key type";

/// A host's public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostKey {
    /// Such as `ssh-ed25519`.
    pub kind: String,
    /// The key, in base64.
    pub key: String,
}

impl HostKey {
    /// The key in a line of a `known_hosts` file, whatever names it is for.
    pub(super) fn of_line(line: &str) -> Option<(&str, Self)> {
        let line = line.trim();
        let line = line.strip_prefix("@cert-authority").unwrap_or(line).trim();
        let mut words = line.split_whitespace();
        let (names, kind, key) = (words.next()?, words.next()?, words.next()?);
        STANDARD.decode(key).ok()?;
        let (kind, key) = (kind.to_owned(), key.to_owned());
        (!names.starts_with('#')).then_some((names, Self { kind, key }))
    }

    /// Its fingerprint, as `ssh-keygen -l` prints it: `SHA256:...`.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let bytes = STANDARD.decode(&self.key).unwrap_or_default();
        format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(bytes)))
    }

    /// The line of a `known_hosts` file that gives `name` this key.
    fn line(&self, name: &str) -> String {
        format!("{name} {} {}\n", self.kind, self.key)
    }
}

impl std::fmt::Display for HostKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, self.fingerprint())
    }
}

/// A key that a host presented, and the name that a list of known hosts has it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presented {
    /// `db1`, `[10.0.0.1]:2222`.
    pub name: String,
    /// The key.
    pub key: HostKey,
}

impl Presented {
    /// The line of a `known_hosts` file that makes it known.
    #[must_use]
    pub fn line(&self) -> String {
        self.key.line(&self.name)
    }
}

/// Asks a host for its key, by its jump hosts, which must be known: nothing is logged in to, and nothing remembered.
///
/// # Errors
/// The host or one on the way cannot be reached.
pub(super) async fn presented(target: &Target, config: &Path) -> Result<Presented, ConnectError> {
    of_type(target, config, None).await
}

/// Asks a host for the key that has one of `pins`. A host has keys of several types and presents one at a time, so that each
/// type is asked for; where none is pinned, it is the key that was presented first.
///
/// # Errors
/// The host or one on the way cannot be reached.
pub(super) async fn presented_of(
    target: &Target,
    pins: &[String],
    config: &Path,
) -> Result<Presented, ConnectError> {
    let first = presented(target, config).await?;
    let is_pinned = |found: &Presented| pins.contains(&found.key.fingerprint());
    if pins.is_empty() || is_pinned(&first) {
        return Ok(first);
    }
    for (kind, algorithms) in TYPES {
        if first.key.kind.starts_with(kind) {
            continue;
        }
        match of_type(target, config, Some(algorithms)).await {
            Ok(found) if is_pinned(&found) => return Ok(found),
            Ok(_) => {}
            Err(ConnectError::Other(text)) if text.contains(NO_SUCH_TYPE) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(first)
}

/// Asks a host for its key of the type of `algorithms`, or for the one that `ssh` likes best.
async fn of_type(
    target: &Target,
    config: &Path,
    algorithms: Option<&str>,
) -> Result<Presented, ConnectError> {
    let folder = config.parent().unwrap_or(Path::new("/"));
    let list = tempfile::Builder::new()
        .prefix("presented-")
        .tempfile_in(folder)
        .map_err(|e| ConnectError::Other(e.to_string()))?;
    let mut options = vec![
        "StrictHostKeyChecking=accept-new".to_owned(),
        "GlobalKnownHostsFile=/dev/null".to_owned(),
        "HashKnownHosts=no".to_owned(),
        format!("UserKnownHostsFile=\"{}\"", list.path().display()),
    ];
    options.extend(algorithms.map(|algorithms| format!("HostKeyAlgorithms={algorithms}")));
    let output = connect(target, config, &options).await?;
    let lines = std::fs::read_to_string(list.path()).unwrap_or_default();
    match lines.lines().find_map(HostKey::of_line) {
        Some((name, key)) => Ok(Presented {
            name: name.to_owned(),
            key,
        }),
        None => Err(ConnectError::of_ssh(&String::from_utf8_lossy(
            &output.stderr,
        ))),
    }
}

/// Asks again where a host turns it away for having too many connections.
pub(super) async fn patiently<T, F>(attempt: impl Fn() -> F) -> Result<T, ConnectError>
where
    F: Future<Output = Result<T, ConnectError>>,
{
    // A key is shown quickly, so that a place is soon free again.
    while_busy(Duration::from_secs(1), attempt).await
}

/// Lets `ssh` connect. It has no way to log in; a connection of the user's that it could share would show no key.
pub(super) async fn connect(
    target: &Target,
    config: &Path,
    options: &[String],
) -> Result<Output, ConnectError> {
    let mut ssh = tokio::process::Command::new("ssh");
    ssh.arg("-F").arg(config);
    let always = ["PreferredAuthentications=none", "ControlPath=none"];
    for option in always.into_iter().chain(options.iter().map(String::as_str)) {
        ssh.args(["-o", option]);
    }
    ssh.arg("--").arg(config::name(target, target)).arg("true");
    ssh.stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true);
    match timeout(ASK, ssh.output()).await {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(ConnectError::NoClient)
        }
        Ok(Err(error)) => Err(ConnectError::Other(error.to_string())),
        Err(_) => Err(ConnectError::TimedOut),
    }
}

/// Whether a log of `ssh` says that it refused the key because it is revoked, in a list or by a file of such keys.
pub(super) fn is_revoked(log: &str) -> bool {
    ["is marked as revoked", "revoked by file"]
        .iter()
        .any(|text| log.contains(text))
}

/// The fingerprints of the known keys that a log of `ssh` finds changed: it names file and line of each. Of a revoked key that
/// is what is known.
pub(super) fn known(log: &str) -> Vec<String> {
    if is_revoked(log) {
        return vec!["that it is revoked".to_owned()];
    }
    let places = log.lines().filter_map(|line| {
        let place = line
            .trim()
            .strip_prefix("Offending ")?
            .split_once(" in ")?
            .1;
        let (path, line) = place.rsplit_once(':')?;
        Some((path, line.parse::<usize>().ok()?))
    });
    let keys = places.filter_map(|(path, line)| {
        let text = std::fs::read_to_string(path).ok()?;
        let (_, key) = HostKey::of_line(text.lines().nth(line.checked_sub(1)?)?)?;
        Some(key.to_string())
    });
    keys.collect()
}

/// The keys that are pinned by their fingerprints. A fingerprint says nothing of the key, so that each is asked for once
/// and kept: it can be no other one as long as its fingerprint is the pinned one.
pub(super) struct Pins {
    cache: PathBuf,
}

impl Pins {
    pub(super) fn of(cache: &Path) -> Self {
        Self {
            cache: cache.join("host-keys"),
        }
    }

    /// The line for the `known_hosts` file of a host with one pinned key that was seen before. Of several, only the host can
    /// say which it presents now.
    pub(super) fn line(&self, target: &Target) -> Option<String> {
        let [pin] = target.host_keys.as_slice() else {
            return None;
        };
        let text = std::fs::read_to_string(self.file(pin)).ok()?;
        let (_, key) = HostKey::of_line(&text)?;
        (key.fingerprint() == *pin).then(|| key.line(&target.key_alias()))
    }

    /// The line for a key that was just presented, if it is a pinned one. It is kept where that is possible.
    pub(super) fn learn(&self, target: &Target, key: &HostKey) -> Option<String> {
        let pin = target.host_keys.iter().find(|p| **p == key.fingerprint())?;
        let kept = std::fs::create_dir_all(&self.cache)
            .and_then(|()| tempfile::NamedTempFile::new_in(&self.cache))
            .and_then(|new| {
                std::fs::write(new.path(), key.line("pinned"))?;
                new.persist(self.file(pin))?;
                Ok(())
            });
        if let Err(error) = kept {
            tracing::debug!(%error, "the key is asked for each time");
        }
        Some(key.line(&target.key_alias()))
    }

    fn file(&self, pin: &str) -> PathBuf {
        // Base64 has `/`, and case that a file system may not tell apart.
        let name: String = pin.bytes().map(|byte| format!("{byte:02x}")).collect();
        self.cache.join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generated(folder: &Path) -> (HostKey, String) {
        let path = folder.join("key");
        let mut keygen = std::process::Command::new("ssh-keygen");
        let made = keygen
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(&path)
            .status();
        assert!(made.unwrap().success());
        let public = path.with_extension("pub");
        let mut keygen = std::process::Command::new("ssh-keygen");
        let shown = keygen.arg("-lf").arg(&public).output().unwrap().stdout;
        let shown = String::from_utf8(shown).unwrap();
        let line = format!("db1 {}", std::fs::read_to_string(public).unwrap());
        let (_, key) = HostKey::of_line(&line).unwrap();
        (key, shown.split_whitespace().nth(1).unwrap().to_owned())
    }

    #[test]
    fn a_fingerprint_is_what_ssh_keygen_prints() {
        let folder = tempfile::TempDir::new().unwrap();
        let (key, shown) = generated(folder.path());
        assert_eq!(key.fingerprint(), shown);
    }

    #[test]
    fn only_a_key_with_a_pinned_fingerprint_is_learned_and_a_tampered_file_counts_for_nothing() {
        let folder = tempfile::TempDir::new().unwrap();
        let (key, shown) = generated(folder.path());
        let pins = Pins::of(folder.path());
        let pinned = |pin: &str| Target {
            name: "kv1".into(),
            host_keys: vec![pin.to_owned()],
            ..Target::default()
        };
        assert_eq!(pins.learn(&pinned("SHA256:other"), &key), None);
        let target = pinned(&shown);
        assert_eq!(pins.line(&target), None);
        let line = pins.learn(&target, &key).unwrap();
        assert!(line.starts_with("assay-kv1 ssh-ed25519 "), "{line}");
        assert_eq!(pins.line(&target), Some(line));
        let other = HostKey {
            key: STANDARD.encode("no key"),
            ..key
        };
        std::fs::write(pins.file(&shown), other.line("pinned")).unwrap();
        assert_eq!(pins.line(&target), None);
    }

    #[test]
    fn the_known_keys_of_a_changed_host_are_found_where_ssh_says() {
        let folder = tempfile::TempDir::new().unwrap();
        let (key, shown) = generated(folder.path());
        let list = folder.path().join("known hosts");
        std::fs::write(&list, format!("# mine\n{}", key.line("|1|x=|y="))).unwrap();
        let log = format!("Offending ED25519 key in {}:2\r\nHost key", list.display());
        assert_eq!(known(&log), [format!("ssh-ed25519 {shown}")]);
    }
}
