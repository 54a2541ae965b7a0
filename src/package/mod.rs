//! Packages of database systems on the control machine: found in mirrors, files or archives, checked, and unpacked once into
//! a store. That a package is right rests on TLS to the mirror and on the sha256 of its manifest; signatures of
//! manifests are not checked. Sending packages to hosts is left to others.

mod binary;
mod check;
mod content;
mod download;
mod error;
mod fetch;
mod http;
mod manifest;
mod mirror;
mod note;
mod partial;
mod source;
mod store;
mod unpack;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use error::{PackageError, Refusal};
pub use http::{Network, Proxy};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
pub use store::Store;
use tokio_util::sync::CancellationToken;

/// The version that stands for the newest daily build.
pub const NIGHTLY: &str = "nightly";

/// Where a package comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A mirror in TiUP's layout: its `http(s)` URL or its folder. Without manifests its tarballs are found by name.
    Mirror(String),
    /// An offline package, such as `tidb-community-server-v6.1.2-linux-amd64.tar.gz`, or the folder that it unpacks to.
    Offline(PathBuf),
    /// The `.tar.gz` of one component: a path or an `http(s)` URL.
    Tarball(String),
    /// A plain program, such as a patch build.
    Binary {
        /// Where it is.
        path: PathBuf,
        /// What the program is called where it is deployed, such as `tikv-server`.
        name: String,
    },
}

impl Origin {
    /// The public mirror of TiDB.
    pub const PUBLIC: &str = "https://tiup-mirrors.pingcap.com";

    /// The public mirror of TiDB.
    #[must_use]
    pub fn public() -> Self {
        Self::Mirror(Self::PUBLIC.to_owned())
    }
}

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// The component as mirrors call it, such as `tikv`.
    pub component: String,
    /// Such as `v6.1.2`, or [`NIGHTLY`].
    pub version: String,
    /// Of the hosts that it is for.
    pub platform: Platform,
}

/// An operating system on a kind of CPU; printed as mirrors write it: `linux/amd64`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Platform {
    /// In lower case, such as `linux`.
    pub os: String,
    /// The kind of CPU.
    pub arch: Arch,
}

impl Platform {
    /// Linux on `arch`.
    #[must_use]
    pub fn linux(arch: Arch) -> Self {
        Self {
            os: "linux".to_owned(),
            arch,
        }
    }

    /// As it stands in the names of tarballs: `linux-amd64`.
    fn dashed(&self) -> String {
        format!("{}-{}", self.os, self.arch.name())
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.arch.name())
    }
}

/// A kind of CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arch {
    /// 64-bit x86.
    Amd64,
    /// 64-bit ARM.
    Arm64,
}

impl Arch {
    /// All of them.
    const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];

    /// The kind that `uname -m` names; `None` if there are no packages for it.
    #[must_use]
    pub fn from_uname(machine: &str) -> Option<Self> {
        match machine.trim() {
            "x86_64" | "amd64" => Some(Self::Amd64),
            "aarch64" | "arm64" => Some(Self::Arm64),
            _ => None,
        }
    }

    /// As mirrors write it: `amd64`, `arm64`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }
}

/// A package in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// The component.
    pub component: String,
    /// The version; what `nightly` meant, where a manifest says it.
    pub version: String,
    /// Such as `linux/amd64`, or `any/any`.
    pub platform: String,
    /// Of the tarball or program as it was obtained, in lower-case hex.
    pub sha256: String,
    /// The URL or path that it came from, without credentials.
    pub origin: String,
    /// Whether its sha256 is that of a mirror's manifest.
    pub verified: bool,
    /// What was in it. Nothing there may be changed: other experiments use the same.
    pub folder: PathBuf,
}

/// How far a download has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The name of the file.
    pub file: String,
    /// Bytes that are here.
    pub bytes: u64,
    /// Bytes in all, if that is known.
    pub total: Option<u64>,
}

/// What watches how a package is obtained, and may stop it.
#[derive(Clone)]
pub struct Watch {
    /// Called with every piece of a download that arrives.
    pub progress: Arc<dyn Fn(Progress) + Send + Sync>,
    /// Ends it when cancelled. What has been downloaded is kept and used the next time.
    pub stop: CancellationToken,
    /// The longest that no byte may come.
    pub stall: Duration,
}

impl Watch {
    /// The longest that no byte may come, unless told otherwise.
    pub const STALL: Duration = Duration::from_secs(60);

    /// Nobody looks, and `stop` ends it.
    #[must_use]
    pub fn new(stop: CancellationToken) -> Self {
        Self {
            progress: Arc::new(|_| {}),
            stop,
            stall: Self::STALL,
        }
    }

    /// What `future` gives, unless it is stopped before.
    async fn or_stop<T>(&self, future: impl Future<Output = T>) -> Result<T, PackageError> {
        tokio::select! {
            () = self.stop.cancelled() => Err(PackageError::Stopped),
            done = future => Ok(done),
        }
    }
}

/// The sha256 of a text, in hex.
fn hex_of(text: &str) -> String {
    hex(Sha256::new_with_prefix(text))
}

/// A checksum in hex.
fn hex(digest: Sha256) -> String {
    digest
        .finalize()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

/// Runs what blocks on a thread of its own.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_uname_are_those_of_mirrors() {
        for (machine, arch) in [
            ("x86_64\n", Some("amd64")),
            ("aarch64", Some("arm64")),
            ("arm64", Some("arm64")),
            ("riscv64", None),
        ] {
            assert_eq!(Arch::from_uname(machine).map(Arch::name), arch);
        }
        let platform = Platform::linux(Arch::Arm64);
        assert_eq!(platform.to_string(), "linux/arm64");
        assert_eq!(platform.dashed(), "linux-arm64");
    }
}
