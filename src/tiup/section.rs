//! The lists of instances in a topology: their keys, default ports and directories, as TiUP 1.16 has them.

use super::Role;

/// A list of instances of one kind.
pub(super) struct Section {
    /// Its key in a topology.
    pub(super) key: &'static str,
    /// The component, as directories and units have it.
    pub(super) component: &'static str,
    /// What it is in an experiment, if it can be in one.
    pub(super) role: Option<Role>,
    /// Its ports, the one that names directories first.
    pub(super) ports: &'static [Port],
    pub(super) has_data: bool,
    pub(super) has_log: bool,
    /// The keys that other sections do not have.
    pub(super) keys: &'static [Key],
}

/// A port of an instance.
pub(super) struct Port {
    pub(super) key: &'static str,
    /// What it is where nothing is written; none is known of components that are left out.
    pub(super) default: Option<u16>,
    pub(super) about: &'static str,
}

/// A key of an instance that is no port.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) fate: Fate,
    pub(super) about: &'static str,
}

/// What stands after a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Port,
    Boolean,
    /// A mapping of settings.
    Settings,
    Resources,
    /// Anything.
    Any,
}

/// What becomes of a key in an experiment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It has a place of its own in an instance.
    Known,
    /// It is kept under the same name.
    Kept,
    /// It is left out, for a reason.
    LeftOut(&'static str),
}

use Fate::{Kept, Known, LeftOut};
use Kind::{Any, Boolean, Resources, Settings, Text};

const fn port(key: &'static str, default: u16, about: &'static str) -> Port {
    Port {
        key,
        default: Some(default),
        about,
    }
}

const fn key(name: &'static str, kind: Kind, fate: Fate, about: &'static str) -> Key {
    Key {
        name,
        kind,
        fate,
        about,
    }
}

const NUMA_CORES: Key = key(
    "numa_cores",
    Text,
    Kept,
    "the CPUs to run on, as `numactl -C` has them",
);
const OFFLINE: Key = key(
    "offline",
    Boolean,
    Known,
    "whether it is being taken out of the cluster",
);
const CONFIG: Key = key("config", Settings, Known, "settings of this instance");
const MONITORING: &str = "assay has monitoring of its own";
const ARGUMENTS: Key = key(
    "additional_args",
    Any,
    LeftOut("arguments of the program are the pack's"),
    "further arguments of the program",
);

/// The keys of every instance.
pub(super) const COMMON: &[Key] = &[
    key(
        "host",
        Text,
        Known,
        "the address, as the components reach each other",
    ),
    key(
        "manage_host",
        Text,
        Known,
        "the address for SSH, where it is another one",
    ),
    key("listen_host", Text, Kept, "the address to listen on"),
    key("ssh_port", Kind::Port, Known, "the port of sshd"),
    key("arch", Text, Known, "amd64 or arm64"),
    key("os", Text, Known, "the operating system"),
    key("resource_control", Resources, Known, "limits of the unit"),
    key(
        "numa_node",
        Text,
        Kept,
        "the NUMA nodes to run on, as `numactl` has them",
    ),
    key(
        "patched",
        Boolean,
        LeftOut(
            "the program was replaced by `tiup cluster patch`; name the patch build as its package",
        ),
        "whether the program was replaced by `tiup cluster patch`",
    ),
    key(
        "imported",
        Boolean,
        LeftOut("deprecated: it only says that TiDB Ansible installed the instance"),
        "whether the instance was installed by TiDB Ansible (deprecated)",
    ),
    key(
        "ignore_exporter",
        Boolean,
        Known,
        "whether the host goes without exporters",
    ),
    key(
        "source",
        Text,
        LeftOut("a package under another name; name it as the component's package"),
        "another name of the package",
    ),
];

