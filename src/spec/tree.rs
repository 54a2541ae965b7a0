//! A YAML document as a tree that knows where each part stands, through aliases, merge keys and variables.

use std::rc::Rc;

use super::source::Place;

/// The most values that a document may stand for, aliases followed; a text counts once for each 64 bytes.
pub(super) const LIMIT: usize = 20_000;

/// The deepest nesting, aliases followed.
pub(super) const DEPTH: usize = 64;

/// A value at a place: its own, or that of the alias that stands for it.
#[derive(Clone)]
pub(super) struct Item {
    pub(super) node: Rc<Node>,
    /// The alias that stands for the node here.
    pub(super) alias: Option<Place>,
}

/// A value where it is written.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) value: Value,
    /// A scalar's text, a flow collection, or the start of a block collection.
    pub(super) place: Place,
    /// Values that it stands for.
    pub(super) weight: usize,
    /// Levels below and with it.
    pub(super) depth: usize,
}

#[derive(Clone)]
pub(super) enum Value {
    Scalar(Scalar),
    Sequence(Vec<Item>),
    Mapping(Vec<Entry>),
}

/// A single value as text.
#[derive(Clone, Default)]
pub(super) struct Scalar {
    pub(super) text: Rc<str>,
    /// Written without quotes, so it can be a number or a word with a meaning.
    pub(super) plain: bool,
    /// The environment variables whose placeholders are in the text.
    pub(super) secrets: Vec<Rc<str>>,
    /// The definition of the variable that it is the value of.
    pub(super) origin: Option<Place>,
    /// A problem with it was reported already.
    pub(super) broken: bool,
}

/// A key and its value.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) key: Rc<str>,
    pub(super) key_place: Place,
    pub(super) item: Item,
    /// The alias after `<<` that brought it here.
    pub(super) merged: Option<Place>,
}

/// Where to point for a value, and what else to show.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) place: Place,
    pub(super) context: Option<(Place, &'static str)>,
}

impl Scalar {
    /// Whether it is written as nothing: `~`, `null`, or nothing at all.
    pub(super) fn is_null(&self) -> bool {
        self.plain && matches!(&*self.text, "" | "~" | "null" | "Null" | "NULL")
    }
}

impl Node {
    pub(super) fn new(value: Value, place: Place) -> Self {
        let (weight, depth) = match &value {
            Value::Scalar(scalar) => (1 + scalar.text.len() / 64, 1),
            Value::Sequence(items) => measure(items.iter()),
            Value::Mapping(entries) => measure(entries.iter().map(|e| &e.item)),
        };
        Self {
            value,
            place,
            weight,
            depth,
        }
    }
}

fn measure<'a>(items: impl Iterator<Item = &'a Item>) -> (usize, usize) {
    items.fold((1, 1), |(weight, depth), item| {
        (
            weight.saturating_add(item.node.weight),
            depth.max(item.node.depth + 1),
        )
    })
}

impl Item {
    pub(super) fn new(value: Value, place: Place) -> Self {
        Self {
            node: Rc::new(Node::new(value, place)),
            alias: None,
        }
    }

    /// The same place with another value.
    pub(super) fn with(&self, value: Value) -> Self {
        Self {
            node: Rc::new(Node::new(value, self.node.place.clone())),
            alias: self.alias.clone(),
        }
    }

