//! `--set path=value`: the value is YAML, the path leads through keys and list items, `workloads[0].name`.
//! Nothing as a value takes a key away.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value as Schema;

use super::files::Files;
use super::parse::{parse, place};
use super::problem::Diagnostic;
use super::source::{ARGUMENT, Source, control_character};
use super::tree::{DEPTH, Entry, Item, Scalar, Value, longest};
use super::{expected, schema, suggest};

/// The longest argument.
const LIMIT: usize = 64 * 1024;

/// Why an argument cannot be used, and the part of it that is to blame.
struct Fault {
    range: Range<usize>,
    message: String,
    help: Option<String>,
}

impl Fault {
    fn new(range: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            range,
            message: message.into(),
            help: None,
        }
    }

    fn help(self, help: impl Into<Option<String>>) -> Self {
        Self {
            help: help.into(),
            ..self
        }
    }
}

/// The tree with the values of `--set` arguments, each in its place. What is wrong goes to `files`.
pub(super) fn apply(mut root: Item, arguments: &[String], files: &mut Files<'_>) -> Item {
    for argument in arguments {
        let text = argument.clone();
        let source = files.source(ARGUMENT.to_owned(), PathBuf::new(), text, None);
        match set(&root, &source, &mut files.found) {
            Ok(changed) => root = changed,
            Err(diagnostic) => files.found.push(*diagnostic),
        }
    }
    root
}

fn set(
    root: &Item,
    source: &Arc<Source>,
    found: &mut Vec<Diagnostic>,
) -> Result<Item, Box<Diagnostic>> {
    let wrong = |fault: Fault| {
        let place = place(source, fault.range);
        Box::new(Diagnostic::at(place, "", fault.message).help(fault.help))
    };
    let text = source.text.as_str();
    if text.len() > LIMIT {
        let message = format!("the argument is longer than {LIMIT} bytes");
        return Err(wrong(Fault::new(0..0, message)));
    }
    if let Some((offset, c)) = control_character(text) {
        let message = format!(
            "the argument has the control character U+{:04X}",
            u32::from(c)
        );
        return Err(wrong(Fault::new(offset..offset, message)));
    }
    let (path, from) = split(text).map_err(wrong)?;
    let value = parse(source, from, found)?;
    let value = value.unwrap_or_else(|| nothing(source, text.len()));
    let set = Setter { source, value }.set(Some(root), Some(&schema::EXPERIMENT), path, 0, 0);
    let set = set.map_err(wrong)?;
    Ok(set.unwrap_or_else(|| root.clone()))
}

fn nothing(source: &Arc<Source>, at: usize) -> Item {
    let scalar = Scalar {
        plain: true,
        ..Default::default()
    };
    Item::new(Value::Scalar(scalar), place(source, at..at))
}

/// The path of an argument and the start of its value.
fn split(text: &str) -> Result<(&str, usize), Fault> {
    let mut quoted = false;
    for (offset, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '=' if !quoted && offset > 0 => return Ok((&text[..offset], offset + 1)),
            '=' if !quoted => break,
            _ => {}
        }
    }
    let fault = Fault::new(0..text.len(), "expected a path, `=` and a value");
    Err(fault.help("such as `--set rounds.duration=5s`".to_owned()))
}

struct Setter<'a> {
    source: &'a Arc<Source>,
    value: Item,
}

