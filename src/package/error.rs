//! Why a package cannot be obtained, and what can be done about it.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::http::is_of_tls;
use crate::units::Bytes;

/// Why a package cannot be obtained.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// A name that cannot be part of a file's name.
    #[error("`{name}` is no name of a {what}")]
    Name {
        /// Such as `component`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// An origin that is neither a URL nor a path.
    #[error("`{url}` is no URL")]
    Url {
        /// The text.
        url: String,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The mirror does not have the component.
    #[error(
        "{mirror} has no component `{component}`{}",
        others("the closest", close)
    )]
    UnknownComponent {
        /// The mirror.
        mirror: String,
        /// The component.
        component: String,
        /// Components that it has.
        close: Vec<String>,
    },
    /// The mirror does not have the version.
    #[error(
        "{mirror} has no version `{version}` of `{component}`{}",
        others("the closest", close)
    )]
    UnknownVersion {
        /// The mirror.
        mirror: String,
        /// The component.
        component: String,
        /// The version.
        version: String,
        /// Versions that it has, the closest first.
        close: Vec<String>,
    },
    /// It is not there for this kind of host.
    #[error(
        "`{component}` {version} is not for {platform}{}",
        others("there", known)
    )]
    WrongPlatform {
        /// The component.
        component: String,
        /// The version.
        version: String,
        /// Of the hosts.
        platform: String,
        /// What it is for.
        known: Vec<String>,
    },
    /// The mirror has withdrawn it.
    #[error("{mirror} has withdrawn `{component}` {version}: its manifest says that it is yanked")]
    Yanked {
        /// The mirror.
        mirror: String,
        /// The component.
        component: String,
        /// The version.
        version: String,
    },
    /// A manifest cannot be read.
    #[error("cannot read the manifest {file}")]
    Manifest {
        /// Its URL or path.
        file: String,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is no such file.
    #[error("there is no {what}")]
    Missing {
        /// Its URL or path.
        what: String,
    },
    /// The server refuses, or cannot.
    #[error("cannot download {url}: the server says {status}")]
    Status {
        /// What was asked for.
        url: String,
        /// The status, with its words.
        status: reqwest::StatusCode,
    },
    /// The server cannot be reached, or the connection broke again and again.
    #[error("cannot download {url}")]
    Unreachable {
        /// What was asked for.
        url: String,
        /// Why.
        source: reqwest::Error,
    },
    /// The connection ended early again and again.
    #[error("cannot download {url}: the connection ends after {} of {}", Bytes(*got), Bytes(*total))]
    Cut {
        /// What was asked for.
        url: String,
        /// Bytes that came.
        got: u64,
        /// Bytes that there are.
        total: u64,
    },
    /// The server sent nothing for too long.
    #[error("cannot download {url}: no byte came for {}", humantime::format_duration(*limit))]
    Stalled {
        /// What was asked for.
        url: String,
        /// The longest that no byte may come.
        limit: Duration,
    },
    /// There is nothing to talk HTTP with.
    #[error("cannot set up downloads")]
    Client {
        /// Why.
        source: reqwest::Error,
    },
    /// It is larger or smaller than the manifest says.
    #[error("{what} has {found} bytes, but the mirror's manifest says {expected}")]
    Length {
        /// Its URL or path.
        what: String,
        /// What the manifest says.
        expected: u64,
        /// What it has.
        found: u64,
    },
    /// It has another checksum than the manifest says.
    #[error("{what} has the sha256 {found}, but the mirror's manifest says {expected}")]
    Checksum {
        /// Its URL or path.
        what: String,
        /// What the manifest says.
        expected: String,
        /// What it has.
        found: String,
    },
    /// A tarball is cut short or damaged.
    #[error("cannot unpack {archive}: it is cut short, damaged or no `.tar.gz`")]
    Damaged {
        /// Its URL or path.
        archive: String,
        /// Why.
        source: io::Error,
    },
    /// A tarball has something that is not unpacked.
    #[error("cannot unpack {archive}")]
    Refused {
        /// Its URL or path.
        archive: String,
        /// What it has.
        source: Refusal,
    },
    /// A file changed while it was read.
    #[error("{what} changed while it was read")]
    Changed {
        /// Its path.
        what: String,
    },
    /// What was given as a program is none for the hosts.
    #[error("`{}` is {found}, not a program for {platform}", path.display())]
    NoProgram {
        /// Its path.
        path: PathBuf,
        /// What it is.
        found: String,
        /// Of the hosts.
        platform: String,
    },
    /// The disk is full or too small.
    #[error("no space left on device ({}{} free at `{}`)", wanted.map(|b| format!("{} wanted, ", Bytes(b))).unwrap_or_default(), Bytes(*free), path.display())]
    Space {
        /// Where it is written to.
        path: PathBuf,
        /// Bytes that are still to be written, if that is known.
        wanted: Option<u64>,
        /// Bytes that are free.
        free: u64,
    },
    /// Another process is at the same thing and does not get on.
    #[error("another process holds `{}` and has not got on with it for {}", path.display(), humantime::format_duration(*limit))]
    Held {
        /// The file that it has locked.
        path: PathBuf,
        /// How long that was watched.
        limit: Duration,
    },
    /// It was stopped on request.
    #[error("obtaining packages was stopped")]
    Stopped,
    /// The operating system refused.
    #[error("cannot {what} `{}`", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl PackageError {
    /// What its user can do about it, if anything is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unreachable { source, .. } if is_of_tls(source) => Some(
                "check that it speaks TLS; if its certificate is that of your organisation, name the CA in SSL_CERT_FILE"
                    .to_owned(),
            ),
            Self::Unreachable { url, .. }
            | Self::Stalled { url, .. }
            | Self::Cut { url, .. }
            | Self::Status { url, .. } => Some(format!(
                "download {url} where it can be reached and give its path, give a mirror that can be reached, or set HTTPS_PROXY"
            )),
            Self::Client { .. } => Some(
                "check the URL of the proxy; for TLS, install the CA certificates of the system or name them in SSL_CERT_FILE"
                    .to_owned(),
            ),
            Self::Checksum { .. } | Self::Length { .. } => Some(
                "the file or a proxy's copy of it is damaged, or the mirror is being updated: try another mirror or try later"
                    .to_owned(),
            ),
            Self::Missing { .. } => Some("check the origin, the component and the version".to_owned()),
            Self::Damaged { archive, .. } => Some(format!("obtain {archive} anew")),
            Self::Space { path, .. } => Some(format!("free space at `{}`", path.display())),
            Self::Held { .. } => Some("end the other process".to_owned()),
            Self::Yanked { .. } => Some("use another version, or give the path of a tarball".to_owned()),
            Self::Name { .. }
            | Self::Url { .. }
            | Self::UnknownComponent { .. }
            | Self::UnknownVersion { .. }
            | Self::WrongPlatform { .. }
            | Self::Manifest { .. }
            | Self::Refused { .. }
            | Self::Changed { .. }
            | Self::NoProgram { .. }
            | Self::Stopped
            | Self::Io { .. } => None,
        }
    }

    /// Whether the same may succeed when it is tried again.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Status { status, .. } => is_passing(*status),
            Self::Unreachable { source, .. } => {
                !source.is_redirect() && !source.is_builder() && !is_of_tls(source)
            }
            Self::Cut { .. } | Self::Stalled { .. } => true,
            Self::Name { .. }
            | Self::Url { .. }
            | Self::UnknownComponent { .. }
            | Self::UnknownVersion { .. }
            | Self::WrongPlatform { .. }
            | Self::Yanked { .. }
            | Self::Manifest { .. }
            | Self::Missing { .. }
            | Self::Client { .. }
            | Self::Length { .. }
            | Self::Checksum { .. }
            | Self::Damaged { .. }
            | Self::Refused { .. }
            | Self::Changed { .. }
            | Self::NoProgram { .. }
            | Self::Space { .. }
            | Self::Held { .. }
            | Self::Stopped
            | Self::Io { .. } => false,
        }
    }
}

