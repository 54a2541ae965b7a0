//! Removing a lab's folder. It stops at anything that is mounted: what lies beyond is not the lab's, and may be the user's
//! whole machine.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::{LabError, io};
use crate::host::mounts;

/// Removes a folder with all that is in it, the files named in `last` at the end.
///
/// # Errors
/// Something is mounted in it, in which case nothing was removed; or the system refuses.
pub(super) fn remove(folder: &Path, last: &str) -> Result<(), LabError> {
    let real = folder.canonicalize().map_err(io("read", folder))?;
    if real != folder || folder.components().count() < 3 {
        return Err(foreign(folder, "it is not where it seems to be"));
    }
    if let Some(point) = mounted_below(folder)? {
        return Err(foreign(&point, "something is mounted there"));
    }
    let mount = mount_id(folder)?;
    for entry in entries(folder)? {
        if entry.file_name().is_none_or(|name| name != last) {
            remove_entry(&entry, mount)?;
        }
    }
    let last = folder.join(last);
    if last.symlink_metadata().is_ok() {
        remove_entry(&last, mount)?;
    }
    fs::remove_dir(folder).map_err(io("remove", folder))
}

/// The first mount at or below a folder.
fn mounted_below(folder: &Path) -> Result<Option<PathBuf>, LabError> {
    let mounts = mounts().map_err(io("read", Path::new("/proc/self/mountinfo")))?;
    let mut points = mounts.into_iter().map(|mount| mount.point);
    Ok(points.find(|point| point.starts_with(folder)))
}

/// Links are removed, never followed. What lies on another mount, even one made this moment, is not touched.
fn remove_entry(path: &Path, mount: u64) -> Result<(), LabError> {
    let meta = match path.symlink_metadata() {
        Ok(meta) => meta,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io("read", path)(error)),
    };
    if mount_id(path)? != mount {
        return Err(foreign(path, "something is mounted there"));
    }
    if !meta.is_dir() {
        return fs::remove_file(path).map_err(io("remove", path));
    }
    for entry in entries(path)? {
        remove_entry(&entry, mount)?;
    }
    fs::remove_dir(path).map_err(io("remove", path))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    let entries = fs::read_dir(folder).map_err(io("read", folder))?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|e| e.map(|e| e.path())).collect();
    paths.map_err(io("read", folder))
}

/// The id of the mount that a path is on: unlike a device number it tells a folder from one bound over it.
fn mount_id(path: &Path) -> Result<u64, LabError> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let stat = statx(CWD, path, flags, StatxFlags::MNT_ID).map_err(io("read", path))?;
    if stat.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
        return Err(LabError::Kernel("tell mounts apart (it is older than 5.8)"));
    }
    Ok(stat.stx_mnt_id)
}

fn foreign(path: &Path, why: &str) -> LabError {
    LabError::Foreign {
        path: path.to_owned(),
        why: why.to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::host::lab::tool::{command, run};

    /// Says that the test which calls it is skipped, and why: straight to the terminal, since the harness swallows what a
    /// test that passes prints.
    pub(in super::super) fn skipped(why: &str) {
        let thread = std::thread::current();
        let text = format!("skipped: {}: {why}\n", thread.name().unwrap_or("a test"));
        std::io::stderr().write_all(text.as_bytes()).unwrap();
    }

    fn place() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let precious = folder.path().join("precious");
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("file"), "dear").unwrap();
        let lab = folder.path().join("labs/lab");
        fs::create_dir_all(lab.join("hosts/lab1/disk/upper/etc")).unwrap();
        fs::write(lab.join("hosts/lab1/disk/upper/etc/passwd"), "x").unwrap();
        fs::write(lab.join("lab.json"), "{}").unwrap();
        (folder, precious, lab)
    }

    #[test]
    fn a_folder_goes_with_its_links_but_not_with_what_they_lead_to() {
        let (_folder, precious, lab) = place();
        std::os::unix::fs::symlink(&precious, lab.join("hosts/link")).unwrap();
        remove(&lab, "lab.json").unwrap();
        assert!(!lab.exists() && precious.join("file").exists());
    }

    #[test]
    fn a_link_in_place_of_the_folder_is_refused() {
        let (_folder, precious, lab) = place();
        let link = lab.with_file_name("link");
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        assert!(remove(&link, "lab.json").is_err());
        assert!(precious.join("file").exists());
    }

    #[test]
    fn nothing_is_removed_where_something_is_mounted() {
        if !rustix::process::geteuid().is_root() {
            return skipped("only root may mount");
        }
        let (_folder, precious, lab) = place();
        let point = lab.join("hosts/lab1/root");
        fs::create_dir(&point).unwrap();
        let mut mount = command("mount", "");
        run(mount.arg("--bind").arg(&precious).arg(&point), "bind").unwrap();
        let removed = remove(&lab, "lab.json");
        let inner = remove_entry(&lab.join("hosts"), mount_id(&lab).unwrap());
        run(command("umount", "").arg(&point), "unbind").unwrap();

        let error = removed.unwrap_err().to_string();
        assert!(
            error.contains("hosts/lab1/root") && error.contains("mounted"),
            "{error}"
        );
        // Also when the mount was made after the first look, on the same device.
        assert!(inner.unwrap_err().to_string().contains("mounted"));
        assert_eq!(fs::read_to_string(precious.join("file")).unwrap(), "dear");
        assert!(lab.join("lab.json").exists());
        remove(&lab, "lab.json").unwrap();
    }
}
