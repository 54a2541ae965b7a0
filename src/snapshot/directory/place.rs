//! Where data may lie. What these rules refuse is never written to, emptied or removed, whatever a file in it says.

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use crate::host::mounts;
use crate::snapshot::SnapshotError;
use crate::snapshot::error::Tried;

/// The fewest parts of a path that may hold data: `/data/assay/x` has three.
const PARTS: usize = 3;

/// A directory that the rules allow: absolute, without links, there or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place(PathBuf);

impl Place {
    /// Checks a path by the rules, on this machine as it is now.
    pub(super) fn at(path: &Path) -> Result<Self, SnapshotError> {
        Rules::of_this_machine()?.check(path).map(Self)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The folder that it lies in.
    pub(super) fn parent(&self) -> &Path {
        self.0.parent().expect("a place has three parts or more")
    }

    /// A sibling whose name has `suffix` at its end.
    pub(super) fn sibling(&self, suffix: &str) -> PathBuf {
        let mut name = self.0.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    }

    /// Whether something is there.
    pub(super) fn is_taken(&self) -> Result<bool, SnapshotError> {
        is_there(&self.0)
    }

    /// Refuses two places of which one lies in the other.
    pub(super) fn apart_from(&self, other: &Self) -> Result<(), SnapshotError> {
        if self.0.starts_with(&other.0) || other.0.starts_with(&self.0) {
            let why = format!("it and `{}` overlap", other.0.display());
            return Err(refused(&self.0, why));
        }
        Ok(())
    }
}

/// Whether something is at a path; a link counts as itself.
pub(super) fn is_there(path: &Path) -> Result<bool, SnapshotError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).tried("look at", path),
    }
}

/// What the rules know of a machine.
struct Rules {
    homes: Vec<PathBuf>,
    mounts: Vec<PathBuf>,
}

impl Rules {
    fn of_this_machine() -> Result<Self, SnapshotError> {
        let mounts = mounts().tried("read", Path::new("/proc/self/mountinfo"))?;
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        Ok(Self {
            homes: homes(&users, Path::new("/home"))
                .filter_map(|home| home.canonicalize().ok())
                .collect(),
            mounts: mounts.into_iter().map(|mount| mount.point).collect(),
        })
    }

    /// Returns the path without links, if it may hold data.
    fn check(&self, path: &Path) -> Result<PathBuf, SnapshotError> {
        // Written anew, for a slash at the end would hide that the last part is a link.
        let path: &Path = &path.components().collect::<PathBuf>();
        let plain = |part: Component| matches!(part, Component::RootDir | Component::Normal(_));
        if !path.is_absolute() || !path.components().all(plain) {
            return Err(refused(path, "a path from `/` without `..` is wanted"));
        }
        if path.components().skip(1).count() < PARTS {
            return Err(refused(path, "a path of three parts or more is wanted"));
        }
        let found = match fs::symlink_metadata(path) {
            Ok(meta) if meta.is_symlink() => return Err(refused(path, "it is a symbolic link")),
            Ok(meta) if !meta.is_dir() => return Err(refused(path, "it is no directory")),
            Ok(_) => path.canonicalize().tried("find", path)?,
            Err(error) if error.kind() == ErrorKind::NotFound => without_links(path)?,
            Err(error) => return Err(error).tried("look at", path),
        };
        match self.objection(&found) {
            Some(why) => Err(refused(path, why)),
            None => Ok(found),
        }
    }

    /// What speaks against a path without links.
    fn objection(&self, path: &Path) -> Option<String> {
        let shown = path.display();
        if path.components().skip(1).count() < PARTS {
            return Some(format!(
                "it is `{shown}`, a path of three parts or more is wanted"
            ));
        }
        let within = |other: &&PathBuf| other.starts_with(path);
        match self.homes.iter().find(within) {
            Some(home) if home == path => return Some("it is a home".to_owned()),
            Some(home) => return Some(format!("the home `{}` lies in it", home.display())),
            None => {}
        }
        match self.mounts.iter().find(within) {
            Some(point) if point == path => {
                Some("it is the root of a mounted file system".to_owned())
            }
            Some(point) => Some(format!(
                "another file system is mounted in it at `{}`",
                point.display()
            )),
            None => None,
        }
    }
}

/// Root's home, those in the text of `/etc/passwd`, and all that lies in `usual`: users of a directory service are not
/// in that file.
fn homes(users: &str, usual: &Path) -> impl Iterator<Item = PathBuf> {
    let field = |line: &str| line.split(':').nth(5).map(PathBuf::from);
    let known = users.lines().filter_map(field);
    let others = fs::read_dir(usual).into_iter().flatten().flatten();
    [PathBuf::from("/root")]
        .into_iter()
        .chain(known)
        .chain(others.map(|entry| entry.path()))
}

/// A path that is not there yet, its existing part without links.
fn without_links(path: &Path) -> Result<PathBuf, SnapshotError> {
    let mut above = path.ancestors().skip(1);
    let there = above.find(|folder| fs::symlink_metadata(folder).is_ok());
    let there = there.expect("the root is there");
    let rest = path.strip_prefix(there).expect("it lies above the path");
    Ok(there.canonicalize().tried("find", there)?.join(rest))
}