/// All sections.
pub(super) const SECTIONS: &[Section] = &[
    Section {
        key: "pd_servers",
        component: "pd",
        role: Some(Role::Pd),
        ports: &[
            port("client_port", 2379, "the port for clients"),
            port("peer_port", 2380, "the port for the other PD instances"),
        ],
        has_data: true,
        has_log: true,
        keys: &[
            key("name", Text, Known, "the name in PD's cluster"),
            key(
                "advertise_client_addr",
                Text,
                Kept,
                "the URL that clients are told",
            ),
            key(
                "advertise_peer_addr",
                Text,
                Kept,
                "the URL that other PD instances are told",
            ),
            CONFIG,
        ],
    },
    Section {
        key: "tikv_servers",
        component: "tikv",
        role: Some(Role::Tikv),
        ports: &[
            port("port", 20160, "the port for clients"),
            port("status_port", 20180, "the port of status and metrics"),
        ],
        has_data: true,
        has_log: true,
        keys: &[
            key(
                "advertise_addr",
                Text,
                Kept,
                "the address that clients are told",
            ),
            key(
                "advertise_status_addr",
                Text,
                Kept,
                "the address of the status that others are told",
            ),
            NUMA_CORES,
            OFFLINE,
            CONFIG,
        ],
    },
    Section {
        key: "tidb_servers",
        component: "tidb",
        role: Some(Role::Tidb),
        ports: &[
            port("port", 4000, "the port for SQL"),
            port("status_port", 10080, "the port of status and metrics"),
        ],
        has_data: false,
        has_log: true,
        keys: &[
            key(
                "advertise_address",
                Text,
                Kept,
                "the address that others are told",
            ),
            NUMA_CORES,
            CONFIG,
        ],
    },
    Section {
        key: "tiflash_servers",
        component: "tiflash",
        role: Some(Role::Tiflash),
        ports: &[
            port(
                "tcp_port",
                9000,
                "the port for TCP; from v7.1 on only a name",
            ),
            port(HTTP_PORT, 8123, "the port for HTTP; gone in v7.1"),
            port(
                "flash_service_port",
                3930,
                "the port for coprocessor requests",
            ),
            port("flash_proxy_port", 20170, "the port of the proxy"),
            port(
                "flash_proxy_status_port",
                20292,
                "the port of the proxy's status",
            ),
            port("metrics_port", 8234, "the port of metrics"),
        ],
        has_data: true,
        has_log: true,
        keys: &[
            key(
                "tmp_path",
                Text,
                LeftOut("temporary files lie below the data"),
                "the directory of temporary files",
            ),
            key("learner_config", Settings, Known, "settings of the proxy"),
            NUMA_CORES,
            OFFLINE,
            CONFIG,
        ],
    },
    Section {
        key: "tiproxy_servers",
        component: "tiproxy",
        role: Some(Role::Tiproxy),
        ports: &[
            port("port", 6000, "the port for SQL"),
            port("status_port", 3080, "the port of status and metrics"),
        ],
        has_data: false,
        has_log: false,
        keys: &[CONFIG],
    },
    Section {
        key: "monitoring_servers",
        component: "prometheus",
        role: Some(Role::Prometheus),
        ports: &[
            port("port", 9090, "the port of Prometheus"),
            port(NG_PORT, 12020, "the port of ng-monitoring; -1 for none"),
        ],
        has_data: true,
        has_log: true,
        keys: &[
            key(
                "rule_dir",
                Text,
                LeftOut(MONITORING),
                "an absolute folder of rules",
            ),
            key(
                "prom_remote_write_to_vm",
                Boolean,
                LeftOut(MONITORING),
                "whether metrics go to VictoriaMetrics too",
            ),
            key(
                "enable_prom_agent_mode",
                Boolean,
                LeftOut(MONITORING),
                "whether Prometheus runs as an agent",
            ),
            key(
                "remote_config",
                Any,
                LeftOut(MONITORING),
                "where metrics are written to and read from",
            ),
            key(
                "external_alertmanagers",
                Any,
                LeftOut(MONITORING),
                "Alertmanagers of somebody else",
            ),
            key(
                "pushgateway_addrs",
                Any,
                LeftOut(MONITORING),
                "push gateways",
            ),
            key("storage_retention", Text, Kept, "how long metrics are kept"),
            key(
                "storage_retention_time",
                Text,
                Kept,
                "how long metrics are kept",
            ),
            key(
                "storage_retention_size",
                Text,
                Kept,
                "how many bytes of metrics are kept",
            ),
            key(
                "additional_scrape_conf",
                Any,
                LeftOut(MONITORING),
                "keys of every scrape",
            ),
            key(
                "scrape_interval",
                Text,
                LeftOut(MONITORING),
                "the time between two scrapes",
            ),
            key(
                "scrape_timeout",
                Text,
                LeftOut(MONITORING),
                "the longest that a scrape may take",
            ),
            ARGUMENTS,
            key(
                "ng_monitoring_config",
                Settings,
                LeftOut(MONITORING),
                "settings of ng-monitoring",
            ),
        ],
    },
    Section {
        key: "grafana_servers",
        component: "grafana",
        role: Some(Role::Grafana),
        ports: &[port("port", 3000, "the port of Grafana")],
        has_data: false,
        has_log: false,
        keys: &[
            key(
                "dashboard_dir",
                Text,
                LeftOut(MONITORING),
                "an absolute folder of dashboards",
            ),
            key(
                "username",
                Text,
                LeftOut("accounts are not copied"),
                "the administrator",
            ),
            key(
                "password",
                Text,
                LeftOut("passwords are not copied"),
                "the administrator's password",
            ),
            key(
                "anonymous_enable",
                Boolean,
                LeftOut(MONITORING),
                "whether everybody may look",
            ),
            key(
                "root_url",
                Text,
                LeftOut(MONITORING),
                "the URL that it is reached by",
            ),
            key(
                "domain",
                Text,
                LeftOut(MONITORING),
                "the domain that it is reached by",
            ),
            key("default_theme", Text, LeftOut(MONITORING), "the theme"),
            key(
                "org_name",
                Text,
                LeftOut(MONITORING),
                "the organisation of anonymous users",
            ),
            key(
                "org_role",
                Text,
                LeftOut(MONITORING),
                "the role of anonymous users",
            ),
            key(
                "use_vm_as_datasource",
                Boolean,
                LeftOut(MONITORING),
                "whether VictoriaMetrics is asked",
            ),
            CONFIG,
        ],
    },
    Section {
        key: "alertmanager_servers",
        component: "alertmanager",
        role: Some(Role::Alertmanager),
        ports: &[
            port("web_port", 9093, "the port of its pages"),
            port("cluster_port", 9094, "the port for other Alertmanagers"),
        ],
        has_data: true,
        has_log: true,
        keys: &[
            key(
                "config_file",
                Text,
                LeftOut("alerts are not the experiment's"),
                "an absolute file of settings",
            ),
            ARGUMENTS,
        ],
    },
    left_out("pump_servers", "pump", &[port("port", 8250, "the port")]),
    left_out(
        "drainer_servers",
        "drainer",
        &[port("port", 8249, "the port")],
    ),
    left_out("cdc_servers", "cdc", &[port("port", 8300, "the port")]),
    left_out(
        "kvcdc_servers",
        "tikv-cdc",
        &[port("port", 8600, "the port")],
    ),
    left_out(
        "tispark_masters",
        "tispark",
        &[
            port("port", 7077, "the port"),
            port("web_port", 8080, "the port of its pages"),
        ],
    ),
    left_out(
        "tispark_workers",
        "tispark",
        &[
            port("port", 7078, "the port"),
            port("web_port", 8081, "the port of its pages"),
        ],
    ),
    left_out(
        "tidb_dashboard_servers",
        "tidb-dashboard",
        &[port("port", 12333, "the port")],
    ),
    left_out("tso_servers", "tso", UNKNOWN_PORT),
    left_out("scheduling_servers", "scheduling", UNKNOWN_PORT),
    left_out("resource_manager_servers", "resource-manager", UNKNOWN_PORT),
    left_out("router_servers", "router", UNKNOWN_PORT),
];

