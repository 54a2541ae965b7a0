//! YAML text -> tree. Syntax errors end it; duplicate keys, tags and the like are collected.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, options};

use super::problem::{Diagnostic, SHOWN};
use super::source::{Place, Source};
use super::tree::{DEPTH, Entry, Item, LIMIT, Node, Point, Scalar, Value};
use super::{suggest, syntax};

/// The tree of the part of a source from byte `from` on; `None` when it holds nothing but comments.
///
/// # Errors
/// The first error of syntax, or a document that is too large or too deep. Other problems go to `found`.
pub(super) fn parse(
    source: &Arc<Source>,
    from: usize,
    found: &mut Vec<Diagnostic>,
) -> Result<Option<Item>, Box<Diagnostic>> {
    let options = options! {
        flow_nesting_limit: DEPTH,
        block_nesting_limit: DEPTH,
        emit_unresolved_aliases: true,
        emit_anchor_events: true,
    };
    let text = &source.text[from..];
    let mut builder = Builder {
        events: Parser::new_from_str_with_options(text, options),
        source,
        from,
        anchors: HashMap::new(),
        names: Vec::new(),
        path: Vec::new(),
        nodes: 0,
        found,
    };
    builder.document()
}

struct Builder<'a> {
    events: Parser<'a, StrInput<'a>>,
    source: &'a Arc<Source>,
    from: usize,
    /// Finished anchors; one that is still being built holds `None`.
    anchors: HashMap<usize, Option<Rc<Node>>>,
    names: Vec<String>,
    /// Keys and indices down to the current value.
    path: Vec<String>,
    /// Values so far, those of merge keys too.
    nodes: usize,
    found: &'a mut Vec<Diagnostic>,
}

type Parsed<T> = Result<T, Box<Diagnostic>>;

