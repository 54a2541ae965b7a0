//! The door for other files than experiments and inventories: a text against the schema of any type, all problems at once.

use std::path::Path;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::files::Files;
use super::load::{self, Document};
use super::parse::{parse, place};
use super::problem::{Diagnostic, Problem, Problems};
use super::source::{ReadError, control_character};
use super::tree::{Entry, Item, Scalar, Value, Way, locate};
use super::walk::walk;
use super::{schema, source};

/// A text to read, and how.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// The file's name, as its user would write it.
    pub name: &'a str,
    /// What is in it.
    pub text: &'a str,
    /// Whether a key with nothing after it counts as left away, as other tools have it; else it is a problem.
    pub nothing_is_absent: bool,
}

/// Reads a YAML text as a value of a type with a schema.
///
/// # Errors
/// All problems at once, each with its line.
pub fn read<T: JsonSchema + DeserializeOwned>(name: &str, text: &str) -> Result<T, Problems> {
    let text = Text {
        name,
        text,
        nothing_is_absent: false,
    };
    read_checked(&text, |_| Vec::new())
}

/// Reads a text like [`read`], and checks what the schema cannot say.
///
/// The check runs even if some values are wrong: a wrong value that is required is the plainest of its kind, any other is
/// left away, and a problem at or below a wrong value is dropped.
///
/// # Errors
/// All problems at once, those of the check among them, each with its line.
pub fn read_checked<T: JsonSchema + DeserializeOwned>(
    text: &Text<'_>,
    check: impl FnOnce(&T) -> Vec<Problem>,
) -> Result<T, Problems> {
    let mut files = Files::new(Path::new(""));
    let value = document::<T>(text, &mut files).and_then(|document| {
        let value: T = load::typed(&document, &mut files.found)?;
        let bad = &document.walked.bad;
        let findings = check(&value).into_iter();
        let findings = findings.filter(|problem| !bad.covers(&problem.path));
        let findings = findings.map(|problem| diagnose(problem, &document.tree));
        files.found.extend(findings);
        Some(value)
    });
    match (value, Problems::sorted(files.found)) {
        (Some(value), None) => Ok(value),
        (_, Some(problems)) => Err(problems),
        (None, None) => unreachable!("a value is only missing after a problem"),
    }
}

/// The text of a small file: UTF-8 without a byte order mark, and without control characters.
///
/// # Errors
/// What is wrong with the file, under the name that is given for it.
pub fn read_text(path: &Path, name: &str) -> Result<String, Problems> {
    source::read(path).map_err(|error| {
        let mut files = Files::new(Path::new(""));
        refuse(error, name, &mut files);
        Problems::sorted(files.found).expect("a refusal is a problem")
    })
}

fn refuse(error: ReadError, name: &str, files: &mut Files<'_>) {
    let diagnostic = match error.at {
        Some((text, offset)) => {
            let source = files.source(name.to_owned(), Path::new("").to_owned(), text, None);
            let message = format!("the file {}", error.message);
            Diagnostic::at(place(&source, offset..offset), "", message)
        }
        None => Diagnostic::file(name, error.message),
    };
    files.found.push(diagnostic.help(error.help));
}

fn document<T: JsonSchema>(text: &Text<'_>, files: &mut Files<'_>) -> Option<Document> {
    if let Some((offset, c)) = control_character(text.text) {
        let message = format!("has the control character U+{:04X}", u32::from(c));
        let at = Some((text.text.to_owned(), offset));
        let error = ReadError {
            message,
            help: None,
            at,
        };
        refuse(error, text.name, files);
        return None;
    }
    let folder = Path::new("").to_owned();
    let source = files.source(text.name.to_owned(), folder, text.text.to_owned(), None);
    let root = match parse(&source, 0, &mut files.found) {
        Ok(Some(root)) if !root.scalar().is_some_and(Scalar::is_null) => root,
        Ok(_) => {
            files.found.push(Diagnostic::file(text.name, "is empty"));
            return None;
        }
        Err(error) => {
            files.found.push(*error);
            return None;
        }
    };
    let tree = if text.nothing_is_absent {
        without_nothing(&root)
    } else {
        root
    };
    let schema = schema::of::<T>();
    let walked = walk(&schema, &tree, &|_| None, &mut files.found);
    Some(Document { tree, walked })
}

/// The tree without keys that have nothing after them.
fn without_nothing(item: &Item) -> Item {
    let is_there = |entry: &&Entry| !entry.item.scalar().is_some_and(Scalar::is_null);
    match &item.node.value {
        Value::Scalar(_) => item.clone(),
        Value::Sequence(items) => {
            item.with(Value::Sequence(items.iter().map(without_nothing).collect()))
        }
        Value::Mapping(entries) => {
            let entries = entries.iter().filter(is_there).map(|entry| Entry {
                item: without_nothing(&entry.item),
                ..entry.clone()
            });
            item.with(Value::Mapping(entries.collect()))
        }
    }
}

/// A problem at its place.
fn diagnose(problem: Problem, tree: &Item) -> Diagnostic {
    let found = locate(tree, &problem.path);
    let point = match found.key {
        Some(key) if problem.key => key,
        _ if problem.path.is_empty() => Way::default().point(tree),
        _ => found.value,
    };
    Diagnostic::point(point, problem.path, problem.message).help(problem.help)
}

