//! Inventories: what they may say and what it then means, and the broken ones of
//! `tests/fixtures/spec/broken/inventories` with their complete messages (`ASSAY_BLESS=1` writes these anew).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use assay::spec::{
    Become, Connection, Host, Inventory, LoadedInventory, Name, OneOrMany, Problems, Request, load,
    load_inventory,
};

use proptest::prelude::*;

use super::support::{Folder, ROOT, SMALL, environment};

/// Loads a text as `lab/i.yaml`.
fn read(text: &str) -> Result<LoadedInventory, Problems> {
    let folder = Folder::with(&[("lab/i.yaml", text)]);
    load_inventory(Path::new("lab/i.yaml"), &environment, folder.path())
}

fn inventory(text: &str) -> Inventory {
    read(text)
        .unwrap_or_else(|problems| panic!("{problems}"))
        .inventory
}

fn host(text: &str) -> Host {
    let mut inventory = inventory(text);
    inventory.hosts.swap_remove("a").unwrap()
}

/// The hosts with their addresses and ports.
fn addresses(inventory: &Inventory) -> String {
    let hosts = inventory.hosts.iter().map(|(name, host)| {
        let port = host.port.map(|port| format!(" {port}")).unwrap_or_default();
        format!("{name}={}{port}", host.address.as_deref().unwrap_or("-"))
    });
    hosts.collect::<Vec<_>>().join(", ")
}

