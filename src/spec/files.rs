//! The files of a spec: read, parsed, and laid over what they extend.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use annotate_snippets::normalize_untrusted_str;

use super::parse::{parse, place};
use super::problem::{Diagnostic, Spot};
use super::source::{Place, ReadError, Source, clean, read};
use super::tree::{Entry, Item, Scalar, Value, Way};

/// The longest chain of `extends`.
const CHAIN: usize = 16;

/// Reads sources, numbers them and gathers what is wrong with them.
pub(super) struct Files<'a> {
    working_directory: &'a Path,
    read: usize,
    pub(super) found: Vec<Diagnostic>,
}

impl<'a> Files<'a> {
    pub(super) fn new(working_directory: &'a Path) -> Self {
        Self {
            working_directory,
            read: 0,
            found: Vec::new(),
        }
    }

    /// A source with the next number.
    pub(super) fn source(
        &mut self,
        name: String,
        folder: PathBuf,
        text: String,
        because: Option<Place>,
    ) -> Arc<Source> {
        self.read += 1;
        Arc::new(Source {
            order: self.read,
            // A file's name must not speak to the terminal.
            name: normalize_untrusted_str(&name),
            folder,
            text,
            because,
        })
    }

    /// Adds problems of an inventory, each place and message once: what a range stands for has one place.
    pub(super) fn add_once(&mut self, found: impl IntoIterator<Item = Diagnostic>) {
        let mut told = HashSet::new();
        for diagnostic in found {
            let of_inventory = ["hosts.", "groups."];
            let is_new = match &diagnostic.spot {
                Spot::At(point) if of_inventory.iter().any(|o| diagnostic.path.starts_with(o)) => {
                    let place = (point.place.source.order, point.place.range.clone());
                    told.insert((place, diagnostic.message.clone()))
                }
                Spot::At(_) | Spot::File(_) => true,
            };
            if is_new {
                self.found.push(diagnostic);
            }
        }
    }

    /// The tree of one file, named as the user would. `from` is the key and the place that name it; `start` is said of
    /// an empty file that nothing names.
    pub(super) fn file(
        &mut self,
        path: &Path,
        from: Option<(&str, &Place)>,
        start: Option<&str>,
    ) -> Option<Item> {
        let name = path.display().to_string();
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let because = from.filter(|(key, _)| *key == "extends");
        let because = because.map(|(_, place)| place.clone());
        let text = match read(&self.working_directory.join(path)) {
            Ok(text) => text,
            Err(ReadError {
                message,
                help,
                at: Some((text, offset)),
            }) => {
                let source = self.source(name, folder, text, because);
                let at = place(&source, offset..offset);
                let message = format!("the file {message}");
                return self.fail(Diagnostic::at(at, "", message).help(help));
            }
            Err(error) => return self.unusable(name, from, error.message, error.help),
        };
        let source = self.source(name.clone(), folder, text, because);
        match parse(&source, 0, &mut self.found) {
            Ok(Some(root)) if !root.scalar().is_some_and(Scalar::is_null) => Some(root),
            Ok(_) => {
                let help = start.filter(|_| from.is_none()).map(str::to_owned);
                self.unusable(name, from, "is empty".to_owned(), help)
            }
            Err(error) => self.fail(*error),
        }
    }

    /// Reports a file as a whole, at the place that names it if there is one.
    fn unusable(
        &mut self,
        name: String,
        from: Option<(&str, &Place)>,
        message: String,
        help: Option<String>,
    ) -> Option<Item> {
        self.fail(match from {
            Some((key, place)) => {
                Diagnostic::at(place.clone(), key, format!("`{name}` {message}")).help(help)
            }
            None => Diagnostic {
                path: String::new(),
                message,
                help,
                spot: Spot::File(name),
            },
        })
    }

    fn fail(&mut self, diagnostic: Diagnostic) -> Option<Item> {
        self.found.push(diagnostic);
        None
    }

