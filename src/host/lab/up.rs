//! Making a lab.

use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::address::{self, Network};
use super::locks::Mode;
use super::{
    Entry, Hear, Lab, LabError, Labs, MOST_HOSTS, description, image, inventory, io, keys, links,
    needs,
};

/// What is asked of a lab.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// The number of hosts.
    pub hosts: usize,
    /// The bytes of each host's XFS image for `/data`, if it is to have one.
    pub data: Option<u64>,
    /// The absolute path of the inventory to write.
    pub inventory: PathBuf,
}

impl Labs {
    /// Makes a lab and waits until all its hosts are ready. If that fails, nothing of it is left.
    ///
    /// # Errors
    /// The machine lacks something; there is a lab by that name; the inventory is somebody else's; a host does not come up.
    pub fn up(&self, wanted: &Wanted, hear: Hear) -> Result<Lab, LabError> {
        check(wanted)?;
        if self.of(&wanted.name).symlink_metadata().is_ok() {
            return Err(LabError::Exists(wanted.name.clone()));
        }
        inventory::check(&wanted.inventory, &wanted.name)?;
        let needs_image = wanted.data.is_some() || !self.takes_overlay();
        let missing = needs::missing(wanted.hosts + self.all_hosts()?, needs_image);
        if !missing.is_empty() {
            return Err(LabError::Missing(missing));
        }
        let (lab, held) = self.describe(wanted)?;
        if let Err(error) = self.make(&lab, hear) {
            hear("removing what there is of it");
            // The first error says more than a second one; what is left is shown by `list`, and `down` tries again.
            let _ = self.clear(&lab, held);
            return Err(if self.stop.is_cancelled() {
                LabError::Stopped
            } else {
                error
            });
        }
        Ok(lab)
    }

    /// The hosts of all labs that are up.
    fn all_hosts(&self) -> Result<usize, LabError> {
        let read = |name: String| self.read(&name).ok().flatten();
        let labs = self.names()?.into_iter().filter_map(read);
        Ok(labs.map(|lab| lab.hosts.len()).sum())
    }

    /// Whether the upper layer of an overlay can lie in the labs' folder.
    fn takes_overlay(&self) -> bool {
        let there = self.folder.ancestors().find(|folder| folder.exists());
        let kind = there.and_then(|folder| rustix::fs::statfs(folder).ok());
        kind.is_none_or(|kind| !is_unfit(kind.f_type as u64))
    }

    /// Claims the name and the network, and writes the description, before anything is made.
    fn describe(&self, wanted: &Wanted) -> Result<(Lab, File), LabError> {
        let _all = self.lock_all()?;
        let folder = self.of(&wanted.name);
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(LabError::Exists(wanted.name.clone()));
            }
            done => done.map_err(io("make", &folder))?,
        }
        let held = self.lock(&wanted.name, Mode::Alone)?;
        match self.described(wanted) {
            Ok(lab) => Ok((lab, held)),
            Err(error) => {
                let _ = fs::remove_dir(&folder);
                Err(error)
            }
        }
    }

    fn described(&self, wanted: &Wanted) -> Result<Lab, LabError> {
        let mut taken = links::taken()?;
        for name in self.names()? {
            // One that cannot be read is not in the way of others.
            if let Ok(Some(other)) = self.read(&name) {
                taken.extend([Some(other.network), other.network6].into_iter().flatten());
            }
        }
        let network = address::choose(&taken, wanted.hosts).ok_or(LabError::NoNetwork)?;
        let (id, network6) = choose_id(&taken)?;
        let lab = Lab {
            format: 1,
            name: wanted.name.clone(),
            id,
            made: jiff::Timestamp::now(),
            inventory: wanted.inventory.clone(),
            data: wanted.data,
            system_image: !self.takes_overlay(),
            network,
            network6,
            first_netns: !links::has_namespaces(),
            hosts: Lab::entries(&wanted.name, wanted.hosts, network, network6),
        };
        self.write(&lab)?;
        Ok(lab)
    }

    fn make(&self, lab: &Lab, hear: Hear) -> Result<(), LabError> {
        if lab.system_image {
            hear(
                "the file system here cannot hold the upper layer of an overlay: each host's disk is an image",
            );
        }
        hear(&format!("keys and disks of {} hosts", lab.hosts.len()));
        keys::make(
            lab,
            &self.identity_file(&lab.name),
            &format!("assay-lab-{}", lab.name),
        )?;
        for_all(&lab.hosts, |host| self.make_files(lab, host))?;
        self.write_known_hosts(lab)?;
        hear(&format!("network {} on {}", lab.network, lab.bridge()));
        links::make(lab)?;
        hear("booting");
        let done = AtomicUsize::new(0);
        for_all(&lab.hosts, |host| {
            let mut child = self.start(lab, host)?;
            self.wait_ready(lab, host, &mut child)?;
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            hear(&format!(
                "{} is ready ({done} of {})",
                host.name,
                lab.hosts.len()
            ));
            Ok(())
        })?;
        inventory::write(self, lab)
    }

    /// A host's folder, key and images.
    fn make_files(&self, lab: &Lab, host: &Entry) -> Result<(), LabError> {
        let paths = self.paths(lab, host);
        fs::create_dir_all(&paths.host).map_err(io("make", &paths.host))?;
        keys::make(lab, &paths.host_key, &host.name)?;
        if lab.system_image {
            image::make(lab, &paths.disk_image, image::DISK)?;
        }
        match lab.data {
            Some(bytes) => image::make(lab, &paths.data_image, bytes),
            None => Ok(()),
        }
    }

    fn write_known_hosts(&self, lab: &Lab) -> Result<(), LabError> {
        let mut text = String::new();
        for host in &lab.hosts {
            let key = keys::public(&self.paths(lab, host).host_key)?;
            let key: Vec<&str> = key.split(' ').take(2).collect();
            let addresses = [Some(host.address), host.address6].into_iter().flatten();
            let names: Vec<String> = addresses.map(|address| address.to_string()).collect();
            text.push_str(&format!(
                "{},{} {}\n",
                names.join(","),
                host.name,
                key.join(" ")
            ));
        }
        let path = self.known_hosts(&lab.name);
        fs::write(&path, text).map_err(io("write", &path))
    }
}

