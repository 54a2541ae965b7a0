//! What mends a finding, as data: it can be shown, recorded, carried out and undone.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::host::facts::sysctl_path;

/// What mends a finding.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fix {
    /// Sets a kernel setting until the next boot.
    WriteSysctl {
        /// Its name, such as `vm.swappiness`.
        key: String,
        /// Its value.
        value: String,
    },
    /// Writes a file below `/sys` until the next boot. A `*` in its path stands for all names that fit.
    WriteFile {
        /// The file.
        path: PathBuf,
        /// Its content.
        value: String,
    },
    /// Raises a limit of processes; it holds from the next login on.
    Limits {
        /// `nofile` or `stack`, as in `limits.conf(5)`.
        name: String,
        /// Its value there.
        value: String,
    },
    /// Stops a service now and at the next boot.
    StopService {
        /// Its name.
        name: String,
    },
    /// Starts a service now and at the next boot.
    StartService {
        /// Its name.
        name: String,
    },
    /// Turns swap off now.
    SwapOff,
    /// What only a person can do.
    ByHand {
        /// What to do.
        what: String,
    },
}

/// The files below `/sys` that a fix may write.
const FILES: [(&str, &str); 2] = [
    ("/sys/kernel/mm/transparent_hugepage", "enabled"),
    ("/sys/devices/system/cpu/cpufreq", "scaling_governor"),
];

impl Fix {
    /// Whether `--apply` makes it: it takes effect at once, can be undone exactly, and no program can fail by it.
    #[must_use]
    pub const fn is_safe(&self) -> bool {
        match self {
            Self::WriteSysctl { .. } | Self::WriteFile { .. } => true,
            Self::Limits { .. }
            | Self::StopService { .. }
            | Self::StartService { .. }
            | Self::SwapOff
            | Self::ByHand { .. } => false,
        }
    }

    /// What makes it last beyond the next boot, where a line in a file does.
    #[must_use]
    pub fn to_keep(&self) -> Option<String> {
        match self {
            Self::WriteSysctl { key, value } => {
                Some(format!("`{key} = {value}` in /etc/sysctl.d/99-assay.conf"))
            }
            Self::WriteFile { path, value } => Some(format!(
                "`w {} - - - - {value}` in /etc/tmpfiles.d/assay.conf",
                path.display()
            )),
            Self::Limits { .. }
            | Self::StopService { .. }
            | Self::StartService { .. }
            | Self::SwapOff
            | Self::ByHand { .. } => None,
        }
    }

    /// The files that it writes, and what to each; nothing if it is not one that assay makes.
    pub(super) fn targets(&self, root: &Path) -> Vec<(PathBuf, String)> {
        match self {
            Self::WriteSysctl { key, value } if is_sysctl(key) => {
                vec![(root.join(sysctl_path(key)), value.clone())]
            }
            Self::WriteFile { path, value } if is_ours(path) => expand(root, path)
                .into_iter()
                .map(|path| (path, value.clone()))
                .collect(),
            Self::WriteSysctl { .. }
            | Self::WriteFile { .. }
            | Self::Limits { .. }
            | Self::StopService { .. }
            | Self::StartService { .. }
            | Self::SwapOff
            | Self::ByHand { .. } => Vec::new(),
        }
    }
}

/// Whether a name is that of a setting, and no path to somewhere else.
fn is_sysctl(key: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let areas = ["fs.", "kernel.", "net.", "vm."];
    areas.iter().any(|area| key.starts_with(area))
        && key
            .split('.')
            .all(|part| !part.is_empty() && part.chars().all(is_letter))
}

fn is_ours(path: &Path) -> bool {
    let plain = path
        .components()
        .all(|c| !matches!(c, std::path::Component::ParentDir));
    let of = |(folder, name): &(&str, &str)| path.starts_with(folder) && path.ends_with(name);
    plain && FILES.iter().any(of)
}

/// The paths below `root` that a path with at most one `*` in its last folder stands for.
fn expand(root: &Path, path: &Path) -> Vec<PathBuf> {
    let below = root.join(path.strip_prefix("/").unwrap_or(path));
    let (Some(folder), Some(name)) = (below.parent(), below.file_name()) else {
        return Vec::new();
    };
    let pattern = folder.file_name().unwrap_or_default().to_string_lossy();
    let (Some((before, after)), Some(above)) = (pattern.split_once('*'), folder.parent()) else {
        return vec![below];
    };
    let entries = std::fs::read_dir(above).into_iter().flatten().flatten();
    let fitting = entries.filter(|entry| {
        let found = entry.file_name();
        let found = found.to_string_lossy();
        found.starts_with(before) && found.ends_with(after)
    });
    let mut found: Vec<_> = fitting.map(|entry| entry.path().join(name)).collect();
    found.sort();
    found
}

/// The command, or the lines, that a person would type.
impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WriteSysctl { key, value } if value.contains(' ') => {
                write!(f, "sysctl -w {key}='{value}'")
            }
            Self::WriteSysctl { key, value } => write!(f, "sysctl -w {key}={value}"),
            Self::WriteFile { path, value } => write!(f, "echo {value} | tee {}", path.display()),
            Self::Limits { name, value } => {
                write!(
                    f,
                    "`* - {name} {value}` in /etc/security/limits.d/99-assay.conf"
                )
            }
            Self::StopService { name } => write!(f, "systemctl disable --now {name}"),
            Self::StartService { name } => write!(f, "systemctl enable --now {name}"),
            Self::SwapOff => f.write_str("swapoff -a"),
            Self::ByHand { what } => f.write_str(what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> Fix {
        Fix::WriteFile {
            path: path.into(),
            value: "never".into(),
        }
    }

    fn sysctl(key: &str) -> Fix {
        Fix::WriteSysctl {
            key: key.into(),
            value: "0".into(),
        }
    }

    #[test]
    fn no_fix_leads_outside_of_the_settings() {
        let bad = [
            "vm/../../etc/passwd",
            "vm..swappiness",
            "vm./x",
            "debug.x",
            "",
            "vm.",
        ];
        for key in bad {
            assert_eq!(sysctl(key).targets(Path::new("/")), [], "{key}");
        }
        let bad = [
            "/etc/passwd",
            "/sys/kernel/mm/transparent_hugepage/../../../../etc/enabled",
            "/sys/kernel/mm/transparent_hugepage/defrag",
            "sys/kernel/mm/transparent_hugepage/enabled",
        ];
        for path in bad {
            assert_eq!(file(path).targets(Path::new("/")), [], "{path}");
        }
    }

    #[test]
    fn one_fix_sets_the_governor_of_every_policy() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("sys/devices/system/cpu/cpufreq");
        for name in ["policy0", "policy4", "boost"] {
            std::fs::create_dir_all(folder.join(name)).unwrap();
        }
        let fix = file("/sys/devices/system/cpu/cpufreq/policy*/scaling_governor");
        let targets = fix.targets(root.path());
        let paths: Vec<_> = targets.iter().map(|(path, _)| path.clone()).collect();
        let expected = ["policy0", "policy4"].map(|p| folder.join(p).join("scaling_governor"));
        assert_eq!(paths, expected);
    }
}