/// Statuses of a server that is busy or being restarted, and that of a range which is none (the next one asks for all).
fn is_passing(status: reqwest::StatusCode) -> bool {
    matches!(
        status.as_u16(),
        408 | 416 | 425 | 429 | 500 | 502 | 503 | 504
    )
}

/// What a tarball has that is not unpacked.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A path that leads out of the folder that it is unpacked into.
    #[error("its entry `{entry}` would be written outside of the folder that it is unpacked into")]
    Outside {
        /// The path.
        entry: String,
    },
    /// A link that leads out.
    #[error("its link `{entry}` leads outside: to `{target}`")]
    Link {
        /// The link.
        entry: String,
        /// Where it leads to.
        target: String,
    },
    /// A hard link to what is no file that came before it.
    #[error("its hard link `{entry}` is to `{target}`, which is no file before it")]
    HardLink {
        /// The link.
        entry: String,
        /// Where it leads to.
        target: String,
    },
    /// A device, a fifo or something unknown.
    #[error("its entry `{entry}` is {kind}")]
    Kind {
        /// The path.
        entry: String,
        /// What it is.
        kind: &'static str,
    },
    /// A path that is two things.
    #[error("its entry `{entry}` is in the place of another one")]
    Clash {
        /// The path.
        entry: String,
    },
    /// Nothing is in it.
    #[error("it is empty")]
    Empty,
}

/// "; the closest: `a`, `b`", or nothing.
fn others(what: &str, names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!("; {what} {verb} {}", names.join(", "))
}

/// Errors of the operating system with what was tried.
pub(super) trait Tried<T> {
    /// Names the attempt; a full disk is told as such.
    fn tried(self, what: &'static str, path: &Path) -> Result<T, PackageError>;
}

impl<T> Tried<T> for io::Result<T> {
    fn tried(self, what: &'static str, path: &Path) -> Result<T, PackageError> {
        self.map_err(|source| match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => PackageError::Space {
                path: path.to_owned(),
                wanted: None,
                free: free(path).unwrap_or(0),
            },
            _ => PackageError::Io {
                what,
                path: path.to_owned(),
                source,
            },
        })
    }
}

/// Bytes that are free where `path` is or will be.
pub(super) fn free(path: &Path) -> Option<u64> {
    let at = path
        .ancestors()
        .find_map(|above| rustix::fs::statvfs(above).ok())?;
    Some(at.f_bavail.saturating_mul(at.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_as_such() {
        let full: io::Result<()> = Err(ErrorKind::StorageFull.into());
        let error = full.tried("write", Path::new("/nowhere/x")).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("no space left on device ("), "{text}");
        assert!(text.ends_with(" free at `/nowhere/x`)"), "{text}");
    }

    #[test]
    fn one_and_several_are_told_apart() {
        let names = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            others("the closest", &names)
        };
        assert_eq!(names(&[]), "");
        assert_eq!(names(&["a"]), "; the closest is `a`");
        assert_eq!(names(&["a", "b"]), "; the closest are `a`, `b`");
    }
}
