//! A tree against a JSON Schema: every problem is found, and what is sound is handed on.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Value as Schema, json};

use super::bad::Bad;
use super::expected::{self, Type};
use super::likely;
use super::placeholder::placeholder;
use super::problem::{Diagnostic, SHOWN};
use super::scalar::resolve;
use super::suggest;
use super::tree::{Entry, Item, Point, Scalar, Value, Way};
use super::vars::join;

/// What came out of a walk.
pub(super) struct Walked {
    /// The tree with everything unsound left away or replaced, so that it can be read as typed values.
    pub(super) sound: Item,
    /// What was left away or replaced.
    pub(super) bad: Bad,
    /// The environment variables that are used, with their values.
    pub(super) secrets: BTreeMap<String, String>,
    /// Texts with something like a placeholder.
    pub(super) placeholders: Vec<FreeText>,
}

/// A text in which placeholders may stand.
pub(super) struct FreeText {
    pub(super) path: String,
    pub(super) text: Rc<str>,
    /// How many placeholders stand in it.
    pub(super) secrets: usize,
    pub(super) point: Point,
}

/// Walks a tree. What is wrong goes to `found`.
pub(super) fn walk(
    schema: &Schema,
    root: &Item,
    environment: &dyn Fn(&str) -> Option<String>,
    found: &mut Vec<Diagnostic>,
) -> Walked {
    let mut walk = Walk {
        root: schema,
        system: system(root),
        environment,
        found,
        bad: Bad::default(),
        secrets: BTreeMap::new(),
        placeholders: Vec::new(),
    };
    let at = At {
        path: "",
        way: &Way::default(),
        description: None,
    };
    let sound = walk.value(schema, root, &at);
    let place = &root.node.place;
    Walked {
        sound: sound.unwrap_or_else(|| placeholder(schema, schema, place)),
        bad: walk.bad,
        secrets: walk.secrets,
        placeholders: walk.placeholders,
    }
}

/// The system that an experiment names.
fn system(root: &Item) -> Option<String> {
    let cluster = root.get("cluster")?;
    let system = cluster.item.get("system")?.item.scalar()?;
    Some(suggest::shown(&system.text)).filter(|name| !name.is_empty())
}

struct Walk<'a> {
    root: &'a Schema,
    /// The system that an experiment names.
    system: Option<String>,
    environment: &'a dyn Fn(&str) -> Option<String>,
    found: &'a mut Vec<Diagnostic>,
    bad: Bad,
    secrets: BTreeMap<String, String>,
    placeholders: Vec<FreeText>,
}

/// Where the walk is.
struct At<'a> {
    path: &'a str,
    way: &'a Way,
    /// What the value is, from the schema.
    description: Option<&'a str>,
}

impl At<'_> {
    fn help(&self) -> Option<String> {
        let key = self
            .path
            .rsplit(['.', '['])
            .next()
            .filter(|k| !k.ends_with(']'));
        Some(format!("`{}`: {}", key?, self.description?))
    }
}

