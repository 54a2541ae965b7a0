//! What the schema of a pack cannot say: names that must exist, texts that must be templates, versions, rules.

use std::collections::{BTreeMap, HashSet};
use std::str::FromStr as _;

use super::context::{CONTEXT, FUNCTIONS, OF_SQL, context_of};
use super::form::{Condition, ConfigFormat, Form, Reading, Role};
use super::host::HostSection;
use super::version::VersionRange;
use crate::spec::{Name, Problem};
use crate::template;

/// Checks a pack; `files` are all its files by name.
pub(super) fn check(form: &Form, files: &BTreeMap<String, String>) -> Vec<Problem> {
    let mut check = Check {
        form,
        files,
        environment: template::environment(),
        found: Vec::new(),
    };
    check.top();
    for (name, role) in &form.roles {
        check.role(&format!("roles.{name}"), role);
    }
    check.found
}

struct Check<'a> {
    form: &'a Form,
    files: &'a BTreeMap<String, String>,
    environment: minijinja::Environment<'static>,
    found: Vec<Problem>,
}

impl Check<'_> {
    fn report(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.found.push(Problem {
            path: path.into(),
            message: message.into(),
            help: None,
            key: false,
        });
    }

    fn top(&mut self) {
        let form = self.form;
        self.range("versions", form.versions.as_deref());
        if let Err(message) = HostSection::of(form) {
            self.report("host", message);
        }
        for (key, entry) in [("entry", &form.entry), ("gateway", &form.gateway)] {
            let Some(entry) = entry else {
                continue;
            };
            match form.roles.get(&entry.role) {
                None => self.no_role(&format!("{key}.role"), &entry.role),
                Some(role) if !role.ports.contains_key(&entry.port) => {
                    let message = format!("the role `{}` has no port `{}`", entry.role, entry.port);
                    self.report(format!("{key}.port"), message);
                }
                Some(_) => {}
            }
        }
        for (i, role) in form.start.iter().enumerate() {
            if !form.roles.contains_key(role) {
                self.no_role(&format!("start[{i}]"), role);
            }
        }
        for (i, condition) in form.settle.iter().enumerate() {
            let path = format!("settle[{i}]");
            self.condition(&path, condition);
            if condition.name.is_none() {
                self.report(path, "the key `name` is missing: what is waited for");
            }
        }
        for (i, statement) in form.after_first_start.iter().enumerate() {
            self.template(&format!("after_first_start[{i}].sql"), &statement.sql);
        }
        let sql = &form.sql;
        let single = [
            ("set_variable", &sql.set_variable),
            ("read_variable", &sql.read_variable),
            ("grant", &sql.grant),
            ("grant_all", &sql.grant_all),
            ("tables", &sql.tables),
            ("analyze", &sql.analyze),
        ];
        for (key, text) in single {
            if let Some(text) = text {
                self.template(&format!("sql.{key}"), text);
            }
        }
        for (key, texts) in [
            ("create_database", &sql.create_database),
            ("create_user", &sql.create_user),
        ] {
            self.templates(&format!("sql.{key}"), texts);
        }
    }

    fn no_role(&mut self, path: &str, role: &Name) {
        let known: Vec<&str> = self.form.roles.keys().map(Name::as_str).collect();
        let message = format!(
            "there is no role `{role}`; the roles are {}",
            known.join(", ")
        );
        self.report(path, message);
    }

    fn role(&mut self, path: &str, role: &Role) {
        self.ranges(path, role);
        self.template(&format!("{path}.program"), &role.program);
        self.templates(&format!("{path}.run"), &role.run);
        self.templates(&format!("{path}.logs"), &role.logs);
        for (i, run) in role.initialise.iter().enumerate() {
            self.templates(&format!("{path}.initialise[{i}].command"), &run.command);
        }
        if let Some(run) = &role.check {
            self.templates(&format!("{path}.check.command"), &run.command);
            self.pattern(
                &format!("{path}.check.unsupported"),
                run.unsupported.as_deref(),
            );
            self.pattern(&format!("{path}.check.refused"), run.refused.as_deref());
        }
        for (i, file) in role.files.iter().enumerate() {
            self.file(&format!("{path}.files[{i}].template"), &file.template);
            self.below(&format!("{path}.files[{i}].file"), &file.file);
        }
        if let Some(config) = &role.config {
            self.below(&format!("{path}.config.file"), &config.file);
            let at = format!("{path}.config.template");
            match (config.format, &config.template) {
                (ConfigFormat::Template, Some(template)) => self.file(&at, template),
                (ConfigFormat::Template, None) => {
                    self.report(format!("{path}.config"), "the key `template` is missing");
                }
                (_, Some(_)) => self.report(at, "only the format `template` has a template"),
                (_, None) => {}
            }
        }
        for (i, condition) in role.ready.iter().enumerate() {
            self.condition(&format!("{path}.ready[{i}]"), condition);
            if let Some(port) = condition
                .listening
                .as_ref()
                .filter(|p| !role.ports.contains_key(*p))
            {
                let at = format!("{path}.ready[{i}].listening");
                self.report(at, format!("the role has no port `{port}`"));
            }
        }
        for (key, reading) in [("version", &role.version), ("effective", &role.effective)] {
            if let Some(reading) = reading {
                self.reading(&format!("{path}.{key}"), reading);
            }
        }
        for (name, value) in &role.unit.environment {
            self.template(&format!("{path}.unit.environment.{name}"), value);
        }
        let restart = role.unit.restart.as_str();
        if !["no", "on-failure", "always"].contains(&restart) {
            self.report(
                format!("{path}.unit.restart"),
                format!("expected `no`, `on-failure` or `always`, found `{restart}`"),
            );
        }
        if role.run.is_empty() && self.form.programs != super::Programs::Builtin {
            self.report(path, "the key `run` is missing: what its unit starts");
        }
    }

    fn condition(&mut self, path: &str, condition: &Condition) {
        self.range(&format!("{path}.versions"), condition.versions.as_deref());
        let ways = [
            condition.http.is_some(),
            condition.sql.is_some(),
            !condition.command.is_empty(),
            condition.listening.is_some(),
        ];
        if ways.iter().filter(|set| **set).count() != 1 {
            self.report(
                path,
                "expected one of `http`, `sql`, `command` and `listening`",
            );
        }
        for (key, text) in [("http", &condition.http), ("sql", &condition.sql)] {
            if let Some(text) = text {
                self.template(&format!("{path}.{key}"), text);
            }
        }
        self.templates(&format!("{path}.command"), &condition.command);
        if let Some(role) = condition
            .role
            .as_ref()
            .filter(|r| !self.form.roles.contains_key(*r))
        {
            self.no_role(&format!("{path}.role"), role);
        }
        for (i, test) in condition.r#where.iter().enumerate() {
            let at = format!("{path}.where[{i}]");
            let tests = [
                test.equals.is_some(),
                test.at_most.is_some(),
                test.at_least.is_some(),
                test.matches.is_some(),
                test.empty.is_some(),
            ];
            if tests.iter().filter(|set| **set).count() != 1 {
                let message =
                    "expected one of `equals`, `at_most`, `at_least`, `matches` and `empty`";
                self.report(at.clone(), message);
            }
            if !test.at.is_empty() && !test.at.starts_with('/') {
                self.report(format!("{at}.at"), "a JSON pointer begins with `/`");
            }
            self.pattern(&format!("{at}.matches"), test.matches.as_deref());
            for (key, text) in [("at_most", &test.at_most), ("at_least", &test.at_least)] {
                if let Some(text) = text {
                    self.template(&format!("{at}.{key}"), text);
                }
            }
        }
    }

    fn reading(&mut self, path: &str, reading: &Reading) {
        let ways = [
            reading.http.is_some(),
            reading.sql.is_some(),
            !reading.command.is_empty(),
        ];
        if ways.iter().filter(|set| **set).count() != 1 {
            self.report(path, "expected one of `http`, `sql` and `command`");
        }
        for (key, text) in [("http", &reading.http), ("sql", &reading.sql)] {
            if let Some(text) = text {
                self.template(&format!("{path}.{key}"), text);
            }
        }
        self.templates(&format!("{path}.command"), &reading.command);
        self.pattern(&format!("{path}.pattern"), reading.pattern.as_deref());
    }

    /// The ranges of versions of a role.
    fn ranges(&mut self, path: &str, role: &Role) {
        self.range(&format!("{path}.versions"), role.versions.as_deref());
        for (i, file) in role.files.iter().enumerate() {
            let at = format!("{path}.files[{i}].versions");
            self.range(&at, file.versions.as_deref());
        }
        let runs = role.initialise.iter().enumerate();
        let runs = runs.map(|(i, run)| (format!("initialise[{i}]"), run));
        let check = role.check.iter().map(|run| ("check".to_owned(), run));
        for (at, run) in runs.chain(check) {
            self.range(&format!("{path}.{at}.versions"), run.versions.as_deref());
        }
    }

    fn range(&mut self, path: &str, range: Option<&str>) {
        if let Some(Err(error)) = range.map(VersionRange::from_str) {
            self.report(path, error.to_string());
        }
    }

    fn templates(&mut self, path: &str, texts: &[String]) {
        for (i, text) in texts.iter().enumerate() {
            self.template(&format!("{path}[{i}]"), text);
        }
    }

    fn template(&mut self, path: &str, text: &str) {
        let parsed = self.environment.template_from_str(text);
        let names = parsed.map(|template| template.undeclared_variables(false));
        match names {
            Ok(names) => self.names(path, names),
            Err(error) => self.report(path, format!("it is no template: {error}")),
        }
    }

    /// Reports the names that no template sees.
    fn names(&mut self, path: &str, names: HashSet<String>) {
        let own = context_of(self.form)
            .into_iter()
            .flat_map(|(_, names)| names);
        let own: HashSet<String> = own.collect();
        let common = |name: &str| {
            let mut common = CONTEXT.iter().map(|(known, _)| known);
            common.any(|known| known.split('(').next() == Some(name))
        };
        let is_known = |name: &String| {
            let name = name.as_str();
            common(name)
                || own.contains(name)
                || OF_SQL.contains(&name)
                || FUNCTIONS.contains(&name)
        };
        let mut unknown: Vec<String> = names.into_iter().filter(|name| !is_known(name)).collect();
        unknown.sort();
        for name in unknown {
            let message = format!("there is nothing called `{name}`");
            let system = "`assay packs show SYSTEM --context` lists what there is".to_owned();
            self.found.push(Problem {
                path: path.to_owned(),
                message,
                help: Some(system),
                key: false,
            });
        }
    }

    fn pattern(&mut self, path: &str, pattern: Option<&str>) {
        if let Some(Err(error)) = pattern.map(regex::Regex::new) {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            self.report(path, format!("it is no regular expression: {last}"));
        }
    }

    /// A template that must be a file of the pack.
    fn file(&mut self, path: &str, file: &str) {
        match self.files.get(file) {
            Some(text) => {
                let parsed = self.environment.template_from_named_str(file, text);
                let names = parsed.map(|template| template.undeclared_variables(false));
                match names {
                    Ok(names) => self.names(path, names),
                    Err(error) => {
                        self.report(path, format!("`{file}` is no template: {error}"));
                    }
                }
            }
            None => {
                let names = self.files.keys().map(String::as_str);
                let known: Vec<&str> = names
                    .filter(|name| ![super::SYSTEM, super::KEYS].contains(name))
                    .collect();
                let message = format!(
                    "the pack has no file `{file}`; its files are {}",
                    known.join(", ")
                );
                self.report(path, message);
            }
        }
    }

    /// A path that must stay below the instance's folder.
    fn below(&mut self, path: &str, file: &str) {
        let parts = std::path::Path::new(file).components();
        let mut parts = parts.map(|part| matches!(part, std::path::Component::Normal(_)));
        if file.is_empty() || !parts.all(|normal| normal) {
            self.report(path, "expected a path below the instance's folder");
        }
    }
}
