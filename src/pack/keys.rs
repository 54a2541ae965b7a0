//! The catalogue of configuration keys and SQL variables of a system by version, and whether settings fit it.
//! It judges values; where they come from and what is done about a finding is for others.

mod catalogue;
<<<<<<< HEAD
mod expression;
mod presence;
=======
mod component;
mod expression;
mod presence;
mod setting;
>>>>>>> keys
mod suggest;
mod value;

use serde_json::Value;

pub use self::catalogue::{Change, Scope};
pub use self::value::Kind;

<<<<<<< HEAD
use self::catalogue::{Catalogue, Component, Defaults, Key, Limit, Remark, Section};
use self::expression::Expression;
=======
use self::catalogue::Catalogue;
use self::setting::Setting;
>>>>>>> keys
use super::settings::Settings;
use super::version::{Version, VersionRange};

/// What is known of the keys and variables of a system.
#[derive(Debug)]
pub struct Keys(Catalogue);

/// What a setting is judged by, besides itself.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The version of the component.
    pub version: &'a Version,
    /// The CPUs that the component will see; none where they are not known yet.
    pub cpus: Option<u32>,
    /// The memory that it will see, in bytes; none where it is not known yet.
    pub memory: Option<u64>,
    /// All settings of the component, by dotted key.
    pub others: &'a Settings,
}

/// What is wrong or doubtful with a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether it can be carried out at all.
    pub severity: Severity,
    /// What it is, with the key and the version.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The component starts, but does not do what the setting seems to say.
    Warning,
    /// The component, or its check of the configuration, refuses it.
    Error,
}

/// Why a catalogue cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct KeysError {
    /// The line, from 1, where it is known.
    pub line: Option<u64>,
    /// What is wrong.
    pub message: String,
}

impl Finding {
    fn error(message: String) -> Self {
        Self {
            severity: Severity::Error,
            message,
            help: None,
        }
    }

    fn warning(message: String) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(message)
        }
    }

    fn help(self, help: impl Into<Option<String>>) -> Self {
        Self {
            help: help.into(),
            ..self
        }
    }
}

impl Keys {
    /// Reads a catalogue; the header of `templates/tidb/keys.yaml` says how it is written.
    ///
    /// # Errors
    /// The text is no catalogue, or names a group or a key that it does not have.
    pub fn parse(text: &str) -> Result<Self, KeysError> {
        let mut catalogue: Catalogue = serde_saphyr::from_str(text).map_err(|error| {
            let message = error.without_snippet().to_string();
            let end = message.rfind(" at line ").unwrap_or(message.len());
            KeysError {
                line: error.location().map(|at| at.line()),
                message: message[..end].to_owned(),
            }
        })?;
        for (role, component) in &mut catalogue.components {
            component
                .spread_groups()
                .map_err(|(key, message)| KeysError {
                    line: line_of(text, &key),
                    message: format!("{role}: {message}"),
                })?;
        }
        Ok(Self(catalogue))
    }

