//! What a host is: read from `/proc` and `/sys`, nothing installed, nothing guessed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::mounts::{self, Mount, mount_of};
use super::nics;

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

/// The facts of this machine, with the file system of `directory`, which need not be there yet.
/// Whether that one shares blocks is for the caller to try.
#[must_use]
pub fn gather(directory: &Path) -> Facts {
    let machine = rustix::system::uname();
    Facts {
        architecture: machine.machine().to_str().ok().map(str::to_owned),
        file_system: file_system(directory, &mounts::mounts().unwrap_or_default()),
        ..read(Path::new("/"))
    }
}

/// What the files below `root` say.
fn read(root: &Path) -> Facts {
    let text = |path: &str| text(&root.join(path));
    let memory = text("proc/meminfo").unwrap_or_default();
    Facts {
        hostname: text("proc/sys/kernel/hostname"),
        os: text("etc/os-release")
            .or_else(|| text("usr/lib/os-release"))
            .and_then(|text| os(&text)),
        kernel: text("proc/sys/kernel/osrelease"),
        architecture: None,
        cpu: text("proc/cpuinfo").and_then(|text| cpu(&text)),
        cpus: text("sys/devices/system/cpu/online").and_then(|text| count(&text)),
        governor: governors(&root.join("sys/devices/system/cpu/cpufreq")),
        memory_bytes: kibibytes(&memory, "MemTotal"),
        swap_bytes: kibibytes(&memory, "SwapTotal"),
        thp: text("sys/kernel/mm/transparent_hugepage/enabled").and_then(|text| selected(&text)),
        file_system: None,
        nics: nics::read(root),
    }
}

/// A file's text without the white space around it; nothing if there is none.
pub(super) fn text(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// The name for people in `os-release(5)`.
fn os(text: &str) -> Option<String> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    let name = value("PRETTY_NAME=").or_else(|| value("NAME="))?;
    Some(name.trim_matches(['"', '\'']).to_owned())
}

/// The model in `/proc/cpuinfo`, whose keys differ by architecture; ARM gives only numbers.
fn cpu(text: &str) -> Option<String> {
    let value = |key: &str| {
        let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
        pairs.find_map(|(k, v)| (k.trim() == key).then(|| v.trim().to_owned()))
    };
    let named = ["model name", "Model", "cpu model", "cpu"].into_iter();
    named.filter_map(value).find(|v| !v.is_empty()).or_else(|| {
        let (maker, part) = (value("CPU implementer")?, value("CPU part")?);
        Some(format!("implementer {maker} part {part}"))
    })
}

/// How many numbers a list such as `0-3,6` has.
fn count(list: &str) -> Option<u32> {
    let ranges = list.split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        last.checked_sub(first)?.checked_add(1)
    });
    ranges.sum()
}

fn governors(folder: &Path) -> Option<String> {
    let policies = std::fs::read_dir(folder).ok()?.flatten();
    let found: BTreeSet<_> = policies
        .filter_map(|policy| text(&policy.path().join("scaling_governor")))
        .collect();
    (!found.is_empty()).then(|| Vec::from_iter(found).join(", "))
}

/// A value of `/proc/meminfo` in bytes.
fn kibibytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let value = line.strip_prefix(':')?.trim().strip_suffix(" kB")?;
    value.parse::<u64>().ok()?.checked_mul(1024)
}

/// The word in brackets: `always [madvise] never`.
fn selected(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word.to_owned())
}

fn file_system(directory: &Path, mounts: &[Mount]) -> Option<FileSystem> {
    let there: PathBuf = directory
        .ancestors()
        .find_map(|folder| folder.canonicalize().ok())?;
    let stat = rustix::fs::statvfs(&there).ok()?;
    let mount = mount_of(mounts, &there)?;
    Some(FileSystem {
        mount: mount.point.display().to_string(),
        kind: mount.kind.clone(),
        device: mount.device.clone(),
        size_bytes: stat.f_blocks * stat.f_frsize,
        free_bytes: stat.f_bavail * stat.f_frsize,
        reflink: false,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    fn recorded() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/host/vm")
    }

    #[test]
    fn the_facts_of_a_recorded_machine_are_those_that_other_programs_gave() {
        let expected = Facts {
            hostname: Some("vm".into()),
            os: Some("Debian GNU/Linux 12 (bookworm)".into()),
            kernel: Some("6.18.44-fc-v657".into()),
            architecture: None,
            cpu: Some("AMD EPYC".into()),
            cpus: Some(2),
            governor: None,
            memory_bytes: Some(25_276_510_208),
            swap_bytes: Some(0),
            thp: Some("madvise".into()),
            file_system: None,
            nics: vec!["eth0 192.0.2.2/24 fd00::2/64".into()],
        };
        assert_eq!(read(&recorded()), expected);
    }

    #[test]
    fn the_file_system_of_a_directory_is_the_one_that_is_mounted_above_it() {
        let mounts = mounts::parse(&fs::read(recorded().join("proc/self/mountinfo")).unwrap());
        let found = file_system(Path::new("/no/such/directory"), &mounts).unwrap();
        assert_eq!((found.mount.as_str(), found.kind.as_str()), ("/", "ext4"));
        assert_eq!(found.device, "/dev/vda");
        assert!(0 < found.free_bytes && found.free_bytes <= found.size_bytes);
    }

    #[test]
    fn this_machine_has_facts() {
        let facts = gather(Path::new(env!("CARGO_MANIFEST_DIR")));
        let cpus = std::thread::available_parallelism().unwrap().get();
        assert!(facts.cpus.unwrap() as usize >= cpus);
        assert_eq!(facts.architecture.as_deref(), Some(std::env::consts::ARCH));
        assert!(facts.kernel.is_some() && facts.memory_bytes.is_some());
        assert!(facts.file_system.is_some());
    }

    #[test]
    fn what_cannot_be_read_is_not_guessed() {
        let nothing = TempDir::new().unwrap();
        assert_eq!(read(nothing.path()), Facts::default());
    }

    #[test]
    fn each_governor_in_use_is_named_once() {
        let folder = TempDir::new().unwrap();
        for (policy, governor) in ["performance", "powersave", "performance"]
            .iter()
            .enumerate()
        {
            let policy = folder.path().join(format!("policy{policy}"));
            fs::create_dir(&policy).unwrap();
            fs::write(policy.join("scaling_governor"), format!("{governor}\n")).unwrap();
        }
        let found = governors(folder.path());
        assert_eq!(found.as_deref(), Some("performance, powersave"));
    }

    #[test]
    fn lists_of_cpus_are_counted() {
        let counts = ["0", "0-1", "0-3,6,8-9"].map(count);
        assert_eq!(counts, [Some(1), Some(2), Some(7)]);
        assert_eq!(["", "a", "3-1", "0-4294967295"].map(count), [None; 4]);
    }

    #[test]
    fn a_cpu_without_a_name_is_known_by_its_numbers() {
        let arm =
            "processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n";
        assert_eq!(cpu(arm).as_deref(), Some("implementer 0x41 part 0xd0c"));
        assert_eq!(cpu("processor : 0"), None);
    }
}
