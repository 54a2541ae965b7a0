//! Installing and removing a deployment's programs, in folders of a test and with a stand-in for `systemctl`; what takes a real
//! systemd stands in `cluster/service.rs`.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use assay::host::transfer::{Source, TransferError};
use assay::host::{FakeHost, Fault, Host, LocalHost};
use assay::service::{
    Directory, File, Here, Install, Installed, Removal, Remove, Removed, ServiceError, Systemd,
    UnitFile, agent, install, removal, remove, unit_name, unit_prefix,
};
use assay::snapshot::Marker;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A machine: a host's directory, disks beside it, a folder of units, and a `systemctl` that notes what it is asked.
struct Machine {
    root: TempDir,
}

fn marker(deployment: &str) -> Marker {
    Marker {
        experiment: "upgrade".into(),
        deployment: deployment.into(),
    }
}

impl Machine {
    fn new() -> Self {
        let root = tempfile::Builder::new().prefix("m-").tempdir_in("/tmp");
        let machine = Self {
            root: root.unwrap(),
        };
        for folder in ["srv/assay", "disk", "units"] {
            fs::create_dir_all(machine.path(folder)).unwrap();
        }
        let tool = machine.path("systemctl");
        // Every unit is one that nobody knows.
        let script = format!(
            "#!/bin/sh\necho \"$*\" >>{}\n[ \"$1\" = show ] || exit 0\nwhile [ \"$1\" != -- ]; do shift; done; shift\n\
             for unit; do echo LoadState=not-found; echo ActiveState=inactive; echo; done\n",
            machine.path("asked").display()
        );
        fs::write(&tool, script).unwrap();
        fs::set_permissions(&tool, Permissions::from_mode(0o755)).unwrap();
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    fn systemd(&self) -> Systemd {
        Systemd::at(self.path("units"), self.path("systemctl"))
    }

    /// What systemd was asked, but for questions.
    fn asked(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("asked")).unwrap_or_default();
        let _ = fs::remove_file(self.path("asked"));
        let words = text.lines().filter_map(|line| line.split(' ').next());
        words.filter(|w| *w != "show").map(str::to_owned).collect()
    }

    fn directory(&self, path: &str, mode: u32, marked: bool) -> Directory {
        Directory {
            path: self.path(path),
            owner: None,
            mode,
            marked,
        }
    }

    fn file(&self, path: &str, content: &str) -> File {
        File {
            path: self.path(path),
            content: content.into(),
            mode: 0o640,
            owner: None,
        }
    }

    /// One store with its data in the deployment's directory, one with its data on a disk of its own.
    fn request(&self, deployment: &str) -> Install {
        let base = format!("srv/assay/upgrade/{deployment}");
        let of = |name: &str| format!("{base}/{name}");
        let disk = format!("disk/{deployment}/kv2/data");
        Install {
            marker: marker(deployment),
            host_directory: self.path("srv/assay"),
            base: self.path(&base),
            directories: vec![
                self.directory(&of("kv1"), 0o755, false),
                self.directory(&of("kv1/conf"), 0o750, false),
                self.directory(&of("kv1/data"), 0o700, true),
                self.directory(&disk, 0o700, false),
            ],
            files: vec![
                self.file(&of("kv1/conf/tikv.toml"), "a = 1\n"),
                self.file(&of("kv2/scripts/run_tikv.sh"), "exec true\n"),
            ],
            units: vec![UnitFile {
                name: unit_name(&marker(deployment), "tikv", 20160),
                content: "[Service]\nExecStart=/bin/true\n".into(),
            }],
        }
    }

    fn install(&self, request: &Install) -> Result<Installed, ServiceError> {
        install(request, || Ok(self.systemd()))
    }

    fn removal_of(&self, deployment: &str) -> Removal {
        Removal {
            marker: marker(deployment),
            host_directory: self.path("srv/assay"),
            base: self.path(&format!("srv/assay/upgrade/{deployment}")),
            directories: Vec::new(),
            unit_prefix: unit_prefix(&marker(deployment)),
        }
    }

    fn removal(&self, deployment: &str) -> Removed {
        removal(&self.removal_of(deployment), Some(self.systemd())).unwrap()
    }

    fn remove(&self, deployment: &str, keep: Vec<PathBuf>) -> Result<Removed, ServiceError> {
        let request = Remove {
            removal: self.removal_of(deployment),
            keep,
            limit: Duration::from_secs(5),
        };
        remove(&request, Some(self.systemd()))
    }