#[cfg(test)]
mod tests {
    use indexmap::IndexMap;
    use serde::{Deserialize, Deserializer, Serialize, de};
    use serde_json::json;

    use super::super::{Name, Secrets, Setting, resolved};
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        /// how many there are
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count: Option<u16>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        places: Vec<Place>,
        #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
        config: IndexMap<String, Setting>,
    }

    #[derive(Debug, PartialEq, Serialize)]
    #[serde(untagged)]
    enum Place {
        Host(String),
        Full(Full),
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Full {
        host: String,
        port: u16,
    }

    impl<'de> Deserialize<'de> for Place {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor;

            impl<'de> de::Visitor<'de> for Visitor {
                type Value = Place;

                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("a host or a mapping")
                }

                fn visit_str<E: de::Error>(self, text: &str) -> Result<Place, E> {
                    Ok(Place::Host(text.to_owned()))
                }

                fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Place, A::Error> {
                    let map = de::value::MapAccessDeserializer::new(map);
                    Full::deserialize(map).map(Place::Full)
                }
            }

            deserializer.deserialize_any(Visitor)
        }
    }

    impl JsonSchema for Place {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Place".into()
        }

        fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
            let host = generator.subschema_for::<Name>();
            let full = generator.subschema_for::<Full>();
            schemars::json_schema!({ "anyOf": [host, full] })
        }
    }

    fn sample(text: &str) -> Result<Sample, Problems> {
        read("sample.yaml", text)
    }

    #[test]
    fn settings_keep_the_types_that_they_are_written_with() {
        let text = "config:\n  a: 20\n  b: true\n  c: \"20\"\n  d: 5MB\n  e: [1, 0.5, [x, {y: 1}]]\n  \
                    f.g: {h: {i: -3}, j: []}\n  k: {}\n  l: ''\n  m: 1_000\n  n: True\n  o: 1e3\n  p: [{q: {r: 1}}, s, {}]\n";
        let read = sample(text).unwrap();
        let config = serde_json::to_value(&read.config).unwrap();
        let expected = json!({
            "a": 20, "b": true, "c": "20", "d": "5MB", "e": [1, 0.5, ["x", {"y": 1}]],
            "f.g": {"h": {"i": -3}, "j": []}, "k": {}, "l": "", "m": 1000, "n": true, "o": 1000.0,
            "p": [{"q": {"r": 1}}, "s", {}],
        });
        assert_eq!(config, expected);
        let written = resolved::text(&read, &Secrets::default(), "sample");
        assert_eq!(sample(&written).unwrap(), read, "{written}");
        let through_json: Sample =
            serde_json::from_value(serde_json::to_value(&read).unwrap()).unwrap();
        assert_eq!(through_json, read);
    }

    #[test]
    fn a_list_may_mix_texts_and_mappings() {
        let read = sample("places: [a, {host: b, port: 1}]").unwrap();
        let host = Place::Host("a".to_owned());
        let full = Place::Full(Full {
            host: "b".to_owned(),
            port: 1,
        });
        assert_eq!(read.places, [host, full]);
    }

    #[test]
    fn all_problems_are_found_with_their_lines() {
        let text = "count: 70000\nplaces: [{host: b, prot: 1}, [c], -x]\nconfig: {a: 017, b: ~, c: [0x1F]}\nconifg: {}\n";
        let problems = sample(text).unwrap_err();
        let found: Vec<String> = problems
            .list()
            .iter()
            .map(|p| {
                format!(
                    "{}:{} {} {}; {}",
                    p.line.unwrap_or(0),
                    p.column.unwrap_or(0),
                    p.path,
                    p.message,
                    p.help.as_deref().unwrap_or("-")
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                "1:8 count expected a whole number from 0 to 65535, found `70000`; `count`: how many there are",
                "2:20 places[0] unknown key `prot`; did you mean `port`?",
                "2:30 places[1] expected a name, found a list; -",
                "2:35 places[2] expected a name of at most 64 letters, digits, `.`, `_` and `-`, with no `.` or `-` first, found `-x`; -",
                "3:13 config.a expected a value, found `017`; write `17`: with the `0` first, some read it as an octal number",
                "3:21 config.b expected a value, found nothing; write a value, or leave the key away if it is not required",
                "3:28 config.c[0] expected a value, found `0x1F`; write `31`",
                "4:1  unknown key `conifg`; did you mean `config`?",
            ]
        );
    }

    #[test]
    fn a_check_is_shown_at_its_line_unless_the_value_is_wrong_already() {
        let text = Text {
            name: "sample.yaml",
            text: "count: 1\nplaces: -1\nconfig:\n  a:\n",
            nothing_is_absent: true,
        };
        let problem = |path: &str| Problem {
            path: path.to_owned(),
            message: "is wrong".to_owned(),
            help: None,
            key: false,
        };
        let check = |sample: &Sample| {
            assert!(sample.config.is_empty());
            vec![problem("count"), problem("places")]
        };
        let problems = read_checked(&text, check).unwrap_err().list();
        let lines: Vec<_> = problems.iter().map(|p| (p.line, &*p.message)).collect();
        assert_eq!(lines[0], (Some(1), "is wrong"));
        assert_eq!(lines[1], (Some(2), "expected a list, found `-1`"));
        assert_eq!(lines.len(), 2);
    }
}
