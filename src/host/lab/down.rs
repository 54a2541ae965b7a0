//! Removing a lab, whatever there is of it: whole, half-made, or what a crash left. Every step finds its things by name and
//! may be repeated; the description goes last, so that a removal that was cut off can be taken up again.

use std::fs::File;

use super::description::FILE;
use super::locks::Mode;
use super::{
    Hear, Lab, LabError, Labs, cgroups, image, inventory, links, nspawn, processes, removal,
};

impl Labs {
    /// Removes a lab. While another process makes or removes it, that is waited for.
    ///
    /// # Errors
    /// There is none by that name, or something of it cannot be removed.
    pub fn down(&self, name: &str, hear: Hear) -> Result<(), LabError> {
        let held = match self.lock(name, Mode::Alone) {
            Err(LabError::Busy(_)) => {
                hear(&format!(
                    "another assay process works on lab `{name}`: waiting for it"
                ));
                match self.lock(name, Mode::AloneInTime) {
                    // It was removed by the other.
                    Err(LabError::None(_)) => return Ok(()),
                    locked => locked?,
                }
            }
            locked => locked?,
        };
        match self.read(name)? {
            Some(lab) => self.clear(&lab, held),
            // It died before its description was written, and nothing is made before that.
            None => self.remove_folder(name, held),
        }
    }

    /// Removes all that there is of a lab.
    pub(super) fn clear(&self, lab: &Lab, held: File) -> Result<(), LabError> {
        processes::kill_tools(lab)?;
        processes::kill(lab, &lab.hosts)?;
        image::wait_until_free(lab, &self.of(&lab.name))?;
        links::remove(lab)?;
        for host in &lab.hosts {
            cgroups::remove(&lab.cgroup(host))?;
            nspawn::clean(lab, host, &self.paths(lab, host).lock_name)?;
        }
        inventory::remove(lab)?;
        self.remove_folder(&lab.name, held)?;
        if lab.first_netns {
            links::remove_namespaces()?;
        }
        Ok(())
    }

    /// Removes the lab's folder, and the folder of all labs with the last of them.
    fn remove_folder(&self, name: &str, held: File) -> Result<(), LabError> {
        removal::remove(&self.of(name), FILE)?;
        drop(held);
        let _all = self.lock_all()?;
        // It stays where there are other labs; so does the folder above where there is anything else.
        if std::fs::remove_dir(&self.folder).is_ok()
            && let Some(above) = self
                .folder
                .parent()
                .filter(|above| above.ends_with("assay"))
        {
            let _ = std::fs::remove_dir(above);
        }
        Ok(())
    }

    /// The names of all labs, also of half-made ones.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn all(&self) -> Result<Vec<String>, LabError> {
        self.names()
    }
}
