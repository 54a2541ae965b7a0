//! A place of this machine or of a server, and what it is called in messages and records.

use std::path::{Path, PathBuf};

use reqwest::Url;

use super::PackageError;

/// A file or folder: a path, or an `http(s)` URL.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    Path(PathBuf),
    Url(Url),
}

impl Source {
    /// Reads a URL or a path as people write them.
    pub(super) fn read(text: &str) -> Result<Self, PackageError> {
        if let Some(path) = text.strip_prefix("file://") {
            return Ok(Self::Path(path.into()));
        }
        if !text.contains("://") {
            return Ok(Self::Path(text.into()));
        }
        let error = |source| PackageError::Url {
            url: without_credentials(text),
            source,
        };
        let url = Url::parse(text).map_err(|e| error(e.into()))?;
        match url.scheme() {
            "http" | "https" => Ok(Self::Url(url)),
            other => Err(error(
                format!("`{other}` is neither `http` nor `https`").into(),
            )),
        }
    }

    /// What lies below it, by a path that [`super::check::below`] passed.
    pub(super) fn join(&self, below: &str) -> Self {
        match self {
            Self::Path(folder) => Self::Path(folder.join(below)),
            Self::Url(url) => {
                let mut url = url.clone();
                let path = format!("{}/{below}", url.path().trim_end_matches('/'));
                url.set_path(&path);
                Self::Url(url)
            }
        }
    }

    /// The name of the file.
    pub(super) fn file(&self) -> String {
        match self {
            Self::Path(path) => name_of(path),
            Self::Url(url) => file_of(url),
        }
    }

    /// For messages and records: a password in a URL, or a query that may be one, is left out.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Url(url) => shown(url),
        }
    }

    /// For the middle of a message.
    pub(super) fn quoted(&self) -> String {
        format!("`{}`", self.shown())
    }
}

/// The name of the file that a URL is of.
pub(super) fn file_of(url: &Url) -> String {
    name_of(Path::new(url.path()))
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// A URL without what may be secret.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // These fail only for URLs that can have neither.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    if url.query().is_some() {
        url.set_query(Some("..."));
    }
    url.to_string()
}

/// A text that is no URL, without what stands before an `@`.
fn without_credentials(text: &str) -> String {
    match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_paths_are_told_apart() {
        let shown = |text: &str| Source::read(text).unwrap().shown();
        assert_eq!(shown("/a/b"), "/a/b");
        assert_eq!(shown("mirror"), "mirror");
        assert_eq!(shown("file:///a/b"), "/a/b");
        assert_eq!(shown("http://m/x"), "http://m/x");
        for wrong in ["ftp://u:secret@m/x", "http://u:secret@m:port/x"] {
            let error = Source::read(wrong).unwrap_err();
            let text = error.to_string();
            assert!(!text.contains("secret"), "{text}");
        }
    }

    #[test]
    fn what_may_be_secret_is_not_shown() {
        let source = Source::read("https://u:secret@m/a/x.tar.gz?sig=secret#secret").unwrap();
        assert_eq!(source.shown(), "https://m/a/x.tar.gz?...");
        assert_eq!(source.file(), "x.tar.gz");
    }

    #[test]
    fn what_lies_below_a_url_keeps_its_query() {
        let join = |text: &str| match Source::read(text).unwrap().join("b.json") {
            Source::Url(url) => url.to_string(),
            Source::Path(path) => path.display().to_string(),
        };
        assert_eq!(join("http://m"), "http://m/b.json");
        assert_eq!(join("http://m/a/"), "http://m/a/b.json");
        assert_eq!(join("http://m/a?t=1"), "http://m/a/b.json?t=1");
        assert_eq!(join("/m/a"), "/m/a/b.json");
    }
}