impl Walk<'_> {
    /// The sound part of a value; nothing when it has none.
    fn value(&mut self, schema: &Schema, item: &Item, at: &At<'_>) -> Option<Item> {
        if item.scalar().is_some_and(|scalar| scalar.broken) {
            self.bad.insert(at.path);
            return None;
        }
        let target = expected::resolve(self.root, schema);
        match expected::kind(target) {
            Type::Alternatives(alternatives) => {
                let one = expected::alternative(self.root, alternatives, item);
                self.value(one, item, at)
            }
            Type::Object => self.object(target, item, at),
            Type::Array => self.array(target, item, at),
            Type::Any => self.any(target, item, at),
            _ => self.scalar(target, item, at),
        }
    }

    /// A value of any shape: only its single values can be wrong.
    fn any(&mut self, schema: &Schema, item: &Item, at: &At<'_>) -> Option<Item> {
        match &item.node.value {
            Value::Scalar(scalar) if scalar.is_null() => self.mismatch(schema, item, at),
            Value::Scalar(scalar) => {
                let wrong = scalar.plain.then(|| resolve(&scalar.text).err()).flatten();
                if let Some(help) = wrong {
                    let message = format!("expected a value, found `{}`", scalar.text);
                    return self.wrong(item, at, message, Some(help));
                }
                self.free_text(scalar, item, at);
                Some(item.clone())
            }
            Value::Sequence(_) => self.array(&json!({ "items": schema }), item, at),
            Value::Mapping(entries) => {
                let below =
                    |entry| self.below((schema, None), entry, &join(at.path, &entry.key), at);
                let sound = entries.iter().filter_map(below).collect();
                Some(item.with(Value::Mapping(sound)))
            }
        }
    }

    fn mismatch(&mut self, schema: &Schema, item: &Item, at: &At<'_>) -> Option<Item> {
        let found = item.describe();
        let message = format!("expected {}, found {found}", expected::expected(schema));
        let help = match (expected::kind(schema), item.scalar()) {
            (Type::Object, Some(scalar)) if scalar.is_null() && at.path.starts_with("hosts.") => {
                Some("write `{}` where there is nothing to say".to_owned())
            }
            (_, Some(scalar)) if scalar.is_null() => {
                Some("write a value, or leave the key away if it is not required".to_owned())
            }
            (kind, scalar) => {
                likely::help(at.path, item, self.system.as_deref()).or_else(|| match scalar {
                    Some(scalar) if matches!(kind, Type::Array) => {
                        Some(format!("write `[{}]`", suggest::shown(&scalar.text)))
                    }
                    _ => at.help(),
                })
            }
        };
        self.wrong(item, at, message, help)
    }

    fn wrong(
        &mut self,
        item: &Item,
        at: &At<'_>,
        message: String,
        help: Option<String>,
    ) -> Option<Item> {
        self.bad.insert(at.path);
        let diagnostic = Diagnostic::point(at.way.point(item), at.path, message);
        self.found.push(diagnostic.help(help));
        None
    }

    fn array(&mut self, schema: &Schema, item: &Item, at: &At<'_>) -> Option<Item> {
        let Value::Sequence(items) = &item.node.value else {
            return self.mismatch(schema, item, at);
        };
        if items.is_empty() && schema.get("minItems").is_some() {
            let message = "expected at least one item, found an empty list".to_owned();
            return self.wrong(item, at, message, at.help());
        }
        let below = &schema["items"];
        let mut sound = Vec::new();
        for (i, item) in items.iter().enumerate() {
            let at = At {
                path: &format!("{}[{i}]", at.path),
                way: &at.way.item(item),
                description: None,
            };
            let value = self.value(below, item, &at);
            // An unsound item keeps its place, so that the paths of the others stay right.
            let place = &item.node.place;
            sound.push(value.unwrap_or_else(|| placeholder(self.root, below, place)));
        }
        Some(item.with(Value::Sequence(sound)))
    }

    fn object(&mut self, schema: &Schema, item: &Item, at: &At<'_>) -> Option<Item> {
        let Value::Mapping(entries) = &item.node.value else {
            return self.mismatch(schema, item, at);
        };
        let sound = match expected::any_key(schema) {
            Some(below) => {
                if entries.is_empty() && schema.get("minProperties").is_some() {
                    let message = "expected at least one entry, found an empty mapping".to_owned();
                    return self.wrong(item, at, message, at.help());
                }
                self.entries((schema, below), entries, at)
            }
            None => self.properties(schema, item, at),
        };
        Some(item.with(Value::Mapping(sound)))
    }

    /// The entries of a mapping whose keys are names that the user gives.
    fn entries(
        &mut self,
        (schema, below): (&Schema, &Schema),
        entries: &[Entry],
        at: &At<'_>,
    ) -> Vec<Entry> {
        let mut sound = Vec::new();
        for entry in entries {
            let path = join(at.path, &entry.key);
            if let Err((message, help)) = expected::check_key(schema, &entry.key) {
                let help = entry
                    .key
                    .contains("${")
                    .then(|| "variables are replaced in values, not in keys".to_owned())
                    .or(help);
                let point = at.way.key(entry);
                self.bad.lost_key(at.path);
                self.found
                    .push(Diagnostic::point(point, at.path, message).help(help));
                continue;
            }
            let value = self.below((below, None), entry, &path, at);
            // An unsound entry keeps its key, so that what refers to it still finds it.
            sound.push(value.unwrap_or_else(|| Entry {
                item: placeholder(self.root, below, &entry.item.node.place),
                ..entry.clone()
            }));
        }
        sound
    }

    /// The entries of a mapping whose keys the schema names.
    fn properties(&mut self, schema: &Schema, item: &Item, at: &At<'_>) -> Vec<Entry> {
        let mut sound = Vec::new();
        let mut misspelt = Vec::new();
        for entry in item.entries() {
            let path = join(at.path, &entry.key);
            let named = schema["properties"].get(&*entry.key);
            match named.or_else(|| expected::any_other_key(schema)) {
                Some(below) => {
                    let description = below.get("description").and_then(Schema::as_str);
                    sound.extend(self.below((below, description), entry, &path, at));
                }
                None => misspelt.extend(self.unknown(schema, entry, at)),
            }
        }
        let missing: Vec<&str> = expected::required(schema)
            .filter(|key| item.get(key).is_none())
            .collect();
        for key in &missing {
            self.bad.insert(join(at.path, key));
        }
        let missing: Vec<&str> = missing
            .into_iter()
            .filter(|key| !misspelt.contains(key))
            .collect();
        self.missing(&missing, schema, item, at);
        for key in expected::required(schema) {
            if !sound.iter().any(|entry| &*entry.key == key) {
                sound.push(Entry {
                    key: key.into(),
                    key_place: item.node.place.clone(),
                    item: placeholder(self.root, &schema["properties"][key], &item.node.place),
                    merged: None,
                });
            }
        }
        sound
    }

    fn below(
        &mut self,
        (schema, description): (&Schema, Option<&str>),
        entry: &Entry,
        path: &str,
        at: &At<'_>,
    ) -> Option<Entry> {
        let at = At {
            path,
            way: &at.way.enter(entry),
            description,
        };
        let item = self.value(schema, &entry.item, &at)?;
        Some(Entry {
            item,
            ..entry.clone()
        })
    }

    /// Reports an unknown key. Returns the key that it was likely meant to be.
    fn unknown<'s>(&mut self, schema: &'s Schema, entry: &Entry, at: &At<'_>) -> Option<&'s str> {
        let key = suggest::shown(&entry.key);
        let known: Vec<&str> = expected::keys(schema).collect();
        let few = self.found.len() <= SHOWN;
        let close = suggest::closest(&entry.key, known.iter().copied()).filter(|_| few);
        let help = close
            .map(|close| format!("did you mean `{close}`?"))
            .or_else(|| expected::elsewhere(self.root, &entry.key, at.path))
            .unwrap_or_else(|| format!("the keys here are {}", suggest::list(&known)));
        let message = format!("unknown key `{key}`");
        let diagnostic = Diagnostic::point(at.way.key(entry), at.path, message);
        self.found.push(diagnostic.help(help));
        close
    }

    fn missing(&mut self, keys: &[&str], schema: &Schema, item: &Item, at: &At<'_>) {
        let (message, help) = match keys {
            [] => return,
            [key] => {
                let description = schema["properties"][key]["description"].as_str();
                let help = description.map(|text| format!("`{key}`: {text}"));
                (format!("the key `{key}` is missing"), help)
            }
            keys => {
                let list = suggest::list(keys);
                (format!("the keys {list} are missing"), None)
            }
        };
        let diagnostic = Diagnostic::point(at.way.point(item), at.path, message);
        self.found.push(diagnostic.help(help));
    }

    fn scalar(&mut self, schema: &Schema, item: &Item, at: &At<'_>) -> Option<Item> {
        let Some(scalar) = item.scalar().filter(|scalar| !scalar.is_null()) else {
            return self.mismatch(schema, item, at);
        };
        let free = expected::is_free(schema);
        if let Some(name) = scalar.secrets.first().filter(|_| !free) {
            let message = format!(
                "expected {}; a value from the environment cannot stand here",
                expected::expected(schema)
            );
            let help = if expected::keys(self.root).any(|key| key == "vars") {
                format!("use a variable, `${{x}}`, and set it: `--set vars.x=\"${name}\"`")
            } else {
                "write the value itself".to_owned()
            };
            return self.wrong(item, at, message, Some(help));
        }
        match expected::check(schema, scalar) {
            Ok(()) => {
                self.free_text(scalar, item, at);
                Some(item.clone())
            }
            Err((message, help)) => self.wrong(item, at, message, help.or_else(|| at.help())),
        }
    }

    /// Looks up the environment variables of a text; those in definitions count where they are used.
    fn free_text(&mut self, scalar: &Scalar, item: &Item, at: &At<'_>) {
        if !scalar.text.contains("${env:") || at.path.starts_with("vars.") {
            return;
        }
        let point = at.way.point(item);
        for name in &scalar.secrets {
            match (self.environment)(name) {
                Some(value) => {
                    self.secrets.insert(name.to_string(), value);
                }
                None => {
                    let message = format!("the environment variable `{name}` is not set");
                    self.found
                        .push(Diagnostic::point(point.clone(), at.path, message));
                    self.bad.insert(at.path);
                }
            }
        }
        self.placeholders.push(FreeText {
            path: at.path.to_owned(),
            text: Rc::clone(&scalar.text),
            secrets: scalar.secrets.len(),
            point,
        });
    }
}
