//! What `tiup cluster display --format json` says.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::super::DatabaseError;
use super::super::cluster::Member;

/// What TiUP knows of a cluster.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) version: String,
    pub(super) instances: Vec<Instance>,
}

/// What TiUP knows of one instance.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Instance {
    pub(super) id: String,
    pub(super) status: String,
    #[serde(default)]
    pub(super) os_arch: String,
    pub(super) deploy_dir: PathBuf,
}

impl Shown {
    /// Finds it in what TiUP printed, where lines of its log may stand around it.
    pub(super) fn read(text: &str) -> Result<Self, DatabaseError> {
        let starts = text.match_indices('{').map(|(at, _)| at);
        let mut starts = starts.filter(|at| *at == 0 || text.as_bytes()[at - 1] == b'\n');
        let found = starts.find_map(|at| {
            let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
            let value = values.next()?.ok()?;
            let version = value.pointer("/cluster_meta/cluster_version")?.as_str()?;
            let instances = value.get("instances").cloned();
            Some(Self {
                version: version.to_owned(),
                instances: serde_json::from_value(
                    instances.unwrap_or_else(|| Value::Array(vec![])),
                )
                .ok()?,
            })
        });
        found.ok_or_else(|| {
            let message = "`tiup cluster display` does not tell of a cluster in JSON";
            DatabaseError::Other(message.to_owned())
        })
    }

    /// Whether any instance runs.
    pub(super) fn runs(&self) -> bool {
        self.instances.iter().any(|i| i.status.starts_with("Up"))
    }

    /// The architecture that TiUP found on all hosts, in its own word for it.
    pub(super) fn arch(&self) -> Option<&'static str> {
        let ends_with = |word: &str| self.instances.iter().all(|i| i.os_arch.ends_with(word));
        let words = [
            ("x86_64", "amd64"),
            ("amd64", "amd64"),
            ("aarch64", "arm64"),
            ("arm64", "arm64"),
        ];
        let found = words.into_iter().find(|(shown, _)| ends_with(shown));
        found.map(|(_, word)| word)
    }

    /// Refuses a cluster that lies elsewhere than the deployment: it has the same name by chance.
    pub(super) fn is_of(&self, members: &[Member], name: &str) -> Result<(), DatabaseError> {
        let is_ours = |i: &&Instance| members.iter().any(|m| m.deploy == i.deploy_dir);
        match self.instances.iter().find(|i| !is_ours(i)) {
            None => Ok(()),
            Some(other) => Err(DatabaseError::Other(format!(
                "TiUP has a cluster `{name}` that is another one: its `{}` lies in `{}`",
                other.id,
                other.deploy_dir.display()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_is_found_among_lines_of_a_log() {
        let text = r#"tiup is checking updates for component cluster
{"time":"now","msg":"checking"}
{
  "cluster_meta": {"cluster_name": "assay-a-b", "cluster_version": "v7.5.0"},
  "instances": [
    {"id": "db1:4000", "role": "tidb", "status": "Up", "deploy_dir": "/srv/tidb-4000", "Port": 4000}
  ]
}
"#;
        let shown = Shown::read(text).unwrap();
        assert_eq!(shown.version, "v7.5.0");
        assert!(shown.runs());
        let refused = shown.is_of(&[], "assay-a-b").unwrap_err().to_string();
        assert!(
            refused.contains("its `db1:4000` lies in `/srv/tidb-4000`"),
            "{refused}"
        );
    }

    #[test]
    fn what_tells_of_no_cluster_is_refused() {
        for text in ["", "{}", "Cluster name: assay-a-b"] {
            assert!(Shown::read(text).is_err(), "{text}");
        }
    }
}
