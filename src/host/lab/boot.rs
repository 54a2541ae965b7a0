//! Booting a host. `assay lab boot` runs in a mount namespace of its own, mounts the host's root there, and becomes nspawn.
//! So everything that is mounted for a host goes with its last process, however that ends.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::beside;
use super::description::Paths;
use super::seed::Seed;
use super::{Entry, Lab, LabError, Labs, cgroups, image, io, keys, nspawn, tool};
use crate::host::mounts;

/// Says that the upper layer is complete.
const SEEDED: &str = "seeded";

impl Labs {
    /// Starts a host, which then lives on its own. The child ends when the host does.
    pub(super) fn start(&self, lab: &Lab, host: &Entry) -> Result<Child, LabError> {
        let paths = self.paths(lab, host);
        let console = File::create(&paths.console).map_err(io("make", &paths.console))?;
        let errors = console.try_clone().map_err(io("open", &paths.console))?;
        let mut unshare = tool::command("unshare", &lab.mark(host));
        unshare
            .args(["--mount", "--propagation", "private", "--"])
            .arg(&self.program)
            .args(["lab", "boot"])
            .arg(&self.folder)
            .args([&lab.name, &host.name])
            .current_dir("/")
            .stdout(console)
            .stderr(errors);
        unshare
            .stdin(Stdio::null())
            .spawn()
            .map_err(io("start", &self.program))
    }

    /// Becomes a host. It returns only if that fails.
    #[must_use]
    pub fn boot(&self, name: &str, host: &str) -> LabError {
        match self.prepare(name, host) {
            Ok(mut command) => {
                let program = PathBuf::from(command.get_program());
                io("become", &program)(command.exec())
            }
            Err(error) => error,
        }
    }

    fn prepare(&self, name: &str, host: &str) -> Result<std::process::Command, LabError> {
        let lab = self
            .read(name)?
            .ok_or_else(|| LabError::None(name.to_owned()))?;
        let entry = lab
            .host(host)
            .ok_or_else(|| LabError::NoHost(host.to_owned()))?;
        let paths = self.paths(&lab, entry);
        check_private()?;
        // A closed terminal must not take the host along. It fails only for the leader of a group, which has no terminal.
        let _ = rustix::process::setsid();
        cgroups::join(&lab.cgroup(entry))?;
        self.mount(&lab, entry, &paths)?;
        detach_others(&paths.host)?;
        nspawn::note_lock(&paths.root, &paths.lock_name)?;
        Ok(nspawn::command(&lab, entry, &paths.root))
    }

    /// Mounts the host's root, and its data folder in it.
    fn mount(&self, lab: &Lab, host: &Entry, paths: &Paths) -> Result<(), LabError> {
        let mark = lab.mark(host);
        for folder in [&paths.disk, &paths.root] {
            fs::create_dir_all(folder).map_err(io("make", folder))?;
        }
        if lab.system_image {
            image::mount(&mark, &paths.disk_image, &paths.disk)?;
        }
        let [upper, work] = ["upper", "work"].map(|name| paths.disk.join(name));
        for folder in [&upper, &work] {
            fs::create_dir_all(folder).map_err(io("make", folder))?;
        }
        let seeded = paths.disk.join(SEEDED);
        if !seeded.exists() {
            self.seed(lab, host, paths, &upper)?;
            File::create(&seeded).map_err(io("make", &seeded))?;
        }
        overlay(&upper, &work, &paths.root)?;
        if lab.data.is_some() {
            let data = paths.root.join("data");
            image::mount(&mark, &paths.data_image, &data)?;
            let folder = data.join("assay");
            fs::create_dir_all(&folder).map_err(io("make", &folder))?;
        }
        Ok(())
    }

