//! From a cluster of TiUP's to an experiment and an inventory to start from.

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::cluster::default_ports;
use super::directory::{Globals, Own};
use super::hosts::Hosts;
use super::section::NG_PORT;
use super::settings::{self, Settings};
use super::{Cluster, Instance, LeftOut, Options, Reading, Role, read};
use crate::spec::{Name, Problems, yaml};

/// What becomes of a file of TiUP's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The experiment file.
    pub experiment: String,
    /// The inventory file.
    pub inventory: String,
    /// What is in neither of them, and why.
    pub left_out: Vec<LeftOut>,
    /// How many hosts there are.
    pub hosts: usize,
    /// How many instances there are.
    pub instances: usize,
    /// The version of TiDB, if it is known.
    pub version: Option<String>,
}

/// How the files are called that are read and written.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The file of TiUP's, for messages.
    pub source: &'a str,
    /// The experiment.
    pub experiment: &'a Name,
    /// The inventory, from the experiment's folder.
    pub inventory: &'a str,
    /// The private key that TiUP logs in with, if it is known.
    pub identity_file: Option<&'a str>,
}

/// Turns a `topology.yaml` or `meta.yaml` into an experiment and an inventory.
///
/// # Errors
/// As of [`read`].
pub fn import(names: &Names<'_>, text: &str, options: &Options) -> Result<Import, Problems> {
    let Reading {
        cluster,
        mut left_out,
    } = read(names.source, text, options)?;
    let hosts = Hosts::of(&cluster, &mut left_out);
    if cluster.version.is_none() {
        left_out.push(LeftOut::new(
            "version",
            "the topology does not say it: give `--version`, or edit the experiment",
        ));
    }
    Ok(Import {
        experiment: experiment(names, &cluster, &hosts, &left_out),
        inventory: inventory(names, &cluster, &hosts),
        hosts: hosts.len(),
        instances: cluster.instances.len(),
        version: cluster.version,
        left_out,
    })
}

fn inventory(names: &Names<'_>, cluster: &Cluster, hosts: &Hosts) -> String {
    let identity = match names.identity_file {
        Some(file) => yaml(&json!({ "identity_file": file }), 2),
        None => "  # identity_file: ~/.ssh/id_ed25519  # without it: what ~/.ssh/config and the agent offer\n".to_owned(),
    };
    format!(
        "# The hosts of `{name}`, from `{source}`.\n\n\
         defaults:\n\
         {user}  become: true                        # edit: the login must be allowed to become root with sudo\n\
         {identity}\n\
         {hosts}",
        name = names.experiment,
        source = one_line(names.source),
        user = yaml(&json!({ "user": cluster.user }), 2),
        hosts = yaml(&json!({ "hosts": hosts.inventory() }), 0),
    )
}

fn experiment(names: &Names<'_>, cluster: &Cluster, hosts: &Hosts, left_out: &[LeftOut]) -> String {
    let name = names.experiment;
    let parts = [
        header(names, left_out),
        yaml(&json!({ "name": name, "inventory": names.inventory }), 0),
        "cluster:\n".to_owned(),
        frame(cluster),
        directories(cluster),
        yaml(&json!({ "topology": topology(cluster, hosts) }), 2),
        config(cluster),
        rest(hosts.client(cluster)),
    ];
    let [
        header,
        names,
        cluster,
        frame,
        directories,
        topology,
        config,
        rest,
    ] = parts;
    format!("{header}\n{names}\n{cluster}{frame}{directories}{topology}{config}\n{rest}")
}

fn header(names: &Names<'_>, left_out: &[LeftOut]) -> String {
    let source = one_line(names.source);
    let mut text = format!(
        "# The cluster of `{source}` as an experiment. Look at what is marked with `edit`, then:\n#\n"
    );
    for (command, what) in [
        ("check", "finds mistakes"),
        ("plan ", "shows the rounds and how long they take"),
    ] {
        text += &format!("#   assay {command} {}.yaml     {what}\n", names.experiment);
    }
    if left_out.is_empty() {
        return text;
    }
    text += "#\n# What the file says and this one does not:\n";
    for LeftOut { path, reason } in left_out {
        text += &format!("#   {}: {}\n", one_line(path), one_line(reason));
    }
    text
}

