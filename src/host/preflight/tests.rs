//! Every item with facts that pass and facts that do not.

use serde_json::{Value, json};

use super::*;
use crate::host::facts::{FileSystem, Limit, Limits, Nic, Word};

/// A host on which everything is as any item below wants it.
fn good() -> Facts {
    let words = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter();
        pairs
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect()
    };
    let unlimited = Some(Limit::Word(Word::Unlimited));
    Facts {
        os_id: Some("rocky".into()),
        os_version: Some("9.4".into()),
        kernel: Some("5.14.0-427.el9.x86_64".into()),
        cpus: Some(16),
        governor: Some("performance".into()),
        memory_bytes: Some(33_500_000_000),
        swap_bytes: Some(0),
        thp: Some("never".into()),
        timezone: Some("Europe/Berlin".into()),
        selinux: Some("permissive".into()),
        services: [
            ("chronyd", true),
            ("irqbalance", true),
            ("firewalld", false),
        ]
        .map(|(name, runs)| (name.to_owned(), runs))
        .into(),
        packages: [("numactl".to_owned(), Some("2.0.16".to_owned()))].into(),
        sysctls: words(&[
            ("net.core.somaxconn", "32768"),
            ("vm.overcommit_memory", "1"),
            ("net.ipv4.ip_local_port_range", "32768 60999"),
        ]),
        limits: Some(Limits {
            nofile_soft: Some(Limit::Number(1_000_000)),
            nofile_hard: unlimited,
            stack_soft: unlimited,
            stack_hard: unlimited,
        }),
        interfaces: vec![Nic {
            name: "eno1".into(),
            speed_mbps: Some(10_000),
            ..Nic::default()
        }],
        listening: Some(vec![22, 9100]),
        file_system: Some(FileSystem {
            mount: "/data".into(),
            kind: "ext4".into(),
            device: "/dev/nvme0n1".into(),
            size_bytes: 1 << 40,
            free_bytes: 1 << 39,
            reflink: Some(false),
            options: ["rw", "noatime", "nodelalloc"].map(str::to_owned).into(),
        }),
        ..Facts::default()
    }
}

fn wanted(value: Value) -> Wanted {
    Wanted {
        planned: Planned {
            connections: Some(20_000),
            bytes: Some(1 << 38),
            ports: vec![4000, 10_080],
            storage_instances: Some(1),
            first_timezone: Some(("a".into(), "Europe/Berlin".into())),
        },
        ..serde_json::from_value(value).unwrap()
    }
}

/// A clock that is `offset_ms` off, give or take 1 ms.
fn clock(offset_ms: f64) -> Option<ClockOffset> {
    Some(ClockOffset {
        offset_ms,
        round_trip_ms: 2.0,
    })
}