    fn seed(&self, lab: &Lab, host: &Entry, paths: &Paths, upper: &Path) -> Result<(), LabError> {
        let read = |path: &Path| fs::read(path).map_err(io("read", path));
        let public = beside(&paths.host_key, "pub");
        let uuid = read(Path::new("/proc/sys/kernel/random/uuid"))?;
        let machine_id = String::from_utf8_lossy(&uuid).trim().replace('-', "");
        let seed = Seed {
            lower: Path::new("/"),
            upper,
            name: &host.name,
            hosts: Self::hosts_file(lab, &host.name),
            opener: keys::public(&self.identity_file(&lab.name))?,
            host_key: [read(&paths.host_key)?, read(&public)?],
            labs: &self.folder,
            machine_id,
        };
        seed.write()
    }
}

/// Nothing that is mounted or unmounted from here on may reach the mounts of whoever started this.
fn check_private() -> Result<(), LabError> {
    let path = Path::new("/proc/self/mountinfo");
    let text = fs::read_to_string(path).map_err(io("read", path))?;
    let parent = rustix::process::getppid().map_or(1, |pid| pid.as_raw_pid());
    let namespace = |process: &str| {
        let path = PathBuf::from(format!("/proc/{process}/ns/mnt"));
        fs::read_link(&path).map_err(io("read", &path))
    };
    let is_own = namespace("self")? != namespace(&parent.to_string())?;
    if is_own && !is_shared(&text) {
        return Ok(());
    }
    Err(LabError::Foreign {
        path: "/".into(),
        why: "a host is booted only in a mount namespace of its own, by `assay lab up`".to_owned(),
    })
}

/// Whether a line of `mountinfo` says that changes of a mount are seen elsewhere.
fn is_shared(mountinfo: &str) -> bool {
    let tags = mountinfo.lines().flat_map(|line| {
        let fields = line.split(' ').skip(6);
        fields.take_while(|field| *field != "-")
    });
    tags.into_iter().any(|tag| tag.starts_with("shared:"))
}

fn overlay(upper: &Path, work: &Path, root: &Path) -> Result<(), LabError> {
    // Paths below the labs' folder hold neither comma nor colon.
    let options = format!(
        "lowerdir=/,upperdir={},workdir={}",
        upper.display(),
        work.display()
    );
    let options = std::ffi::CString::new(options).expect("paths hold no zero byte");
    mount(
        "overlay",
        root,
        "overlay",
        MountFlags::NOATIME,
        options.as_c_str(),
    )
    .map_err(io("mount an overlay on", root))
}

/// Lets go of the machine's other file systems, so that a host does not keep them busy.
fn detach_others(host: &Path) -> Result<(), LabError> {
    let all = mounts().map_err(io("read", Path::new("/proc/self/mountinfo")))?;
    for mount in all.iter().rev().filter(|m| !is_needed(&m.point, host)) {
        // It may be gone with one above it.
        let _ = unmount(&mount.point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
    }
    Ok(())
}

fn is_needed(point: &Path, host: &Path) -> bool {
    let system = ["/proc", "/sys", "/dev", "/run"];
    host.starts_with(point)
        || point.starts_with(host)
        || system.iter().any(|folder| point.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_mounts_are_told_from_private_ones() {
        let private = "23 28 0:21 / / rw,relatime - ext4 /dev/vda rw\n24 23 0:9 / /proc rw master:3 - proc shared:1 rw";
        assert!(!is_shared(private));
        assert!(is_shared(
            "23 28 0:21 / / rw master:2 shared:1 - ext4 /dev/vda rw"
        ));
    }

    #[test]
    fn a_host_keeps_only_the_mounts_that_it_needs() {
        let host = Path::new("/var/lib/assay/lab/lab/hosts/lab1");
        for point in [
            "/",
            "/var",
            "/proc",
            "/run/netns/al1a2b-lab1",
            "/var/lib/assay/lab/lab/hosts/lab1/root",
        ] {
            assert!(is_needed(Path::new(point), host), "{point}");
        }
        for point in [
            "/home",
            "/mnt/usb",
            "/var/lib/docker",
            "/procession",
            "/var/lib/assay/lab/lab/hosts/lab12",
        ] {
            assert!(!is_needed(Path::new(point), host), "{point}");
        }
    }

    #[test]
    fn nothing_is_booted_among_the_mounts_of_the_machine() {
        assert!(check_private().is_err());
    }
}
