//! Mirrors, offline packages, tarballs and programs of this machine.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use assay::package::{Origin, PackageError};
use serde_json::json;
use tar::EntryType;

use super::made::{Made, Shelf, TIKV, archive, program, sha256, wanted, whole};

#[tokio::test]
async fn a_folder_is_a_mirror_with_or_without_manifests() {
    let shelf = Shelf::new();
    let made = Made::with_tikv();
    made.write_to(&shelf.path("mirror"));
    let origin = Origin::Mirror(shelf.path("mirror").display().to_string());
    let package = shelf.tikv(&origin).await.unwrap();
    assert!(package.verified);
    assert_eq!(
        package.origin,
        shelf.path("mirror").join(TIKV).display().to_string()
    );
    let sum = package.sha256.clone();

    made.flat().write_to(&shelf.path("flat"));
    let origin = Origin::Mirror(format!("file://{}", shelf.path("flat").display()));
    let package = shelf.tikv(&origin).await.unwrap();
    assert!(!package.verified);
    assert_eq!(package.sha256, sum);
    assert_eq!(shelf.names(), [sum]);
}

#[tokio::test]
async fn what_a_folder_lacks_is_told_with_what_it_has() {
    let shelf = Shelf::new();
    let mut made = Made::with_tikv();
    made.add(
        "tikv",
        "v7.5.0",
        "linux/arm64",
        program("tikv-server", b"x"),
    );
    made.add("tikv-importer", "v6.1.3", "linux/amd64", program("x", b"x"));
    made.flat().write_to(&shelf.path("flat"));
    let flat = shelf.path("flat").display().to_string();
    let origin = Origin::Mirror(flat.clone());
    let text = |version: &str| {
        let wanted = wanted("tikv", version);
        let (shelf, origin) = (&shelf, &origin);
        async move { shelf.obtain(origin, &wanted).await.unwrap_err().to_string() }
    };
    let none = format!("`{flat}` has no version `v6.1.3` of `tikv`; the closest is `v6.1.2`");
    assert_eq!(text("v6.1.3").await, none);
    assert_eq!(
        text("v7.5.0").await,
        "`tikv` v7.5.0 is not for linux/amd64; there is `linux/arm64`"
    );
    let origin = Origin::Mirror(format!("{flat}/nowhere"));
    let error = shelf.tikv(&origin).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("there is no folder `{flat}/nowhere`")
    );
}

#[tokio::test]
async fn a_tarball_of_a_folder_that_is_not_that_of_the_manifest_is_refused() {
    let shelf = Shelf::new();
    let made = Made::with_tikv();
    made.write_to(&shelf.path("mirror"));
    let mut other = made.files[TIKV].clone();
    *other.last_mut().unwrap() ^= 1;
    fs::write(shelf.path("mirror").join(TIKV), other).unwrap();
    let origin = Origin::Mirror(shelf.path("mirror").display().to_string());
    let error = shelf.tikv(&origin).await.unwrap_err();
    assert!(matches!(error, PackageError::Checksum { .. }), "{error}");
    assert_eq!(shelf.names(), [""; 0]);
}

/// An offline package: a tarball of a folder that is a mirror.
fn offline(name: &str, made: &Made) -> Vec<u8> {
    let paths: Vec<(String, &[u8])> = made
        .files
        .iter()
        .map(|(file, body)| (format!("{name}/{file}"), body.as_slice()))
        .collect();
    let folder = (format!("{name}/"), &[][..]);
    let mut entries = vec![(folder.0.as_str(), EntryType::Directory, folder.1, 0o755)];
    entries.extend(
        paths
            .iter()
            .map(|(path, body)| (path.as_str(), EntryType::Regular, *body, 0o644)),
    );
    archive(&entries)
}

#[tokio::test]
async fn an_offline_package_is_a_mirror_once_it_is_unpacked() {
    let shelf = Shelf::new();
    let mut made = Made::with_tikv();
    made.add("pd", "v6.1.2", "linux/amd64", program("pd-server", b"x"));
    let name = "tidb-community-server-v6.1.2-linux-amd64";
    let path = shelf.path(&format!("{name}.tar.gz"));
    fs::write(&path, offline(name, &made)).unwrap();
    let origin = Origin::Offline(path.clone());
    let package = shelf.tikv(&origin).await.unwrap();
    assert!(package.verified);
    assert_eq!(package.sha256, sha256(&made.files[TIKV]));
    assert_eq!(package.origin, path.join(TIKV).display().to_string());
    let pd = shelf
        .obtain(&origin, &wanted("pd", "v6.1.2"))
        .await
        .unwrap();
    assert!(pd.folder.join("pd-server").is_file());
    let error = shelf
        .obtain(&origin, &wanted("tikv", "v6.1.3"))
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("has no version `v6.1.3` of `tikv`; the closest is `v6.1.2`"),
        "{error}"
    );
    // The same, unpacked by hand.
    made.write_to(&shelf.path("unpacked").join(name));
    for folder in [shelf.path("unpacked"), shelf.path("unpacked").join(name)] {
        let unpacked = shelf.tikv(&Origin::Offline(folder)).await.unwrap();
        assert_eq!(unpacked.folder, package.folder);
    }
}