fn look_at(facts: &Facts, wanted: &Wanted) -> Finding {
    let view = HostView {
        facts,
        clock: clock(3.0),
        leftovers: Some(&Leftovers::default()),
        directory: None,
    };
    let mut found = findings(&view, wanted);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// What an item is and how its host is made bad, then unknown.
struct Case {
    wanted: Value,
    bad: fn(&mut Facts),
    found: &'static str,
    fix: &'static str,
    unknown: fn(&mut Facts),
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            wanted: json!({"time_daemon": true}),
            bad: |f| _ = f.services.insert("chronyd".into(), false),
            found: "none",
            fix: "systemctl enable --now chronyd",
            unknown: |f| f.services.clear(),
        },
        Case {
            wanted: json!({"same_timezone": true}),
            bad: |f| f.timezone = Some("UTC".into()),
            found: "UTC",
            fix: "timedatectl set-timezone Europe/Berlin",
            unknown: |f| f.timezone = None,
        },
        Case {
            wanted: json!({"os": {"supported": {"rocky": ">= 9.1", "rhel": ">= 8.4, < 10"}}}),
            bad: |f| f.os_version = Some("8.10".into()),
            found: "rocky 8.10",
            fix: "install one of these, or take the numbers for what they are",
            unknown: |f| f.os_id = None,
        },
        Case {
            wanted: json!({"selinux": false}),
            bad: |f| f.selinux = Some("enforcing".into()),
            found: "enforcing",
            fix: "`setenforce 0`, and `SELINUX=permissive` in /etc/selinux/config",
            unknown: |f| f.selinux = None,
        },
        Case {
            wanted: json!({"epoll_exclusive": true}),
            bad: |f| f.kernel = Some("3.10.0-1160.el7.x86_64".into()),
            found: "3.10.0-1160.el7.x86_64",
            fix: "install a newer kernel",
            unknown: |f| f.kernel = None,
        },
        Case {
            wanted: json!({"cpu_threads": 16}),
            bad: |f| f.cpus = Some(15),
            found: "15",
            fix: "take a larger host",
            unknown: |f| f.cpus = None,
        },
        Case {
            wanted: json!({"governor": "performance"}),
            bad: |f| f.governor = Some("performance, powersave".into()),
            found: "performance, powersave",
            fix: "echo performance | tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
            unknown: |f| f.governor = None,
        },
        Case {
            wanted: json!({"memory": "32GB"}),
            bad: |f| f.memory_bytes = Some(31_999_999_999),
            found: "29.8 GiB",
            fix: "take a larger host",
            unknown: |f| f.memory_bytes = None,
        },
        Case {
            wanted: json!({"swap": false}),
            bad: |f| f.swap_bytes = Some(8 << 30),
            found: "on, 8.0 GiB",
            fix: "swapoff -a",
            unknown: |f| f.swap_bytes = None,
        },
        Case {
            wanted: json!({"thp": "never"}),
            bad: |f| f.thp = Some("madvise".into()),
            found: "madvise",
            fix: "echo never | tee /sys/kernel/mm/transparent_hugepage/enabled",
            unknown: |f| f.thp = None,
        },
        Case {
            wanted: json!({"sysctl": {"net.core.somaxconn": ">= 32768"}}),
            bad: |f| _ = f.sysctls.insert("net.core.somaxconn".into(), "4096".into()),
            found: "4096",
            fix: "sysctl -w net.core.somaxconn=32768",
            unknown: |f| f.sysctls.clear(),
        },
        Case {
            wanted: json!({"sysctl": {"vm.overcommit_memory": "0 or 1"}}),
            bad: |f| _ = f.sysctls.insert("vm.overcommit_memory".into(), "2".into()),
            found: "2",
            fix: "sysctl -w vm.overcommit_memory=0",
            unknown: |f| f.sysctls.clear(),
        },
        Case {
            wanted: json!({"nofile": 1_000_000}),
            bad: |f| f.limits.as_mut().unwrap().nofile_soft = Some(Limit::Number(1024)),
            found: "1024, up to unlimited",
            fix: "`* - nofile 1000000` in /etc/security/limits.d/99-assay.conf",
            unknown: |f| f.limits = None,
        },
        Case {
            wanted: json!({"stack": "10MiB"}),
            bad: |f| f.limits.as_mut().unwrap().stack_soft = Some(Limit::Number(8 << 20)),
            found: "8.0 MiB",
            fix: "`* - stack 10240` in /etc/security/limits.d/99-assay.conf",
            unknown: |f| f.limits.as_mut().unwrap().stack_soft = None,
        },
        Case {
            wanted: json!({"irqbalance": true}),
            bad: |f| _ = f.services.insert("irqbalance".into(), false),
            found: "off",
            fix: "systemctl enable --now irqbalance",
            unknown: |f| f.services.clear(),
        },
        Case {
            wanted: json!({"firewalld": false}),
            bad: |f| _ = f.services.insert("firewalld".into(), true),
            found: "on",
            fix: "systemctl disable --now firewalld",
            unknown: |f| f.services.clear(),
        },
        Case {
            wanted: json!({"numactl": true}),
            bad: |f| _ = f.packages.insert("numactl".into(), None),
            found: "not there",
            fix: "install the package numactl",
            unknown: |f| f.packages.clear(),
        },
        Case {
            wanted: json!({"nic_mbps": 1000}),
            bad: |f| {
                f.interfaces.push(Nic {
                    name: "eno2".into(),
                    speed_mbps: Some(100),
                    ..Nic::default()
                });
            },
            found: "100 Mbit/s on eno2",
            fix: "use a faster interface or port; `ethtool` shows what was agreed on",
            unknown: |f| f.interfaces[0].speed_mbps = None,
        },
        Case {
            wanted: json!({"free_ports": true}),
            bad: |f| f.listening = Some(vec![22, 4000]),
            found: "taken: 4000",
            fix: "`ss -ltnp` names the program; stop it, or choose another port",
            unknown: |f| f.listening = None,
        },
        Case {
            wanted: json!({"one_instance_per_partition": true}),
            bad: |_| {},
            found: "",
            fix: "",
            unknown: |f| f.file_system = None,
        },
        Case {
            wanted: json!({"free_disk": true}),
            bad: |f| f.file_system.as_mut().unwrap().free_bytes = (1 << 38) - 1,
            found: "256.0 GiB free on /data",
            fix: "free space there, or name another `directory` in the inventory",
            unknown: |f| f.file_system = None,
        },
        Case {
            wanted: json!({"ephemeral_ports": true}),
            bad: |f| {
                let key = "net.ipv4.ip_local_port_range".to_owned();
                f.sysctls.insert(key, "50000\t60999".into());
            },
            found: "11000 (50000 60999)",
            fix: "sysctl -w net.ipv4.ip_local_port_range='1024 65535'",
            unknown: |f| f.sysctls.clear(),
        },
        Case {
            wanted: json!({"open_files": true}),
            bad: |f| f.limits.as_mut().unwrap().nofile_soft = Some(Limit::Number(20_000)),
            found: "20000",
            fix: "`* - nofile 32768` in /etc/security/limits.d/99-assay.conf",
            unknown: |f| f.limits = None,
        },
    ]
}