fn members(inventory: &Inventory, group: &str) -> String {
    let members = inventory.groups[group].iter().map(Name::as_str);
    members.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_host_without_keys_is_reached_over_ssh_by_its_name() {
    let expected = Host {
        address: Some("a".to_owned()),
        directory: Some("~/.assay".to_owned()),
        ..Host::default()
    };
    assert_eq!(host("hosts: {a: {}}"), expected);
    assert_eq!(expected.connection, Connection::Ssh);
}

#[test]
fn every_key_of_a_host_is_read() {
    let key = "SHA256:jX1cRk9qdWDLPTXzyJH0gJkPvMEBq/hTrKFYeV+SM1w";
    let text = format!(
        "
hosts:
  gw: {{}}
  a:
    connection: ssh
    address: \"[fe80::1%eth0]:2222\"
    user: bench
    identity_file: ~/.ssh/bench
    jump: gw
    become: true
    data_address: \"[fd00::1]\"
    host_key: {key}
    directory: /data/assay/
    assay: ../assay-arm64
    labels: {{rack: 1, disk: nvme}}
    vars: {{cores: 0x10, password: \"${{env:BENCH_PASSWORD}}\"}}
"
    );
    let loaded = read(&text).unwrap();
    let host = &loaded.inventory.hosts["a"];
    assert_eq!(host.address.as_deref(), Some("fe80::1%eth0"));
    assert_eq!(host.port, Some(2222));
    assert_eq!(host.user.as_deref(), Some("bench"));
    assert_eq!(host.identity_file.as_deref(), Some("~/.ssh/bench"));
    assert_eq!(host.jump.as_deref(), Some("gw"));
    assert_eq!(host.r#become, Some(Become::Root));
    assert_eq!(host.data_address.as_deref(), Some("fd00::1"));
    assert_eq!(host.host_key, Some(OneOrMany(vec![key.to_owned()])));
    assert_eq!(host.directory.as_deref(), Some("/data/assay"));
    assert!(host.assay.as_deref().unwrap().ends_with("/assay-arm64"));
    assert_eq!(host.labels["rack"], "1");
    assert_eq!(host.vars["cores"].0, "0x10");
    assert_eq!(host.endpoint(4000), "[fe80::1%eth0]:4000");
    assert_eq!(host.data_endpoint(4000), "[fd00::1]:4000");
    let password = &host.vars["password"].0;
    assert_eq!(password, "${env:BENCH_PASSWORD}");
    assert_eq!(loaded.secrets.reveal(password), "hunter2 & co");
    assert!(!loaded.text.contains("hunter2"), "{}", loaded.text);
}

#[test]
fn ranges_of_names_and_addresses_walk_along() {
    for (hosts, expected) in [
        (
            "kv[1-3]: {address: \"10.0.0.[11-13]\"}",
            "kv1=10.0.0.11, kv2=10.0.0.12, kv3=10.0.0.13",
        ),
        (
            "kv[09-10]: {address: \"kv[9-10].lab:22\"}",
            "kv09=kv9.lab 22, kv10=kv10.lab 22",
        ),
        (
            "r[1-2]n[1-2]: {address: \"[fd00::[1-4]]:22\"}",
            "r1n1=fd00::1 22, r1n2=fd00::2 22, r2n1=fd00::3 22, r2n2=fd00::4 22",
        ),
        (
            "r[1-2]n[1-2]: {address: \"10.0.[1-2].[1-2]\"}",
            "r1n1=10.0.1.1, r1n2=10.0.1.2, r2n1=10.0.2.1, r2n2=10.0.2.2",
        ),
        ("kv[1-2]: {}", "kv1=kv1, kv2=kv2"),
    ] {
        let text = format!("hosts:\n  {hosts}\n");
        assert_eq!(addresses(&inventory(&text)), expected);
    }
    let data = inventory("hosts: {\"kv[1-2]\": {data_address: \"fd00::[1-2]\"}}");
    let data: Vec<_> = data
        .hosts
        .values()
        .map(Host::data_address_or_address)
        .collect();
    assert_eq!(data, ["fd00::1", "fd00::2"]);
}

#[test]
fn defaults_hold_for_hosts_that_say_nothing_else() {
    let text = "
defaults:
  user: root
  port: 2222
  jump: gw
  become: true
  labels: {site: north, rack: 1}
  vars: {x: 1}
hosts:
  gw: {port: 22}
  kv[1-2]: {labels: {rack: 2}}
  a: {address: 10.0.0.1:23, user: me, jump: none, become: false}
  here: {connection: local}
";
    let inventory = inventory(text);
    let [gw, kv, a, here] = ["gw", "kv2", "a", "here"].map(|name| &inventory.hosts[name]);
    assert_eq!((gw.port, gw.jump.as_deref()), (Some(22), None));
    assert_eq!((kv.port, kv.jump.as_deref()), (Some(2222), Some("gw")));
    assert_eq!(kv.r#become, Some(Become::Root));
    let labels: Vec<_> = kv.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(labels, ["site=north", "rack=2"]);
    assert_eq!((a.port, a.user.as_deref()), (Some(23), Some("me")));
    assert_eq!((a.jump.as_deref(), &a.r#become), (None, &Some(Become::No)));
    assert_eq!(
        (here.port, &here.user, &here.r#become),
        (None, &None, &None)
    );
    assert_eq!(here.vars["x"].0, "1");
}

#[test]
fn a_default_address_is_that_of_hosts_that_differ_by_port() {
    let text = "
defaults: {address: \"[::1]\", data_address: \"fd00::[5-5]\"}
hosts: {a: {port: 2201}, b: {port: 2202}, c: {address: 10.0.0.1}}
";
    let inventory = inventory(text);
    assert_eq!(addresses(&inventory), "a=::1 2201, b=::1 2202, c=10.0.0.1");
    let data = inventory.hosts["c"].data_address.as_deref();
    assert_eq!(data, Some("fd00::5"));
}

#[test]
fn aliases_and_merge_keys_work_in_inventories() {
    let text = "
hosts:
  kv[1-2]: &kv {user: bench, port: 23}
  pd: *kv
  tidb: {<<: *kv, port: 24}
";
    let inventory = inventory(text);
    let found: Vec<_> = inventory
        .hosts
        .values()
        .map(|h| (h.user.as_deref(), h.port))
        .collect();
    let bench = Some("bench");
    assert_eq!(
        found,
        [
            (bench, Some(23)),
            (bench, Some(23)),
            (bench, Some(23)),
            (bench, Some(24))
        ]
    );
}

#[test]
fn groups_hold_ranges_and_groups_each_host_once() {
    let text = "
hosts: {\"kv[1-3]\": {}, \"pd[1-2]\": {}, lb: {}}
groups:
  everything: [lb, storage, pd, \"kv[1-2]\"]
  storage: [\"kv[2-3]\", kv1]
  pd: [\"pd[1-2]\"]
  odd: [kv3, storage]
";
    let inventory = inventory(text);
    assert_eq!(members(&inventory, "storage"), "kv2 kv3 kv1");
    assert_eq!(members(&inventory, "everything"), "lb kv2 kv3 kv1 pd1 pd2");
    assert_eq!(members(&inventory, "odd"), "kv3 kv2 kv1");
}

#[test]
fn paths_are_those_of_the_inventory_file() {
    let text = "
ssh_config: ssh/config
hosts:
  a: {identity_file: keys/bench, assay: bin/assay}
  here: {connection: local, directory: data}
  also: {connection: local}
";
    let folder = Folder::with(&[("lab/i.yaml", text)]);
    let loaded = load_inventory(Path::new("lab/i.yaml"), &environment, folder.path()).unwrap();
    let lab = folder.path().canonicalize().unwrap().join("lab");
    let below = |path: &str| Some(lab.join(path).display().to_string());
    let hosts = &loaded.inventory.hosts;
    assert_eq!(loaded.inventory.ssh_config, below("ssh/config"));
    assert_eq!(hosts["a"].identity_file, below("keys/bench"));
    assert_eq!(hosts["a"].assay, below("bin/assay"));
    assert_eq!(hosts["here"].directory, below("data"));
    let started_in = folder.path().join(".assay").display().to_string();
    assert_eq!(hosts["also"].directory, Some(started_in));
}

/// An inventory that uses everything that an inventory can say.
const EVERYTHING: &str = "
ssh_config: ssh/config
defaults: {user: root, identity_file: keys/lab, jump: gw, labels: {site: north}}
hosts:
  gw: {address: gw.example.org:2222, jump: \"me@[fe80::1%eth0]:22\"}
  kv[01-03]:
    address: \"[fd00::[1-3]]:22\"
    data_address: 10.1.0.[1-3]
    become: tidb
    host_key: [\"SHA256:jX1cRk9qdWDLPTXzyJH0gJkPvMEBq/hTrKFYeV+SM1w\"]
    vars: {cores: 08, yes: no, secret: \"${env:BENCH_PASSWORD}\", text: \"$${x}\"}
  here: {connection: local, directory: ../data, address: \"::1\"}
  plain: {become: false, assay: assay-arm64, directory: ~/x}
groups: {tikv: [\"kv[01-03]\"], all: [tikv, here]}
";

#[test]
fn the_resolved_text_reads_back_as_the_same_value() {
    let first = read(EVERYTHING).unwrap_or_else(|problems| panic!("{problems}"));
    let second = read(&first.text).unwrap_or_else(|problems| panic!("{problems}\n{}", first.text));
    assert_eq!(first, second, "{}", first.text);
    assert!(!first.text.contains("defaults"), "{}", first.text);
}

#[test]
fn what_only_looks_like_a_secret_is_refused_where_one_is_used() {
    let text = "
hosts:
  a: {vars: {x: \"${env:BENCH_PASSWORD}\", y: \"$${env:BENCH_PASSWORD}\"}}
  b: {labels: {z: \"$${env:OTHER}\"}}
";
    let problems = read(text).unwrap_err().list();
    let paths: Vec<_> = problems
        .iter()
        .map(|problem| problem.path.as_str())
        .collect();
    assert_eq!(paths, ["hosts.a.vars.y"]);
    // Also where only the experiment uses it.
    let inventory = "hosts: {local: {connection: local, vars: {y: \"$${env:ONE}\"}}}";
    let experiment = format!("{SMALL}inventory: i.yaml\ndescription: \"${{env:ONE}}\"\n");
    let folder = Folder::with(&[("x.yaml", &experiment), ("i.yaml", inventory)]);
    let problems = folder.load("x.yaml").unwrap_err().list();
    assert_eq!(problems[0].path, "hosts.local.vars.y");
}

#[test]
fn an_experiment_and_the_loader_by_itself_read_the_same_inventory() {
    let text = SMALL.replace("[local]", "[here]");
    let folder = Folder::with(&[("x.yaml", &text), ("lab/i.yaml", EVERYTHING)]);
    let request = Request {
        path: Path::new("x.yaml"),
        inventory: Some(Path::new("lab/i.yaml")),
        overrides: &[],
        environment: &environment,
        working_directory: folder.path(),
    };
    let spec = load(&request, &[]).unwrap();
    let alone = load_inventory(Path::new("lab/i.yaml"), &environment, folder.path()).unwrap();
    assert_eq!(spec.inventory, alone.inventory);
    assert_eq!(spec.inventory_text, alone.text);
}

/// The plan of the small experiment on hosts, with the hash of its spec.
fn plan(hosts: &str) -> String {
    plan_of(SMALL, hosts)
}

fn plan_of(experiment: &str, hosts: &str) -> String {
    let text = format!("{experiment}inventory: i.yaml\n");
    let folder = Folder::with(&[("x.yaml", &text), ("i.yaml", hosts)]);
    let spec = folder
        .load("x.yaml")
        .unwrap_or_else(|problems| panic!("{problems}"));
    let plan = assay::plan::build(
        &spec.experiment,
        &spec.inventory,
        &assay::pack::Packs::built_in(),
        &spec.hash,
    )
    .unwrap();
    serde_json::to_string(&plan).unwrap()
}

#[test]
fn the_plan_is_the_same_on_another_lab() {
    let here = plan("hosts: {local: {connection: local}}");
    for hosts in [
        "hosts: {local: {}}",
        "hosts: {local: {address: 10.0.0.1:2222, user: bench, identity_file: keys/a, become: true}}",
        "hosts: {local: {directory: /data, assay: assay-arm64, data_address: 10.0.0.1}}",
        "hosts: {local: {jump: me@10.0.0.1, host_key: \"SHA256:jX1cRk9qdWDLPTXzyJH0gJkPvMEBq/hTrKFYeV+SM1w\"}}",
        "{ssh_config: x, defaults: {user: me}, hosts: {local: {}}}",
    ] {
        assert_eq!(plan(hosts), here, "{hosts}");
    }
    for hosts in [
        "hosts: {local: {connection: local, labels: {disk: nvme}}}",
        "hosts: {local: {connection: local, vars: {x: 1}}}",
    ] {
        assert_ne!(plan(hosts), here, "{hosts}");
    }
}

#[test]
fn hosts_and_groups_that_an_experiment_does_not_use_leave_its_plan_as_it_is() {
    let here = plan("hosts: {local: {address: 10.213.1.12}}");
    for hosts in [
        "hosts: {local: {address: 10.213.1.12}, spare: {address: 10.213.1.13}}",
        "hosts: {spare: {labels: {disk: nvme}, vars: {x: 1}}, local: {address: 10.213.1.12}}",
        "hosts: {local: {address: 10.213.1.12, jump: gw}, gw: {address: 10.213.1.1}}",
        "{hosts: {local: {address: 10.213.1.12}}, groups: {g: [local]}}",
        "{hosts: {local: {}, spare: {}}, groups: {g: [local, spare], h: [g]}}",
    ] {
        assert_eq!(plan(hosts), here, "{hosts}");
    }
}

#[test]
fn the_members_of_a_group_that_an_experiment_names_are_part_of_its_plan() {
    for (with_group, more) in [
        (SMALL.replace("sqlite: [local]", "sqlite: [g]"), ""),
        (SMALL.to_owned(), "clients: [g]\n"),
    ] {
        assert!(
            with_group.contains("[g]") || more.contains("[g]"),
            "{with_group}"
        );
        let plan = |hosts: &str| plan_of(&format!("{with_group}{more}"), hosts);
        let here = plan("{hosts: {local: {}}, groups: {g: [local]}}");
        let unused = "{hosts: {local: {}, spare: {}}, groups: {g: [local], h: [spare]}}";
        assert_eq!(plan(unused), here, "{more}");
        let nested = "{hosts: {local: {}}, groups: {g: [h], h: [local]}}";
        assert_eq!(plan(nested), here, "{more}");
        let marked = "{hosts: {local: {labels: {disk: nvme}}}, groups: {g: [local]}}";
        assert_ne!(plan(marked), here, "{more}");
    }
    // A group of the same name with another member.
    let group = SMALL.replace("sqlite: [local]", "sqlite: [g]");
    let on = |host: &str| {
        plan_of(
            &group,
            &format!("{{hosts: {{local: {{}}, spare: {{}}}}, groups: {{g: [{host}]}}}}"),
        )
    };
    assert_ne!(on("local"), on("spare"));
}

/// A text that a mutation puts in.
fn piece() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "[1-2]",
        "[2-1]",
        "[",
        "]",
        ":",
        ":22",
        "%eth0",
        "~/",
        "..",
        "none",
        "gw",
        "kv01",
        "@",
        "true",
        "~",
        "{}",
        "\n",
        "  ",
        ", ",
        ": ",
        "- ",
        "\"",
        "*a",
        "&a ",
        "<<: ",
        "${x}",
        "${env:ONE}",
        "-",
        "/",
        "0",
        "local",
        "😀",
    ])
    .prop_map(str::to_owned)
}

proptest! {
    #[test]
    fn a_mutated_inventory_is_refused_or_reads_back(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0usize..8, piece()), 1..5),
    ) {
        let mut chars: Vec<char> = EVERYTHING.chars().collect();
        for (index, removed, piece) in changes {
            let at = index.index(chars.len() + 1);
            let end = (at + removed).min(chars.len());
            chars.splice(at..end, piece.chars());
        }
        let text: String = chars.into_iter().collect();
        match read(&text) {
            Err(problems) => prop_assert!(!problems.render(true).is_empty()),
            Ok(loaded) => {
                let again = read(&loaded.text);
                let again = again.map_err(|problems| TestCaseError::fail(format!("{problems}\n{text}")))?;
                prop_assert_eq!(again, loaded);
            }
        }
    }
}

fn broken() -> PathBuf {
    Path::new(ROOT).join("tests/fixtures/spec/broken/inventories")
}

fn fixtures() -> Vec<String> {
    let files = std::fs::read_dir(broken()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".yaml")).collect();
    names.sort();
    assert!(names.len() >= 15, "{names:?}");
    names
}

#[test]
fn every_broken_inventory_is_refused_in_exactly_these_words() {
    let mut wrong = String::new();
    for name in fixtures() {
        let problems = load_inventory(Path::new(&name), &environment, &broken())
            .expect_err(&format!("{name} should be refused"));
        let found = format!("{problems}\n");
        let path = broken().join(name.replace(".yaml", ".expected"));
        if std::env::var_os("ASSAY_BLESS").is_some() {
            std::fs::write(&path, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        if found != expected {
            writeln!(
                wrong,
                "--- {name}, expected:\n{expected}--- found:\n{found}"
            )
            .unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn an_experiment_shows_the_same_problems_of_its_inventory() {
    for name in fixtures().into_iter().filter(|name| name != "empty.yaml") {
        let alone = load_inventory(Path::new(&name), &environment, &broken()).unwrap_err();
        let folder = Folder::with(&[("x.yaml", SMALL)]);
        let request = Request {
            path: &folder.path().join("x.yaml"),
            inventory: Some(Path::new(&name)),
            overrides: &[],
            environment: &environment,
            working_directory: &broken(),
        };
        let mut found = load(&request, &[]).unwrap_err().list();
        found.retain(|problem| problem.file == name);
        assert_eq!(found, alone.list(), "{name}");
    }
}

#[test]
fn thousands_of_hosts_and_groups_are_read_or_refused_in_bounded_time() {
    let start = std::time::Instant::now();
    let ranges: String = (0..10)
        .map(|i| format!("  r{i}n[1-1000]: {{}}\n"))
        .collect();
    let members: Vec<String> = (0..10).map(|i| format!("\"r{i}n[1-1000]\"")).collect();
    let text = format!("hosts:\n{ranges}groups:\n  all: [{}]\n", members.join(", "));
    let found = inventory(&text);
    assert_eq!(
        (found.hosts.len(), found.groups["all"].len()),
        (10_000, 10_000)
    );
    let more = text.replace("groups:", "  one: {}\ngroups:");
    let message = read(&more).unwrap_err().to_string();
    assert!(
        message.contains("with their ranges, the hosts are more than 10000"),
        "{message}"
    );
    let nested: String = (1..15)
        .map(|i| format!("  g{i}: [g{0}, g{0}, all]\n", i - 1))
        .collect();
    let message = read(&format!("{text}  g0: [all]\n{nested}"))
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("the groups have more than 100000 members in all"),
        "{message}"
    );
    let deep: String = (1..40).map(|i| format!("  g{i}: [g{}]\n", i - 1)).collect();
    let deep = format!("hosts: {{a: {{}}}}\ngroups:\n  top: [g39]\n{deep}  g0: [a]\n");
    let message = read(&deep).unwrap_err().to_string();
    assert!(
        message.contains("groups stand in each other more than 16 deep"),
        "{message}"
    );
    let jumps: String = (0..4_000)
        .map(|i| format!("  h{i}: {{jump: h{}}}\n", (i + 1) % 4_000))
        .collect();
    let problems = read(&format!("hosts:\n{jumps}")).unwrap_err();
    assert_eq!(problems.len(), 1);
    assert!(start.elapsed().as_secs() < 60, "took {:?}", start.elapsed());
}

#[test]
fn every_inventory_in_the_documents_loads() {
    let mut loaded = 0;
    for document in ["docs/inventory.md", "docs/experiment.md", "README.md"] {
        let text = std::fs::read_to_string(Path::new(ROOT).join(document)).unwrap();
        for block in text.split("```yaml\n").skip(1) {
            let block = block.split("```").next().unwrap();
            if block.starts_with("hosts:") || block.contains("\nhosts:") {
                read(block).unwrap_or_else(|problems| panic!("{document}\n{problems}"));
                loaded += 1;
            }
        }
    }
    assert!(loaded >= 2, "{loaded}");
}
