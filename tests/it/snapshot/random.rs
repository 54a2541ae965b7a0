//! Any tree comes back as it was, whatever happens to it in between.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use assay::snapshot::directory::{restore, take, verify};
use proptest::collection::vec;
use proptest::prelude::*;

use super::trees::account;
use super::{Bench, COPY, marker, quiet};

/// Something that is done to a tree; what cannot be done there is left.
#[derive(Clone, Debug)]
enum Deed {
    File(PathBuf, Vec<u8>),
    Hole(PathBuf, u32),
    Folder(PathBuf),
    Link(PathBuf, PathBuf),
    Second(PathBuf, PathBuf),
    Remove(PathBuf),
    Mode(PathBuf, u32),
    Rename(PathBuf, PathBuf),
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    // Few names, so that deeds meet; some of them awkward.
    prop_oneof![
        Just(b"a".to_vec()),
        Just(b"b".to_vec()),
        Just(b"c d".to_vec()),
        Just(b"\xff\n'\"\\".to_vec()),
        Just(b".assay-marker.old".to_vec()),
    ]
}

fn path() -> impl Strategy<Value = PathBuf> {
    vec(name(), 1..4).prop_map(|names| names.iter().map(|n| OsStr::from_bytes(n)).collect())
}

fn deed() -> impl Strategy<Value = Deed> {
    let content = vec(any::<u8>(), 0..5000);
    prop_oneof![
        4 => (path(), content).prop_map(|(path, content)| Deed::File(path, content)),
        1 => (path(), 0..3_000_000u32).prop_map(|(path, size)| Deed::Hole(path, size)),
        4 => path().prop_map(Deed::Folder),
        1 => (path(), path()).prop_map(|(path, to)| Deed::Link(path, to)),
        1 => (path(), path()).prop_map(|(path, to)| Deed::Second(path, to)),
        1 => path().prop_map(Deed::Remove),
        1 => (path(), 0..0o10000u32).prop_map(|(path, mode)| Deed::Mode(path, mode)),
        1 => (path(), path()).prop_map(|(path, to)| Deed::Rename(path, to)),
    ]
}

fn act(root: &Path, deed: &Deed) -> std::io::Result<()> {
    let at = |path: &PathBuf| root.join(path);
    match deed {
        Deed::File(path, content) => fs::write(at(path), content),
        Deed::Hole(path, size) => {
            let file = fs::File::create(at(path))?;
            file.set_len(u64::from(*size) + 1)?;
            file.write_all_at(b"x", u64::from(*size / 2))
        }
        Deed::Folder(path) => fs::create_dir(at(path)),
        Deed::Link(path, to) => symlink(to, at(path)),
        Deed::Second(path, to) => fs::hard_link(at(path), at(to)),
        Deed::Remove(path) => fs::remove_dir_all(at(path)).or_else(|_| fs::remove_file(at(path))),
        Deed::Mode(path, mode) if !at(path).is_symlink() => {
            // Its owner can read it and write to it, whoever runs the test.
            fs::set_permissions(at(path), fs::Permissions::from_mode(mode | 0o700))
        }
        Deed::Mode(..) => Ok(()),
        Deed::Rename(path, to) => fs::rename(at(path), at(to)),
    }
}

#[test]
fn a_symbolic_link_with_two_names_stays_one() {
    let bench = Bench::new();
    symlink("nowhere", bench.data().join("a")).unwrap();
    fs::hard_link(bench.data().join("a"), bench.data().join("b")).unwrap();
    let known = account(bench.data());
    take(&bench.order, COPY, &mut quiet).unwrap();
    restore(&bench.order, COPY, &mut quiet).unwrap();
    assert_eq!(account(bench.data()), known);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_tree_comes_back_whatever_happened_to_it(
        before in vec(deed(), 0..40),
        after in vec(deed(), 0..20),
    ) {
        let bench = Bench::new();
        for deed in &before {
            let _ = act(bench.data(), deed);
        }
        let known = account(bench.data());
        take(&bench.order, COPY, &mut quiet).unwrap();
        for deed in &after {
            let _ = act(bench.data(), deed);
        }
        restore(&bench.order, COPY, &mut quiet).unwrap();
        prop_assert_eq!(account(bench.data()), known);
        verify(bench.snapshot(), &marker(), &mut quiet).unwrap();
        prop_assert_eq!(bench.names(), ["data", "snapshots", "t0", "t0.manifest.json"]);
    }
}