#[test]
fn every_item_passes_fails_warns_and_admits_what_it_does_not_know() {
    for case in cases() {
        let wanted_of = wanted(case.wanted.clone());
        let found = look_at(&good(), &wanted_of);
        assert_eq!((found.status, &found.fix), (Status::Ok, &None), "{found:?}");
        let mut facts = good();
        (case.unknown)(&mut facts);
        let found = look_at(&facts, &wanted_of);
        let expected = (Status::Unknown, "unknown", None);
        assert_eq!(
            (found.status, found.found.as_str(), found.fix),
            expected,
            "{}",
            case.wanted
        );
        if case.found.is_empty() {
            continue;
        }
        let mut facts = good();
        (case.bad)(&mut facts);
        let found = look_at(&facts, &wanted_of);
        assert_eq!(found.status, Status::Fail, "{found:?}");
        assert_eq!(found.found, case.found);
        assert_eq!(found.fix.as_ref().unwrap().to_string(), case.fix);
        assert!(!found.wanted.is_empty() && !found.why.is_empty());
        let mut mild = wanted_of;
        mild.warn.insert(found.item);
        assert_eq!(mild.unknown_warning(), None);
        assert_eq!(look_at(&facts, &mild).status, Status::Warn);
    }
}

#[test]
fn nothing_is_checked_that_is_not_wanted() {
    let view = HostView {
        facts: &Facts::default(),
        clock: None,
        leftovers: None,
        directory: None,
    };
    assert_eq!(findings(&view, &wanted(json!({}))), []);
}

