//! `${name}` and `${env:NAME}` in the texts of a tree, after parsing: a value can never change the structure.

use std::collections::HashMap;
use std::rc::Rc;

use super::problem::{Diagnostic, SHOWN};
use super::reference::{Piece, pieces, placeholder};
use super::source::Place;
use super::suggest;
use super::tree::{DEPTH, Entry, Item, Point, Scalar, Value, Way};

/// The longest text once its references are replaced.
const LONGEST: usize = 64 * 1024;

/// The most bytes that replacing may make in all.
const ALL: usize = 4 * 1024 * 1024;

/// The tree with every reference replaced but those to the environment, which stay as placeholders.
pub(super) fn substitute(root: &Item, inventory: bool, found: &mut Vec<Diagnostic>) -> Item {
    let entries = match root.get("vars") {
        Some(vars) if !inventory => vars.item.entries(),
        _ => &[],
    };
    let way = root.get("vars").map(|vars| Way::default().enter(vars));
    let mut substitution = Substitution {
        vars: entries.iter().map(|entry| (&*entry.key, entry)).collect(),
        way: way.unwrap_or_default(),
        inventory,
        known: HashMap::new(),
        open: Vec::new(),
        made: 0,
        found,
    };
    for entry in entries {
        substitution.variable(&entry.key);
    }
    substitution.item(root, &Way::default(), "")
}

struct Substitution<'a> {
    /// The definitions.
    vars: HashMap<&'a str, &'a Entry>,
    /// The way to them.
    way: Way,
    inventory: bool,
    /// The variables that were looked at; a broken one has no value.
    known: HashMap<Rc<str>, Option<Variable>>,
    /// The variables whose values are being put together.
    open: Vec<Rc<str>>,
    made: usize,
    found: &'a mut Vec<Diagnostic>,
}

#[derive(Clone)]
struct Variable {
    scalar: Scalar,
    place: Place,
}

/// A text whose references are replaced.
struct Text<'a> {
    scalar: &'a Scalar,
    point: Point,
    path: &'a str,
}