fn refused(path: &Path, why: impl Into<String>) -> SnapshotError {
    SnapshotError::Place {
        path: path.to_owned(),
        why: why.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// The message of the refusal of `path` on a machine with these homes and mounts.
    fn refusal(path: &Path, homes: &[&str], mounts: &[&str]) -> Option<String> {
        let paths = |texts: &[&str]| texts.iter().map(PathBuf::from).collect();
        let rules = Rules {
            homes: paths(homes),
            mounts: paths(mounts),
        };
        rules.check(path).err().map(|error| error.to_string())
    }

    fn refusal_of(path: &str) -> String {
        refusal(Path::new(path), &[], &["/"]).unwrap()
    }

    #[test]
    fn the_root_is_no_place_for_data() {
        assert_eq!(
            refusal_of("/"),
            "`/` is no place for data: a path of three parts or more is wanted"
        );
    }

    #[test]
    fn a_path_of_fewer_than_three_parts_is_no_place_for_data() {
        for path in ["/data", "/data/assay", "/data//assay/", "/data/./assay"] {
            assert!(refusal_of(path).ends_with("three parts or more is wanted"));
        }
        assert_eq!(refusal(Path::new("/data/assay/x"), &[], &["/"]), None);
    }

    #[test]
    fn a_relative_path_or_one_that_leads_upwards_is_no_place_for_data() {
        for path in ["data/assay/x", "/data/assay/x/../../y", ""] {
            assert!(refusal_of(path).ends_with("a path from `/` without `..` is wanted"));
        }
    }

    #[test]
    fn a_home_is_no_place_for_data_but_what_lies_in_it_is() {
        let homes = ["/export/home/ann"];
        let refusal = |path: &str| refusal(Path::new(path), &homes, &["/"]);
        assert_eq!(
            refusal("/export/home/ann").unwrap(),
            "`/export/home/ann` is no place for data: it is a home"
        );
        assert_eq!(refusal("/export/home/ann/data"), None);
    }

    #[test]
    fn a_directory_with_homes_in_it_is_no_place_for_data() {
        let said = refusal(Path::new("/srv/nfs/home"), &["/srv/nfs/home/ann"], &["/"]);
        assert_eq!(
            said.unwrap(),
            "`/srv/nfs/home` is no place for data: the home `/srv/nfs/home/ann` lies in it"
        );
    }

    #[test]
    fn the_root_of_a_mounted_file_system_is_no_place_for_data() {
        let said = refusal(Path::new("/mnt/disk/one"), &[], &["/", "/mnt/disk/one"]);
        assert_eq!(
            said.unwrap(),
            "`/mnt/disk/one` is no place for data: it is the root of a mounted file system"
        );
    }

    #[test]
    fn a_directory_with_a_file_system_mounted_in_it_is_no_place_for_data() {
        let mounts = ["/", "/mnt/disk/one/deep/er"];
        let said = refusal(Path::new("/mnt/disk/one"), &[], &mounts);
        assert_eq!(
            said.unwrap(),
            "`/mnt/disk/one` is no place for data: \
             another file system is mounted in it at `/mnt/disk/one/deep/er`"
        );
    }

    #[test]
    fn a_link_is_no_place_for_data_even_with_a_slash_at_its_end() {
        let folder = tempfile::TempDir::new().unwrap();
        let (real, link) = (folder.path().join("real/x"), folder.path().join("link"));
        fs::create_dir_all(&real).unwrap();
        symlink(&real, &link).unwrap();
        let mut slash = link.clone().into_os_string();
        slash.push("/");
        for path in [link, slash.into()] {
            let said = refusal(&path, &[], &["/"]).unwrap();
            assert!(said.ends_with("it is a symbolic link"), "{said}");
        }
    }

    #[test]
    fn a_link_on_the_way_is_followed_before_the_rules_are_asked() {
        let folder = tempfile::TempDir::new().unwrap();
        let link = folder.path().join("link");
        symlink("/usr", &link).unwrap();
        let there = refusal(&link.join("share"), &[], &["/"]).unwrap();
        assert!(there.ends_with("it is `/usr/share`, a path of three parts or more is wanted"));
        let not_yet = refusal(&link.join("not-there-yet"), &[], &["/"]).unwrap();
        assert!(not_yet.contains("it is `/usr/not-there-yet`"), "{not_yet}");
    }

    #[test]
    fn a_file_is_no_place_for_data() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let said = refusal(&file, &[], &["/"]).unwrap();
        assert!(said.ends_with("it is no directory"));
    }

    #[test]
    fn the_homes_are_those_of_the_list_of_users_and_of_the_usual_folder() {
        let folder = tempfile::TempDir::new().unwrap();
        let other = folder.path().join("bob");
        fs::create_dir(&other).unwrap();
        let users =
            "daemon:x:1:1::/usr/sbin:/bin/sh\n\nann:x:1000:1000::/export/home/ann:/bin/sh\nbad";
        let found: Vec<_> = homes(users, folder.path()).collect();
        let known = ["/root", "/usr/sbin", "/export/home/ann"].map(Path::new);
        assert_eq!(found[..3], known);
        assert_eq!(found[3..], [other.as_path()]);
        let without = homes("", Path::new("/no/such/folder"));
        assert_eq!(Vec::from_iter(without), [Path::new("/root")]);
    }
}