#[test]
fn the_clock_fails_from_the_limit_on_and_the_round_trip_is_in_doubt() {
    let wanted = wanted(json!({"clock_offset": "500ms"}));
    let status = |clock| {
        let view = HostView {
            facts: &Facts::default(),
            clock,
            leftovers: None,
            directory: None,
        };
        findings(&view, &wanted)[0].status
    };
    assert_eq!(status(clock(499.0)), Status::Ok);
    assert_eq!(status(clock(-499.0)), Status::Ok);
    assert_eq!(status(clock(501.0)), Status::Fail);
    assert_eq!(status(clock(-501.0)), Status::Fail);
    assert_eq!(status(None), Status::Unknown);
}

#[test]
fn nobody_can_tell_from_within_a_container_whether_its_machine_keeps_the_clock() {
    let wanted = wanted(json!({"time_daemon": true}));
    let mut facts = good();
    facts.services.insert("chronyd".into(), false);
    facts.container = Some(true);
    assert_eq!(look_at(&facts, &wanted).status, Status::Unknown);
}

#[test]
fn a_release_that_is_known_to_work_is_a_warning() {
    let wanted = wanted(json!({"os": {
        "supported": {"rocky": ">= 9.1"},
        "tolerated": {"debian": ">= 10"},
    }}));
    let mut facts = good();
    (facts.os_id, facts.os_version) = (Some("debian".into()), Some("12".into()));
    assert_eq!(look_at(&facts, &wanted).status, Status::Warn);
    facts.os_version = Some("9".into());
    assert_eq!(look_at(&facts, &wanted).status, Status::Fail);
}

#[test]
fn a_setting_that_newer_kernels_lack_is_fine_on_those() {
    let wanted = wanted(json!({"sysctl": {"net.ipv4.tcp_tw_recycle": 0}}));
    let mut facts = good();
    let found = look_at(&facts, &wanted);
    assert_eq!(
        (found.status, found.found.as_str()),
        (Status::Ok, "gone from this kernel")
    );
    facts.kernel = Some("3.10.0".into());
    assert_eq!(look_at(&facts, &wanted).status, Status::Unknown);
    facts
        .sysctls
        .insert("net.ipv4.tcp_tw_recycle".into(), "1".into());
    assert_eq!(look_at(&facts, &wanted).status, Status::Fail);
}

#[test]
fn each_kind_of_file_system_has_its_own_mount_options() {
    let wanted = wanted(json!({
        "file_systems": {"ext4": ["nodelalloc", "noatime"], "xfs": ["noatime"]},
        "warn": ["noatime"],
    }));
    let look = |kind: &str, options: &[&str]| -> Vec<(String, Status)> {
        let mut facts = good();
        let disk = facts.file_system.as_mut().unwrap();
        disk.kind = kind.into();
        disk.options = options.iter().map(|o| (*o).to_owned()).collect();
        let view = HostView {
            facts: &facts,
            clock: None,
            leftovers: None,
            directory: None,
        };
        let found = findings(&view, &wanted).into_iter();
        found.map(|f| (f.item, f.status)).collect()
    };
    let of = |all: &[(&str, Status)]| -> Vec<(String, Status)> {
        all.iter()
            .map(|(item, s)| ((*item).to_owned(), *s))
            .collect()
    };
    let kind = ("file_systems", Status::Ok);
    let (delalloc, atime) = (("nodelalloc", Status::Fail), ("noatime", Status::Warn));
    assert_eq!(
        look("ext4", &["rw", "relatime"]),
        of(&[kind, delalloc, atime])
    );
    assert_eq!(look("xfs", &["rw", "relatime"]), of(&[kind, atime]));
    assert_eq!(
        look("xfs", &["rw", "noatime"]),
        of(&[kind, ("noatime", Status::Ok)])
    );
    assert_eq!(
        look("btrfs", &["rw"]),
        of(&[("file_systems", Status::Fail)])
    );
}