/// A text that cannot end a comment.
fn one_line(text: &str) -> String {
    let harmless = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(harmless).collect()
}

fn frame(cluster: &Cluster) -> String {
    let tls = cluster.tls.then(|| json!({ "tls": true }));
    let version = match &cluster.version {
        Some(version) => yaml(&json!({ "version": version }), 2),
        None => {
            "  # version: v8.5.0                 # edit: the topology does not say it\n".to_owned()
        }
    };
    format!(
        "{}{version}{}{}",
        yaml(&json!({ "system": "tidb" }), 2),
        yaml(&json!({ "user": cluster.user }), 2),
        tls.map_or_else(String::new, |tls| yaml(&tls, 2)),
    )
}

/// The directories of the cluster as the experiment has them: absolute, or those of the instances.
fn absolute<'a>(cluster: &'a Cluster, deploy: &'a str) -> Globals<'a> {
    let is_absolute = |directory: &&str| directory.starts_with('/');
    Globals {
        user: &cluster.user,
        deploy,
        data: Some(&*cluster.data_dir)
            .filter(is_absolute)
            .unwrap_or("data"),
        log: Some(&*cluster.log_dir).filter(is_absolute).unwrap_or(""),
    }
}

fn directories(cluster: &Cluster) -> String {
    let deploy = cluster.globals().at_home(&cluster.deploy_dir);
    let globals = absolute(cluster, &deploy);
    let mut found = Map::new();
    found.insert("deploy_dir".to_owned(), json!(globals.deploy));
    for (key, directory) in [("data_dir", globals.data), ("log_dir", globals.log)] {
        if directory.starts_with('/') {
            found.insert(key.to_owned(), json!(directory));
        }
    }
    let note = "  # edit: these directories are those of the cluster that was imported; take others where it lives\n";
    format!("{note}{}", yaml(&Value::Object(found), 2))
}

fn topology(cluster: &Cluster, hosts: &Hosts) -> Value {
    let deploy = cluster.globals().at_home(&cluster.deploy_dir);
    let globals = absolute(cluster, &deploy);
    let mut roles = Map::new();
    for role in Role::ALL {
        let instances = cluster.instances.iter().filter(|i| i.role == role);
        let version = cluster.version.as_deref();
        let entries: Vec<Value> = instances
            .map(|instance| {
                let keys = instance_keys(instance, &globals, version);
                with_host(hosts.name(&instance.host), keys)
            })
            .collect();
        if !entries.is_empty() {
            roles.insert(role.name().to_owned(), Value::Array(entries));
        }
    }
    let exporters = exporters(cluster, &globals, hosts);
    if !exporters.is_empty() {
        roles.insert("node_exporter".to_owned(), Value::Array(exporters));
    }
    Value::Object(roles)
}

/// A host by its name alone where there is nothing else to say.
fn with_host(host: &str, keys: Map<String, Value>) -> Value {
    if keys.is_empty() {
        return json!(host);
    }
    let mut entry = Map::from_iter([("host".to_owned(), json!(host))]);
    entry.extend(keys);
    Value::Object(entry)
}

/// What an instance has that is not the default of its role.
fn instance_keys(
    instance: &Instance,
    globals: &Globals<'_>,
    version: Option<&str>,
) -> Map<String, Value> {
    let role = instance.role;
    let mut keys = Map::new();
    let default = default_ports(role, version);
    for (key, port) in &instance.ports {
        if default.get(key) != Some(port) {
            keys.insert(key.clone(), json!(port));
        }
    }
    if default.contains_key(NG_PORT) && !instance.ports.contains_key(NG_PORT) {
        keys.insert("ng_monitoring".to_owned(), json!(false));
    }
    let main = instance.ports.first().map_or(0, |(_, port)| *port);
    let name = format!("pd-{}-{main}", instance.host);
    if let Some(own) = instance.name.as_ref().filter(|own| **own != name) {
        keys.insert("name".to_owned(), json!(own));
    }
    let own = Own {
        deploy: Some(&instance.deploy_dir),
        ..Own::default()
    };
    let name = format!("{role}-{main}");
    let deploy = globals.directories(&name, Own::default()).deploy;
    let default = globals.directories(&name, own);
    for (key, own, default) in [
        ("deploy_dir", Some(&instance.deploy_dir), deploy),
        ("data_dir", instance.data_dir.as_ref(), default.data),
        ("log_dir", instance.log_dir.as_ref(), default.log),
    ] {
        if let Some(own) = own.filter(|own| **own != default) {
            keys.insert(key.to_owned(), json!(own));
        }
    }
    keys.extend(
        instance
            .other
            .iter()
            .map(|(key, value)| (key.clone(), json!(value))),
    );
    keys.extend(maps(instance));
    keys
}

