//! What a host is: read from `/proc` and `/sys`, nothing installed, nothing guessed.

mod cgroup;
mod cpu;
mod disks;
mod label;
mod limits;
mod packages;
mod ports;
mod services;
mod sysctls;
mod time;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::cgroup::Cgroup;
pub use self::disks::BlockDevice;
pub use self::limits::{Limit, Limits, Word};
pub use self::services::CLOCK_DAEMONS;
pub use self::sysctls::SYSCTLS;
pub(super) use self::sysctls::{path as sysctl_path, words};
pub use super::nics::Nic;

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
    /// `ID` of `os-release(5)`, such as `debian`.
    pub os_id: Option<String>,
    /// `VERSION_ID` of `os-release(5)`, such as `12`.
    pub os_version: Option<String>,
    /// What it runs in, as `systemd-detect-virt` says: `kvm`, `systemd-nspawn`, `none`.
    pub virtualisation: Option<String>,
    /// Whether that is a container: its kernel and clock are those of its machine.
    pub container: Option<bool>,
    /// The kernel's id of this boot; hosts that share it share a kernel.
    pub boot_id: Option<String>,
    /// Time zone, such as `Europe/Berlin`.
    pub timezone: Option<String>,
    /// NUMA nodes that have CPUs.
    pub numa_nodes: Option<u32>,
    /// CPU sockets.
    pub sockets: Option<u32>,
    /// CPU cores; [`Facts::cpus`] counts their threads.
    pub cores: Option<u32>,
    /// Memory that programs can still get, bytes.
    pub memory_available_bytes: Option<u64>,
    /// Kernel settings that bear on databases, by name; one that this kernel lacks is absent.
    pub sysctls: BTreeMap<String, String>,
    /// Disks.
    pub block_devices: Vec<BlockDevice>,
    /// All mounted file systems that keep data.
    pub file_systems: Vec<FileSystem>,
    /// The interfaces of [`Facts::nics`], with speed, driver and MTU.
    pub interfaces: Vec<Nic>,
    /// Limits of a process that assay starts.
    pub limits: Option<Limits>,
    /// SELinux: `enforcing`, `permissive`, or `absent`.
    pub selinux: Option<String>,
    /// Daemons that bear on measurements: whether each is running.
    pub services: BTreeMap<String, bool>,
    /// TCP ports on which something listens, in order.
    pub listening: Option<Vec<u16>>,
    /// The limits of the control group that assay runs in.
    pub cgroup: Option<Cgroup>,
    /// Versions of programs that matter; `None` is one that is not there.
    pub packages: BTreeMap<String, Option<String>>,
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
    /// Whether files can share blocks (reflink); `None` where nobody tried.
    pub reflink: Option<bool>,
    /// Mount options.
    #[serde(default)]
    pub options: Vec<String>,
}

impl Facts {
    /// The facts that do not change by themselves: those that say whether a host is still the same one, set up the
    /// same way.
    #[must_use]
    pub fn lasting(&self) -> Self {
        let file_system = self.file_system.clone().map(|disk| FileSystem {
            free_bytes: 0,
            // The kernel names devices in the order that it finds them in when the host boots.
            device: String::new(),
            options: Vec::new(),
            ..disk
        });
        Self {
            hostname: self.hostname.clone(),
            os: self.os.clone(),
            kernel: self.kernel.clone(),
            architecture: self.architecture.clone(),
            cpu: self.cpu.clone(),
            cpus: self.cpus,
            governor: self.governor.clone(),
            memory_bytes: self.memory_bytes,
            swap_bytes: self.swap_bytes,
            thp: self.thp.clone(),
            file_system,
            ..Self::default()
        }
    }

    /// Whether the kernel is at least `major.minor`.
    #[must_use]
    pub fn kernel_at_least(&self, major: u32, minor: u32) -> Option<bool> {
        let mut numbers = self.kernel.as_deref()?.split(|c: char| !c.is_ascii_digit());
        let mut number = || numbers.next()?.parse::<u32>().ok();
        Some((number()?, number()?) >= (major, minor))
    }
}

