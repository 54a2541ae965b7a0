//! `manifest.json`: what ran, where, with what. Written once, before the first step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::host::preflight::Finding;
use crate::host::{Calibration, ClockOffset, Facts};

/// The format of a run's folder.
pub const FORMAT: u32 = 1;

/// What ran, where, with what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The format of the folder.
    pub format: u32,
    /// The version of assay.
    pub assay: String,
    /// The run's id: UTC time and four hex digits.
    pub run: String,
    /// The experiment's name.
    pub experiment: String,
    /// When it was made, UTC.
    pub created: jiff::Timestamp,
    /// The hash of the resolved spec.
    pub spec: String,
    /// The seed.
    pub seed: u64,
    /// The experiment file as given on the command line.
    pub source: String,
    /// `--inventory` as given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inventory: Option<String>,
    /// `--set` as given, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<String>,
    /// What each host was when the run began, by name.
    pub hosts: BTreeMap<String, HostRecord>,
    /// sha256 of every program used, by name.
    pub programs: BTreeMap<String, String>,
    /// Versions of every program used, by name.
    pub versions: BTreeMap<String, String>,
    /// Four hex digits for each secret by its name, so that another value is noticed on resume.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, String>,
}

/// What a host was when the run began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostRecord {
    /// What it is.
    #[serde(flatten)]
    pub facts: Facts,
    /// Its clock against that of the machine that assay ran on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockOffset>,
    /// How fast it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// What pre-flight found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preflight: Vec<Finding>,
}

impl From<Facts> for HostRecord {
    fn from(facts: Facts) -> Self {
        Self {
            facts,
            ..Self::default()
        }
    }
}