impl<'a> Builder<'a> {
    fn document(&mut self) -> Parsed<Option<Item>> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(root),
                Event::DocumentStart(..) if root.is_some() => {
                    let place = self.place(&span);
                    let message = "a second document begins here; a spec file holds one";
                    return Err(Box::new(Diagnostic::at(place, "", message)));
                }
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                event => root = Some(self.item(event, &span, 0)?),
            }
        }
    }

    fn next(&mut self) -> Parsed<(Event<'a>, Span)> {
        loop {
            match self.events.next_event() {
                Some(Ok((Event::Anchor(_, name), _))) => self.names.push(name.into_owned()),
                Some(Ok(next)) => return Ok(next),
                Some(Err(error)) => return Err(Box::new(self.syntax_error(&error))),
                None => return Ok((Event::StreamEnd, Span::default())),
            }
        }
    }

    fn syntax_error(&self, error: &ScanError) -> Diagnostic {
        let length = self.source.text.len();
        let offset = error.marker().byte_offset().unwrap_or(0);
        let mut start = (self.from + offset).min(length);
        while !self.source.text.is_char_boundary(start) {
            start -= 1;
        }
        syntax::describe(error.kind(), self.source, start)
    }

    fn place(&self, span: &Span) -> Place {
        let length = self.source.text.len();
        let range = span.byte_range().unwrap_or(0..0);
        let shift = |offset: usize| (self.from + offset).min(length);
        Place {
            source: Arc::clone(self.source),
            range: shift(range.start)..shift(range.end).max(shift(range.start)),
        }
    }

    fn item(&mut self, event: Event<'a>, span: &Span, depth: usize) -> Parsed<Item> {
        let place = self.place(span);
        self.nodes += 1;
        if self.nodes > LIMIT {
            return Err(Box::new(too_large(place.first_line(), "the file holds")));
        }
        if event.tag().is_some() {
            self.tag(span, &place);
        }
        let anchor = event.anchor_id().filter(|id| *id != 0);
        if let Some(id) = anchor {
            self.anchors.insert(id, None);
        }
        let value = match event {
            Event::Alias(id) => return self.alias(id, place, depth),
            Event::UnresolvedAlias(name) => self.unknown_alias(&name, &place),
            Event::Scalar(text, style, ..) => self.scalar(&text, style, &place),
            Event::SequenceStart(..) => {
                let (value, end) = self.sequence(&place, depth + 1)?;
                return self.collection(value, &place, end, anchor);
            }
            Event::MappingStart(..) => {
                let (value, end) = self.mapping(&place, depth + 1)?;
                return self.collection(value, &place, end, anchor);
            }
            // The parser emits nothing else where a value stands.
            _ => Value::Scalar(Scalar::default()),
        };
        self.finish(Item::new(value, place), anchor)
    }

    fn collection(
        &mut self,
        value: Value,
        start: &Place,
        end: usize,
        anchor: Option<usize>,
    ) -> Parsed<Item> {
        let mut place = start.clone();
        // Only a flow collection has an end that is worth pointing at.
        if place.text().starts_with(['[', '{']) {
            place.range.end = end.max(place.range.end);
        }
        self.finish(Item::new(value, place), anchor)
    }

    fn finish(&mut self, item: Item, anchor: Option<usize>) -> Parsed<Item> {
        self.check_size(&item)?;
        if let Some(id) = anchor {
            self.anchors.insert(id, Some(Rc::clone(&item.node)));
        }
        Ok(item)
    }

    /// Refuses what stands for too much: by itself, or through its aliases.
    fn check_size(&self, item: &Item) -> Parsed<()> {
        let aliased = || items(&item.node.value).find_map(|child| child.alias.clone());
        let place = || aliased().unwrap_or_else(|| item.node.place.first_line());
        if item.node.weight > LIMIT {
            return Err(Box::new(too_large(
                place(),
                "with its aliases, the value stands for",
            )));
        }
        if item.node.depth > DEPTH {
            return Err(Box::new(too_deep(place())));
        }
        Ok(())
    }

    fn sequence(&mut self, place: &Place, depth: usize) -> Parsed<(Value, usize)> {
        self.check_depth(place, depth)?;
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd | Event::StreamEnd) {
                return Ok((Value::Sequence(items), self.place(&span).range.end));
            }
            self.path.push(format!("[{}]", items.len()));
            items.push(self.item(event, &span, depth)?);
            self.path.pop();
        }
    }

    fn mapping(&mut self, place: &Place, depth: usize) -> Parsed<(Value, usize)> {
        self.check_depth(place, depth)?;
        let mut written = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd | Event::StreamEnd) {
                let entries = self.entries(written, place)?;
                return Ok((Value::Mapping(entries), self.place(&span).range.end));
            }
            let key = self.item(event, &span, depth)?;
            let key = self.key(&key);
            let name = key.as_ref().map_or("?", |(text, ..)| text);
            self.path.push(format!(".{name}"));
            let (event, span) = self.next()?;
            let item = self.item(event, &span, depth)?;
            self.path.pop();
            if let Some((key, key_place, plain)) = key {
                let merge = plain && &*key == "<<";
                let entry = Entry {
                    key,
                    key_place,
                    item,
                    merged: None,
                };
                written.push((entry, merge));
            }
        }
    }

    fn check_depth(&self, place: &Place, depth: usize) -> Parsed<()> {
        if depth <= DEPTH {
            return Ok(());
        }
        Err(Box::new(too_deep(place.first_line())))
    }

    /// The text of a key; anything but a text is a problem.
    fn key(&mut self, key: &Item) -> Option<(Rc<str>, Place, bool)> {
        let place = key.alias.clone().unwrap_or(key.node.place.clone());
        let message = match key.scalar() {
            _ if key.alias.is_some() => "an alias cannot be a key",
            Some(scalar) if scalar.broken => return None,
            Some(scalar) if scalar.is_null() => "a key is missing before the `:`",
            Some(scalar) => return Some((Rc::clone(&scalar.text), place, scalar.plain)),
            None => "a key must be a text, not a list or a mapping",
        };
        self.report(place.first_line(), message);
        None
    }

    /// The entries with merge keys replaced by what they stand for. What is written wins over what is merged.
    fn entries(&mut self, written: Vec<(Entry, bool)>, place: &Place) -> Parsed<Vec<Entry>> {
        let mut seen: HashMap<Rc<str>, Place> = HashMap::new();
        let mut kept = Vec::new();
        for (entry, merge) in written {
            if let Some(first) = seen.get(&entry.key) {
                let message = format!("duplicate key `{}`", suggest::shown(&entry.key));
                let point = Point {
                    place: entry.key_place.first_line(),
                    context: Some((first.first_line(), "first given here")),
                };
                let duplicate = Diagnostic::point(point, self.path(), message);
                self.found.push(duplicate);
                continue;
            }
            seen.insert(Rc::clone(&entry.key), entry.key_place.clone());
            kept.push((entry, merge));
        }
        let mut entries = Vec::new();
        for (entry, merge) in kept {
            if !merge {
                entries.push(entry);
                continue;
            }
            let merged = self.merged(&entry);
            self.nodes += merged.len();
            if self.nodes > LIMIT {
                let what = "with what is merged, the file holds";
                return Err(Box::new(too_large(place.first_line(), what)));
            }
            for merged in merged {
                if !seen.contains_key(&merged.key) {
                    seen.insert(Rc::clone(&merged.key), merged.key_place.clone());
                    entries.push(merged);
                }
            }
        }
        Ok(entries)
    }

    /// What a merge key brings: the entries of a mapping, or of a list of them, the earlier first.
    fn merged(&mut self, entry: &Entry) -> Vec<Entry> {
        let sources = match &entry.item.node.value {
            Value::Sequence(items) => items.clone(),
            _ => vec![entry.item.clone()],
        };
        let mut merged = Vec::new();
        for source in sources {
            let site = source.alias.clone().or_else(|| entry.item.alias.clone());
            let Value::Mapping(entries) = &source.node.value else {
                if !source.scalar().is_some_and(|scalar| scalar.broken) {
                    let place = site.unwrap_or(source.node.place.first_line());
                    let message = format!("`<<` merges mappings, not {}", source.describe());
                    self.report(place, &message);
                }
                continue;
            };
            merged.extend(entries.iter().cloned().map(|below| Entry {
                merged: site.clone().or(below.merged.clone()),
                ..below
            }));
        }
        merged
    }

    fn alias(&mut self, id: usize, place: Place, depth: usize) -> Parsed<Item> {
        let name = place.text().trim_start_matches('*').to_owned();
        match self.anchors.get(&id) {
            Some(Some(node)) if depth + node.depth <= DEPTH => Ok(Item {
                node: Rc::clone(node),
                alias: Some(place),
            }),
            Some(Some(_)) => Err(Box::new(too_deep(place))),
            _ => {
                let message = format!("the alias `*{name}` stands inside its own anchor");
                self.report(place.clone(), &message);
                Ok(Item::new(broken(), place))
            }
        }
    }

    fn unknown_alias(&mut self, name: &str, place: &Place) -> Value {
        let few = self.found.len() <= SHOWN;
        let names = self.names.iter().map(String::as_str).filter(|_| few);
        let message = format!("no anchor `&{name}` stands before this alias");
        let help = suggest::closest(name, names).map(|name| format!("did you mean `*{name}`?"));
        let diagnostic = Diagnostic::at(place.clone(), self.path(), message).help(
            help.or_else(|| Some("quote the value if it is meant to begin with `*`".to_owned())),
        );
        self.found.push(diagnostic);
        broken()
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, place: &Place) -> Value {
        let control = |c: &char| c.is_control() && !matches!(c, '\n' | '\t');
        if let Some(c) = text.chars().find(control) {
            let message = format!(
                "the text holds the control character U+{:04X}",
                u32::from(c)
            );
            self.report(place.first_line(), &message);
            return broken();
        }
        Value::Scalar(Scalar {
            text: text.into(),
            plain: style == ScalarStyle::Plain,
            ..Scalar::default()
        })
    }

    fn tag(&mut self, span: &Span, place: &Place) {
        let place = span
            .tag_span()
            .map_or(place.clone(), |tag| self.place(&tag));
        let diagnostic =
            Diagnostic::at(place.first_line(), self.path(), "tags have no meaning here")
                .help("quote the value to make it a text".to_owned());
        self.found.push(diagnostic);
    }

    fn report(&mut self, place: Place, message: &str) {
        let diagnostic = Diagnostic::at(place, self.path(), message);
        self.found.push(diagnostic);
    }

    fn path(&self) -> String {
        let path = self.path.concat();
        path.strip_prefix('.').unwrap_or(&path).to_owned()
    }
}

fn too_large(place: Place, what: &str) -> Diagnostic {
    Diagnostic::at(place, "", format!("{what} more than {LIMIT} values"))
        .help("a spec has some hundred; split it".to_owned())
}

fn too_deep(place: Place) -> Diagnostic {
    let message = format!("the value is nested deeper than {DEPTH} levels");
    Diagnostic::at(place, "", message)
}

fn broken() -> Value {
    Value::Scalar(Scalar {
        broken: true,
        ..Scalar::default()
    })
}

fn items(value: &Value) -> Box<dyn Iterator<Item = &Item> + '_> {
    match value {
        Value::Scalar(_) => Box::new(std::iter::empty()),
        Value::Sequence(items) => Box::new(items.iter()),
        Value::Mapping(entries) => Box::new(entries.iter().map(|entry| &entry.item)),
    }
}

/// The part of a source between two bytes.
pub(super) fn place(source: &Arc<Source>, range: Range<usize>) -> Place {
    Place {
        source: Arc::clone(source),
        range,
    }
}