    /// Judges one setting of a component. A component without a catalogue takes anything.
    #[must_use]
    pub fn check(&self, component: &str, key: &str, value: &Value, at: &Context) -> Vec<Finding> {
        let Some(known) = self.0.components.get(component) else {
            return Vec::new();
        };
        if value.as_object().is_some_and(serde_json::Map::is_empty) {
            return Vec::new();
        }
<<<<<<< HEAD
        let subject = Subject {
=======
        let setting = Setting {
>>>>>>> keys
            known,
            component,
            name: key,
            at,
            covered: known.covers.as_ref().unwrap_or(&self.0.covers),
            catalogue: &self.0,
        };
<<<<<<< HEAD
        subject.check(value)
=======
        setting.check(value)
>>>>>>> keys
    }

    /// Judges the name of a SQL variable that is to be set for all.
    #[must_use]
    pub fn check_variable(&self, name: &str, version: &Version) -> Vec<Finding> {
        let name = name.to_lowercase();
        if self.0.variables_without_effect.contains(&name) {
            let message =
                format!("tidb {version} takes the variable `{name}` and does nothing with it");
            return vec![Finding::warning(message)];
        }
        let Some(variable) = self.0.variables.get(&name) else {
            let there = self.variables_of(version);
            let message = format!("tidb {version} has no variable `{name}`");
            let help = suggest::closest(&name, there).map(|near| format!("did you mean `{near}`?"));
            return vec![self.0.covers.judge(version, message).help(help)];
        };
        if let Some(why) = variable.presence().absent(version) {
            let message = format!("tidb {version} has no variable `{name}`: {why}");
            return vec![self.0.covers.judge(version, message)];
        }
        let mut findings = Vec::new();
        match variable.scope {
            Scope::Global | Scope::Instance => {}
            Scope::Session => findings.push(Finding::error(format!(
                "the variable `{name}` of tidb is of a session; it cannot be set for all"
            ))),
            Scope::None => findings.push(Finding::error(format!(
                "the variable `{name}` of tidb cannot be set"
            ))),
        }
        let none = Settings::new();
        let idle = variable.no_effect.iter().find(|r| r.holds(version, &none));
        findings.extend(idle.map(|remark| ignored("tidb", version, &name, &remark.text)));
        findings
    }

    /// What a SQL variable reaches when it is set; none of one that is not known.
    #[must_use]
    pub fn scope(&self, variable: &str) -> Option<Scope> {
        Some(self.0.variables.get(&variable.to_lowercase())?.scope)
    }

    /// What kind of value a key has; none of a key that is not known.
    #[must_use]
    pub fn kind(&self, component: &str, key: &str) -> Option<Kind> {
        Some(self.0.components.get(component)?.keys.get(key)?.kind)
    }

    /// What kind of value a SQL variable has; none of one that is not known.
    #[must_use]
    pub fn variable_kind(&self, variable: &str) -> Option<Kind> {
        Some(self.0.variables.get(&variable.to_lowercase())?.kind)
    }

    /// What became another default after one version, up to and with another, oldest first: what a comparison of the two
    /// compares besides what the experiment says.
    #[must_use]
    pub fn changes(&self, after: &Version, up_to: &Version) -> Vec<Change> {
        let listed = self.0.changes.iter().cloned();
        let mut changes: Vec<Change> = listed
            .filter(|change| *after < change.at && change.at <= *up_to)
            .collect();
        let forward = after < up_to;
        for (name, variable) in self.0.variables.iter().filter(|_| forward) {
            let told = changes.iter().any(|c| c.variable.as_ref() == Some(name));
            if !told {
                changes.extend(variable.default.change(name, after, up_to));
            }
        }
        changes.sort_by(|a, b| a.at.cmp(&b.at));
        changes
    }

    fn variables_of(&self, version: &Version) -> impl Iterator<Item = &str> {
        let there = self.0.variables.iter();
        there
            .filter(|(_, variable)| variable.presence().absent(version).is_none())
            .map(|(name, _)| name.as_str())
    }
}

<<<<<<< HEAD
impl Defaults {
    fn change(&self, variable: &str, after: &Version, up_to: &Version) -> Option<Change> {
        let Self::From(values) = self else {
            return None;
        };
        let (_, from) = values.range(..=after).next_back()?;
        let (at, to) = values.range(..=up_to).next_back()?;
        (from != to).then(|| Change {
            at: at.clone(),
            component: None,
            key: None,
            variable: Some(variable.to_owned()),
            from: from.clone(),
            to: to.clone(),
            what: None,
        })
    }
}

impl Component {
    /// Puts the members of a group in the place of its name: `<cf>.x` becomes a key for each `cf`.
    fn spread_groups(&mut self) -> Result<(), (String, String)> {
        let named: Vec<String> = self
            .keys
            .keys()
            .filter(|k| k.contains('<'))
            .cloned()
            .collect();
        for pattern in named {
            let parts = pattern.split_once('<').and_then(|(before, rest)| {
                let (group, after) = rest.split_once('>')?;
                Some((before, self.groups.get(group)?, after))
            });
            let Some((before, members, after)) = parts else {
                return Err((
                    pattern.clone(),
                    format!("the key `{pattern}` names no group"),
                ));
            };
            let keys: Vec<String> = members
                .iter()
                .map(|m| format!("{before}{m}{after}"))
                .collect();
            let Some(entry) = self.keys.remove(&pattern) else {
                continue;
            };
            for key in keys {
                self.keys.entry(key).or_insert_with(|| entry.clone());
            }
        }
        self.check_names()
    }

    /// Every key that is named in another's entry is one.
    fn check_names(&self) -> Result<(), (String, String)> {
        for (key, entry) in &self.keys {
            let Some(renamed) = &entry.renamed else {
                continue;
            };
            if !self.keys.contains_key(&renamed.to) {
                let message = format!("`{key}` is renamed to `{}`, which is no key", renamed.to);
                return Err((key.clone(), message));
            }
        }
        Ok(())
    }

    /// The sections that a key is in, outermost first.
    fn sections_of(&self, key: &str) -> impl Iterator<Item = &Section> {
        let ends = key.match_indices('.').map(|(end, _)| end);
        ends.chain([key.len()])
            .filter_map(|end| self.sections.get(&key[..end]))
    }

    /// Whether a key is known to be none when it is not here.
    fn complete_for(&self, key: &str) -> bool {
        let said = self.sections_of(key).filter_map(|section| section.complete);
        said.last().unwrap_or(self.complete)
    }

