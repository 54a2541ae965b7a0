//! What the catalogue says of one component: which entry is whose, and what holds for a subtree.

use super::catalogue::{Component, Key, Section};
use super::value::Kind;

impl Component {
    /// Puts the members of a group in the place of its name: `<cf>.x` becomes a key for each `cf`.
    pub(super) fn spread_groups(&mut self) -> Result<(), (String, String)> {
        let named: Vec<String> = self
            .keys
            .keys()
            .filter(|k| k.contains('<'))
            .cloned()
            .collect();
        for pattern in named {
            let parts = pattern.split_once('<').and_then(|(before, rest)| {
                let (group, after) = rest.split_once('>')?;
                Some((before, self.groups.get(group)?, after))
            });
            let Some((before, members, after)) = parts else {
                return Err((
                    pattern.clone(),
                    format!("the key `{pattern}` names no group"),
                ));
            };
            let keys: Vec<String> = members
                .iter()
                .map(|m| format!("{before}{m}{after}"))
                .collect();
            let Some(entry) = self.keys.remove(&pattern) else {
                continue;
            };
            for key in keys {
                self.keys.entry(key).or_insert_with(|| entry.clone());
            }
        }
        self.check_names()
    }

    /// Every key that is named in another's entry is one.
    fn check_names(&self) -> Result<(), (String, String)> {
        for (key, entry) in &self.keys {
            let Some(renamed) = &entry.renamed else {
                continue;
            };
            if !self.keys.contains_key(&renamed.to) {
                let message = format!("`{key}` is renamed to `{}`, which is no key", renamed.to);
                return Err((key.clone(), message));
            }
        }
        Ok(())
    }

    /// The sections that a key is in, outermost first.
    pub(super) fn sections_of(&self, key: &str) -> impl Iterator<Item = &Section> {
        let ends = key.match_indices('.').map(|(end, _)| end);
        ends.chain([key.len()])
            .filter_map(|end| self.sections.get(&key[..end]))
    }

    /// Whether a key is known to be none when it is not here.
    pub(super) fn complete_for(&self, key: &str) -> bool {
        let said = self.sections_of(key).filter_map(|section| section.complete);
        said.last().unwrap_or(self.complete)
    }

    /// The entry of a key: its own, or that of the map that it is in.
    pub(super) fn entry(&self, key: &str) -> Option<&Key> {
        self.keys.get(key).or_else(|| {
            let outer = key.match_indices('.').map(|(end, _)| &key[..end]);
            let mut entries = outer.filter_map(|outer| self.keys.get(outer));
            entries.find(|entry| entry.kind == Kind::Map)
        })
    }

    pub(super) fn is_section(&self, key: &str) -> bool {
        let below = format!("{key}.");
        let next = self.keys.range(below.clone()..).next();
        next.is_some_and(|(name, _)| name.starts_with(&below))
    }
}
