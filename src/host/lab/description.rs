//! What a lab is: the content of its `lab.json`, and the names that follow from it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::address::Network;
use super::{LabError, Labs, io};

/// The description's file.
pub(super) const FILE: &str = "lab.json";
/// Begins the names of everything that a lab has outside its folder.
const PREFIX: &str = "al";

/// A lab.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lab {
    /// The version of this form.
    pub(super) format: u32,
    /// Its name.
    pub name: String,
    /// Four hexadecimal digits that no other lab of the machine has.
    pub(super) id: String,
    /// When it was made.
    pub made: jiff::Timestamp,
    /// The absolute path of its inventory.
    pub inventory: PathBuf,
    /// The bytes of each host's XFS image for `/data`; without one that folder is on the host's own disk.
    pub data: Option<u64>,
    /// Whether a host's disk is an image, since the file system below cannot hold the upper layer of an overlay.
    pub(super) system_image: bool,
    /// The IPv4 network.
    pub(super) network: Network,
    /// The IPv6 network, where the machine has IPv6.
    pub(super) network6: Option<Network>,
    /// Whether `/run/netns` was no mount before.
    pub(super) first_netns: bool,
    /// Its hosts.
    pub hosts: Vec<Entry>,
}

/// A host of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name, also its host name.
    pub name: String,
    /// From 1.
    pub(super) number: usize,
    /// Its IPv4 address.
    pub address: IpAddr,
    /// Its IPv6 address.
    pub address6: Option<IpAddr>,
}

/// The paths of a host, all below the lab's folder.
pub(super) struct Paths {
    /// The host's folder.
    pub(super) host: PathBuf,
    /// Where its root is mounted, in its own mount namespace only.
    pub(super) root: PathBuf,
    /// Its disk: the layers of the overlay.
    pub(super) disk: PathBuf,
    /// The image that is mounted there, if it is one.
    pub(super) disk_image: PathBuf,
    /// The image for `/data`.
    pub(super) data_image: PathBuf,
    /// The private host key; the public one beside it.
    pub(super) host_key: PathBuf,
    /// The output of its console.
    pub(super) console: PathBuf,
    /// The name of nspawn's lock.
    pub(super) lock_name: PathBuf,
}

impl Lab {
    /// The host by that name.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<&Entry> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// The hosts of a lab by that name, with their addresses.
    pub(super) fn entries(
        name: &str,
        hosts: usize,
        network: Network,
        network6: Option<Network>,
    ) -> Vec<Entry> {
        let entry = |number| Entry {
            name: host_name(name, number),
            number,
            address: network.host(number),
            address6: network6.map(|n| n.host(number)),
        };
        (1..=hosts).map(entry).collect()
    }

    /// `al1a2b`: begins the name of everything outside the folder.
    pub(super) fn prefix(&self) -> String {
        format!("{PREFIX}{}", self.id)
    }

    /// The bridge that all hosts are on.
    pub(super) fn bridge(&self) -> String {
        format!("{}-br", self.prefix())
    }

    /// The machine's end of a host's cable.
    pub(super) fn port(&self, host: &Entry) -> String {
        format!("{}-{}", self.prefix(), host.number)
    }

    /// The name of a host's network namespace, and of its container.
    pub(super) fn machine(&self, host: &Entry) -> String {
        format!("{}-{}", self.prefix(), host.name)
    }

    /// A host's cgroup, in every hierarchy that it has one in.
    pub(super) fn cgroup(&self, host: &Entry) -> String {
        format!("assay-{}", self.machine(host))
    }

    /// What marks the processes that run a host.
    pub(super) fn mark(&self, host: &Entry) -> String {
        format!("{}/{}", self.id, host.name)
    }

