//! What TiUP refuses to deploy: clashes on a host, and rules that no single value can break.

mod clash;
mod labels;
mod tiflash;

use std::collections::HashMap;

use super::expand::{arch, frame};
use super::section::Section;
use super::written::{Server, Topology};
use super::{Cluster, Role};
use crate::spec::Problem;
use clash::First;

/// The longest name of a group.
const LONGEST_GROUP: usize = 16;

/// All that is wrong with a topology whose single values are right.
pub(super) fn check(topology: &Topology, version: Option<&str>, no_labels: bool) -> Vec<Problem> {
    let cluster = frame(topology, None, version);
    let mut check = Check {
        topology,
        cluster: &cluster,
        found: Vec::new(),
    };
    check.users();
    check.is_something();
    check.platforms();
    check.ports();
    check.directories();
    check.names();
    check.exporters();
    check.absolute();
    check.tls();
    check.tiflash();
    check.labels(no_labels);
    check.found
}

struct Check<'t> {
    topology: &'t Topology,
    cluster: &'t Cluster,
    found: Vec<Problem>,
}

impl<'t> Check<'t> {
    fn say(&mut self, path: impl Into<String>, message: String) {
        self.found.push(Problem {
            path: path.into(),
            message,
            help: None,
            key: false,
        });
    }

    fn help(&mut self, help: impl Into<String>) {
        if let Some(last) = self.found.last_mut() {
            last.help = Some(help.into());
        }
    }

    fn users(&mut self) {
        let global = &self.topology.global;
        if let Some(user) = global.user.as_deref().filter(|user| !is_user(user)) {
            let message = format!("`{user}` is no name of a user");
            self.say("global.user", message);
            self.help(
                "it has at most 32 small letters, digits, `_` and `-`, and no digit or `-` first",
            );
        }
        let group = global.group.as_deref();
        if let Some(group) = group.filter(|group| !is_name(group, LONGEST_GROUP)) {
            self.say("global.group", format!("`{group}` is no name of a group"));
            self.help(
                "it has at most 16 small letters, digits, `_` and `-`, and no digit or `-` first",
            );
        }
    }

    fn is_something(&mut self) {
        let is_database = |section: &Section| section.role.is_none_or(|role| !role.is_monitoring());
        if !self
            .topology
            .all()
            .any(|(section, ..)| is_database(section))
        {
            self.say("", "there is no instance but those that monitor".to_owned());
        }
    }

    /// The instances that TiDB Ansible did not install: of the others not all is known.
    fn of_tiup(&self) -> impl Iterator<Item = (&'static Section, String, &'t Server)> + use<'t> {
        let all = self.topology.all();
        all.filter(|(_, _, server)| !server.boolean("imported"))
    }

    /// A host has one operating system and one architecture.
    fn platforms(&mut self) {
        let mut known: HashMap<(&str, &str), (String, String)> = HashMap::new();
        for (_, path, server) in self.of_tiup() {
            let global = &self.topology.global;
            let arch = arch(server).or(global.arch.map(|arch| arch.word().to_owned()));
            let os = server.text("os").or(global.os.as_deref());
            let os = Some(os.unwrap_or("linux").to_owned());
            for (key, value) in [("arch", arch), ("os", os)] {
                let Some(value) = value else { continue };
                match known.get(&(server.host(), key)) {
                    Some((first, of)) if *first != value => {
                        let host = server.host();
                        let message = format!("{host} is {value} here and {first} at `{of}`");
                        self.say(format!("{path}.{key}"), message);
                    }
                    Some(_) => {}
                    None => {
                        known.insert((server.host(), key), (value, path.clone()));
                    }
                }
            }
        }
    }

    /// The names of PD instances differ, those that nobody wrote too.
    fn names(&mut self) {
        let mut taken = First::new();
        for (path, server) in self.topology.servers(Section::of(Role::Pd)) {
            let port = server.port("client_port").unwrap_or(2379);
            let default = format!("pd-{}-{port}", server.host());
            let name = server.text("name").map_or(default, str::to_owned);
            if let Some(first) = taken.take(name.clone(), &path) {
                let message = format!("`{name}` is the name of `{first}` already");
                self.say(format!("{path}.name"), message);
            }
        }
    }

    fn exporters(&mut self) {
        let mut known: HashMap<&str, (bool, String)> = HashMap::new();
        for (_, path, server) in self.of_tiup() {
            let ignored = server.boolean("ignore_exporter");
            match known.get(server.host()) {
                Some((first, of)) if *first != ignored => {
                    let host = server.host();
                    let message =
                        format!("{host} goes without exporters at one of `{of}` and `{path}`");
                    self.say(format!("{path}.ignore_exporter"), message);
                    self.help("all instances of a host have the same `ignore_exporter`");
                }
                Some(_) => {}
                None => {
                    known.insert(server.host(), (ignored, path));
                }
            }
        }
    }

    fn absolute(&mut self) {
        for (_, path, server) in self.topology.all() {
            for key in ["rule_dir", "dashboard_dir", "config_file"] {
                let value = server.text(key);
                if let Some(value) = value.filter(|value| !value.starts_with('/')) {
                    let message = format!("expected an absolute path, found `{value}`");
                    self.say(format!("{path}.{key}"), message);
                }
            }
        }
    }

    fn tls(&mut self) {
        let sections = self.topology.all();
        let without: Vec<String> = sections
            .filter(|(section, ..)| self.cluster.tls && section.component == "tispark")
            .map(|(_, path, _)| path)
            .collect();
        for path in without {
            self.say(
                path,
                "tispark has no TLS, which `global.enable_tls` asks for".to_owned(),
            );
        }
    }
}

/// Whether a text is a user as TiUP has it; the last letter may be `$`.
fn is_user(user: &str) -> bool {
    match user.strip_suffix('$') {
        Some(stem) => is_name(stem, 31),
        None => is_name(user, 32),
    }
}

/// Whether a text has only small letters, digits, `_` and `-`, no digit or dash first, and is not too long.
fn is_name(text: &str, longest: usize) -> bool {
    let letter = |c: char| c.is_ascii_lowercase() || c == '_';
    text.starts_with(letter)
        && text.len() <= longest
        && text
            .chars()
            .all(|c| letter(c) || c.is_ascii_digit() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_small_letters_and_at_most_32_of_them() {
        for user in ["tidb", "_x", "a-1", "bot$", &"a".repeat(32)] {
            assert!(is_user(user), "{user}");
        }
        for user in ["", "1a", "-a", "Tidb", "a.b", "$", &"a".repeat(33)] {
            assert!(!is_user(user), "{user}");
        }
    }
}
