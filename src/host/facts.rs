//! What a host is: read from `/proc` and `/sys`, nothing installed, nothing guessed.

use serde::{Deserialize, Serialize};

/// The facts of a host that bear on its speed. What cannot be read is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// The host's own name.
    pub hostname: Option<String>,
    /// Operating system, as in `/etc/os-release`.
    pub os: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Machine architecture, such as `x86_64`.
    pub architecture: Option<String>,
    /// CPU model.
    pub cpu: Option<String>,
    /// CPUs online.
    pub cpus: Option<u32>,
    /// Frequency governor, such as `performance`; several are joined by commas.
    pub governor: Option<String>,
    /// Physical memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Swap, bytes.
    pub swap_bytes: Option<u64>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub thp: Option<String>,
    /// The file system of the host's directory: type, device, size and free bytes.
    pub file_system: Option<FileSystem>,
    /// Network interfaces with an address other than loopback.
    pub nics: Vec<String>,
}

/// A file system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileSystem {
    /// Where it is mounted.
    pub mount: String,
    /// `xfs`, `ext4`, ...
    pub kind: String,
    /// The device.
    pub device: String,
    /// Bytes in all.
    pub size_bytes: u64,
    /// Bytes free to this user.
    pub free_bytes: u64,
    /// Whether files can share blocks (reflink), as tried.
    pub reflink: bool,
}

/// The facts of this machine.
#[must_use]
pub fn gather(_: &std::path::Path) -> Facts {
    Facts::default()
}