#[tokio::test]
async fn a_tarball_for_other_hosts_is_refused_by_its_name() {
    let shelf = Shelf::new();
    let path = shelf.path("tikv-v6.1.2-linux-arm64.tar.gz");
    fs::write(&path, program("tikv-server", b"x")).unwrap();
    let origin = Origin::Tarball(path.display().to_string());
    let error = shelf.tikv(&origin).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`tikv` v6.1.2 is not for linux/amd64; there is `linux/arm64`"
    );
    let error = shelf
        .tikv(&Origin::Tarball("/nowhere/x.tar.gz".to_owned()))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "there is no file `/nowhere/x.tar.gz`");
}

#[tokio::test]
async fn a_tarball_that_is_replaced_is_unpacked_anew() {
    let shelf = Shelf::new();
    let path = shelf.path("tikv.tar.gz");
    let origin = Origin::Tarball(path.display().to_string());
    for content in ["one", "two"] {
        fs::write(&path, program("tikv-server", content.as_bytes())).unwrap();
        let package = shelf.tikv(&origin).await.unwrap();
        assert_eq!(
            fs::read_to_string(package.folder.join("tikv-server")).unwrap(),
            content
        );
        // The second time its sum is noted.
        assert_eq!(shelf.tikv(&origin).await.unwrap(), package);
    }
}

#[tokio::test]
async fn a_program_becomes_a_folder_with_it_by_the_name_that_is_wanted() {
    let shelf = Shelf::new();
    let path = shelf.path("patched");
    fs::write(&path, "#!/bin/sh\n").unwrap();
    let mut folders = Vec::new();
    for name in ["tikv-server", "tikv"] {
        let origin = Origin::Binary {
            path: path.clone(),
            name: name.to_owned(),
        };
        let package = shelf.tikv(&origin).await.unwrap();
        let meta = fs::metadata(package.folder.join(name)).unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, 0o755);
        assert_eq!(package.sha256, sha256(b"#!/bin/sh\n"));
        assert_eq!(package.origin, path.display().to_string());
        assert!(!package.verified);
        assert_eq!(fs::read_dir(&package.folder).unwrap().count(), 1);
        folders.push(package.folder);
    }
    assert_ne!(folders[0], folders[1]);
}

#[tokio::test]
async fn what_is_no_program_for_the_hosts_is_refused() {
    let shelf = Shelf::new();
    let path = shelf.path("x");
    let mut arm = b"\x7fELF\x02\x01\x01".to_vec();
    arm.resize(18, 0);
    arm.extend([0xb7, 0]);
    for (content, found) in [
        (arm, "a program for linux/arm64"),
        (
            program("x", b"x"),
            "a packed archive, to be given as a tarball",
        ),
        (Vec::new(), "empty"),
    ] {
        fs::write(&path, content).unwrap();
        let origin = Origin::Binary {
            path: path.clone(),
            name: "x".to_owned(),
        };
        let error = shelf.tikv(&origin).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "`{}` is {found}, not a program for linux/amd64",
                path.display()
            )
        );
    }
    let origin = Origin::Binary {
        path: shelf.folder.path().to_owned(),
        name: "x".to_owned(),
    };
    let text = whole(&shelf.tikv(&origin).await.unwrap_err());
    assert_eq!(
        text,
        format!(
            "cannot read `{}`: it is no file",
            shelf.folder.path().display()
        )
    );
    let origin = Origin::Binary {
        path,
        name: "../x".to_owned(),
    };
    let text = whole(&shelf.tikv(&origin).await.unwrap_err());
    assert_eq!(text, "`../x` is no name of a program");
    assert_eq!(shelf.names(), [""; 0]);
}

#[tokio::test]
async fn what_a_killed_process_left_is_no_obstacle() {
    let shelf = Shelf::new();
    let tarball = program("tikv-server", b"x");
    let path = shelf.path("tikv.tar.gz");
    fs::write(&path, &tarball).unwrap();
    let left = shelf
        .path("packages")
        .join(".partial")
        .join(format!("{}.tree", sha256(&tarball)));
    fs::create_dir_all(left.join("tikv-server")).unwrap();
    let package = shelf
        .tikv(&Origin::Tarball(path.display().to_string()))
        .await
        .unwrap();
    assert!(package.folder.join("tikv-server").is_file());
    assert_eq!(shelf.names(), [package.sha256]);
}

#[tokio::test]
async fn what_runs_everywhere_is_for_every_platform() {
    let shelf = Shelf::new();
    let mut made = Made::default();
    made.add("rules", "v1.0.0", "any/any", program("rules.yml", b"x"));
    made.change("rules", "/signed/nightly", json!(""));
    made.write_to(&shelf.path("mirror"));
    made.flat().write_to(&shelf.path("flat"));
    for folder in ["mirror", "flat"] {
        let origin = Origin::Mirror(shelf.path(folder).display().to_string());
        let package = shelf
            .obtain(&origin, &wanted("rules", "v1.0.0"))
            .await
            .unwrap();
        assert_eq!(package.platform, "any/any");
    }
}
