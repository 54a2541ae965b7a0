//! `--set path=value`: the value is YAML, the path leads through keys and list items, `workloads[0].name`.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::files::Files;
use super::parse::{parse, place};
use super::problem::Diagnostic;
use super::source::{Source, control_character};
use super::tree::{DEPTH, Entry, Item, Value, longest};

/// The longest argument.
const LIMIT: usize = 64 * 1024;

/// Why an argument cannot be used, and the part of it that is to blame.
struct Fault(Range<usize>, String);

/// The tree with the values of `--set` arguments, each in its place. What is wrong goes to `files`.
pub(super) fn apply(mut root: Item, arguments: &[String], files: &mut Files<'_>) -> Item {
    for argument in arguments {
        let text = argument.clone();
        let source = files.source("--set".to_owned(), PathBuf::new(), text, None);
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
    let wrong =
        |Fault(range, message): Fault| Box::new(Diagnostic::at(place(source, range), "", message));
    let text = source.text.as_str();
    if text.len() > LIMIT {
        let message = format!("the argument is longer than {LIMIT} bytes");
        return Err(wrong(Fault(0..0, message)));
    }
    if let Some((offset, c)) = control_character(text) {
        let message = format!(
            "the argument has the control character U+{:04X}",
            u32::from(c)
        );
        return Err(wrong(Fault(offset..offset, message)));
    }
    let (path, from) = split(text).map_err(|fault| {
        let help = "such as `--set rounds.duration=5s`".to_owned();
        Box::new(wrong(fault).help(help))
    })?;
    let value = parse(source, from, found)?;
    let value = value.unwrap_or_else(|| nothing(source, text.len()));
    Setter { source, value }
        .set(Some(root), path, 0, 0)
        .map_err(wrong)
}

fn nothing(source: &Arc<Source>, at: usize) -> Item {
    let scalar = super::tree::Scalar {
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
    Err(Fault(
        0..text.len(),
        "expected a path, `=` and a value".to_owned(),
    ))
}

struct Setter<'a> {
    source: &'a Arc<Source>,
    value: Item,
}

impl Setter<'_> {
    /// `item` with the value at `path`, which begins at byte `at` of the argument.
    fn set(&self, item: Option<&Item>, path: &str, at: usize, level: usize) -> Result<Item, Fault> {
        if path.is_empty() {
            return Ok(self.value.clone());
        }
        if level == DEPTH {
            let message = format!("the path is deeper than {DEPTH} levels");
            return Err(Fault(at..at + path.len(), message));
        }
        if path.starts_with('[') {
            return self.set_index(item, path, at, level);
        }
        let dot = usize::from(level > 0 && path.starts_with('.'));
        self.set_key(item, &path[dot..], at + dot, level)
    }

    fn set_index(
        &self,
        item: Option<&Item>,
        path: &str,
        at: usize,
        level: usize,
    ) -> Result<Item, Fault> {
        let end = path.find(']').map_or(path.len(), |i| i + 1);
        let fault = |message: String| Err(Fault(at..at + end, message));
        let digits = path[..end].trim_matches(['[', ']']);
        let Ok(index) = digits.parse::<usize>() else {
            return fault("expected the number of a list's item, from 0".to_owned());
        };
        let (Some(list), Some(Value::Sequence(items))) = (item, item.map(|i| &i.node.value)) else {
            return fault("there is no list here".to_owned());
        };
        let Some(old) = items.get(index) else {
            let n = items.len();
            return fault(format!(
                "no item {index}: the list holds {n}, counted from 0"
            ));
        };
        let mut items = items.clone();
        items[index] = self.set(Some(old), &path[end..], at + end, level + 1)?;
        Ok(list.with(Value::Sequence(items)))
    }

    fn set_key(
        &self,
        item: Option<&Item>,
        path: &str,
        at: usize,
        level: usize,
    ) -> Result<Item, Fault> {
        let old = item.map_or(&[] as &[Entry], Item::entries);
        let (key, range) = key(path, old);
        let key_range = at + range.start..at + range.end;
        if key.is_empty() {
            return Err(Fault(at..at + path.len(), "a key is missing".to_owned()));
        }
        if level == 0 && key == "extends" {
            let message = "`extends` cannot be set from outside the file".to_owned();
            return Err(Fault(key_range, message));
        }
        let replaceable = item.is_none_or(|item| match &item.node.value {
            Value::Mapping(_) => true,
            Value::Scalar(scalar) => scalar.is_null(),
            Value::Sequence(_) => false,
        });
        if !replaceable {
            let found = item.map_or(String::new(), Item::describe);
            let message = format!("there is no `{key}` here: the value is {found}");
            return Err(Fault(key_range, message));
        }
        let known = old.iter().position(|entry| &*entry.key == key);
        let below = known.map(|i| &old[i].item);
        let end = range.end + usize::from(path[range.end..].starts_with('"'));
        let value = self.set(below, &path[end..], at + end, level + 1)?;
        let key_place = place(self.source, key_range);
        let mut entries = old.to_vec();
        match known {
            Some(i) if end < path.len() => entries[i].item = value,
            Some(i) => {
                entries[i] = Entry {
                    key: key.into(),
                    key_place,
                    item: value,
                    merged: None,
                }
            }
            None => entries.push(Entry {
                key: key.into(),
                key_place: key_place.clone(),
                item: value,
                merged: None,
            }),
        }
        Ok(match item {
            Some(item) if !item.entries().is_empty() => item.with(Value::Mapping(entries)),
            _ => Item::new(Value::Mapping(entries), place(self.source, at..at)),
        })
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