    /// Everything on the machine: kind, mode, owner and content by path.
    fn listing(&self) -> BTreeMap<PathBuf, (u32, u32, Vec<u8>)> {
        let walk = walkdir::WalkDir::new(self.root.path());
        let all = walk
            .into_iter()
            .map(Result::unwrap)
            .filter(|entry| entry.file_name() != "asked");
        all.map(|entry| {
            let meta = entry.metadata().unwrap();
            let content = match meta.is_file() {
                true => fs::read(entry.path()).unwrap(),
                false => Vec::new(),
            };
            (entry.into_path(), (meta.mode(), meta.uid(), content))
        })
        .collect()
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn what_is_asked_for_is_there_and_marked() {
    let machine = Machine::new();
    let request = machine.request("v1");
    let installed = machine.install(&request).unwrap();
    assert!(installed.reloaded);
    assert_eq!(installed.units, [request.units[0].name.clone()]);
    let base = &request.base;
    assert_eq!(mode(&base.join("kv1/conf")), 0o750);
    assert_eq!(mode(&base.join("kv1/conf/tikv.toml")), 0o640);
    assert_eq!(
        fs::read_to_string(base.join("kv1/conf/tikv.toml")).unwrap(),
        "a = 1\n"
    );
    let disk = machine.path("disk/v1/kv2/data");
    assert_eq!(mode(&disk), 0o700);
    for marked in [base.clone(), base.join("kv1/data"), disk] {
        assert_eq!(
            Marker::of(&marked).unwrap(),
            Some(marker("v1")),
            "{marked:?}"
        );
    }
    assert_eq!(Marker::of(&base.join("kv1/conf")).unwrap(), None);
    let unit = machine.path("units").join(&request.units[0].name);
    assert_eq!(
        fs::read_to_string(&unit).unwrap(),
        "# assay: {\"experiment\":\"upgrade\",\"deployment\":\"v1\"}\n[Service]\nExecStart=/bin/true\n"
    );
    assert_eq!(mode(&unit), 0o644);
}

#[test]
fn what_is_there_as_wanted_is_left_alone_and_only_what_differs_is_changed() {
    let machine = Machine::new();
    let mut request = machine.request("v1");
    machine.install(&request).unwrap();
    let data = request.base.join("kv1/data/table");
    fs::write(&data, "kept").unwrap();
    machine.asked();
    let before = machine.listing();
    assert_eq!(machine.install(&request).unwrap(), Installed::default());
    assert_eq!(machine.listing(), before);
    assert_eq!(machine.asked(), [""; 0]);
    request.files[0].content = "a = 2\n".into();
    request.directories[1].mode = 0o755;
    let installed = machine.install(&request).unwrap();
    let changed = [
        request.directories[1].path.clone(),
        request.files[0].path.clone(),
    ];
    assert_eq!(installed.paths, changed);
    assert!(!installed.reloaded);
    request.units[0].content.push_str("Nice=1\n");
    let installed = machine.install(&request).unwrap();
    assert_eq!((installed.paths.len(), installed.units.len()), (0, 1));
    assert_eq!(machine.asked(), ["daemon-reload"]);
    assert_eq!(fs::read_to_string(data).unwrap(), "kept");
}

/// The message of an installation that is refused; nothing was changed by it.
#[track_caller]
fn refusal(machine: &Machine, request: &Install) -> String {
    let before = machine.listing();
    let error = machine.install(request).unwrap_err();
    assert_eq!(machine.listing(), before, "{error}");
    error.to_string()
}

#[test]
fn places_of_others_are_refused_before_anything_is_changed() {
    let machine = Machine::new();
    let request = machine.request("v1");
    let disk = machine.path("disk/v1/kv2/data");
    fs::create_dir_all(&disk).unwrap();
    fs::write(disk.join("photo"), "").unwrap();
    let said = refusal(&machine, &request);
    assert!(said.contains("carries no marker of assay"), "{said}");
    fs::remove_file(disk.join("photo")).unwrap();
    let other = machine.request("v2");
    machine.install(&other).unwrap();
    let mut theirs = request.clone();
    theirs.base.clone_from(&other.base);
    theirs.directories.clear();
    theirs.files.clear();
    let said = refusal(&machine, &theirs);
    assert!(
        said.contains("carries the marker of deployment `v2`"),
        "{said}"
    );
    let mut root = request.clone();
    root.directories[3].path = "/".into();
    let said = refusal(&machine, &root);
    assert!(said.contains("`/` is no place for data"), "{said}");
    root.directories[3].path = "/root".into();
    refusal(&machine, &root);
    root.directories[3].path = machine.path("srv/assay/../../disk");
    let said = refusal(&machine, &root);
    assert!(
        said.contains("a path from `/` without `..` is wanted"),
        "{said}"
    );
}

#[test]
fn units_of_others_are_refused_before_anything_is_changed() {
    let machine = Machine::new();
    let mut request = machine.request("v1");
    let unit = machine.path("units").join(&request.units[0].name);
    fs::write(&unit, "[Service]\n").unwrap();
    let said = refusal(&machine, &request);
    assert!(said.contains("it was not made by assay"), "{said}");
    fs::write(
        &unit,
        "# assay: {\"experiment\":\"upgrade\",\"deployment\":\"other\"}\n",
    )
    .unwrap();
    let said = refusal(&machine, &request);
    assert!(
        said.contains("it is the one of deployment `other`"),
        "{said}"
    );
    fs::remove_file(&unit).unwrap();
    symlink("/etc/hostname", &unit).unwrap();
    refusal(&machine, &request);
    fs::remove_file(&unit).unwrap();
    for name in [
        "ssh.service",
        "assay-x.service",
        "../assay-upgrade-v1-x-1.service",
    ] {
        request.units[0].name = name.into();
        refusal(&machine, &request);
    }
}

#[test]
fn users_that_are_not_there_and_files_outside_are_refused() {
    let machine = Machine::new();
    let mut request = machine.request("v1");
    request.files[0].owner = Some("no-such-user".into());
    let said = refusal(&machine, &request);
    assert!(said.contains("useradd"), "{said}");
    request.files[0].owner = None;
    for path in ["srv/assay/other/file", "disk/file", "srv/assay/upgrade/v1"] {
        request.files[0].path = machine.path(path);
        refusal(&machine, &request);
    }
    request.files[0].path = request.base.join(".assay-marker");
    refusal(&machine, &request);
    request.files[0].path = request.base.join("file");
    request.files[0].mode = 0o4755;
    refusal(&machine, &request);
}

#[test]
fn links_in_the_deployments_directory_are_not_followed() {
    let machine = Machine::new();
    let request = machine.request("v1");
    machine.install(&request).unwrap();
    let elsewhere = machine.path("disk/elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let conf = request.base.join("kv1/conf");
    fs::remove_dir_all(&conf).unwrap();
    symlink(&elsewhere, &conf).unwrap();
    let error = machine.install(&request).unwrap_err().to_string();
    assert!(
        error.contains("it is no directory, or a link to one"),
        "{error}"
    );
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    machine.remove("v1", Vec::new()).unwrap();
    assert!(elsewhere.is_dir());
}

#[test]
fn a_removal_leaves_the_machine_as_it_was_and_goes_as_it_said() {
    let machine = Machine::new();
    let empty = machine.path("disk/v1/kv2/data");
    for was_there in [false, true] {
        if was_there {
            fs::create_dir_all(&empty).unwrap();
            fs::set_permissions(&empty, Permissions::from_mode(0o711)).unwrap();
        }
        let before = machine.listing();
        let request = machine.request("v1");
        machine.install(&request).unwrap();
        fs::write(empty.join("table"), "1").unwrap();
        fs::write(request.base.join("kv1/data/table"), "1").unwrap();
        let installed = machine.listing();
        let said = machine.removal("v1");
        assert_eq!(machine.listing(), installed, "it only looks");
        let removed = machine.remove("v1", Vec::new()).unwrap();
        assert_eq!((&removed.units, &removed.paths), (&said.units, &said.paths));
        assert_eq!(machine.listing(), before);
        let gone = said.paths.iter().filter(|path| !path.exists());
        assert_eq!(gone.count() + usize::from(was_there), said.paths.len());
        for path in installed.keys().filter(|path| !before.contains_key(*path)) {
            assert!(
                said.paths.iter().any(|root| path.starts_with(root)),
                "{path:?} was not said"
            );
        }
        let again = machine.remove("v1", Vec::new()).unwrap();
        assert_eq!(again, Removed::default());
        assert_eq!(machine.listing(), before);
    }
}

#[test]
fn a_removal_leaves_what_is_of_others() {
    let machine = Machine::new();
    machine.install(&machine.request("v2")).unwrap();
    let theirs = machine.path("units/assay-upgrade-v1-old-1.service");
    fs::write(&theirs, "[Service]\n").unwrap();
    let before = machine.listing();
    machine.install(&machine.request("v1")).unwrap();
    let mut request = machine.removal_of("v1");
    request.directories = vec![
        machine.path("srv/assay/upgrade/v2/kv1/data"),
        machine.path("disk"),
        machine.path("srv/assay"),
    ];
    let said = removal(&request, Some(machine.systemd())).unwrap();
    let left: Vec<&Path> = said.left.iter().map(|left| left.path.as_path()).collect();
    let [v2, disk, assay] = &request.directories[..] else {
        unreachable!()
    };
    assert_eq!(left, [&theirs, disk, assay, v2]);
    let limit = Duration::from_secs(5);
    let request = Remove {
        removal: request,
        keep: Vec::new(),
        limit,
    };
    remove(&request, Some(machine.systemd())).unwrap();
    assert_eq!(machine.listing(), before);
}

#[test]
fn data_that_is_to_stay_stays_and_serves_the_next_installation() {
    let machine = Machine::new();
    let before = machine.listing();
    let request = machine.request("v1");
    machine.install(&request).unwrap();
    let data = [
        request.base.join("kv1/data"),
        machine.path("disk/v1/kv2/data"),
    ];
    for data in &data {
        fs::write(data.join("table"), "1").unwrap();
    }
    let removed = machine.remove("v1", data.to_vec()).unwrap();
    assert_eq!(removed.units.len(), 1);
    for data in &data {
        assert_eq!(fs::read_to_string(data.join("table")).unwrap(), "1");
    }
    assert!(!request.base.join("kv1/conf").exists());
    assert!(!request.base.join("kv2").exists());
    machine.install(&request).unwrap();
    assert!(data[0].join("table").exists());
    machine.remove("v1", Vec::new()).unwrap();
    assert_eq!(machine.listing(), before);
}

/// Whatever file or folder is missing already, the next removal does the rest.
#[test]
fn an_interrupted_removal_is_finished_by_the_next() {
    let machine = Machine::new();
    let before = machine.listing();
    let request = machine.request("v1");
    machine.install(&request).unwrap();
    let steps = machine.removal("v1").paths;
    assert!(steps.len() >= 5, "{steps:?}");
    for done in 0..=steps.len() {
        machine.install(&request).unwrap();
        for path in &steps[..done] {
            match path.is_dir() {
                true => fs::remove_dir_all(path).unwrap(),
                false => fs::remove_file(path).unwrap(),
            }
        }
        machine.remove("v1", Vec::new()).unwrap();
        let left: Vec<_> = machine
            .listing()
            .into_keys()
            .filter(|p| !before.contains_key(p))
            .collect();
        assert!(left.is_empty(), "{left:?} after {done} of {steps:?}");
    }
    // The directory was out of its place, and half of it gone.
    machine.install(&request).unwrap();
    let mut outgoing = request.base.clone().into_os_string();
    outgoing.push(".outgoing");
    fs::rename(&request.base, &outgoing).unwrap();
    fs::remove_dir_all(Path::new(&outgoing).join("kv1")).unwrap();
    machine.remove("v1", Vec::new()).unwrap();
    assert_eq!(machine.listing(), before);
}

#[test]
fn a_unit_file_that_was_being_written_goes_as_well() {
    let machine = Machine::new();
    let before = machine.listing();
    machine.install(&machine.request("v1")).unwrap();
    let unit = unit_name(&marker("v1"), "tikv", 20160);
    for content in [
        "",
        "# assay: {\"exp",
        "# assay: {\"experiment\":\"upgrade\",\"deployment\":\"v1\"}\n[Uni",
    ] {
        let path = machine.path(&format!("units/.{unit}.assay-new"));
        fs::write(&path, content).unwrap();
        assert!(machine.removal("v1").paths.contains(&path));
        machine.remove("v1", Vec::new()).unwrap();
        assert!(!path.exists());
    }
    assert_eq!(machine.listing(), before);
}

#[test]
fn an_installation_that_died_is_finished_by_the_next() {
    let machine = Machine::new();
    let whole = machine.request("v1");
    let mut half = whole.clone();
    half.files.truncate(1);
    half.directories.truncate(2);
    half.units.clear();
    machine.install(&half).unwrap();
    machine.install(&whole).unwrap();
    let finished = machine.listing();
    machine.remove("v1", Vec::new()).unwrap();
    machine.install(&whole).unwrap();
    assert_eq!(machine.listing(), finished);
}

#[test]
fn agents_are_known_by_name_and_say_what_they_need() {
    let here = Here { home: None, now: 0 };
    assert!(agent("service-nothing", Value::Null, &here).is_none());
    let error = agent("service-start", json!({}), &here)
        .unwrap()
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot understand the request to `service-start`"
    );
    let run = json!({"program": "echo", "args": ["a b"], "limit": {"secs": 60, "nanos": 0}});
    let ran = agent("service-run", run, &here).unwrap().unwrap();
    assert_eq!(
        ran,
        json!({"status": 0, "signal": null, "stdout": "a b\n", "stderr": ""})
    );
    if !Path::new("/run/systemd/system").is_dir() {
        let status = json!({"units": ["assay-x.service"]});
        let error = agent("service-status", status, &here).unwrap().unwrap_err();
        assert!(
            error.to_string().contains("services need systemd"),
            "{error}"
        );
    }
}

/// A source of one file.
async fn source(folder: &TempDir, content: &str) -> Source {
    let path = folder.path().join("package");
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    Source::read(&path).await.unwrap()
}

fn local(folder: &TempDir) -> LocalHost {
    LocalHost::new("here", folder.path(), "assay")
}

#[tokio::test]
async fn this_machine_gets_files_and_trees_whole_and_once() {
    let (here, there) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let host = local(&there);
    let file = source(&here, "binary").await;
    let heard = Arc::new(AtomicU64::new(0));
    let hear = Arc::clone(&heard);
    let progress: assay::host::transfer::Progress = Arc::new(move |bytes| {
        hear.fetch_add(bytes, Ordering::Relaxed);
    });
    let target = there.path().join("deep/bin/tikv-server");
    let sent = host
        .send(&file, &target, false, Arc::clone(&progress))
        .await
        .unwrap();
    assert_eq!((sent.bytes, sent.sent, sent.files), (6, 6, 1));
    assert_eq!(heard.load(Ordering::Relaxed), 6);
    assert_eq!(
        (fs::read(&target).unwrap(), mode(&target)),
        (b"binary".to_vec(), 0o755)
    );
    let sent = host
        .send(&file, &target, false, Arc::clone(&progress))
        .await
        .unwrap();
    assert_eq!((sent.bytes, sent.sent), (6, 0));
    fs::create_dir(here.path().join("inner")).unwrap();
    symlink("package", here.path().join("link")).unwrap();
    let tree = Source::read(here.path()).await.unwrap();
    let target = there.path().join("tree");
    host.send(&tree, &target, false, progress).await.unwrap();
    assert_eq!(fs::read(target.join("package")).unwrap(), b"binary");
    assert!(target.join("inner").is_dir());
    assert_eq!(
        fs::read_link(target.join("link")).unwrap(),
        Path::new("package")
    );
    let names: Vec<_> = fs::read_dir(there.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "nothing else is left: {names:?}");
}

#[tokio::test]
async fn something_else_in_its_place_is_an_error_here_unless_it_may_be_replaced() {
    let (here, there) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let host = local(&there);
    let file = source(&here, "new").await;
    let silent = || -> assay::host::transfer::Progress { Arc::new(|_| {}) };
    let target = there.path().join("bin");
    fs::write(&target, "old").unwrap();
    let error = host
        .send(&file, &target, false, silent())
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("exists and is something else"),
        "{error}"
    );
    host.send(&file, &target, true, silent()).await.unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"new");
    let folder = there.path().join("folder");
    fs::create_dir(&folder).unwrap();
    host.send(&file, &folder, true, silent()).await.unwrap_err();
    fs::write(here.path().join("package"), "changed since").unwrap();
    let other = there.path().join("other");
    let error = host.send(&file, &other, false, silent()).await.unwrap_err();
    assert!(
        error.to_string().contains("changed while it was sent"),
        "{error}"
    );
    assert!(!other.exists());
}

