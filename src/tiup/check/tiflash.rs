//! Where the directories of TiFlash may be written.

use super::super::Role;
use super::super::section::Section;
use super::super::settings::{self, Settings};
use super::super::written::shown;
use super::Check;

impl Check<'_> {
    pub(super) fn tiflash(&mut self) {
        if let Some(config) = self.topology.server_configs.get("tiflash") {
            for (key, _) in settings::flat(config) {
                if key.starts_with("storage.") && key.ends_with(".dir") {
                    let message =
                        "the directories of TiFlash are those of its instances".to_owned();
                    self.say(format!("server_configs.tiflash.{key}"), message);
                    self.help("write the setting into `config` of each instance");
                }
            }
        }
        for (path, server) in self.topology.servers(Section::of(Role::Tiflash)) {
            let (config, path) = (server.settings("config"), format!("{path}.config"));
            self.tiflash_config(&path, &config);
        }
    }

    fn tiflash_config(&mut self, path: &str, config: &Settings) {
        for key in ["data_dir", "path"] {
            if settings::get(config, key).is_some() {
                let message = format!(
                    "`{key}` cannot be set: `data_dir` of the instance, or `storage.main.dir`, is it"
                );
                self.say(format!("{path}.{key}"), message);
            }
        }
        for key in ["storage.main.dir", "storage.latest.dir", "storage.raft.dir"] {
            let Some(value) = settings::get(config, key) else {
                continue;
            };
            let texts = settings::texts(value).filter(|texts| !texts.is_empty());
            let is_absolute = |texts: Vec<&str>| texts.iter().all(|text| text.starts_with('/'));
            if !texts.is_some_and(is_absolute) {
                let message = format!(
                    "expected a list of absolute paths, found `{}`",
                    shown(value)
                );
                self.say(format!("{path}.{key}"), message);
            }
            if key != "storage.main.dir" && settings::get(config, "storage.main.dir").is_none() {
                let message = format!("`{key}` goes with `storage.main.dir`, which is not there");
                self.say(format!("{path}.{key}"), message);
            }
        }
    }
}
