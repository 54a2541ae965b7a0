//! What differs in a host from the machine: the upper layer of its root, as it is before the first boot.
//!
//! A folder that is made opaque is empty in the host, whatever the machine has there: no keys, homes or temporary files of
//! the machine's people, and no unit that somebody enabled here. Units of packages are there and start when asked to.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{XattrFlags, lsetxattr};

use super::accounts::{self, Account};
use super::{Lab, LabError, Labs, io};

/// What a host is made from.
pub(super) struct Seed<'a> {
    /// The root of the machine.
    pub(super) lower: &'a Path,
    /// The layer to fill.
    pub(super) upper: &'a Path,
    /// The host's name.
    pub(super) name: &'a str,
    /// The lines of `/etc/hosts` that name all hosts.
    pub(super) hosts: String,
    /// The public key that opens the host.
    pub(super) opener: String,
    /// The host's own private key, and the public one.
    pub(super) host_key: [Vec<u8>; 2],
    /// The folder of all labs, which no host sees.
    pub(super) labs: &'a Path,
    /// 32 hexadecimal digits.
    pub(super) machine_id: String,
}

/// Folders that are empty in a host.
const EMPTY: [&str; 15] = [
    "root",
    "home",
    "tmp",
    "var/tmp",
    "data",
    "var/lib/assay",
    "etc/systemd/system",
    "etc/ssh",
    "etc/sudoers.d",
    "etc/rc2.d",
    "etc/rc3.d",
    "etc/rc4.d",
    "etc/rc5.d",
    "etc/rcS.d",
    "var/spool/cron",
];
/// Units that are no use without a console or a network to set up, and cost memory.
const MASKED: [&str; 6] = [
    "console-getty.service",
    "networking.service",
    "systemd-networkd.service",
    "systemd-networkd.socket",
    "systemd-resolved.service",
    "NetworkManager.service",
];
/// Timers that systemd's own packages bring along.
const TIMERS: &str = "systemd-tmpfiles-clean.timer";

const SSHD: &str = "\
Include /etc/ssh/sshd_config.d/*.conf
HostKey /etc/ssh/ssh_host_ed25519_key
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM yes
UseDNS no
PrintMotd no
AcceptEnv LANG LC_*
Subsystem sftp internal-sftp
";

impl Labs {
    /// The lines of `/etc/hosts` for all hosts of a lab.
    pub(super) fn hosts_file(lab: &Lab, own: &str) -> String {
        let mut text =
            format!("127.0.0.1 localhost\n::1 localhost ip6-localhost\n127.0.1.1 {own}-local\n");
        for host in &lab.hosts {
            let _ = writeln!(text, "{} {}", host.address, host.name);
            if let Some(address) = host.address6 {
                let _ = writeln!(text, "{address} {}-v6", host.name);
            }
        }
        text
    }
}

