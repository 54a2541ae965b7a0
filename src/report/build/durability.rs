//! What variants of SQLite keep when the power fails: speed that is paid for with durability is told as such.

use crate::report::rows::Variant;

/// What a pair of settings keeps, as SQLite documents it for `PRAGMA synchronous` and `journal_mode`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeps {
    Commits,
    AllButTheLast,
    NotTheFile,
    Unknown,
}

impl Keeps {
    const fn said(self) -> &'static str {
        match self {
            Self::Commits => "keeps what was committed",
            Self::AllButTheLast => "may lose the last commits",
            Self::NotTheFile => "may lose commits or damage the file",
            Self::Unknown => "is not known to assay",
        }
    }
}

/// A sentence about variants that differ in what they keep; `None` when they do not, or are not SQLite.
pub(super) fn said(variants: &[Variant]) -> Option<String> {
    let sqlite = || variants.iter().filter(|v| v.system == "sqlite");
    let first = keeps(sqlite().next()?);
    if sqlite().all(|v| keeps(v) == first) {
        return None;
    }
    let each: Vec<String> = sqlite()
        .map(|v| {
            let [journal, synchronous] = settings(v);
            format!(
                "{} (journal_mode {journal}, synchronous {synchronous}) {}",
                v.name,
                keeps(v).said()
            )
        })
        .collect();
    Some(format!(
        "The variants differ in durability. If the power fails, {}. A difference in speed may be the price of that.",
        each.join("; ")
    ))
}

/// As read back, or as asked for, or SQLite's own default.
fn settings(variant: &Variant) -> [String; 2] {
    [("journal_mode", "delete"), ("synchronous", "full")].map(|(name, default)| {
        let of = |map: &std::collections::BTreeMap<
            _,
            std::collections::BTreeMap<String, String>,
        >| { map.get("sqlite").and_then(|t| t.get(name)).cloned() };
        let found = of(&variant.effective).or_else(|| of(&variant.config));
        let found = found.map_or(default.to_owned(), |v| v.to_lowercase());
        match (name, found.as_str()) {
            ("synchronous", "0") => "off".into(),
            ("synchronous", "1") => "normal".into(),
            ("synchronous", "2") => "full".into(),
            ("synchronous", "3") => "extra".into(),
            _ => found,
        }
    })
}

fn keeps(variant: &Variant) -> Keeps {
    let [journal, synchronous] = settings(variant);
    match (journal.as_str(), synchronous.as_str()) {
        ("off" | "memory", _) | (_, "off") => Keeps::NotTheFile,
        (_, "full" | "extra") => Keeps::Commits,
        ("wal", "normal") => Keeps::AllButTheLast,
        // SQLite: a very small chance that a power failure at the wrong moment damages the file.
        ("delete" | "truncate" | "persist", "normal") => Keeps::NotTheFile,
        _ => Keeps::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn variant(name: &str, journal: &str, synchronous: Option<&str>) -> Variant {
        let mut tunables = BTreeMap::from([("journal_mode".to_owned(), journal.to_owned())]);
        tunables.extend(synchronous.map(|s| ("synchronous".to_owned(), s.to_owned())));
        Variant {
            name: name.into(),
            system: "sqlite".into(),
            version: None,
            topology: BTreeMap::new(),
            clients: Vec::new(),
            config: BTreeMap::from([("sqlite".to_owned(), tunables)]),
            reported_version: None,
            effective: BTreeMap::new(),
            snapshot_method: None,
            data_bytes: None,
        }
    }

    #[test]
    fn variants_that_keep_different_things_are_told_apart() {
        let text = said(&[
            variant("a", "delete", None),
            variant("b", "wal", Some("1")),
            variant("c", "WAL", Some("OFF")),
        ])
        .unwrap();
        assert!(
            text.contains("a (journal_mode delete, synchronous full) keeps what was committed")
        );
        assert!(
            text.contains("b (journal_mode wal, synchronous normal) may lose the last commits")
        );
        assert!(text.contains("c (journal_mode wal, synchronous off) may lose commits or damage"));
    }

    #[test]
    fn variants_that_keep_the_same_need_no_note() {
        assert_eq!(said(&[]), None);
        let same = [
            variant("a", "delete", Some("full")),
            variant("b", "wal", Some("extra")),
        ];
        assert_eq!(said(&same), None);
    }
}