    pub(super) fn scalar(&self) -> Option<&Scalar> {
        match &self.node.value {
            Value::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    pub(super) fn entries(&self) -> &[Entry] {
        match &self.node.value {
            Value::Mapping(entries) => entries,
            _ => &[],
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| &*entry.key == key)
    }

    /// What it is, for a message.
    pub(super) fn describe(&self) -> String {
        match &self.node.value {
            Value::Scalar(scalar) if scalar.is_null() => "nothing".to_owned(),
            Value::Scalar(scalar) if scalar.text.is_empty() => "an empty text".to_owned(),
            Value::Scalar(scalar) => format!("`{}`", super::suggest::shown(&scalar.text)),
            Value::Sequence(_) => "a list".to_owned(),
            Value::Mapping(_) => "a mapping".to_owned(),
        }
    }
}

/// A way down a tree: the key above the current value and the outermost alias that was passed.
#[derive(Clone, Default)]
pub(super) struct Way {
    key: Option<Place>,
    site: Option<Place>,
}

impl Way {
    /// One step down to an entry's value.
    pub(super) fn enter(&self, entry: &Entry) -> Self {
        Self {
            key: Some(entry.key_place.clone()),
            site: self.site.clone().or_else(|| entry.merged.clone()),
        }
        .through(&entry.item)
    }

    /// One step down to a list's item.
    pub(super) fn item(&self, item: &Item) -> Self {
        Self {
            key: None,
            site: self.site.clone(),
        }
        .through(item)
    }

    fn through(self, item: &Item) -> Self {
        Self {
            site: self.site.or_else(|| item.alias.clone()),
            ..self
        }
    }

    /// Where to point for the value that the way leads to.
    pub(super) fn point(&self, item: &Item) -> Point {
        let origin = item.scalar().and_then(|scalar| scalar.origin.clone());
        let own = match (&item.node.value, &self.key) {
            (Value::Scalar(_), _) if !item.node.place.range.is_empty() => &item.node.place,
            (Value::Sequence(_) | Value::Mapping(_), _) if is_flow(&item.node.place) => {
                &item.node.place
            }
            (_, Some(key)) => key,
            _ => match item.entries().first() {
                Some(first) => &first.key_place,
                None => &item.node.place,
            },
        };
        self.at(own, origin.map(|place| (place, "its value stands here")))
    }

    /// Where to point for the key of an entry below.
    pub(super) fn key(&self, entry: &Entry) -> Point {
        let way = Self {
            key: None,
            site: self.site.clone().or_else(|| entry.merged.clone()),
        };
        way.at(&entry.key_place, None)
    }

    fn at(&self, own: &Place, context: Option<(Place, &'static str)>) -> Point {
        match &self.site {
            Some(site) => Point {
                place: site.clone(),
                context: Some((own.first_line(), "it is written here")),
            },
            None => Point {
                place: own.first_line(),
                context: context.map(|(place, label)| (place.first_line(), label)),
            },
        }
    }
}

fn is_flow(place: &Place) -> bool {
    place.text().starts_with(['[', '{'])
}

/// Where a value at a path stands, and its key.
pub(super) struct Found {
    pub(super) value: Point,
    /// The key, if the path leads to one.
    pub(super) key: Option<Point>,
}

/// Where the value at a path stands, or the closest one above it.
pub(super) fn locate(root: &Item, path: &str) -> Found {
    let (mut item, mut way, mut key, mut rest) = (root, Way::default(), None, path);
    while let Some((below, remaining)) = step(item, rest) {
        key = match below {
            Below::Entry(entry) => Some(way.key(entry)),
            Below::Item(_) => None,
        };
        (item, way) = match below {
            Below::Entry(entry) => (&entry.item, way.enter(entry)),
            Below::Item(item) => (item, way.item(item)),
        };
        rest = remaining;
    }
    Found {
        value: way.point(item),
        key: key.filter(|_| rest.is_empty()),
    }
}

#[derive(Clone, Copy)]
enum Below<'a> {
    Entry(&'a Entry),
    Item(&'a Item),
}

/// The next part of a path and the rest of it. Keys may hold dots: the longest that fits is taken.
fn step<'a, 'p>(item: &'a Item, path: &'p str) -> Option<(Below<'a>, &'p str)> {
    match &item.node.value {
        Value::Scalar(_) => None,
        Value::Sequence(items) => {
            let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
            let below = items.get(index.parse::<usize>().ok()?)?;
            Some((Below::Item(below), rest))
        }
        Value::Mapping(entries) => {
            let path = path.strip_prefix('.').unwrap_or(path);
            let entry = longest(entries, path)?;
            Some((Below::Entry(entry), &path[entry.key.len()..]))
        }
    }
}

/// The entry with the longest key that `path` begins with.
pub(super) fn longest<'a>(entries: &'a [Entry], path: &str) -> Option<&'a Entry> {
    entries
        .iter()
        .filter(|entry| {
            let rest = path.strip_prefix(&*entry.key);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
        .max_by_key(|entry| entry.key.len())
}