fn check(wanted: &Wanted) -> Result<(), LabError> {
    description::check_name(&wanted.name)?;
    if wanted.hosts == 0 || wanted.hosts > MOST_HOSTS {
        return Err(LabError::Hosts(wanted.hosts));
    }
    match wanted.data {
        Some(bytes) if bytes < image::LEAST => Err(LabError::Small(bytes)),
        _ => Ok(()),
    }
}

/// An id that nothing on this machine carries, and the network that follows from it.
fn choose_id(taken: &[Network]) -> Result<(String, Option<Network>), LabError> {
    let path = Path::new("/proc/sys/kernel/random/uuid");
    let has_v6 = links::has_v6();
    for _ in 0..64 {
        let uuid = fs::read_to_string(path).map_err(io("read", path))?;
        let id = uuid.chars().take(4).collect::<String>();
        let number = u16::from_str_radix(&id, 16).unwrap_or_default();
        let network = address::unique_local(number);
        let is_free = !links::is_used(&format!("al{id}")) && !address::clashes(network, taken);
        if is_free {
            return Ok((id, has_v6.then_some(network)));
        }
    }
    Err(LabError::NoNetwork)
}

/// Whether a file system cannot hold the upper layer of an overlay: `OVERLAYFS`, `NFS`, `FUSE`, `V9FS`, `MSDOS`, `SMB` and
/// `CIFS` of `linux/magic.h`.
fn is_unfit(magic: u64) -> bool {
    [
        0x794c_7630,
        0x6969,
        0x6573_5546,
        0x0102_1997,
        0x4d44,
        0x517b,
        0xff53_4d42,
    ]
    .contains(&(magic & 0xffff_ffff))
}

/// Does the same for all hosts, several at a time; after a failure no other is begun.
fn for_all(
    hosts: &[Entry],
    act: impl Fn(&Entry) -> Result<(), LabError> + Sync,
) -> Result<(), LabError> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let work = || {
        while failed.lock().is_ok_and(|failed| failed.is_none()) {
            let Some(host) = hosts.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return;
            };
            if let Err(error) = act(host) {
                failed
                    .lock()
                    .expect("nobody panics with it")
                    .get_or_insert(error);
            }
        }
    };
    std::thread::scope(|scope| {
        (0..(4 * cores).min(hosts.len())).for_each(|_| drop(scope.spawn(work)));
    });
    match failed.into_inner().expect("nobody panics with it") {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_failure_no_other_host_is_begun() {
        let lab = description::tests::sample("lab", 200);
        let begun = AtomicUsize::new(0);
        let error = for_all(&lab.hosts, |host| {
            begun.fetch_add(1, Ordering::Relaxed);
            Err(LabError::NoHost(host.name.clone()))
        });
        assert!(error.is_err());
        assert!(begun.into_inner() < 200);
        let begun = AtomicUsize::new(0);
        for_all(&lab.hosts, |_| {
            begun.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
        assert_eq!(begun.into_inner(), 200);
    }

    #[test]
    fn a_file_system_that_cannot_hold_an_upper_layer_is_known() {
        assert!(is_unfit(0x794c_7630) && is_unfit(0x6969));
        // ext4, XFS, tmpfs, btrfs.
        for magic in [0xef53, 0x5846_5342, 0x0102_1994, 0x9123_683e] {
            assert!(!is_unfit(magic), "{magic:x}");
        }
    }

    #[test]
    fn what_cannot_be_a_lab_is_refused_before_anything_else() {
        let wanted = |name: &str, hosts, data| Wanted {
            name: name.to_owned(),
            hosts,
            data,
            inventory: "/tmp/x.yaml".into(),
        };
        check(&wanted("lab", 4, Some(1 << 30))).unwrap();
        assert!(matches!(
            check(&wanted("../x", 4, None)),
            Err(LabError::Name(_))
        ));
        assert!(matches!(
            check(&wanted("lab", 0, None)),
            Err(LabError::Hosts(0))
        ));
        assert!(matches!(
            check(&wanted("lab", 501, None)),
            Err(LabError::Hosts(501))
        ));
        assert!(matches!(
            check(&wanted("lab", 1, Some(1000))),
            Err(LabError::Small(1000))
        ));
    }
}
