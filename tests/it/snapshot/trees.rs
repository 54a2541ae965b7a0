//! Trees for the tests: how they are made, and an account of them that shares nothing with the code under test.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::is_root;

/// What is known of one file, folder or link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    mode: u32,
    owner: (u32, u32),
    modified: (i64, i64),
    /// The content of a file, the aim of a link, nothing of a folder.
    content: Vec<u8>,
    /// The first path of the same file.
    first: PathBuf,
}

/// Everything in a tree by path, but for the marker.
pub(super) fn account(root: &Path) -> BTreeMap<PathBuf, Known> {
    let mut known = BTreeMap::new();
    let mut firsts = HashMap::new();
    visit(root, Path::new(""), &mut known, &mut firsts);
    known
}

fn visit(
    root: &Path,
    path: &Path,
    known: &mut BTreeMap<PathBuf, Known>,
    firsts: &mut HashMap<u64, PathBuf>,
) {
    let full = root.join(path);
    let meta = fs::symlink_metadata(&full).unwrap();
    let content = if meta.is_symlink() {
        let to = fs::read_link(&full).unwrap();
        to.as_os_str().as_bytes().to_vec()
    } else if meta.is_file() {
        fs::read(&full).unwrap()
    } else {
        Vec::new()
    };
    let first = firsts.entry(meta.ino()).or_insert_with(|| path.to_owned());
    let entry = Known {
        mode: meta.mode(),
        owner: (meta.uid(), meta.gid()),
        modified: (meta.mtime(), meta.mtime_nsec()),
        content,
        first: first.clone(),
    };
    known.insert(path.to_owned(), entry);
    if meta.is_dir() {
        let names = fs::read_dir(&full).unwrap().map(|e| e.unwrap().file_name());
        let mut names: Vec<_> = names.filter(|name| name != ".assay-marker").collect();
        names.sort();
        for name in names {
            visit(root, &path.join(name), known, firsts);
        }
    }
}

/// Bytes that a tree takes on disk.
pub(super) fn allocated(path: &Path) -> u64 {
    fs::symlink_metadata(path).unwrap().blocks() * 512
}

/// Fills a directory with everything that makes copying hard. `outside` is a file beside it.
pub(super) fn fill_oddly(root: &Path, outside: &Path) {
    let at = |name: &str| root.join(name);
    fs::write(at("empty"), "").unwrap();
    fs::write(at("plain"), "plain").unwrap();
    fs::write(at("with space\nand newline"), "odd").unwrap();
    fs::write(root.join(OsStr::from_bytes(b"no\xffutf8")), "bytes").unwrap();
    fs::write(at(".hidden"), "hidden").unwrap();
    fs::create_dir_all(at("deep/er/still")).unwrap();
    fs::write(
        at("deep/er/still/.assay-marker"),
        "only the one at the top is one",
    )
    .unwrap();
    fs::create_dir(at("many")).unwrap();
    for i in 0..500 {
        fs::write(at(&format!("many/{i}")), i.to_string()).unwrap();
    }
    sparse(&at("sparse"));
    fs::hard_link(at("plain"), at("deep/second name")).unwrap();
    symlink(outside, at("link outside")).unwrap();
    symlink("nowhere/at/all", at("dangling")).unwrap();
    symlink("deep", at("link to a folder")).unwrap();
    set_modes(root);
    // Folders' times last: what happened in them changed them.
    for (i, name) in ["plain", "empty", "deep/er", "deep", ""].iter().enumerate() {
        let age = Duration::new(1_000_000 * (i as u64 + 1), 123_456_789);
        let file = File::open(at(name)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + age).unwrap();
    }
}

/// 8 MiB with 100 KB of data in the middle and one byte before the end.
fn sparse(path: &Path) {
    let file = File::create(path).unwrap();
    file.set_len(8 << 20).unwrap();
    file.write_all_at(&[b's'; 100_000], 3 << 20).unwrap();
    file.write_all_at(b"e", (8 << 20) - 5000).unwrap();
}

fn set_modes(root: &Path) {
    let mode = |name: &str, mode: u32| {
        fs::set_permissions(root.join(name), Permissions::from_mode(mode)).unwrap();
    };
    fs::write(root.join("read only"), "ro").unwrap();
    mode("read only", 0o400);
    fs::write(root.join("set-id"), "s").unwrap();
    mode("set-id", 0o6755);
    fs::create_dir(root.join("sticky")).unwrap();
    mode("sticky", 0o1777);
    fs::create_dir(root.join("closed")).unwrap();
    fs::write(root.join("closed/file"), "in a closed folder").unwrap();
    mode("closed", 0o500);
    if is_root() {
        // Nobody else can read them, not even their owner.
        fs::write(root.join("mode 0"), "zero").unwrap();
        mode("mode 0", 0);
        fs::create_dir(root.join("folder of mode 0")).unwrap();
        fs::write(root.join("folder of mode 0/file"), "zero").unwrap();
        mode("folder of mode 0", 0);
        fs::write(root.join("of another user"), "mine").unwrap();
        std::os::unix::fs::chown(root.join("of another user"), Some(1234), Some(4321)).unwrap();
    }
}

/// Changes a filled directory in every way that a database might.
pub(super) fn damage(root: &Path) {
    let at = |name: &str| root.join(name);
    fs::write(at("plain"), "overwritten and longer").unwrap();
    fs::remove_file(at("empty")).unwrap();
    fs::write(at("new"), "new").unwrap();
    fs::remove_dir_all(at("many")).unwrap();
    fs::write(at("many"), "a file now").unwrap();
    let sparse = File::options().write(true).open(at("sparse")).unwrap();
    sparse.write_all_at(b"written in place", 3 << 20).unwrap();
    sparse.set_len(5 << 20).unwrap();
    fs::remove_file(at("dangling")).unwrap();
    fs::create_dir(at("dangling")).unwrap();
    fs::set_permissions(at("read only"), Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(root, Permissions::from_mode(0o711)).unwrap();
}