/// Limits of a process. How long it may take to start and stop is the packs' to say.
fn limits(written: &IndexMap<String, String>) -> Value {
    let is_limit = |(key, _): &(&String, &String)| !key.starts_with("timeout_");
    let limits = written.iter().filter(is_limit);
    let limits = limits.map(|(key, value)| (key.clone(), json!(value)));
    Value::Object(limits.collect())
}

/// The mappings that are not empty.
fn maps(instance: &Instance) -> impl Iterator<Item = (String, Value)> {
    let settings = |settings: &Settings| settings::value(settings);
    let maps = [
        ("config", settings(&instance.config)),
        ("learner_config", settings(&instance.learner_config)),
        ("resource_control", limits(&instance.resource_control)),
    ];
    let maps = maps.into_iter();
    maps.filter(|(_, map)| map.as_object().is_some_and(|map| !map.is_empty()))
        .map(|(key, map)| (key.to_owned(), map))
}

fn exporters(cluster: &Cluster, globals: &Globals<'_>, hosts: &Hosts) -> Vec<Value> {
    let monitored = &cluster.monitored;
    let port = monitored.node_exporter_port;
    let mut keys = Map::new();
    if port != 9100 {
        keys.insert("node_exporter_port".to_owned(), json!(port));
    }
    let default = globals.exporters(&format!("monitor-{port}"), Own::default());
    let moved = (&monitored.deploy_dir, &monitored.log_dir) != (&default.deploy, &default.log);
    if moved {
        keys.insert("deploy_dir".to_owned(), json!(monitored.deploy_dir));
        keys.insert("log_dir".to_owned(), json!(monitored.log_dir));
    }
    if let Some(numa) = &monitored.numa_node {
        keys.insert("numa_node".to_owned(), json!(numa));
    }
    let limits = limits(&monitored.resource_control);
    if limits.as_object().is_some_and(|limits| !limits.is_empty()) {
        keys.insert("resource_control".to_owned(), limits);
    }
    let mut there: Vec<&str> = Vec::new();
    for instance in cluster.instances.iter().filter(|i| i.exporters) {
        let name = hosts.name(&instance.host);
        if !there.contains(&name) {
            there.push(name);
        }
    }
    there
        .into_iter()
        .map(|host| with_host(host, keys.clone()))
        .collect()
}

fn config(cluster: &Cluster) -> String {
    let components = cluster.config.iter();
    let components = components.map(|(name, config)| (name.clone(), settings::value(config)));
    let components: Map<String, Value> = components.collect();
    if components.is_empty() {
        return String::new();
    }
    yaml(&json!({ "config": components }), 2)
}

/// What a topology says nothing about: a start to edit.
fn rest(client: &str) -> String {
    let clients = yaml(&json!({ "clients": [client] }), 0);
    format!(
        "\
variants:                           # edit: what is compared; each overrides the version and the settings above
  imported: {{}}
  # tuned: {{config: {{tikv: {{readpool.unified.max-thread-count: 8}}}}}}
  # other: {{version: v8.5.0}}

# edit: hosts that run the load tool; it must not share CPUs with the database
{clients}
dataset:                            # edit: large enough that it does not fit into memory, if yours does not
  driver: sysbench
  schema: sysbench
  tables: 16
  table_size: 1_000_000
  threads: 16

workloads:                          # edit: what is run
  - {{driver: sysbench, script: oltp_read_write}}

sweep:                              # edit: every workload is run with each number of threads
  threads: [16, 64, 256]

rounds:
  warmup: 60s                       # load that does not count
  duration: 5m                      # load that does
  repetitions: 3                    # at least 3, so that noise can be told from a difference
"
    )
}
