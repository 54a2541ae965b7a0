//! From an inventory as written to each host by itself: ranges, defaults, ports in addresses, groups of groups.
//! What comes out is a tree like that which went in, and every part of it stands where it was written.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::super::bad::Bad;
use super::super::files::{lay, without};
use super::super::problem::Diagnostic;
use super::super::scalar::whole;
use super::super::source::Place;
use super::super::suggest;
use super::super::tree::{Entry, Item, Point, Scalar, Value, Way};
use super::super::vars::join;
use super::super::walk::Walked;
use super::address;
use super::groups::Groups;
use super::range;

/// The most hosts of an inventory.
pub(super) const MOST_HOSTS: usize = 10_000;

/// The keys that only say how SSH reaches a host.
const SSH_ONLY: [&str; 7] = [
    "port",
    "user",
    "identity_file",
    "jump",
    "become",
    "host_key",
    "assay",
];

/// Replaces a sound inventory by what it stands for. What is wrong goes to `found`.
pub(in crate::spec) fn expand(written: Walked, found: &mut Vec<Diagnostic>) -> Walked {
    let root = without(&written.sound, "defaults");
    let mut expansion = Expansion {
        written: &written.bad,
        defaults: Defaults::of(&written, found),
        hosts: Vec::new(),
        names: HashMap::new(),
        bad: written
            .bad
            .at(&["", "hosts", "hosts.*", "groups", "groups.*"]),
        found,
    };
    let hosts = written.sound.get("hosts");
    for entry in hosts.map(|hosts| hosts.item.entries()).unwrap_or_default() {
        let way = hosts.map_or_else(Way::default, |hosts| Way::default().enter(hosts));
        let host = Host {
            entry,
            way: &way,
            path: join("hosts", &entry.key),
        };
        if !expansion.host(&host) {
            break;
        }
    }
    let names: HashSet<Rc<str>> = expansion.names.keys().cloned().collect();
    let (hosts, mut bad) = (expansion.hosts, expansion.bad);
    let groups = Groups::new(&written, &names, found).expand(&mut bad);
    Walked {
        sound: replaced(&root, hosts, groups),
        bad,
        ..written
    }
}

/// The inventory with other hosts and groups.
fn replaced(root: &Item, hosts: Vec<Entry>, groups: Vec<Entry>) -> Item {
    let mut parts = HashMap::from([("hosts", hosts), ("groups", groups)]);
    let entries = root
        .entries()
        .iter()
        .map(|entry| match parts.remove(&*entry.key) {
            Some(part) => with(entry, Value::Mapping(part)),
            None => entry.clone(),
        });
    root.with(Value::Mapping(entries.collect()))
}

/// The entry with another value.
fn with(entry: &Entry, value: Value) -> Entry {
    Entry {
        item: entry.item.with(value),
        ..entry.clone()
    }
}

/// The keys that hosts have where they say nothing else.
struct Defaults<'a> {
    item: Option<Item>,
    /// The paths in them that are not what was written.
    bad: Vec<&'a str>,
}

impl<'a> Defaults<'a> {
    fn of(written: &'a Walked, found: &mut Vec<Diagnostic>) -> Self {
        let item = written.sound.get("defaults").map(|entry| {
            let way = Way::default().enter(entry);
            // An alias is kept with the entries that it brings.
            let empty = entry.item.with(Value::Mapping(Vec::new()));
            let item = lay(&empty, &entry.item);
            let keys = ["address", "data_address"];
            keys.iter()
                .fold(item, |item, key| shared_address(item, key, &way, found))
        });
        Self {
            item,
            bad: written.bad.below("defaults"),
        }
    }

    fn get(&self, key: &str) -> Option<&Entry> {
        self.item.as_ref()?.get(key)
    }
}

/// A default address is that of every host, so it can neither be many nor bring a port.
fn shared_address(item: Item, key: &str, way: &Way, found: &mut Vec<Diagnostic>) -> Item {
    let Some(entry) = item.get(key) else {
        return item;
    };
    let scalar = entry.item.scalar();
    let Some(Ok(addresses)) = scalar.map(|scalar| address::parse(&scalar.text)) else {
        return item;
    };
    let (message, help) = match (&addresses.hosts[..], addresses.port) {
        ([address], None) => return set(&item, entry, key, address),
        ([_], Some(port)) => (
            "a default address has no port",
            format!("write `port: {port}` beside it"),
        ),
        _ => (
            "a range has no meaning in `defaults`",
            "write it at the hosts: `kv[1-3]: {address: \"10.0.0.[11-13]\"}`".to_owned(),
        ),
    };
    let point = way.enter(entry).point(&entry.item);
    found.push(Diagnostic::point(point, format!("defaults.{key}"), message).help(help));
    item
}