    /// The entry of a key: its own, or that of the map that it is in.
    fn entry(&self, key: &str) -> Option<&Key> {
        self.keys.get(key).or_else(|| {
            let outer = key.match_indices('.').map(|(end, _)| &key[..end]);
            let mut entries = outer.filter_map(|outer| self.keys.get(outer));
            entries.find(|entry| entry.kind == Kind::Map)
        })
    }

    fn is_section(&self, key: &str) -> bool {
        let below = format!("{key}.");
        let next = self.keys.range(below.clone()..).next();
        next.is_some_and(|(name, _)| name.starts_with(&below))
    }
}

=======
>>>>>>> keys
impl VersionRange {
    /// An error for a version that the catalogue was made for, else a warning.
    fn judge(&self, version: &Version, message: String) -> Finding {
        if self.contains(version) {
            Finding::error(message)
        } else {
            let help = format!("it is not known for certain: versions {self} are catalogued");
            Finding::warning(message).help(help)
        }
    }
}

<<<<<<< HEAD
/// A setting that is judged.
struct Subject<'a> {
    known: &'a Component,
    component: &'a str,
    name: &'a str,
    at: &'a Context<'a>,
    covered: &'a VersionRange,
    catalogue: &'a Catalogue,
}

impl Subject<'_> {
    fn check(&self, value: &Value) -> Vec<Finding> {
        if self
            .known
            .sections_of(self.name)
            .any(|section| section.free)
        {
            return Vec::new();
        }
        let Some(entry) = self.known.entry(self.name) else {
            return self.unknown().into_iter().collect();
        };
        if let Some(finding) = self.absent(entry) {
            return vec![finding];
        }
        let mut findings = Vec::new();
        findings.extend(self.renamed(entry));
        findings.extend(self.idle(entry));
        findings.extend(self.noted(entry));
        if self.known.keys.contains_key(self.name) {
            findings.extend(self.out_of_bounds(entry, value));
        }
        findings
    }

    /// `tikv v6.1.2`
    fn who(&self) -> String {
        format!("{} {}", self.component, self.at.version)
    }

    fn unknown(&self) -> Option<Finding> {
        let (name, who) = (self.name, self.who());
        if self.known.is_section(name) {
            let message = format!("`{name}` is a section of {who}, not a key");
            return Some(Finding::error(message));
        }
        if !self.known.complete_for(name) {
            return None;
        }
        let there = self.known.keys.iter();
        let there = there.filter(|(_, entry)| entry.presence().absent(self.at.version).is_none());
        let near = suggest::closest(name, there.map(|(key, _)| key.as_str()));
        let message = format!("`{name}` is no key of {who}");
        let finding = self.covered.judge(self.at.version, message);
        Some(match near {
            Some(near) => finding.help(format!("did you mean `{near}`?")),
            None => finding,
        })
    }

    fn absent(&self, entry: &Key) -> Option<Finding> {
        let why = entry.presence().absent(self.at.version)?;
        let gone = entry
            .until
            .as_ref()
            .filter(|until| self.at.version.reaches(until));
        let why = match (gone, &entry.instead) {
            (Some(until), Some(instead)) => self.instead(instead, until),
            _ => why,
        };
        let message = format!("`{}` is no key of {}: {why}", self.name, self.who());
        if gone.is_some() && entry.accepted {
            let help = format!("{} takes it and does nothing with it", self.component);
            return Some(Finding::warning(message).help(help));
        }
        let before = self.known.keys.iter().find(|(_, other)| {
            let to = other.renamed.as_ref().map(|renamed| renamed.to.as_str());
            to == Some(self.name) && other.presence().absent(self.at.version).is_none()
        });
        let finding = self.covered.judge(self.at.version, message);
        Some(match before {
            Some((old, _)) => finding.help(format!("it was called `{old}` before")),
            None => finding,
        })
    }

    fn instead(&self, instead: &catalogue::Instead, until: &Version) -> String {
        match instead {
            catalogue::Instead::Key(key) => format!("it is the key `{key}` since {until}"),
            catalogue::Instead::Variable(name) => {
                let since = self.catalogue.variables.get(name);
                let since = since.and_then(|variable| variable.since.as_ref());
                let since = since.filter(|since| self.at.version.reaches(since));
                format!(
                    "it is the variable `{name}` since {}",
                    since.unwrap_or(until)
                )
            }
        }
    }

    fn renamed(&self, entry: &Key) -> Option<Finding> {
        let renamed = entry.renamed.as_ref()?;
        if !self.at.version.reaches(&renamed.at) {
            return None;
        }
        let (name, new, who) = (self.name, &renamed.to, self.who());
        let message = format!("`{name}` is called `{new}` in {who}, since {}", renamed.at);
        if !entry.accepted {
            return Some(Finding::error(message));
        }
        let help = match self.at.others.get(new) {
            Some(_) => format!("`{new}` is given too, and takes its place"),
            None => "the old name still works".to_owned(),
        };
        Some(Finding::warning(message).help(help))
    }

    /// What holds of the key itself or of a section that it is in.
    fn remark<'a>(
        &'a self,
        own: &'a [Remark],
        of: fn(&Section) -> &[Remark],
    ) -> Option<&'a Remark> {
        let sections = self.known.sections_of(self.name);
        let inherited = sections.flat_map(of).filter(|r| r.is_about(self.name));
        own.iter()
            .chain(inherited)
            .find(|remark| remark.holds(self.at.version, self.at.others))
    }

    fn idle(&self, entry: &Key) -> Option<Finding> {
        let remark = self.remark(&entry.no_effect, |section| &section.no_effect)?;
        let finding = ignored(self.component, self.at.version, self.name, &remark.text);
        Some(match &entry.instead {
            Some(catalogue::Instead::Key(key)) => finding.help(format!("the key is `{key}`")),
            Some(catalogue::Instead::Variable(name)) => {
                finding.help(format!("the variable is `{name}`"))
            }
            None => finding,
        })
    }

    fn noted(&self, entry: &Key) -> Option<Finding> {
        let remark = self.remark(&entry.note, |section| &section.note)?;
        let message = format!("`{}` of {}: {}", self.name, self.who(), remark.text);
        Some(Finding::warning(message))
    }

    fn out_of_bounds(&self, entry: &Key, value: &Value) -> Option<Finding> {
        if !entry.kind.takes(value) {
            let (name, who) = (self.name, self.who());
            let message = format!("`{name}` is {value}, {who} wants {}", entry.kind);
            return Some(Finding::error(message));
        }
        let number = value::number(value)?;
        let limits = entry.limits.iter();
        limits
            .filter(|limit| {
                limit
                    .versions
                    .as_ref()
                    .is_none_or(|v| v.contains(self.at.version))
            })
            .find_map(|limit| self.outside(limit, number))
            .map(|bound| {
                let shown = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                let (name, who) = (self.name, self.who());
                let bound = bound.text(entry.kind, &|name| self.shown(name));
                Finding::error(format!(
                    "`{name}` is {shown}, {who} takes {bound} and refuses to start"
                ))
            })
    }

    fn outside<'a>(&self, limit: &'a Limit, number: f64) -> Option<Bound<'a>> {
        let value = |expression: &Expression| expression.value(&|name| self.value(name));
        let bound = |word, limit, expression| Bound {
            word,
            limit,
            expression,
        };
        let least = limit.min.as_ref().and_then(|e| Some((value(e)?, e)));
        let most = limit.max.as_ref().and_then(|e| Some((value(e)?, e)));
        match (least, most) {
            (Some((least, e)), _) if number < least => Some(bound("at least", least, e)),
            (_, Some((most, e))) if number > most => Some(bound("at most", most, e)),
            _ => None,
        }
    }

    /// What a name in a limit stands for.
    fn value(&self, name: &str) -> Option<f64> {
        match name {
            "cpus" => self.at.cpus.map(f64::from),
            #[expect(clippy::cast_precision_loss, reason = "no memory is near 2^53 bytes")]
            "memory" => self.at.memory.map(|bytes| bytes as f64),
            key => value::number(self.at.others.get(key)?),
        }
    }

    fn shown(&self, name: &str) -> String {
        match (name, self.value(name)) {
            ("cpus", Some(1.0)) => "1 CPU".to_owned(),
            ("cpus", Some(cpus)) => format!("{cpus} CPUs"),
            ("memory", _) => "the memory".to_owned(),
            (key, _) => format!("`{key}`"),
        }
    }
}

/// The limit that a value is beyond.
struct Bound<'a> {
    word: &'static str,
    limit: f64,
    expression: &'a Expression,
}

impl Bound<'_> {
    /// `at most 16 (max(4, 16 CPUs))`
    fn text(&self, kind: Kind, name: &impl Fn(&str) -> String) -> String {
        let limit = match kind {
            Kind::Size => value::shown_size(self.limit),
            _ => self.limit.to_string(),
        };
        let why = self.expression.explained(name);
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        format!("{} {limit}{why}", self.word)
    }
}

=======
>>>>>>> keys
fn ignored(component: &str, version: &Version, name: &str, why: &str) -> Finding {
    Finding::warning(format!("{component} {version} ignores `{name}`: {why}"))
}

/// The line, from 1, on which a key stands.
fn line_of(text: &str, key: &str) -> Option<u64> {
    let is = |line: &str| {
        let line = line.trim_start().trim_start_matches('"');
        line.strip_prefix(key)
            .is_some_and(|rest| rest.starts_with([':', '"']))
    };
    let index = text.lines().position(is)?;
    u64::try_from(index + 1).ok()
}

#[cfg(test)]
mod tests;
