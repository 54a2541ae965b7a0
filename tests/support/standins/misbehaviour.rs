//! How a stand-in misbehaves: told by its package, and by `standin.toml` beside its config file, which has the last word.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::Failure;

/// The file beside `--config`.
const FILE: &str = "standin.toml";

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Misbehaviour {
    /// Seconds in which it listens and answers nobody.
    answer_after: u64,
    /// Seconds after which it ends by itself with exit code 1: from its start, TiKV from when it is ready.
    die_after: Option<u64>,
    /// PD: leaders stay where they are, and operators never end.
    pub(crate) never_balance: bool,
    /// TiKV: compaction goes on.
    pub(crate) never_idle: bool,
    /// SIGTERM is logged and nothing else.
    pub(crate) ignore_term: bool,
    /// Config keys that keep their default whatever is asked.
    pub(crate) ignore_config: Vec<String>,
    /// Variables that `SET GLOBAL` leaves as they are, without an error.
    pub(crate) ignore_variables: Vec<String>,
}

impl Misbehaviour {
    pub(crate) fn of(start: &crate::Start) -> Result<Self, Failure> {
        let packaged = start
            .release
            .misbehaviour
            .get(start.component)
            .cloned()
            .unwrap_or_default();
        let Some(config) = start.arguments.get("config") else {
            return Ok(packaged);
        };
        let path = Path::new(config).with_file_name(FILE);
        match std::fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text)
                .map_err(|error| format!("cannot read {}: {error}", path.display()).into()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(packaged),
            Err(error) => Err(format!("cannot read {}: {error}", path.display()).into()),
        }
    }

    pub(crate) fn answer_after(&self) -> Duration {
        Duration::from_secs(self.answer_after)
    }

    pub(crate) fn die_after(&self) -> Option<Duration> {
        self.die_after.map(Duration::from_secs)
    }
}