impl Seed<'_> {
    /// Fills the layer.
    pub(super) fn write(&self) -> Result<(), LabError> {
        for folder in EMPTY {
            self.empty(Path::new(folder))?;
        }
        let labs = self.labs.strip_prefix("/").unwrap_or(self.labs);
        self.empty(labs)?;
        self.identity()?;
        self.units()?;
        self.ssh()?;
        self.people()
    }

    /// Who the host is, and that nothing is to be mounted or looked up.
    fn identity(&self) -> Result<(), LabError> {
        self.file("etc/hostname", &format!("{}\n", self.name), 0o644)?;
        self.file("etc/hosts", &self.hosts, 0o644)?;
        self.file("etc/machine-id", &format!("{}\n", self.machine_id), 0o444)?;
        self.file("etc/fstab", "", 0o644)?;
        self.file("etc/network/interfaces", "", 0o644)?;
        // Without a name server, looking a name up fails at once.
        self.file("etc/resolv.conf", "", 0o644)?;
        self.mode(Path::new("data"), 0o755)?;
        self.folder(Path::new("data/assay"))?;
        for folder in ["tmp", "var/tmp"] {
            self.mode(Path::new(folder), 0o1777)?;
        }
        Ok(())
    }

    /// Only what systemd itself wants starts, and sshd.
    fn units(&self) -> Result<(), LabError> {
        let units = self.upper.join("etc/systemd/system");
        let wanted = units.join("multi-user.target.wants");
        self.folder(Path::new("etc/systemd/system/multi-user.target.wants"))?;
        self.link(
            "/lib/systemd/system/multi-user.target",
            &units.join("default.target"),
        )?;
        let is_there = |unit: &&str| self.lower.join("lib/systemd/system").join(unit).exists();
        let sshd = ["ssh.service", "sshd.service"].into_iter().find(is_there);
        let sshd = sshd.unwrap_or("ssh.service");
        self.link(&format!("/lib/systemd/system/{sshd}"), &wanted.join(sshd))?;
        for unit in MASKED.into_iter().chain([TIMERS]) {
            self.link("/dev/null", &units.join(unit))?;
        }
        Ok(())
    }

    fn ssh(&self) -> Result<(), LabError> {
        self.folder(Path::new("etc/ssh/sshd_config.d"))?;
        self.file("etc/ssh/sshd_config", SSHD, 0o644)?;
        let [private, public] = &self.host_key;
        self.bytes("etc/ssh/ssh_host_ed25519_key", private, 0o600)?;
        self.bytes("etc/ssh/ssh_host_ed25519_key.pub", public, 0o644)
    }

    fn people(&self) -> Result<(), LabError> {
        let [passwd, group, shadow] =
            ["etc/passwd", "etc/group", "etc/shadow"].map(|f| self.read(f));
        let (passwd, group) = (passwd?, group?);
        let all = accounts::choose(&passwd, &group);
        self.file("etc/passwd", &accounts::passwd(&passwd, &all), 0o644)?;
        self.file("etc/group", &accounts::group(&group, &all), 0o644)?;
        self.file("etc/shadow", &accounts::shadow(&shadow?, &all), 0o640)?;
        self.file("etc/sudoers", &accounts::sudoers(), 0o440)?;
        self.home(Path::new("root"), 0)?;
        all.iter().try_for_each(|Account { name, number }| {
            self.home(&Path::new("home").join(name), *number)
        })
    }

    /// A home that the lab's key opens.
    fn home(&self, home: &Path, owner: u32) -> Result<(), LabError> {
        let keys = home.join(".ssh");
        self.folder(&keys)?;
        let list = keys.join("authorized_keys");
        self.bytes(&list, format!("{}\n", self.opener).as_bytes(), 0o600)?;
        self.mode(home, 0o700)?;
        self.mode(&keys, 0o700)?;
        for path in [home, &keys, &list] {
            let path = self.upper.join(path);
            chown(&path, Some(owner), Some(owner)).map_err(io("give away", &path))?;
        }
        Ok(())
    }

    /// The text of a file of the machine; empty where it has none.
    fn read(&self, file: &str) -> Result<String, LabError> {
        let path = self.lower.join(file);
        match fs::read(&path) {
            Ok(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(io("read", &path)(error)),
        }
    }

    fn file(&self, file: &str, text: &str, mode: u32) -> Result<(), LabError> {
        self.bytes(file, text.as_bytes(), mode)
    }

    fn bytes(&self, file: impl AsRef<Path>, bytes: &[u8], mode: u32) -> Result<(), LabError> {
        let file = file.as_ref();
        if let Some(folder) = file.parent() {
            self.folder(folder)?;
        }
        let path = self.upper.join(file);
        fs::write(&path, bytes).map_err(io("write", &path))?;
        self.mode(file, mode)
    }

    fn mode(&self, path: &Path, mode: u32) -> Result<(), LabError> {
        let path = self.upper.join(path);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).map_err(io("open", &path))
    }

    fn link(&self, to: &str, at: &Path) -> Result<(), LabError> {
        match symlink(to, at) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(io("make", at)(error)),
            _ => Ok(()),
        }
    }

    /// A folder with those above it, each with the owner and mode that it has on the machine. Where the machine has a link
    /// or a file on the way, the host has a folder.
    fn folder(&self, folder: &Path) -> Result<(), LabError> {
        let mut made = PathBuf::new();
        for part in folder {
            made.push(part);
            let path = self.upper.join(&made);
            match fs::create_dir(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                done => done.map_err(io("make", &path))?,
            }
            let Ok(like) = self.lower.join(&made).symlink_metadata() else {
                continue;
            };
            if like.is_dir() {
                chown(&path, Some(like.uid()), Some(like.gid())).map_err(io("give away", &path))?;
                self.mode(&made, like.mode() & 0o7777)?;
            }
        }
        Ok(())
    }

    /// A folder in which nothing of the machine is seen (`trusted.overlay.opaque`, overlayfs.rst of the kernel).
    fn empty(&self, folder: &Path) -> Result<(), LabError> {
        self.folder(folder)?;
        let path = self.upper.join(folder);
        lsetxattr(&path, "trusted.overlay.opaque", b"y", XattrFlags::empty())
            .map_err(io("hide what is in", &path))
    }
}

