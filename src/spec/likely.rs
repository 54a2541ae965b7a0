//! Mistakes that newcomers make with the shape of a spec, and what they should have written.

use super::suggest;
use super::tree::{Item, Value};

/// What to write instead of `item` at a path whose schema wants another kind of value; nothing when there is no likely
/// meaning. The system under test stands for a role or component of its own, which only its pack knows.
pub(super) fn help(path: &str, item: &Item, system: Option<&str>) -> Option<String> {
    if let (Value::Sequence(_), true) = (&item.node.value, path.ends_with("address")) {
        return Some("an address in brackets stands in quotes: `\"[::1]\"`".to_owned());
    }
    let role = system.unwrap_or(ROLE);
    let texts = texts(item);
    let one = texts.as_deref().and_then(|texts| texts.first());
    let one = one.filter(|_| item.scalar().is_some()).map(String::as_str);
    let list = texts.as_deref().filter(|texts| !texts.is_empty());
    let joined = list.map(|texts| texts.join(", "));
    let rest = match (path, one, joined) {
        ("cluster", Some(one), _) => {
            format!("write `{{system: {one}, topology: {{{one}: [local]}}}}`")
        }
        ("cluster.topology", _, Some(hosts)) => {
            format!("hosts stand under their role: `topology: {{{role}: [{hosts}]}}`")
        }
        ("hosts", _, Some(_)) => format!(
            "hosts are keys: `hosts: {{{}}}`",
            each(list?, |name| format!("{name}: {{}}"))
        ),
        ("variants", _, Some(_)) => format!(
            "variants are keys: `variants: {{{}}}`",
            each(list?, |name| format!("{name}: {{…}}"))
        ),
        ("variants", None, None) => {
            "variants are keys, not items of a list: `variants: {a: {…}, b: {…}}`".to_owned()
        }
        ("workloads", Some(_), _) => format!("write `[{}]`", workload(one?)),
        ("workloads", None, None) => "write a list, each workload after a `- `".to_owned(),
        ("dataset", Some(one), _) => format!("write `{}`", dataset(one)),
        ("sweep", _, Some(threads)) => format!("write `sweep: {{threads: [{threads}]}}`"),
        ("snapshot", Some(one), _) => format!("write `{{method: {one}}}`"),
        ("rounds", Some(_), _) => "write `{duration: 30s, repetitions: 3}`".to_owned(),
        ("compare", Some(one), _) => format!("write `{{baseline: {one}}}`"),
        ("compare", None, Some(metrics)) => format!("write `{{metrics: [{metrics}]}}`"),
        _ => return below(path, role, one),
    };
    Some(rest)
}

/// The same for values that stand below a list or a key of the user's.
fn below(path: &str, role: &str, one: Option<&str>) -> Option<String> {
    let item_of = |list: &str| {
        let index = path.strip_prefix(list)?.strip_prefix('[')?;
        index.strip_suffix(']')
    };
    if item_of("workloads").is_some() {
        return Some(format!("write `{}`", workload(one?)));
    }
    if item_of("dataset").is_some() {
        return Some(format!("write `{}`", dataset(one?)));
    }
    if path
        .strip_prefix("hosts.")
        .is_some_and(|host| !host.contains('.'))
    {
        return Some(format!("write `{{address: {}}}`", one?));
    }
    let at = path.rfind(".config.")?;
    let (owner, key) = (&path[..at], &path[at + ".config.".len()..]);
    if owner != "cluster" && !owner.starts_with("variants.") || key == role {
        return None;
    }
    let value = one?;
    Some(format!(
        "tunables stand under their component: `config: {{{role}: {{{key}: {value}}}}}`"
    ))
}

fn workload(name: &str) -> String {
    format!("{{driver: native, workload: {name}}}")
}

fn dataset(schema: &str) -> String {
    format!("{{driver: native, schema: {schema}}}")
}

/// What stands for a role where no system is named.
const ROLE: &str = "ROLE";

fn each(texts: &[String], form: impl Fn(&str) -> String) -> String {
    let texts: Vec<String> = texts.iter().map(|text| form(text)).collect();
    texts.join(", ")
}

/// A single value, or those of a list of nothing else.
fn texts(item: &Item) -> Option<Vec<String>> {
    const FEW: usize = 8;
    let text = |item: &Item| {
        let scalar = item.scalar().filter(|scalar| !scalar.is_null())?;
        Some(suggest::shown(&scalar.text))
    };
    match &item.node.value {
        Value::Scalar(_) => Some(vec![text(item)?]),
        Value::Sequence(items) if items.len() <= FEW => items.iter().map(text).collect(),
        Value::Sequence(_) | Value::Mapping(_) => None,
    }
}