impl Setter<'_> {
    /// `item` with the value at `path`, which begins at byte `at` of the argument; nothing when there is no item and the
    /// value takes something away.
    fn set(
        &self,
        item: Option<&Item>,
        schema: Option<&Schema>,
        path: &str,
        at: usize,
        level: usize,
    ) -> Result<Option<Item>, Fault> {
        if path.is_empty() {
            return Ok(Some(self.value.clone()));
        }
        if level == DEPTH {
            let message = format!("the path is deeper than {DEPTH} levels");
            return Err(Fault::new(at..at + path.len(), message));
        }
        if path.starts_with('[') {
            return self.set_index(item, schema, path, at, level).map(Some);
        }
        let dot = usize::from(level > 0);
        if dot == 1 && !path.starts_with('.') {
            let end = path.find(['.', '[']).unwrap_or(path.len());
            let key = &path[..end];
            let fault = Fault::new(at..at + end, format!("a `.` is missing before `{key}`"));
            return Err(fault.help(format!("write `{}.{path}`", &self.source.text[..at])));
        }
        self.set_key(item, schema, &path[dot..], at + dot, level)
    }

    fn set_index(
        &self,
        item: Option<&Item>,
        schema: Option<&Schema>,
        path: &str,
        at: usize,
        level: usize,
    ) -> Result<Item, Fault> {
        let end = path.find(']').map_or(path.len(), |i| i + 1);
        let fault = |message: &str| Fault::new(at..at + end, message);
        let digits = path[1..end].strip_suffix(']').unwrap_or("");
        let Ok(index) = digits.parse::<usize>() else {
            return Err(fault(
                "expected the number of a list's item, from 0, and `]`",
            ));
        };
        let (Some(list), Some(Value::Sequence(items))) = (item, item.map(|i| &i.node.value)) else {
            let help = self.instead_of_index(item, path, at, end);
            return Err(fault("there is no list here").help(help));
        };
        let Some(old) = items.get(index) else {
            let n = items.len();
            let message = format!("no item {index}: the list holds {n}, counted from 0");
            return Err(fault(&message));
        };
        let below = schema.and_then(|schema| expected::item(&schema::EXPERIMENT, schema));
        let mut items = items.clone();
        if let Some(item) = self.set(Some(old), below, &path[end..], at + end, level + 1)? {
            items[index] = item;
        }
        Ok(list.with(Value::Sequence(items)))
    }

    /// What could have been meant by an index where no list stands.
    fn instead_of_index(
        &self,
        item: Option<&Item>,
        path: &str,
        at: usize,
        end: usize,
    ) -> Option<String> {
        let before = &self.source.text[..at];
        let index = &path[..end];
        match item.map(|item| &item.node.value) {
            Some(Value::Mapping(_)) if before == "dataset" && index == "[0]" => {
                let rest = &path[end..];
                Some(format!("drop `[0]`: write `{before}{rest}`"))
            }
            Some(Value::Mapping(entries)) => {
                let keys: Vec<&str> = entries.iter().map(|entry| &*entry.key).collect();
                Some(format!("the keys here are {}", suggest::list(&keys)))
            }
            Some(Value::Scalar(scalar)) if !scalar.is_null() => None,
            Some(_) | None => Some(format!("give the whole list: `{before}=[…]`")),
        }
    }

    fn set_key(
        &self,
        item: Option<&Item>,
        schema: Option<&Schema>,
        path: &str,
        at: usize,
        level: usize,
    ) -> Result<Option<Item>, Fault> {
        let old = item.map_or(&[] as &[Entry], Item::entries);
        let (key, range) = key(path, old);
        let key_range = at + range.start..at + range.end;
        if key.is_empty() {
            return Err(Fault::new(at..at + path.len(), "a key is missing"));
        }
        if level == 0 && key == "extends" {
            let message = "`extends` cannot be set from outside the file";
            return Err(Fault::new(key_range, message));
        }
        if !item.is_none_or(takes_keys) {
            return Err(self.no_key_here(item, path, key, key_range));
        }
        let known = old.iter().position(|entry| &*entry.key == key);
        let below = schema.and_then(|schema| expected::property(&schema::EXPERIMENT, schema, key));
        let end = range.end + usize::from(path[range.end..].starts_with('"'));
        let last = end == path.len();
        let value = match below {
            Some((_, required)) if last && self.value.scalar().is_some_and(Scalar::is_null) => {
                if required {
                    let message = format!("`{key}` is required and cannot be taken away");
                    return Err(Fault::new(key_range, message).help("give it a value".to_owned()));
                }
                None
            }
            _ => {
                let item = known.map(|i| &old[i].item);
                let schema = below.map(|(schema, _)| schema);
                self.set(item, schema, &path[end..], at + end, level + 1)?
            }
        };
        let mut entries = old.to_vec();
        match (known, value) {
            (None, None) => return Ok(item.cloned()),
            (Some(i), None) => {
                entries.remove(i);
            }
            (Some(i), Some(value)) if !last => entries[i].item = value,
            (known, Some(item)) => {
                let entry = Entry {
                    key: key.into(),
                    key_place: place(self.source, key_range),
                    item,
                    merged: None,
                };
                match known {
                    Some(i) => entries[i] = entry,
                    None => entries.push(entry),
                }
            }
        }
        Ok(Some(match item {
            Some(item) if !item.entries().is_empty() => item.with(Value::Mapping(entries)),
            _ => Item::new(Value::Mapping(entries), place(self.source, at..at)),
        }))
    }

    fn no_key_here(
        &self,
        item: Option<&Item>,
        path: &str,
        key: &str,
        range: Range<usize>,
    ) -> Fault {
        let found = item.map_or(String::new(), Item::describe);
        let before = self.source.text[..range.start].trim_end_matches(['.', '"']);
        let help = match item.map(|item| &item.node.value) {
            Some(Value::Sequence(_)) if key.bytes().all(|b| b.is_ascii_digit()) => {
                let rest = path.strip_prefix(key).unwrap_or("");
                Some(format!("write `{before}[{key}]{rest}`"))
            }
            Some(Value::Sequence(_)) => Some(format!(
                "name an item of the list by its number, from 0: `{before}[0].{path}`"
            )),
            _ => None,
        };
        let message = format!("there is no `{key}` here: the value is {found}");
        Fault::new(range, message).help(help)
    }
}

/// Whether keys can be set in a value.
fn takes_keys(item: &Item) -> bool {
    match &item.node.value {
        Value::Mapping(_) => true,
        Value::Scalar(scalar) => scalar.is_null(),
        Value::Sequence(_) => false,
    }
}

/// The first key of a path and its range: quoted, the longest of the known ones that fits, or all up to a dot.
fn key<'a>(path: &'a str, known: &[Entry]) -> (&'a str, Range<usize>) {
    let range = if let Some(quoted) = path.strip_prefix('"') {
        1..1 + quoted.find('"').unwrap_or(quoted.len())
    } else if let Some(entry) = longest(known, path) {
        0..entry.key.len()
    } else {
        0..path.find(['.', '[']).unwrap_or(path.len())
    };
    (&path[range.clone()], range)
}