/// The facts of this machine, with the file system of `directory`, which need not be there yet.
/// Whether that one shares blocks is for the caller to try.
#[must_use]
pub fn gather(directory: &Path) -> Facts {
    let machine = rustix::system::uname();
    let mounts = mounts::mounts().unwrap_or_default();
    let facts = read(Path::new("/"));
    let (virtualisation, container) = packages::virtualisation();
    Facts {
        architecture: machine.machine().to_str().ok().map(str::to_owned),
        file_system: file_system(directory, &mounts),
        file_systems: disks::file_systems(&mounts),
        packages: packages::versions(),
        virtualisation,
        container,
        ..facts
    }
}

/// What the files below `root` say.
fn read(root: &Path) -> Facts {
    let text = |path: &str| text(&root.join(path));
    let memory = text("proc/meminfo").unwrap_or_default();
    let release = text("etc/os-release").or_else(|| text("usr/lib/os-release"));
    let interfaces = nics::read(root);
    Facts {
        hostname: text("proc/sys/kernel/hostname"),
        os: release.as_deref().and_then(os),
        os_id: release.as_deref().and_then(|text| assignment(text, "ID")),
        os_version: release
            .as_deref()
            .and_then(|text| assignment(text, "VERSION_ID")),
        kernel: text("proc/sys/kernel/osrelease"),
        cpu: text("proc/cpuinfo").and_then(|text| cpu(&text)),
        cpus: text("sys/devices/system/cpu/online").and_then(|text| count(&text)),
        governor: governors(&root.join("sys/devices/system/cpu/cpufreq")),
        memory_bytes: kibibytes(&memory, "MemTotal"),
        swap_bytes: kibibytes(&memory, "SwapTotal"),
        thp: text("sys/kernel/mm/transparent_hugepage/enabled").and_then(|text| selected(&text)),
        nics: interfaces.iter().map(ToString::to_string).collect(),
        interfaces,
        boot_id: text("proc/sys/kernel/random/boot_id"),
        timezone: time::zone(root),
        numa_nodes: cpu::numa_nodes(root),
        sockets: cpu::sockets(root),
        cores: cpu::cores(root),
        memory_available_bytes: kibibytes(&memory, "MemAvailable"),
        sysctls: sysctls::read(root),
        block_devices: disks::devices(root),
        limits: text("proc/self/limits").map(|text| limits::parse(&text)),
        selinux: services::selinux(root),
        services: services::read(root),
        listening: ports::read(root),
        cgroup: cgroup::read(root),
        ..Facts::default()
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
    assignment(text, "PRETTY_NAME").or_else(|| assignment(text, "NAME"))
}

/// The value of `key=value` or `key="value"`.
fn assignment(text: &str, key: &str) -> Option<String> {
    let mut pairs = text.lines().filter_map(|line| line.split_once('='));
    let (_, value) = pairs.find(|(name, _)| *name == key)?;
    Some(value.trim_matches(['"', '\'']).to_owned())
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
pub(super) fn count(list: &str) -> Option<u32> {
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
pub(super) fn selected(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word.to_owned())
}

fn file_system(directory: &Path, mounts: &[Mount]) -> Option<FileSystem> {
    let there: PathBuf = directory
        .ancestors()
        .find_map(|folder| folder.canonicalize().ok())?;
    let stat = rustix::fs::statvfs(&there).ok()?;
    Some(described(mount_of(mounts, &there)?, &stat))
}

fn described(mount: &Mount, stat: &rustix::fs::StatVfs) -> FileSystem {
    FileSystem {
        mount: mount.point.display().to_string(),
        kind: mount.kind.clone(),
        device: mount.device.clone(),
        size_bytes: stat.f_blocks * stat.f_frsize,
        free_bytes: stat.f_bavail * stat.f_frsize,
        reflink: None,
        options: mount.options.clone(),
    }
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
            cpu: Some("AMD EPYC".into()),
            cpus: Some(2),
            memory_bytes: Some(25_276_510_208),
            swap_bytes: Some(0),
            thp: Some("madvise".into()),
            nics: vec!["eth0 192.0.2.2/24 fd00::2/64".into()],
            ..Facts::default()
        };
        assert_eq!(
            read(&recorded()).lasting(),
            Facts {
                nics: Vec::new(),
                ..expected.clone()
            }
        );
        assert_eq!(read(&recorded()).nics, expected.nics);
    }

    #[test]
    fn so_are_its_layout_limits_disks_and_settings() {
        let found = read(&recorded());
        let layout = (found.numa_nodes, found.sockets, found.cores);
        assert_eq!(layout, (Some(1), Some(1), Some(2)));
        assert_eq!(found.os_id.as_deref(), Some("debian"));
        assert_eq!(found.os_version.as_deref(), Some("12"));
        assert_eq!(found.timezone.as_deref(), Some("Etc/UTC"));
        assert_eq!(found.selinux.as_deref(), Some("absent"));
        assert_eq!(found.kernel_at_least(6, 18), Some(true));
        assert_eq!(found.kernel_at_least(6, 19), Some(false));
        let limits = found.limits.unwrap();
        assert_eq!(limits.nofile_soft, Some(Limit::Number(20_000)));
        assert_eq!(limits.stack_soft, Some(Limit::Number(8 << 20)));
        assert_eq!(limits.stack_hard, Some(Limit::Word(Word::Unlimited)));
        let disk = BlockDevice {
            name: "vda".into(),
            model: None,
            rotational: Some(true),
            size_bytes: Some(274_877_906_944),
            scheduler: Some("mq-deadline".into()),
        };
        assert_eq!(found.block_devices, [disk]);
        assert_eq!(found.sysctls["vm.swappiness"], "60");
        assert_eq!(found.sysctls["net.ipv4.ip_local_port_range"], "32768 60999");
        assert!(!found.sysctls.contains_key("net.ipv4.tcp_tw_recycle"));
        assert_eq!(
            (found.interfaces[0].mtu, found.interfaces[0].speed_mbps),
            (Some(1400), None)
        );
        // Not recorded, so not known.
        assert_eq!(
            (found.listening, found.cgroup, found.boot_id),
            (None, None, None)
        );
        assert!(found.services.is_empty());
    }

    #[test]
    fn facts_survive_json_and_older_ones_are_read() {
        let facts = gather(Path::new(env!("CARGO_MANIFEST_DIR")));
        let json = serde_json::to_string(&facts).unwrap();
        assert_eq!(serde_json::from_str::<Facts>(&json).unwrap(), facts);
        let older = r#"{"hostname": "a", "file_system": {"mount": "/", "kind": "xfs", "device": "d",
            "size_bytes": 2, "free_bytes": 1, "reflink": true}, "nics": ["eth0 10.0.0.1/8"]}"#;
        let older: Facts = serde_json::from_str(older).unwrap();
        assert_eq!(older.file_system.unwrap().reflink, Some(true));
    }

    #[test]
    fn lasting_facts_are_free_of_what_changes_by_itself() {
        let mut later = gather(Path::new(env!("CARGO_MANIFEST_DIR")));
        let before = later.lasting();
        later.memory_available_bytes = Some(1);
        later.listening = Some(vec![1]);
        later.nics.push("tun0 10.9.0.1/32".into());
        later.sysctls.insert("vm.swappiness".into(), "7".into());
        later.file_system.as_mut().unwrap().free_bytes = 1;
        later.file_system.as_mut().unwrap().device = "/dev/another".into();
        assert_eq!(later.lasting(), before);
        later.memory_bytes = Some(1);
        assert_ne!(later.lasting(), before);
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