#[cfg(test)]
mod tests {
    use super::super::removal::tests::skipped;
    use super::*;

    fn seed<'a>(lower: &'a Path, upper: &'a Path) -> Seed<'a> {
        Seed {
            lower,
            upper,
            name: "lab1",
            hosts: Labs::hosts_file(&super::super::description::tests::sample("lab", 2), "lab1"),
            opener: "ssh-ed25519 AAAA lab".into(),
            host_key: [b"private".to_vec(), b"public".to_vec()],
            labs: Path::new("/srv/labs"),
            machine_id: "0".repeat(32),
        }
    }

    #[test]
    fn a_host_sees_nothing_of_the_machines_people_and_starts_only_sshd() {
        if !rustix::process::geteuid().is_root() {
            return skipped("only root may hide folders of an overlay");
        }
        let (lower, upper) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(lower.path().join("lib/systemd/system")).unwrap();
        fs::write(lower.path().join("lib/systemd/system/sshd.service"), "").unwrap();
        fs::create_dir_all(lower.path().join("etc/ssh")).unwrap();
        fs::write(
            lower.path().join("etc/passwd"),
            "root:x:0:0::/root:/bin/sh\n",
        )
        .unwrap();
        fs::create_dir(lower.path().join("srv")).unwrap();
        fs::set_permissions(lower.path().join("srv"), PermissionsExt::from_mode(0o711)).unwrap();
        seed(lower.path(), upper.path()).write().unwrap();

        let upper = upper.path();
        for folder in [
            "root",
            "home",
            "etc/ssh",
            "etc/systemd/system",
            "srv/labs",
            "var/lib/assay",
        ] {
            let mut value = [0; 4];
            let path = upper.join(folder);
            let read =
                rustix::fs::lgetxattr(&path, "trusted.overlay.opaque", &mut value[..]).unwrap();
            assert_eq!(&value[..read], b"y", "{folder}");
        }
        let mode = |path: &str| upper.join(path).symlink_metadata().unwrap().mode() & 0o7777;
        assert_eq!(mode("srv"), 0o711);
        assert_eq!(mode("etc/ssh/ssh_host_ed25519_key"), 0o600);
        assert_eq!(mode("root/.ssh"), 0o700);
        assert_eq!(mode("etc/sudoers"), 0o440);
        let wants = upper.join("etc/systemd/system/multi-user.target.wants");
        let started: Vec<_> = fs::read_dir(wants)
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert_eq!(started, ["sshd.service"]);
        let hosts = fs::read_to_string(upper.join("etc/hosts")).unwrap();
        assert!(
            hosts.contains("10.213.0.12 lab2\n") && hosts.contains("::c lab2-v6\n"),
            "{hosts}"
        );
    }
}
