//! What the templates of a pack can name.

use super::form::{Form, Role};

/// What every template sees, and what it is.
pub const CONTEXT: [(&str, &str); 28] = [
    ("experiment", "the experiment's name"),
    ("deployment", "the deployment's id: the variant's name"),
    ("system", "the system's name"),
    (
        "version",
        "the version that is deployed; empty if none is asked for",
    ),
    ("role", "the instance's role"),
    (
        "instance",
        "its name within the deployment: `tikv-20160@kv1`",
    ),
    ("host", "its host, as the inventory calls it"),
    (
        "address",
        "how other hosts reach that host; an IPv6 address without brackets",
    ),
    ("unit", "its unit's name"),
    (
        "port",
        "its main port; every other port is there by its own name",
    ),
    (
        "deploy",
        "the folder of its program, configuration and scripts",
    ),
    ("bin", "`bin` in that folder"),
    ("program", "the path of its program"),
    ("data", "the folder of its data; empty if it keeps none"),
    ("log", "the folder of its logs"),
    ("config", "its tunables, nested"),
    ("user", "the account that it runs as"),
    (
        "short",
        "12 hex digits that no other instance has, for sockets",
    ),
    ("numa_node", "the NUMA node that it is bound to, or nothing"),
    ("numa_cores", "the cores that it is bound to, or nothing"),
    ("numa", "`numactl --cpunodebind=... ` for that, or nothing"),
    ("tls", "whether the deployment speaks TLS"),
    ("tls_dir", "the folder of ca.pem, cert.pem and key.pem"),
    ("scheme", "`https` with TLS, else `http`"),
    (
        "cluster",
        "role -> its instances, each with instance, host, address, ports, folders and settings",
    ),
    (
        "entry",
        "the instances that clients connect to, each with address and port",
    ),
    ("entry_port", "the name of their port"),
    (
        "since(\"5.3\")",
        "whether the version has what came with that one",
    ),
];

/// What the templates of each role see besides: its ports and settings.
#[must_use]
pub fn context_of(form: &Form) -> Vec<(String, Vec<String>)> {
    let roles = form.roles.iter();
    let names = |role: &Role| {
        let ports = role.ports.keys().map(ToString::to_string);
        ports
            .chain(role.settings.keys().map(ToString::to_string))
            .collect()
    };
    roles
        .map(|(name, role)| (name.to_string(), names(role)))
        .collect()
}

/// What texts of `sql` can name besides.
pub(super) const OF_SQL: [&str; 8] = [
    "name", "value", "database", "user", "from", "password", "grant", "table",
];
/// What the language itself has, and `since`.
pub(super) const FUNCTIONS: [&str; 6] = ["since", "range", "dict", "namespace", "debug", "loop"];