/// The port of ng-monitoring: a default from v5.4 on, and -1 for none.
pub(super) const NG_PORT: &str = "ng_port";

/// The HTTP port of TiFlash, which is gone in v7.1.
pub(super) const HTTP_PORT: &str = "http_port";

const UNKNOWN_PORT: &[Port] = &[Port {
    key: "port",
    default: None,
    about: "the port",
}];

/// A section that no experiment has a place for. Keys that are not known here are taken as they are.
const fn left_out(key: &'static str, component: &'static str, ports: &'static [Port]) -> Section {
    Section {
        key,
        component,
        role: None,
        ports,
        has_data: true,
        has_log: true,
        keys: &[CONFIG],
    }
}

impl Section {
    /// The section of a role.
    pub(super) fn of(role: Role) -> &'static Self {
        let section = SECTIONS.iter().find(|section| section.role == Some(role));
        section.expect("every role has a section")
    }

    /// The section that a topology calls so.
    pub(super) fn named(key: &str) -> Option<&'static Self> {
        SECTIONS.iter().find(|section| section.key == key)
    }

    /// Its keys that are no ports and no directories.
    pub(super) fn all_keys(&self) -> impl Iterator<Item = &'static Key> {
        COMMON.iter().chain(self.keys)
    }

    /// The directories that can be written.
    pub(super) fn directories(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let (has_data, has_log) = (self.has_data, self.has_log);
        [
            (
                "deploy_dir",
                "the directory of programs, configuration and scripts",
                true,
            ),
            ("data_dir", "the directory of data", has_data),
            ("log_dir", "the directory of logs", has_log),
        ]
        .into_iter()
        .filter_map(|(name, about, there)| there.then_some((name, about)))
    }
}