#[tokio::test]
async fn a_fake_host_notes_what_is_sent_and_keeps_it() {
    let here = TempDir::new().unwrap();
    let file = source(&here, "binary").await;
    let host = FakeHost::new("fake", "/srv/assay");
    host.fail("send", 4, Fault::Unreachable);
    let silent = || -> assay::host::transfer::Progress { Arc::new(|_| {}) };
    let target = Path::new("/srv/assay/bin/tikv");
    let sent = host.send(&file, target, false, silent()).await.unwrap();
    assert_eq!((sent.bytes, sent.sent), (6, 6));
    assert_eq!(host.files().get(target).unwrap(), b"binary");
    let sent = host.send(&file, target, false, silent()).await.unwrap();
    assert_eq!(sent.sent, 0);
    host.files().put(target, "other");
    let error = host.send(&file, target, false, silent()).await.unwrap_err();
    assert!(matches!(error, TransferError::OnHost { .. }), "{error:?}");
    let error = host.send(&file, target, true, silent()).await.unwrap_err();
    assert!(matches!(error, TransferError::Host(_)), "{error:?}");
    host.send(&file, target, true, silent()).await.unwrap();
    assert_eq!(host.names(), ["send"; 5]);
    assert_eq!(host.calls()[4].request["remote"], "/srv/assay/bin/tikv");
    assert_eq!(host.calls()[4].request["replace"], true);
}
