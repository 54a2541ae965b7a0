//! The roles that an experiment can have too.

use std::fmt;

/// What an instance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// `pd-server`.
    Pd,
    /// `tikv-server`.
    Tikv,
    /// `tidb-server`.
    Tidb,
    /// `tiflash`.
    Tiflash,
    /// `tiproxy`.
    Tiproxy,
    /// Prometheus, with ng-monitoring.
    Prometheus,
    /// Grafana.
    Grafana,
    /// Alertmanager.
    Alertmanager,
}

impl Role {
    /// All roles, in the order of an experiment.
    pub const ALL: [Self; 8] = [
        Self::Pd,
        Self::Tikv,
        Self::Tidb,
        Self::Tiflash,
        Self::Tiproxy,
        Self::Prometheus,
        Self::Grafana,
        Self::Alertmanager,
    ];

    /// Its name in an experiment, in names of directories and of units.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pd => "pd",
            Self::Tikv => "tikv",
            Self::Tidb => "tidb",
            Self::Tiflash => "tiflash",
            Self::Tiproxy => "tiproxy",
            Self::Prometheus => "prometheus",
            Self::Grafana => "grafana",
            Self::Alertmanager => "alertmanager",
        }
    }

    /// Whether it only watches a cluster.
    #[must_use]
    pub fn is_monitoring(self) -> bool {
        matches!(self, Self::Prometheus | Self::Grafana | Self::Alertmanager)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
