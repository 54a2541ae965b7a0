//! What is checked before anything is opened or written: names, and paths that a manifest gives.

use std::path::{Component, Path};

use super::{Arch, PackageError, Platform, Wanted};

/// Refuses what would not be one part of a file's name.
pub(super) fn name(what: &'static str, name: &str) -> Result<(), PackageError> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || ".-_+".contains(c);
    if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(is_fine) {
        let name = name.to_owned();
        return Err(PackageError::Name { what, name });
    }
    Ok(())
}

/// Refuses names that cannot be those of packages.
pub(super) fn wanted(wanted: &Wanted) -> Result<(), PackageError> {
    name("component", &wanted.component)?;
    name("version", &wanted.version)?;
    name("operating system", &wanted.platform.os)
}

/// The path below a mirror that a manifest gives, with a slash before it or not; `None` if it would lead elsewhere.
pub(super) fn below(url: &str) -> Option<&str> {
    let url = url.trim_start_matches('/');
    let mut parts = Path::new(url).components();
    let is_plain = !url.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)));
    (is_plain && !url.contains([':', '?', '#', '\\', '%'])).then_some(url)
}

/// The platform that the name of a tarball ends with: `tikv-v6.1.2-linux-arm64.tar.gz`.
pub(super) fn platform_in(file: &str) -> Option<Platform> {
    let stem = file.strip_suffix(".tar.gz")?;
    let (rest, arch) = stem.rsplit_once('-')?;
    let arch = Arch::ALL.into_iter().find(|known| known.name() == arch)?;
    let (_, os) = rest.rsplit_once('-')?;
    matches!(os, "linux" | "darwin").then(|| Platform {
        os: os.to_owned(),
        arch,
    })
}

/// Refuses a tarball whose name says that it is for other hosts.
pub(super) fn platform(file: &str, wanted: &Wanted) -> Result<(), PackageError> {
    match platform_in(file) {
        Some(found) if found != wanted.platform => Err(PackageError::WrongPlatform {
            component: wanted.component.clone(),
            version: wanted.version.clone(),
            platform: wanted.platform.to_string(),
            known: vec![found.to_string()],
        }),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_part_of_a_path() {
        for fine in [
            "tikv",
            "v6.1.2",
            "node_exporter",
            "v6.2.0-alpha-nightly-20220701",
            "1.0+x",
        ] {
            assert!(name("component", fine).is_ok(), "{fine}");
        }
        for wrong in ["", "..", "a/b", "/a", ".a", "a b", "-a", "a%2fb", "a\0"] {
            assert!(name("component", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn paths_of_manifests_stay_below_the_mirror() {
        assert_eq!(below("/a-b.tar.gz"), Some("a-b.tar.gz"));
        assert_eq!(below("a/b.tar.gz"), Some("a/b.tar.gz"));
        for wrong in ["", "/", "/../a", "a/../../b", "http://else/x", "/%2e%2e/a"] {
            assert_eq!(below(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_name_of_a_tarball_tells_its_platform() {
        let of = |file: &str| platform_in(file).map(|platform| platform.to_string());
        assert_eq!(
            of("tikv-v6.1.2-linux-arm64.tar.gz").as_deref(),
            Some("linux/arm64")
        );
        assert_eq!(of("tikv-v6.1.2-patch.tar.gz"), None);
        assert_eq!(of("amd64.tar.gz"), None);
    }
}
