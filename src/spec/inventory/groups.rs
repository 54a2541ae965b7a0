//! Groups as written to lists of hosts: ranges, and groups in groups.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::super::bad::Bad;
use super::super::problem::Diagnostic;
use super::super::tree::{Entry, Item, Point, Scalar, Value, Way};
use super::super::walk::Walked;
use super::range;

/// The deepest nesting of groups.
const DEPTH: usize = 16;

/// The most members of all groups.
const MOST: usize = 100_000;

/// A member of a group, at the place that names it.
#[derive(Clone)]
struct Member {
    item: Item,
    /// It is not what was written.
    bad: bool,
}

impl Member {
    fn name(&self) -> Option<&Rc<str>> {
        self.item
            .scalar()
            .map(|scalar| &scalar.text)
            .filter(|_| !self.bad)
    }
}

/// The groups of an inventory as they are worked out.
pub(super) struct Groups<'a> {
    groups: &'a [Entry],
    by_name: HashMap<&'a str, &'a Entry>,
    way: Way,
    hosts: &'a HashSet<Rc<str>>,
    bad: &'a Bad,
    known: HashMap<Rc<str>, Rc<Vec<Member>>>,
    /// The groups whose members are not what was written.
    unsound: HashSet<Rc<str>>,
    /// The members of all of them.
    count: usize,
    full: bool,
    found: &'a mut Vec<Diagnostic>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(
        written: &'a Walked,
        hosts: &'a HashSet<Rc<str>>,
        found: &'a mut Vec<Diagnostic>,
    ) -> Self {
        let entry = written.sound.get("groups");
        let groups = entry
            .map(|groups| groups.item.entries())
            .unwrap_or_default();
        Self {
            groups,
            by_name: groups.iter().map(|group| (&*group.key, group)).collect(),
            way: entry.map_or_else(Way::default, |entry| Way::default().enter(entry)),
            hosts,
            bad: &written.bad,
            known: HashMap::new(),
            unsound: HashSet::new(),
            count: 0,
            full: false,
            found,
        }
    }

    /// The groups with hosts only, and with names that are nothing.
    pub(super) fn expand(mut self, bad: &mut Bad) -> Vec<Entry> {
        let mut expanded = Vec::new();
        for group in self.groups {
            let path = format!("groups.{}", group.key);
            let members = self.group(group, &mut Vec::new());
            for (i, _) in members.iter().enumerate().filter(|(_, member)| member.bad) {
                bad.insert(format!("{path}[{i}]"));
            }
            if self.bad.holds(&path) || self.unsound.contains(&group.key) {
                bad.insert(path);
            }
            let items = members.iter().map(|member| member.item.clone()).collect();
            expanded.push(Entry {
                item: group.item.with(Value::Sequence(items)),
                ..group.clone()
            });
        }
        expanded
    }

    /// The members of a group. `open` are the groups that it is looked at for.
    fn group(&mut self, group: &Entry, open: &mut Vec<Rc<str>>) -> Rc<Vec<Member>> {
        if let Some(known) = self.known.get(&group.key) {
            return Rc::clone(known);
        }
        open.push(Rc::clone(&group.key));
        let mut members = Members::default();
        let items = match &group.item.node.value {
            Value::Sequence(items) => &items[..],
            Value::Scalar(_) | Value::Mapping(_) => &[],
        };
        for (i, item) in items.iter().enumerate() {
            let path = format!("groups.{}[{i}]", group.key);
            let names = item.scalar().map(|scalar| range::names(&scalar.text));
            let Some(Ok(names)) = names.filter(|_| !self.bad.holds(&path)) else {
                members.add_bad(item);
                continue;
            };
            let place = At {
                group: &group.key,
                item,
                point: self.way.enter(group).item(item).point(item),
                path,
            };
            for name in &names {
                self.member(name.as_str(), &place, &mut members, open);
            }
            if self.is_too_much(members.list.len(), &place) {
                break;
            }
        }
        open.pop();
        self.count += members.list.len();
        let members = Rc::new(members.list);
        self.known
            .insert(Rc::clone(&group.key), Rc::clone(&members));
        members
    }

    /// Adds a name: a host, or the hosts of a group.
    fn member(&mut self, name: &str, at: &At<'_>, members: &mut Members, open: &mut Vec<Rc<str>>) {
        let group = self.by_name.get(name).copied();
        let Some(group) = group.filter(|_| !self.hosts.contains(name)) else {
            members.add(name, at.item);
            return;
        };
        if let Some(first) = open.iter().position(|open| **open == *name) {
            self.cycle(&open[first..], at);
        } else if open.len() == DEPTH {
            let message = format!("groups stand in each other more than {DEPTH} deep");
            self.report(at, message);
        } else {
            for member in self.group(group, open).iter() {
                let host = member.name().filter(|name| self.hosts.contains(*name));
                if let Some(host) = host {
                    members.add_nested(host, at.item);
                }
            }
        }
    }

    /// Reports groups that need each other, once for all of them.
    fn cycle(&mut self, groups: &[Rc<str>], at: &At<'_>) {
        if groups.iter().any(|group| self.unsound.contains(group)) {
            return;
        }
        self.unsound.extend(groups.iter().cloned());
        let names = groups.iter().chain(groups.first());
        let chain: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        self.report(
            at,
            format!("the group needs itself: {}", chain.join(" -> ")),
        );
    }

    fn is_too_much(&mut self, more: usize, at: &At<'_>) -> bool {
        let full = self.count + more > MOST;
        if full && !self.full {
            self.full = true;
            self.report(
                at,
                format!("the groups have more than {MOST} members in all"),
            );
        }
        if full {
            self.unsound.insert(Rc::clone(at.group));
        }
        full
    }

    fn report(&mut self, at: &At<'_>, message: String) {
        self.unsound.insert(Rc::clone(at.group));
        let diagnostic = Diagnostic::point(at.point.clone(), &at.path, message);
        self.found.push(diagnostic);
    }
}

/// An item of a group and where it stands.
struct At<'a> {
    group: &'a Rc<str>,
    item: &'a Item,
    point: Point,
    path: String,
}

/// The members of a group so far.
#[derive(Default)]
struct Members {
    list: Vec<Member>,
    names: HashSet<Rc<str>>,
    /// The names that groups brought: naming them again is no mistake.
    nested: HashSet<Rc<str>>,
}

impl Members {
    fn add(&mut self, name: &str, item: &Item) {
        let name: Rc<str> = name.into();
        if !self.nested.contains(&name) {
            self.push(&name, item);
        }
    }

    fn add_nested(&mut self, name: &Rc<str>, item: &Item) {
        if !self.names.contains(name) {
            self.nested.insert(Rc::clone(name));
            self.push(name, item);
        }
    }

    /// Adds a name at the place of an item.
    fn push(&mut self, name: &Rc<str>, item: &Item) {
        self.names.insert(Rc::clone(name));
        let scalar = Scalar {
            text: Rc::clone(name),
            plain: true,
            ..Scalar::default()
        };
        self.list.push(Member {
            item: item.with(Value::Scalar(scalar)),
            bad: false,
        });
    }

    fn add_bad(&mut self, item: &Item) {
        self.list.push(Member {
            item: item.clone(),
            bad: true,
        });
    }
}
