//! One setting of a component, and what is wrong or doubtful with it.

use serde_json::Value;

use super::catalogue::{Catalogue, Component, Instead, Key, Limit, Remark, Section};
use super::expression::Expression;
use super::value::{self, Kind};
use super::{Context, Finding, ignored, suggest};
use crate::pack::version::{Version, VersionRange};

/// A setting that is judged.
pub(super) struct Setting<'a> {
    pub(super) known: &'a Component,
    pub(super) component: &'a str,
    pub(super) name: &'a str,
    pub(super) at: &'a Context<'a>,
    pub(super) covered: &'a VersionRange,
    pub(super) catalogue: &'a Catalogue,
}

impl Setting<'_> {
    pub(super) fn check(&self, value: &Value) -> Vec<Finding> {
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

    fn instead(&self, instead: &Instead, until: &Version) -> String {
        match instead {
            Instead::Key(key) => format!("it is the key `{key}` since {until}"),
            Instead::Variable(name) => {
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
            Some(Instead::Key(key)) => finding.help(format!("the key is `{key}`")),
            Some(Instead::Variable(name)) => finding.help(format!("the variable is `{name}`")),
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
