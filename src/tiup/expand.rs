//! From a topology as written to a cluster: every default in its place, and what an experiment has no place for.

use indexmap::IndexMap;

use super::directory::{Own, clean};
use super::section::{Fate, HTTP_PORT, SECTIONS, Section};
use super::settings::{self, Settings};
use super::version::{self, has_port, is_at_least};
use super::written::{Server, SshType, SystemdMode, Topology};
use super::{Cluster, Instance, LeftOut, Reading, Role};

/// Settings of TiFlash's proxy, which are those of its instances in an experiment.
const LEARNER: &str = "tiflash-learner";
/// The components whose settings an experiment has a place for, and the role that needs them.
const CONFIGS: [(&str, Role); 7] = [
    ("pd", Role::Pd),
    ("tikv", Role::Tikv),
    ("tidb", Role::Tidb),
    ("tiflash", Role::Tiflash),
    (LEARNER, Role::Tiflash),
    ("tiproxy", Role::Tiproxy),
    ("grafana", Role::Grafana),
];

/// Expands a topology that was checked. `user` is that of a `meta.yaml`.
pub(super) fn expand(topology: &Topology, user: Option<&str>, version: Option<&str>) -> Reading {
    let mut left_out = Vec::new();
    let mut cluster = frame(topology, user, version);
    for role in Role::ALL {
        for (path, server) in topology.servers(Section::of(role)) {
            if server.boolean("offline") {
                left_out.push(LeftOut::new(
                    path,
                    "the instance is on its way out of the cluster",
                ));
                continue;
            }
            let instance = instance(&cluster, topology, role, server);
            notes(&path, role, server, &cluster, &mut left_out);
            cluster.instances.push(instance);
        }
    }
    configs(topology, &mut cluster, &mut left_out);
    globals(topology, &mut left_out);
    components(topology, &mut left_out);
    left_out.extend(exporters(topology, &cluster));
    Reading { cluster, left_out }
}

/// What holds for the whole cluster.
pub(super) fn frame(topology: &Topology, user: Option<&str>, version: Option<&str>) -> Cluster {
    let global = &topology.global;
    let mut cluster = Cluster::new(
        version.map(version::normal),
        global.user.as_deref().or(user).unwrap_or("tidb"),
    );
    cluster.group.clone_from(&global.group);
    cluster.ssh_port = global.ssh_port.unwrap_or(22);
    cluster.tls = global.enable_tls == Some(true);
    cluster.arch = global.arch.map(|arch| arch.word().to_owned());
    let written = |directory: &Option<String>| directory.clone().filter(|d| !d.is_empty());
    if let Some(directory) = written(&global.deploy_dir) {
        cluster.deploy_dir = directory;
    }
    if let Some(directory) = written(&global.data_dir) {
        cluster.data_dir = directory;
    }
    cluster.log_dir = written(&global.log_dir).unwrap_or_default();
    cluster.versions.clone_from(&topology.component_versions);
    place_exporters(topology, &mut cluster);
    cluster
}

fn place_exporters(topology: &Topology, cluster: &mut Cluster) {
    let written = &topology.monitored;
    let port = written.node_exporter_port.unwrap_or(9100);
    let own = Own {
        deploy: written.deploy_dir.as_deref(),
        data: written.data_dir.as_deref(),
        log: written.log_dir.as_deref(),
    };
    let found = cluster.globals().exporters(&format!("monitor-{port}"), own);
    let monitored = &mut cluster.monitored;
    monitored.node_exporter_port = port;
    monitored.blackbox_exporter_port = written.blackbox_exporter_port.unwrap_or(9115);
    monitored.deploy_dir = found.deploy;
    monitored.data_dir = found.data;
    monitored.log_dir = found.log;
    monitored.numa_node.clone_from(&written.numa_node);
    monitored.resource_control = written
        .resource_control
        .over(&topology.global.resource_control);
}

/// The ports of an instance: those that are written, and the defaults of the others.
pub(super) fn ports(
    section: &Section,
    server: &Server,
    version: Option<&str>,
) -> IndexMap<String, u16> {
    let mut ports = IndexMap::new();
    for port in section.ports {
        let default = port.default.filter(|_| has_port(version, port.key));
        let written = server
            .port(port.key)
            .filter(|_| is_there(version, port.key));
        if server.is_off(port.key) {
            continue;
        }
        if let Some(number) = written.or(default) {
            ports.insert(port.key.to_owned(), number);
        }
    }
    ports
}