#[test]
fn two_instances_that_store_data_on_one_disk_fail() {
    let mut wanted = wanted(json!({"one_instance_per_partition": true}));
    wanted.planned.storage_instances = Some(2);
    let found = look_at(&good(), &wanted);
    assert_eq!(
        (found.status, found.found.as_str()),
        (Status::Fail, "2 on /data")
    );
}

#[test]
fn more_connections_than_there_are_ports_need_more_clients() {
    let mut wanted = wanted(json!({"ephemeral_ports": true}));
    wanted.planned.connections = Some(70_000);
    let found = look_at(&good(), &wanted);
    let fix = found.fix.unwrap().to_string();
    assert_eq!(fix, "spread the connections over more clients");
}

#[test]
fn each_leftover_is_told_with_what_ends_it() {
    let left = Leftovers {
        folders: vec!["/data/x/snapshot.partial".into()],
        units: vec!["assay-load.service".into()],
        processes: vec![Process {
            pid: 41,
            name: "tidb-server".into(),
        }],
        held_by: None,
    };
    let facts = Facts::default();
    let view = HostView {
        facts: &facts,
        clock: None,
        leftovers: Some(&left),
        directory: None,
    };
    let found = findings(&view, &wanted(json!({"leftovers": true})));
    let fixes: Vec<_> = found
        .iter()
        .map(|f| f.fix.as_ref().unwrap().to_string())
        .collect();
    assert!(found.iter().all(|f| f.status == Status::Warn));
    assert_eq!(fixes[..2], ["kill 41", "systemctl stop assay-load.service"]);
    assert!(found[2].found.ends_with("/data/x/snapshot.partial"));
}

#[test]
fn what_a_living_holder_runs_is_no_leftover() {
    let folder = tempfile::tempdir().unwrap();
    let _held = crate::host::lease::take(folder.path(), crate::host::Claim::of("run x")).unwrap();
    let left = Leftovers {
        units: vec!["assay-load.service".into()],
        folders: vec!["/data/x/snapshot.partial".into()],
        held_by: leftovers::look(folder.path(), folder.path()).held_by,
        ..Leftovers::default()
    };
    let facts = Facts::default();
    let view = HostView {
        facts: &facts,
        clock: None,
        leftovers: Some(&left),
        directory: None,
    };
    let found = findings(&view, &wanted(json!({"leftovers": true})));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].status, &found[0].fix), (Status::Warn, &None));
    let text = &found[0].found;
    assert!(
        text.starts_with("held by run x ") && text.contains(" since "),
        "{text}"
    );
}

#[test]
fn a_directory_that_cannot_be_written_fails_whatever_is_wanted() {
    let facts = Facts::default();
    let look = |refusal: Option<&str>| {
        let directory = Directory {
            path: "/data/assay".into(),
            refusal: refusal.map(str::to_owned),
        };
        let view = HostView {
            facts: &facts,
            clock: None,
            leftovers: None,
            directory: Some(&directory),
        };
        findings(&view, &wanted(json!({}))).remove(0)
    };
    assert_eq!(look(None).status, Status::Ok);
    let why = "cannot be written: Permission denied";
    let found = look(Some(why));
    assert_eq!((found.status, found.found.as_str()), (Status::Fail, why));
    let fix = found.fix.unwrap();
    assert!(
        !fix.is_safe() && fix.to_string().contains("`become`"),
        "{fix}"
    );
}

#[test]
fn findings_survive_json() {
    let found = Finding {
        item: "thp".into(),
        status: Status::Fail,
        found: "always".into(),
        wanted: "never".into(),
        why: "it stalls".into(),
        fix: Some(Fix::WriteFile {
            path: "/sys/kernel/mm/transparent_hugepage/enabled".into(),
            value: "never".into(),
        }),
    };
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["fix"]["kind"], "write_file");
    assert_eq!(serde_json::from_value::<Finding>(json).unwrap(), found);
}
