//! Which values of a spec hold a placeholder for what was written, so that checks can run on all the others.

use std::collections::BTreeSet;
use std::ops::Bound;

/// Stands for a key that was left away because it is no name; no name is this.
const LOST: &str = "*";

/// The paths of the values that are not what was written: unsound, missing, or unreadable.
#[derive(Clone, Debug, Default)]
pub(super) struct Bad(BTreeSet<String>);

impl Bad {
    pub(super) fn insert(&mut self, path: impl Into<String>) {
        self.0.insert(path.into());
    }

    /// Marks a mapping that lost one of its keys.
    pub(super) fn lost_key(&mut self, path: &str) {
        self.0.insert(format!("{path}.{LOST}"));
    }

    pub(super) fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.iter().cloned());
    }

    /// The same paths, each as `written` gives it.
    pub(super) fn map(&self, path: impl Fn(&str) -> String) -> Self {
        Self(self.0.iter().map(|bad| path(bad)).collect())
    }

    /// Those of the paths that are marked themselves.
    pub(super) fn at(&self, paths: &[&str]) -> Self {
        let marked = paths.iter().filter(|path| self.holds(path));
        Self(marked.map(|path| (*path).to_owned()).collect())
    }

    /// Whether just this path is marked.
    pub(super) fn holds(&self, path: &str) -> bool {
        self.0.contains(path)
    }

    /// What follows the path of a mapping in the paths that are it or lie below it.
    pub(super) fn below<'a>(&'a self, path: &'a str) -> Vec<&'a str> {
        let from = (Bound::Included(path), Bound::Unbounded);
        let rests = self
            .0
            .range::<str, _>(from)
            .map_while(|bad| bad.strip_prefix(path));
        rests
            .filter(|rest| rest.is_empty() || rest.starts_with('.'))
            .collect()
    }

    /// Whether the value at a path is a placeholder, or lies in one.
    pub(super) fn covers(&self, path: &str) -> bool {
        let ends = path.match_indices(['.', '[']).map(|(end, _)| end);
        ends.chain([0, path.len()])
            .any(|end| self.0.contains(&path[..end]))
    }

    /// Whether the value at a path or any part of it is a placeholder, or lies in one.
    pub(super) fn touches(&self, path: &str) -> bool {
        let below = |end: char| {
            let start = format!("{path}{end}");
            let from = (Bound::Included(start.as_str()), Bound::Unbounded);
            let next = self.0.range::<str, _>(from).next();
            next.is_some_and(|next| next.starts_with(&start))
        };
        self.covers(path) || below('.') || below('[')
    }

    /// Whether some keys of the mapping at a path are not known.
    pub(super) fn lacks_keys(&self, path: &str) -> bool {
        self.covers(path) || self.0.contains(&format!("{path}.{LOST}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad(path: &str) -> Bad {
        let mut bad = Bad::default();
        bad.insert(path);
        bad
    }

    #[test]
    fn a_placeholder_covers_all_below_it() {
        for (path, of, covered) in [
            ("rounds", "rounds", true),
            ("rounds", "rounds.limits.load", true),
            ("rounds", "rounds_2", false),
            ("rounds.limits", "rounds", false),
            ("sweep.threads", "sweep.threads[1]", true),
            ("sweep.threads[1]", "sweep.threads[10]", false),
            ("", "name", true),
        ] {
            assert_eq!(bad(path).covers(of), covered, "{path} {of}");
        }
    }

    #[test]
    fn a_placeholder_touches_all_around_it() {
        assert!(bad("rounds.limits.load").touches("rounds"));
        assert!(bad("sweep.threads[0]").touches("sweep.threads"));
        assert!(bad("cluster").touches("cluster.topology"));
        assert!(!bad("sweep.threads[0]").touches("sweep.rate"));
        assert!(!bad("rounds_2.x").touches("rounds"));
    }

    #[test]
    fn paths_below_a_path_are_found_past_longer_names() {
        let mut all = bad("hosts.kv[1-3].port");
        for path in [
            "hosts.kv",
            "hosts.kv-x",
            "hosts.kv.port",
            "hosts.kw",
            "hosts",
        ] {
            all.insert(path);
        }
        assert_eq!(all.below("hosts.kv[1-3]"), [".port"]);
        assert_eq!(all.below("hosts.kv"), ["", ".port"]);
    }

    #[test]
    fn a_mapping_lacks_a_key_that_was_lost_but_not_one_whose_value_is_bad() {
        let mut bad = bad("variants.a");
        assert!(!bad.lacks_keys("variants"));
        bad.lost_key("variants");
        assert!(bad.lacks_keys("variants"));
        assert!(bad.touches("variants"));
        assert!(!bad.covers("variants"));
    }
}