    /// The tree of a file laid over that of the file it extends, and so on.
    pub(super) fn chain(&mut self, path: &Path) -> Option<Item> {
        let mut layers: Vec<Item> = Vec::new();
        let mut chain: Vec<(PathBuf, String)> = Vec::new();
        let mut next = (path.to_owned(), None::<Place>);
        loop {
            let (path, from) = next;
            chain.push((self.identity(&path), path.display().to_string()));
            let from = from.as_ref().map(|place| ("extends", place));
            let start = "`assay init` writes an experiment to start from";
            let root = self.file(&path, from, Some(start))?;
            let base = self.base(&root, &path, &chain);
            layers.push(without(&root, "extends"));
            match base {
                Base::None => break,
                Base::File(path, place) => next = (path, Some(place)),
                Base::Wrong(diagnostic) => return self.fail(*diagnostic),
            }
        }
        layers
            .into_iter()
            .rev()
            .reduce(|base, over| lay(&base, &over))
    }

    fn identity(&self, path: &Path) -> PathBuf {
        let path = self.working_directory.join(path);
        path.canonicalize().unwrap_or(path)
    }

    /// The file that a tree extends.
    fn base(&self, root: &Item, path: &Path, chain: &[(PathBuf, String)]) -> Base {
        let Some(entry) = root.get("extends") else {
            return Base::None;
        };
        let point = Way::default().enter(entry).point(&entry.item);
        let place = point.place.clone();
        let wrong = |message: String| {
            Base::Wrong(Box::new(Diagnostic::point(
                point.clone(),
                "extends",
                message,
            )))
        };
        let text = match entry.item.scalar() {
            Some(scalar) if !scalar.is_null() && !scalar.text.is_empty() => &scalar.text,
            _ => {
                let found = entry.item.describe();
                return wrong(format!("expected the path of one file, found {found}"));
            }
        };
        if text.contains("${") {
            return wrong("variables are not known yet where files are put together".to_owned());
        }
        let base = clean(&path.parent().unwrap_or(Path::new("")).join(&**text));
        let identity = self.identity(&base);
        if let Some(first) = chain.iter().position(|(known, _)| *known == identity) {
            let mut names: Vec<String> = chain[first..]
                .iter()
                .map(|c| format!("`{}`", c.1))
                .collect();
            names.push(names[0].clone());
            return wrong(format!(
                "the files extend each other: {}",
                names.join(" -> ")
            ));
        }
        if chain.len() == CHAIN {
            return wrong(format!("more than {CHAIN} files extend each other"));
        }
        Base::File(base, place)
    }
}

enum Base {
    None,
    File(PathBuf, Place),
    Wrong(Box<Diagnostic>),
}

/// A mapping without one of its keys.
pub(super) fn without(item: &Item, key: &str) -> Item {
    match &item.node.value {
        Value::Mapping(entries) if item.get(key).is_some() => item.with(Value::Mapping(
            entries.iter().filter(|e| &*e.key != key).cloned().collect(),
        )),
        _ => item.clone(),
    }
}

/// One value laid over another: mappings are merged key by key, anything else is replaced.
pub(super) fn lay(base: &Item, over: &Item) -> Item {
    let (Value::Mapping(_), Value::Mapping(_)) = (&base.node.value, &over.node.value) else {
        return over.clone();
    };
    let mut entries: Vec<Entry> = own(base);
    let known: HashMap<Rc<str>, usize> = entries
        .iter()
        .enumerate()
        .map(|(i, entry)| (Rc::clone(&entry.key), i))
        .collect();
    for entry in own(over) {
        match known.get(&entry.key) {
            Some(&i) => {
                let item = lay(&entries[i].item, &entry.item);
                entries[i] = Entry { item, ..entry };
            }
            None => entries.push(entry),
        }
    }
    Item::new(Value::Mapping(entries), over.node.place.clone())
}

/// The entries of a mapping, those of an alias marked with it.
fn own(item: &Item) -> Vec<Entry> {
    let entries = item.entries().iter().cloned();
    entries
        .map(|entry| Entry {
            merged: item.alias.clone().or(entry.merged.clone()),
            ..entry
        })
        .collect()
}