impl Substitution<'_> {
    fn item(&mut self, item: &Item, way: &Way, path: &str) -> Item {
        match &item.node.value {
            Value::Scalar(scalar) => {
                let done = path.strip_prefix("vars.").filter(|_| !self.inventory);
                if let Some(variable) = done.and_then(|name| self.known.get(name)) {
                    return item.with(Value::Scalar(match variable {
                        Some(variable) => variable.scalar.clone(),
                        None => broken(scalar),
                    }));
                }
                if !scalar.text.contains("${") {
                    return item.clone();
                }
                let text = Text {
                    scalar,
                    point: way.point(item),
                    path,
                };
                let replaced = self.text(&text).unwrap_or_else(|| broken(scalar));
                item.with(Value::Scalar(replaced))
            }
            Value::Sequence(items) => {
                let items = items
                    .iter()
                    .enumerate()
                    .map(|(i, below)| self.item(below, &way.item(below), &format!("{path}[{i}]")));
                let items = items.collect();
                item.with(Value::Sequence(items))
            }
            Value::Mapping(entries) => {
                let entries = entries.iter().map(|entry| Entry {
                    item: self.item(&entry.item, &way.enter(entry), &join(path, &entry.key)),
                    ..entry.clone()
                });
                let entries = entries.collect();
                item.with(Value::Mapping(entries))
            }
        }
    }

    /// The text with its references replaced; nothing after a problem, which is reported.
    fn text(&mut self, text: &Text<'_>) -> Option<Scalar> {
        let pieces = pieces(&text.scalar.text);
        if let [(Piece::Variable(name), _)] = pieces[..] {
            let variable = self.reference(name, text, 0)?;
            return self.within_limits(
                text,
                Scalar {
                    origin: Some(variable.place),
                    ..variable.scalar
                },
            );
        }
        let mut result = String::new();
        let mut secrets = Vec::new();
        let mut sound = true;
        let before = self.found.len();
        for (piece, range) in pieces {
            match piece {
                Piece::Text(part) => result.push_str(part),
                Piece::Escape => result.push_str("${"),
                Piece::Variable(name) => match self.reference(name, text, range.start) {
                    Some(variable) => {
                        result.push_str(&variable.scalar.text);
                        secrets.extend(variable.scalar.secrets);
                    }
                    None => sound = false,
                },
                Piece::Environment(name) if result.ends_with('$') => {
                    let message =
                        format!("a `$` cannot stand right before `{}`", placeholder(name));
                    self.report(text, range.start, message, None);
                    sound = false;
                }
                Piece::Environment(name) => {
                    result.push_str(&placeholder(name));
                    secrets.push(name.into());
                }
                Piece::Wrong(why) => {
                    let part = suggest::shown(&text.scalar.text[range.clone()]);
                    let help = "for a literal `${` write `$${`".to_owned();
                    self.report(text, range.start, format!("`{part}` {why}"), Some(help));
                    sound = false;
                }
            }
            if result.len() > LONGEST || self.found.len() > before + SHOWN {
                break;
            }
        }
        let mut scalar = Scalar {
            text: result.into(),
            secrets,
            ..text.scalar.clone()
        };
        scalar.plain &= !scalar.is_null();
        sound.then_some(())?;
        self.within_limits(text, scalar)
    }

    fn within_limits(&mut self, text: &Text<'_>, scalar: Scalar) -> Option<Scalar> {
        let before = self.made;
        self.made += scalar.text.len();
        let message = if scalar.text.len() > LONGEST {
            format!("the text is longer than {LONGEST} bytes with its variables replaced")
        } else if before <= ALL && self.made > ALL {
            format!("the texts are longer than {ALL} bytes with their variables replaced")
        } else {
            return (self.made <= ALL).then_some(scalar);
        };
        self.report(text, 0, message, None);
        None
    }

    /// The variable that a text refers to at one of its bytes.
    fn reference(&mut self, name: &str, text: &Text<'_>, at: usize) -> Option<Variable> {
        if self.vars.contains_key(name) {
            if let Some(start) = self.open.iter().position(|open| &**open == name) {
                let chain: Vec<String> = self.open[start..]
                    .iter()
                    .map(|n| format!("`{n}`"))
                    .collect();
                let chain = format!("{} -> {}", chain.join(" -> "), chain[0]);
                self.report(
                    text,
                    at,
                    format!("the variable needs itself: {chain}"),
                    None,
                );
                return None;
            }
            if self.open.len() == DEPTH {
                let message = format!("variables need each other over more than {DEPTH} steps");
                self.report(text, at, message, None);
                return None;
            }
            return self.variable(name);
        }
        let help = self.help(name);
        self.report(text, at, format!("`${{{name}}}` is not defined"), help);
        None
    }

    fn help(&self, name: &str) -> Option<String> {
        if self.found.len() > SHOWN {
            return None;
        }
        if self.inventory {
            return Some("variables are known in the experiment, not in the inventory".to_owned());
        }
        let mut names: Vec<&str> = self.vars.keys().copied().collect();
        names.sort_unstable();
        Some(match suggest::closest(name, names) {
            Some(close) => format!("did you mean `${{{close}}}`?"),
            None => format!(
                "define it under `vars`; for an environment variable write `{}`",
                placeholder(name)
            ),
        })
    }

    /// The value of a variable that is defined.
    fn variable(&mut self, name: &str) -> Option<Variable> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let entry = *self.vars.get(name)?;
        let scalar = entry.item.scalar()?;
        let way = self.way.enter(entry);
        let path = format!("vars.{name}");
        let text = Text {
            scalar,
            point: way.point(&entry.item),
            path: &path,
        };
        self.open.push(Rc::clone(&entry.key));
        let value = if scalar.broken || scalar.is_null() {
            None
        } else if scalar.text.contains("${") {
            self.text(&text)
        } else {
            Some(scalar.clone())
        };
        self.open.pop();
        let variable = value.map(|scalar| Variable {
            scalar,
            place: entry.item.node.place.clone(),
        });
        // A missing value is the schema's to report.
        if !scalar.is_null() {
            self.known.insert(Rc::clone(&entry.key), variable.clone());
        }
        variable
    }

    fn report(&mut self, text: &Text<'_>, at: usize, message: String, help: Option<String>) {
        let point = narrow(&text.point, &text.scalar.text, at);
        let diagnostic = Diagnostic::point(point, text.path, message).help(help);
        self.found.push(diagnostic);
    }
}

fn broken(scalar: &Scalar) -> Scalar {
    Scalar {
        broken: true,
        ..scalar.clone()
    }
}

/// The point of the reference at byte `at` of a text, if the text stands in the source as it is.
fn narrow(point: &Point, text: &str, at: usize) -> Point {
    let reference = &text[at..];
    let length = reference.find('}').map_or(reference.len(), |i| i + 1);
    let reference = &reference[..length];
    let before = text[..at].matches(reference).count();
    let found = point.place.text().match_indices(reference).nth(before);
    match found {
        Some((start, _)) if point.context.is_none() => Point {
            place: point.place.part(start..start + length).first_line(),
            context: None,
        },
        _ => point.clone(),
    }
}

pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}