/// Whether a port that is written is opened; that of ng-monitoring is whenever it is.
fn is_there(version: Option<&str>, key: &str) -> bool {
    key != HTTP_PORT || version.is_none() || has_port(version, key)
}

fn instance(cluster: &Cluster, topology: &Topology, role: Role, server: &Server) -> Instance {
    let section = Section::of(role);
    let version = cluster.version.as_deref();
    let ports = ports(section, server, version);
    let main = ports.first().map_or(0, |(_, port)| *port);
    let config = server.settings("config");
    let storage = storage(&config);
    let own = Own {
        deploy: server.text("deploy_dir"),
        data: storage.as_deref().or(server.text("data_dir")),
        log: server.text("log_dir"),
    };
    let found = cluster
        .globals()
        .directories(&format!("{role}-{main}"), own);
    let host = server.host();
    let name = server.text("name").map(str::to_owned);
    Instance {
        name: (role == Role::Pd).then(|| name.unwrap_or_else(|| format!("pd-{host}-{main}"))),
        manage_host: server.text("manage_host").map(str::to_owned),
        ssh_port: server.port("ssh_port").unwrap_or(cluster.ssh_port),
        arch: arch(server).or(cluster.arch.clone()),
        exporters: !server.boolean("ignore_exporter"),
        deploy_dir: found.deploy,
        data_dir: section.has_data.then_some(found.data),
        log_dir: section.has_log.then_some(found.log),
        learner_config: server.settings("learner_config"),
        resource_control: server.resources(&topology.global.resource_control),
        other: other(section, server, topology),
        host: host.to_owned(),
        ports,
        config,
        role,
    }
}

pub(super) fn arch(server: &Server) -> Option<String> {
    let arch = match server.text("arch")? {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        arch => arch,
    };
    Some(arch.to_owned())
}

/// The first of the directories that TiFlash's settings name; they replace its data directory.
pub(super) fn storage(config: &Settings) -> Option<String> {
    let main = settings::get(config, "storage.main.dir").and_then(settings::texts)?;
    let latest = settings::get(config, "storage.latest.dir").and_then(settings::texts);
    let first = latest
        .as_deref()
        .and_then(<[&str]>::first)
        .or(main.first())?;
    Some((*first).to_owned())
}

/// The keys that are the same here and there.
fn other(section: &Section, server: &Server, topology: &Topology) -> IndexMap<String, String> {
    let kept = section.all_keys().filter(|key| key.fate == Fate::Kept);
    let value = |name: &str| {
        let global = topology.global.listen_host.as_deref();
        let global = global.filter(|_| name == "listen_host");
        server.text(name).or(global).map(str::to_owned)
    };
    kept.filter_map(|key| Some((key.name.to_owned(), value(key.name)?)))
        .collect()
}

/// What an instance says that an experiment does not.
fn notes(path: &str, role: Role, server: &Server, cluster: &Cluster, left_out: &mut Vec<LeftOut>) {
    for key in Section::of(role).all_keys() {
        if let (Fate::LeftOut(reason), true) = (key.fate, server.says(key.name)) {
            left_out.push(LeftOut::new(format!("{path}.{}", key.name), reason));
        }
    }
    if role != Role::Tiflash {
        return;
    }
    let version = cluster.version.as_deref();
    if server.has(HTTP_PORT) && version.is_some() && is_at_least(version, 7, 1) {
        let reason = "deprecated: TiFlash has no HTTP port from v7.1 on";
        left_out.push(LeftOut::new(format!("{path}.{HTTP_PORT}"), reason));
    }
    let config = server.settings("config");
    let data = server.text("data_dir");
    let storage = storage(&config);
    let is_same = |first: &String| data.is_some_and(|data| data.starts_with(first.as_str()));
    if storage.as_ref().is_some_and(is_same) {
        // TiUP writes so what it made of them.
    } else if data.is_some() && storage.is_some() {
        let reason = "deprecated: `storage.main.dir` and `storage.latest.dir` take its place";
        left_out.push(LeftOut::new(format!("{path}.data_dir"), reason));
    } else if data.is_some_and(|data| data.contains(',')) {
        let reason = "deprecated: kept as it is; `storage.main.dir` names several directories from v4.0.9 on";
        left_out.push(LeftOut::new(format!("{path}.data_dir"), reason));
    }
}

