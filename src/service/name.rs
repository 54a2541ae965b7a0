//! The names of units. Two deployments, components or ports never get the same.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::ServiceError;
use crate::snapshot::Marker;

/// How the names of all units of assay begin.
pub(super) const PREFIX: &str = "assay-";
/// How the names of all units of assay end.
pub(super) const SUFFIX: &str = ".service";
/// The most that is written out of a deployment's name, and of a component's.
const DEPLOYMENT: usize = 110;
const COMPONENT: usize = 60;
/// The hex digits of a hash that stands for the rest.
const HASH: usize = 32;

/// The name of the unit of a component at a port: `assay-<experiment>-<deployment>-<component>-<port>.service`, at most 200
/// bytes. Characters that names of units do not have, and dashes in all but the experiment's name, are written as a colon and
/// two hex digits; the rest of a long name, as a hash.
#[must_use]
pub fn unit_name(marker: &Marker, component: &str, port: u16) -> String {
    let component = cut(&escape(component, false), COMPONENT, component);
    format!("{}{component}-{port}{SUFFIX}", unit_prefix(marker))
}

/// What the names of all units of a deployment begin with. Those of others may begin so as well: their headers tell.
#[must_use]
pub fn unit_prefix(marker: &Marker) -> String {
    // From the right, a name is read in one way only: dashes part everything but what is in the experiment's name.
    let text = format!(
        "{}-{}",
        escape(&marker.experiment, true),
        escape(&marker.deployment, false)
    );
    format!("{PREFIX}{}-", cut(&text, DEPLOYMENT, &text))
}

fn escape(text: &str, dashes: bool) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' => out.push(char::from(byte)),
            b'-' if dashes => out.push('-'),
            byte => write!(out, ":{byte:02x}").expect("a text takes everything"),
        }
    }
    out
}

/// An escaped text, if it is long its beginning and `:h` with a hash of the whole; no escaped text has that.
fn cut(escaped: &str, limit: usize, whole: &str) -> String {
    if escaped.len() <= limit {
        return escaped.to_owned();
    }
    let hash = Sha256::digest(whole.as_bytes());
    let mut digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.truncate(HASH);
    // Escaped texts are ASCII.
    format!("{}:h{digits}", &escaped[..limit - HASH - 2])
}

/// Refuses what is no name of a unit of assay.
pub(super) fn check(name: &str) -> Result<(), ServiceError> {
    if !name.starts_with(PREFIX) {
        let why = "the name of a unit begins with `assay-`";
        return Err(ServiceError::refused(name, why));
    }
    check_any(name)
}

/// Refuses what is no name of a unit of anybody.
pub(super) fn check_any(name: &str) -> Result<(), ServiceError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.".contains(&byte);
    let why = if name.starts_with('-') {
        "the name of a unit does not begin with a dash"
    } else if !name.ends_with(SUFFIX) {
        "the name of a unit ends in `.service`"
    } else if !name.bytes().all(is_plain) || name.len() > 200 {
        "it is no plain name of a unit"
    } else {
        return Ok(());
    };
    Err(ServiceError::refused(name, why))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn marker(experiment: &str, deployment: &str) -> Marker {
        Marker {
            experiment: experiment.into(),
            deployment: deployment.into(),
        }
    }

    #[test]
    fn a_usual_name_is_readable() {
        assert_eq!(
            unit_name(&marker("tidb-upgrade", "v5.4.3"), "tikv", 20160),
            "assay-tidb-upgrade-v5.4.3-tikv-20160.service"
        );
        assert_eq!(
            unit_name(&marker("a", "wal off"), "node_exporter", 9100),
            "assay-a-wal:20off-node_exporter-9100.service"
        );
    }

    #[test]
    fn no_two_units_have_one_name() {
        let long = "x".repeat(300);
        let longer = "x".repeat(301);
        let words = [
            "a", "a-a", "a:2da", ":", "-", "", "a--", "ä", "a/b", "a_b", "a b", "%n", "h", &long,
            &longer,
        ];
        let mut seen = HashSet::new();
        for experiment in words {
            for deployment in words {
                for component in words {
                    for port in [1, 11] {
                        let name = unit_name(&marker(experiment, deployment), component, port);
                        check(&name).unwrap();
                        assert!(
                            name.starts_with(&unit_prefix(&marker(experiment, deployment))),
                            "{name}"
                        );
                        assert!(seen.insert(name.clone()), "{name}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_name_of_ours_is_refused() {
        for name in [
            "ssh.service",
            "assay-x",
            "assay-../x.service",
            "assay-a b.service",
            "assay-a@b.service",
            "assay-a\n.service",
            "",
        ] {
            assert!(check(name).is_err(), "{name}");
        }
    }
}