    /// A locally administered address, which the host keeps whatever happens to it; 0 is the machine's.
    pub(super) fn mac(&self, number: usize) -> String {
        let (id, number) = (self.id_number(), number as u16);
        let [a, b] = id.to_be_bytes();
        let [c, d] = number.to_be_bytes();
        format!("02:a5:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
    }

    pub(super) fn id_number(&self) -> u16 {
        u16::from_str_radix(&self.id, 16).expect("it was checked when it was read")
    }

    /// Whether every name in it is one that assay gives, so that no path or name made of it leads elsewhere.
    fn is_sound(&self, name: &str) -> bool {
        let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        let is_named = |host: &Entry| host.name == host_name(name, host.number);
        self.format == 1
            && self.name == name
            && check_name(name).is_ok()
            && self.id.len() == 4
            && self.id.chars().all(is_hex)
            && self.hosts.len() <= super::MOST_HOSTS
            && self.hosts.iter().all(is_named)
    }
}

/// `lab1`; a lab whose name ends in a digit has a dash between.
fn host_name(lab: &str, number: usize) -> String {
    let dash = if lab.ends_with(|c: char| c.is_ascii_digit()) {
        "-"
    } else {
        ""
    };
    format!("{lab}{dash}{number}")
}

/// A lab's name is a part of host names and paths.
pub(super) fn check_name(name: &str) -> Result<(), LabError> {
    let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    if begins && name.len() <= 20 && name.chars().all(is_fine) && !name.ends_with('-') {
        return Ok(());
    }
    Err(LabError::Name(name.to_owned()))
}

impl Labs {
    /// Reads a lab's description; `None` where it was not written yet, so that there is nothing else of it either.
    ///
    /// # Errors
    /// It cannot be read, or is not one that assay wrote.
    pub(super) fn read(&self, name: &str) -> Result<Option<Lab>, LabError> {
        let path = self.of(name).join(FILE);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io("read", &path)(error)),
        };
        let lab: Lab = serde_json::from_slice(&text).map_err(|source| LabError::Description {
            path: path.clone(),
            source,
        })?;
        if !lab.is_sound(name) {
            let why = "it is no description of this lab".to_owned();
            return Err(LabError::Foreign { path, why });
        }
        Ok(Some(lab))
    }

    /// Writes a lab's description, in one piece.
    pub(super) fn write(&self, lab: &Lab) -> Result<(), LabError> {
        let path = self.of(&lab.name).join(FILE);
        let part = path.with_extension("part");
        let text = serde_json::to_vec_pretty(lab).expect("it is plain data");
        std::fs::write(&part, text).map_err(io("write", &part))?;
        std::fs::rename(&part, &path).map_err(io("write", &path))
    }

    /// The paths of a host.
    pub(super) fn paths(&self, lab: &Lab, host: &Entry) -> Paths {
        let folder = self.of(&lab.name).join("hosts").join(&host.name);
        Paths {
            root: folder.join("root"),
            disk: folder.join("disk"),
            disk_image: folder.join("disk.img"),
            data_image: folder.join("data.img"),
            host_key: folder.join("ssh_host_ed25519_key"),
            console: folder.join("console.log"),
            lock_name: folder.join("nspawn-lock"),
            host: folder,
        }
    }

    /// The private key that opens every host of a lab.
    #[must_use]
    pub fn identity_file(&self, name: &str) -> PathBuf {
        self.of(name).join("id_ed25519")
    }

    /// The host keys of a lab, as ssh reads them.
    #[must_use]
    pub fn known_hosts(&self, name: &str) -> PathBuf {
        self.of(name).join("known_hosts")
    }

    /// The names of all folders that hold a lab, or what is left of one.
    pub(super) fn names(&self) -> Result<Vec<String>, LabError> {
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io("read", &self.folder)(error)),
        };
        let name = |entry: std::fs::DirEntry| {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let name = entry.file_name().into_string().ok()?;
            (is_folder && check_name(&name).is_ok()).then_some(name)
        };
        let mut names: Vec<String> = entries.filter_map(Result::ok).filter_map(name).collect();
        names.sort();
        Ok(names)
    }
}

/// Whether a path could be one below the folder of a lab, so that overlay and mount options hold it as it is.
pub(super) fn is_plain(path: &Path) -> bool {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    path.is_absolute()
        && path.components().count() >= 3
        && path.to_str().is_some_and(|text| text.chars().all(is_fine))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn sample(name: &str, hosts: usize) -> Lab {
        let network = "10.213.0.0/24".parse().unwrap();
        let network6 = Some(super::super::address::unique_local(0x1a2b));
        Lab {
            format: 1,
            name: name.to_owned(),
            id: "1a2b".to_owned(),
            made: jiff::Timestamp::UNIX_EPOCH,
            inventory: "/tmp/lab.yaml".into(),
            data: None,
            system_image: false,
            network,
            network6,
            first_netns: false,
            hosts: Lab::entries(name, hosts, network, network6),
        }
    }

    #[test]
    fn every_name_fits_what_the_kernel_allows() {
        let lab = sample("a-name-of-20-letters", super::super::MOST_HOSTS);
        check_name(&lab.name).unwrap();
        let last = lab.hosts.last().unwrap();
        assert!(lab.port(last).len() <= 15 && lab.bridge().len() <= 15);
        assert!(lab.machine(last).len() <= 64);
        assert_eq!(lab.mac(last.number), "02:a5:1a:2b:01:f4");
        assert_eq!(lab.port(last), "al1a2b-500");
    }

    #[test]
    fn names_that_would_lead_out_of_the_folder_are_refused() {
        for name in ["", ".", "..", "a/b", "A", "1a", "a-", "-a", "a b", "ä"] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_name(&"a".repeat(21)).is_err());
    }

    #[test]
    fn hosts_of_a_lab_whose_name_ends_in_a_digit_are_told_apart() {
        assert_eq!(host_name("lab", 12), "lab12");
        assert_eq!(host_name("net1", 2), "net1-2");
    }

    #[test]
    fn a_description_that_names_what_is_not_its_own_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let labs = Labs::new(folder.path(), "/bin/assay");
        std::fs::create_dir(folder.path().join("lab")).unwrap();
        assert!(labs.read("lab").unwrap().is_none());
        let good = sample("lab", 2);
        labs.write(&good).unwrap();
        assert_eq!(labs.read("lab").unwrap().unwrap().hosts, good.hosts);

        let refused = |change: fn(&mut Lab)| {
            let mut lab = sample("lab", 2);
            change(&mut lab);
            labs.write(&Lab {
                name: "lab".into(),
                ..lab.clone()
            })
            .unwrap();
            labs.read("lab").unwrap_err().to_string()
        };
        let changes: [fn(&mut Lab); 4] = [
            |lab| lab.hosts[0].name = "../../../etc".into(),
            |lab| lab.id = "../1".into(),
            |lab| lab.id = "1A2B".into(),
            |lab| lab.format = 2,
        ];
        for change in changes {
            assert!(refused(change).contains("is left alone"));
        }
        std::fs::write(labs.of("lab").join(FILE), "{").unwrap();
        assert!(labs.read("lab").is_err());
    }

    #[test]
    fn only_plain_paths_can_hold_labs() {
        assert!(is_plain(Path::new(super::super::FOLDER)));
        for path in ["/", "/lab", "lab/a/b", "/a b/c", "/a/b:c", "/a/b,c"] {
            assert!(!is_plain(Path::new(path)), "{path}");
        }
    }
}
