//! The time zone.

use std::path::Path;

use super::text;

/// The zone that `/etc/localtime` links to, or that `/etc/timezone` names. Without either it is UTC (`localtime(5)`).
pub(super) fn zone(root: &Path) -> Option<String> {
    let link = root.join("etc/localtime");
    if let Ok(target) = std::fs::read_link(&link) {
        let target = target.to_string_lossy().into_owned();
        return target
            .split_once("zoneinfo/")
            .map(|(_, zone)| zone.to_owned());
    }
    let named = text(&root.join("etc/timezone"));
    named.or_else(|| (root.join("etc").is_dir() && !link.exists()).then(|| "UTC".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_zone_is_what_the_link_leads_to() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert_eq!(zone(root), None);
        fs::create_dir(root.join("etc")).unwrap();
        assert_eq!(zone(root).as_deref(), Some("UTC"));
        fs::write(root.join("etc/timezone"), "Asia/Tokyo\n").unwrap();
        assert_eq!(zone(root).as_deref(), Some("Asia/Tokyo"));
        symlink(
            "../usr/share/zoneinfo/Europe/Berlin",
            root.join("etc/localtime"),
        )
        .unwrap();
        assert_eq!(zone(root).as_deref(), Some("Europe/Berlin"));
    }
}