fn configs(topology: &Topology, cluster: &mut Cluster, left_out: &mut Vec<LeftOut>) {
    for (component, config) in &topology.server_configs {
        let known = CONFIGS.iter().find(|(name, _)| name == component);
        let role = known.map(|(_, role)| *role);
        let is_used = |role: Role| cluster.instances.iter().any(|i| i.role == role);
        let path = format!("server_configs.{component}");
        match role {
            _ if config.is_empty() => {}
            Some(role) if is_used(role) && component == LEARNER => {
                for tiflash in cluster.instances.iter_mut().filter(|i| i.role == role) {
                    let mut all = config.clone();
                    all.extend(std::mem::take(&mut tiflash.learner_config));
                    tiflash.learner_config = all;
                }
            }
            Some(role) if is_used(role) => {
                cluster.config.insert(component.clone(), config.clone());
            }
            Some(role) => {
                let reason = format!("there is no instance of {role}");
                left_out.push(LeftOut::new(path, reason));
            }
            None => left_out.push(LeftOut::new(path, "an experiment has no such component")),
        }
    }
}

fn globals(topology: &Topology, left_out: &mut Vec<LeftOut>) {
    let global = &topology.global;
    let mut say = |key: &str, reason: &str| {
        left_out.push(LeftOut::new(format!("global.{key}"), reason));
    };
    if global.ssh_type == Some(SshType::System) {
        say("ssh_type", "assay always uses the system's ssh");
    }
    if global.ssh_type == Some(SshType::None) {
        say(
            "ssh_type",
            "without ssh every host is this machine: write `connection: local` in the inventory",
        );
    }
    if global.systemd_mode == Some(SystemdMode::User) {
        say("systemd_mode", "units are those of the system");
    }
    if global
        .pd_mode
        .as_deref()
        .is_some_and(|mode| !mode.is_empty())
    {
        say("pd_mode", "PD runs as one service");
    }
    if global.custom.is_some() {
        say("custom", "it belongs to other tools");
    }
    if global.group.is_some() {
        say("group", "the group is that of the user on each host");
    }
    if global.os.as_deref().is_some_and(|os| os != "linux") {
        say("os", "hosts run Linux");
    }
}

/// Components, their versions and packages that an experiment has no place for.
fn components(topology: &Topology, left_out: &mut Vec<LeftOut>) {
    for section in SECTIONS.iter().filter(|section| section.role.is_none()) {
        for (path, server) in topology.servers(section) {
            let reason = format!(
                "{} on {} has no role in an experiment",
                section.component,
                server.host()
            );
            left_out.push(LeftOut::new(path, reason));
        }
    }
    for (component, version) in &topology.component_versions {
        let reason = format!("the version {version} of one component; name its package instead");
        left_out.push(LeftOut::new(
            format!("component_versions.{component}"),
            reason,
        ));
    }
    for (component, source) in &topology.component_sources {
        let reason = format!("the package is called {source}; name it as the component's package");
        left_out.push(LeftOut::new(
            format!("component_sources.{component}"),
            reason,
        ));
    }
}

fn exporters(topology: &Topology, cluster: &Cluster) -> Vec<LeftOut> {
    let mut left_out = Vec::new();
    let monitored = &topology.monitored;
    for (key, written) in [
        ("node_exporter_version", &monitored.node_exporter_version),
        (
            "blackbox_exporter_version",
            &monitored.blackbox_exporter_version,
        ),
    ] {
        if written.is_some() {
            let reason = "the version of one component; name its package instead";
            left_out.push(LeftOut::new(format!("monitored.{key}"), reason));
        }
    }
    if cluster.instances.iter().any(|instance| instance.exporters) {
        let port = cluster.monitored.blackbox_exporter_port;
        let reason = format!("blackbox_exporter (port {port}) has no role in an experiment");
        left_out.push(LeftOut::new("monitored", reason));
    }
    left_out
}

/// An absolute path as it is compared.
pub(super) fn comparable(path: &str) -> Option<String> {
    path.starts_with('/').then(|| clean(path))
}