struct Expansion<'a> {
    /// What is not what was written, by the paths of the file.
    written: &'a Bad,
    defaults: Defaults<'a>,
    hosts: Vec<Entry>,
    /// The hosts so far, and the keys that they come from.
    names: HashMap<Rc<str>, Place>,
    bad: Bad,
    found: &'a mut Vec<Diagnostic>,
}

/// A key of `hosts`, which can stand for many of them.
struct Host<'a> {
    entry: &'a Entry,
    /// The way to `hosts`.
    way: &'a Way,
    path: String,
}

impl Host<'_> {
    fn get(&self, key: &str) -> Option<&Entry> {
        self.entry.item.get(key)
    }

    fn point(&self, entry: &Entry) -> Point {
        let way = self.way.enter(self.entry).enter(entry);
        way.point(&entry.item)
    }
}

impl Expansion<'_> {
    /// Adds the hosts of a key; false when there are too many.
    fn host(&mut self, host: &Host<'_>) -> bool {
        let Ok(names) = range::names(&host.entry.key) else {
            return true;
        };
        if self.hosts.len() + names.len() > MOST_HOSTS {
            let message = format!("with their ranges, the hosts are more than {MOST_HOSTS}");
            let point = host.way.key(host.entry);
            self.found.push(Diagnostic::point(point, "hosts", message));
            self.bad.lost_key("hosts");
            return false;
        }
        let is_local = self.is_local(host);
        let (own, bases) = if is_local {
            self.local(host)
        } else {
            (host.entry.item.clone(), self.defaults.item.clone())
        };
        let mut lost = Vec::new();
        let own = self.addresses(host, own, names.len(), &mut lost);
        let (mut again, mut first) = (Vec::new(), None);
        for (name, own) in names.iter().zip(own) {
            let key: Rc<str> = name.as_str().into();
            if let Some(place) = self.names.get(&key) {
                again.push(name.as_str());
                first.get_or_insert_with(|| place.clone());
                continue;
            }
            self.names
                .insert(Rc::clone(&key), host.entry.key_place.clone());
            self.unsound(host, &key, &lost);
            let item = match &bases {
                Some(base) => lay(base, &own),
                None => own,
            };
            let item = without_jump(item, host.get("jump").is_some(), &key);
            self.hosts.push(Entry {
                key,
                item,
                ..host.entry.clone()
            });
        }
        if let Some(first) = first {
            self.again(host, &again, first);
        }
        true
    }

    fn again(&mut self, host: &Host<'_>, names: &[&str], first: Place) {
        let names = suggest::list(names);
        let message = format!("hosts that are there already: {names}");
        let mut point = host.way.key(host.entry);
        point
            .context
            .get_or_insert((first.first_line(), "first given here"));
        self.found
            .push(Diagnostic::point(point, &host.path, message));
    }

    fn is_local(&self, host: &Host<'_>) -> bool {
        let is = |entry: &Entry| entry.item.scalar().is_some_and(|s| &*s.text == "local");
        if self.written.holds(&format!("{}.connection", host.path)) {
            return false;
        }
        match host.get("connection") {
            Some(own) => is(own),
            None => self.defaults.get("connection").is_some_and(is),
        }
    }

    /// What is the host's own and what is not, without the keys that this machine has no use for.
    fn local(&mut self, host: &Host<'_>) -> (Item, Option<Item>) {
        let mut own = host.entry.item.clone();
        for key in SSH_ONLY {
            let Some(entry) = host.get(key) else { continue };
            let point = host.way.enter(host.entry).key(entry);
            let message = format!("`{key}` has no meaning on this machine");
            let help = "it says how SSH reaches a host; leave it or `connection: local` away";
            let diagnostic = Diagnostic::point(point, format!("{}.{key}", host.path), message);
            self.found.push(diagnostic.help(help.to_owned()));
            own = without(&own, key);
        }
        let defaults = self.defaults.item.as_ref().map(|defaults| {
            let all = defaults.clone();
            SSH_ONLY.iter().fold(all, |item, key| without(&item, key))
        });
        (own, defaults)
    }

    /// The paths of the host that are not what was written, for one of its names.
    fn unsound(&mut self, host: &Host<'_>, name: &str, lost: &[&str]) {
        let path = format!("hosts.{name}");
        for key in lost {
            self.bad.insert(format!("{path}.{key}"));
        }
        for rest in self.written.below(&host.path) {
            self.bad.insert(format!("{path}{rest}"));
        }
        for rest in &self.defaults.bad {
            let key = rest.trim_start_matches('.').split(['.', '[']).next();
            let own = key.and_then(|key| host.get(key));
            if own.is_none_or(|own| matches!(own.item.node.value, Value::Mapping(_))) {
                self.bad.insert(format!("{path}{rest}"));
            }
        }
    }

    /// The host's own keys for each of its names, with addresses of their own.
    fn addresses(
        &mut self,
        host: &Host<'_>,
        own: Item,
        names: usize,
        lost: &mut Vec<&'static str>,
    ) -> Vec<Item> {
        let mut items = vec![own; names];
        for key in ["address", "data_address"] {
            let Some(entry) = host.get(key) else { continue };
            let text = entry
                .item
                .scalar()
                .map(|scalar| address::parse(&scalar.text));
            let Some(Ok(found)) = text else { continue };
            if found.hosts.len() != names {
                self.unequal(host, entry, found.hosts.len(), names);
                lost.push(key);
                items.iter_mut().for_each(|item| *item = without(item, key));
                continue;
            }
            let port = found.port.and_then(|port| self.port(host, entry, port));
            for (item, address) in items.iter_mut().zip(&found.hosts) {
                *item = set(item, entry, key, address);
                if let Some(port) = &port {
                    *item = set(item, entry, "port", port);
                }
            }
        }
        items
    }

    fn unequal(&mut self, host: &Host<'_>, entry: &Entry, addresses: usize, names: usize) {
        let count = |n: usize, one: &str, many: &str| match n {
            1 => format!("1 {one}"),
            n => format!("{n} {many}"),
        };
        let message = format!(
            "`{}` is {}, this is {}",
            suggest::shown(&host.entry.key),
            count(names, "host", "hosts"),
            count(addresses, "address", "addresses"),
        );
        let help = "ranges of hosts and of their addresses have one length: \
                    `kv[1-3]: {address: \"10.0.0.[11-13]\"}`";
        let path = format!("{}.{}", host.path, entry.key);
        let diagnostic = Diagnostic::point(host.point(entry), path, message);
        self.found.push(diagnostic.help(help.to_owned()));
    }

    /// The port of an address, unless the host has it from its own key.
    fn port(&mut self, host: &Host<'_>, address: &Entry, port: u16) -> Option<String> {
        let path = format!("{}.port", host.path);
        if self.is_local(host) {
            let message = "the address of this machine has no port";
            let path = format!("{}.{}", host.path, address.key);
            let diagnostic = Diagnostic::point(host.point(address), path, message);
            self.found
                .push(diagnostic.help("leave the port away".to_owned()));
            return None;
        }
        let Some(own) = host.get("port") else {
            return (!self.written.holds(&path)).then(|| port.to_string());
        };
        let text = own.item.scalar().map_or("", |scalar| &*scalar.text);
        if whole(text) != Ok(port.into()) {
            let message = format!(
                "the port is `{}` here and `{port}` in the address",
                suggest::shown(text)
            );
            let mut point = host.point(own);
            let place = host.point(address).place;
            point.context.get_or_insert((place, "the address"));
            let diagnostic = Diagnostic::point(point, path, message);
            self.found
                .push(diagnostic.help("leave one of them away".to_owned()));
        }
        None
    }
}

/// The mapping with a text for a key, at the place of an entry.
fn set(item: &Item, at: &Entry, key: &str, text: &str) -> Item {
    let scalar = Scalar {
        text: text.into(),
        plain: true,
        ..Scalar::default()
    };
    let made = Entry {
        key: key.into(),
        item: at.item.with(Value::Scalar(scalar)),
        ..at.clone()
    };
    let mut entries = item.entries().to_vec();
    match entries.iter_mut().find(|entry| &*entry.key == key) {
        Some(entry) => *entry = made,
        None => entries.push(made),
    }
    item.with(Value::Mapping(entries))
}

/// The host without a jump that is none: `none`, or a default that is the host itself.
fn without_jump(item: Item, own: bool, name: &str) -> Item {
    let jump = item.get("jump").and_then(|entry| entry.item.scalar());
    let is_none = jump.is_some_and(|s| &*s.text == "none" || (!own && &*s.text == name));
    if is_none {
        without(&item, "jump")
    } else {
        item
    }
}
