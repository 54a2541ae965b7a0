//! Downloads of large files: gone on with where they broke off, by this process or a later one.

use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;

use reqwest::header::{
    CONTENT_RANGE, ETAG, HeaderMap, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    LAST_MODIFIED, RANGE,
};
use reqwest::{Response, StatusCode, Url};

use super::error::{Tried as _, free};
use super::http::{Client, next, refused, send};
use super::partial::{Partial, Validator, held};
use super::source::{file_of, shown};
use super::{PackageError, Progress, Watch};

/// What is downloaded, and where to.
pub(super) struct Download<'a> {
    pub(super) client: &'a Client,
    pub(super) url: &'a Url,
    pub(super) partial: &'a Partial,
    /// What a manifest says that it has.
    pub(super) length: Option<u64>,
    /// Whether its sha256 is known, so that bytes of another version are found out.
    pub(super) is_checked: bool,
    /// The version that is in the store.
    pub(super) known: Option<&'a Validator>,
    pub(super) watch: &'a Watch,
}

/// What has come of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is all there.
    Whole {
        validator: Validator,
        /// Whether bytes of an earlier attempt are in it.
        is_resumed: bool,
    },
    /// The server still has the version that is in the store.
    Unchanged,
}

impl Download<'_> {
    /// Downloads it, again where it may help.
    pub(super) async fn run(&self) -> Result<Outcome, PackageError> {
        let mut pauses = self.client.retry.pauses();
        let mut most = self.came().0;
        loop {
            let error = match self.attempt().await {
                Err(error) if error.may_pass() => error,
                done => return done,
            };
            tracing::debug!(%error, "downloading again");
            let came = self.came().0;
            let made_progress = came > most;
            most = most.max(came);
            if !self.watch.or_stop(pauses.next(made_progress)).await? {
                return Err(error);
            }
        }
    }

    /// Bytes of an earlier attempt that can be gone on with.
    fn came(&self) -> (u64, Validator) {
        let (came, validator) = self.partial.came(self.url.as_str());
        if self.is_checked || validator.strong().is_some() {
            (came, validator)
        } else {
            (0, Validator::default())
        }
    }

    async fn attempt(&self) -> Result<Outcome, PackageError> {
        let (mut came, validator) = self.came();
        match self.length {
            Some(length) if came == length && self.is_checked => {
                let is_resumed = true;
                return Ok(Outcome::Whole {
                    validator,
                    is_resumed,
                });
            }
            Some(length) if came >= length => came = 0,
            Some(_) | None => {}
        }
        let mut response = send(self.request(came, &validator), self.url, self.watch).await?;
        let rest = response.content_length();
        match response.status() {
            StatusCode::PARTIAL_CONTENT if came > 0 => {
                let Some(total) = continues(response.headers(), came) else {
                    self.partial.discard()?;
                    return Err(refused(self.url, StatusCode::RANGE_NOT_SATISFIABLE));
                };
                let total = total.or(rest.map(|rest| came + rest));
                self.fits(total, rest)?;
                let file = self.partial.go_on()?;
                self.body(&mut response, file, came, total).await?;
                let is_resumed = true;
                Ok(Outcome::Whole {
                    validator,
                    is_resumed,
                })
            }
            StatusCode::OK => {
                let validator = validator_of(response.headers());
                self.fits(rest, rest)?;
                let file = self.partial.begin(self.url.as_str(), &validator)?;
                self.body(&mut response, file, 0, rest).await?;
                let is_resumed = false;
                Ok(Outcome::Whole {
                    validator,
                    is_resumed,
                })
            }
            StatusCode::NOT_MODIFIED if self.known.is_some() => Ok(Outcome::Unchanged),
            StatusCode::NOT_FOUND | StatusCode::GONE => Err(PackageError::Missing {
                what: format!("`{}`", shown(self.url)),
            }),
            status => {
                if status == StatusCode::RANGE_NOT_SATISFIABLE {
                    self.partial.discard()?;
                }
                Err(refused(self.url, status))
            }
        }
    }

    /// Asks for what is missing of the version that came before, or for all if that has changed.
    fn request(&self, came: u64, validator: &Validator) -> reqwest::RequestBuilder {
        let mut request = self.client.get(self.url);
        if came > 0 {
            request = request.header(RANGE, format!("bytes={came}-"));
            if let Some(strong) = validator.strong() {
                request = request.header(IF_RANGE, strong);
            }
        } else if let Some(known) = self.known {
            if let Some(tag) = &known.etag {
                request = request.header(IF_NONE_MATCH, tag);
            } else if let Some(modified) = &known.modified {
                request = request.header(IF_MODIFIED_SINCE, modified);
            }
        }
        request
    }

    /// Refuses a file of another length than the manifest says, or for whose `rest` there is no space.
    fn fits(&self, total: Option<u64>, rest: Option<u64>) -> Result<(), PackageError> {
        if let (Some(expected), Some(found)) = (self.length, total)
            && found != expected
        {
            return Err(self.wrong_length(expected, found));
        }
        let part = self.partial.part();
        match (rest, free(&part)) {
            (Some(wanted), Some(free)) if wanted > free => Err(PackageError::Space {
                path: part,
                wanted: Some(wanted),
                free,
            }),
            _ => Ok(()),
        }
    }

    /// Writes what comes behind the `came` bytes that are there.
    async fn body(
        &self,
        response: &mut Response,
        file: File,
        mut came: u64,
        total: Option<u64>,
    ) -> Result<(), PackageError> {
        let mut sink = Sink {
            partial: self.partial,
            file: Arc::new(file),
            buffer: Vec::new(),
        };
        let read = self.read(response, &mut sink, &mut came, total).await;
        // What came is kept, however it ended.
        let written = sink.flush().await;
        read.and(written)?;
        match total.or(self.length) {
            Some(total) if came < total => Err(PackageError::Cut {
                url: shown(self.url),
                got: came,
                total,
            }),
            _ => Ok(()),
        }
    }

    async fn read(
        &self,
        response: &mut Response,
        sink: &mut Sink<'_>,
        came: &mut u64,
        total: Option<u64>,
    ) -> Result<(), PackageError> {
        let total = total.or(self.length);
        while let Some(chunk) = next(response, self.url, self.watch).await? {
            let chunk = chunk.as_ref();
            *came += chunk.len() as u64;
            if let Some(expected) = self.length
                && *came > expected
            {
                return Err(self.wrong_length(expected, *came));
            }
            sink.add(chunk).await?;
            self.partial.beat();
            (self.watch.progress)(Progress {
                file: file_of(self.url),
                bytes: *came,
                total,
            });
        }
        Ok(())
    }

    fn wrong_length(&self, expected: u64, found: u64) -> PackageError {
        PackageError::Length {
            what: format!("`{}`", shown(self.url)),
            expected,
            found,
        }
    }
}

/// The file that is written.
struct Sink<'a> {
    partial: &'a Partial,
    file: Arc<File>,
    buffer: Vec<u8>,
}

impl Sink<'_> {
    /// Bytes that are written at once.
    const MOST: usize = 1 << 20;

    async fn add(&mut self, bytes: &[u8]) -> Result<(), PackageError> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() < Self::MOST {
            return Ok(());
        }
        self.flush().await
    }

    /// The lock is held until it is written, even if nobody waits for that any more: the next one appends to it.
    async fn flush(&mut self) -> Result<(), PackageError> {
        let (file, bytes) = (Arc::clone(&self.file), std::mem::take(&mut self.buffer));
        let write = move |partial: &Partial| {
            let written = (&*file).write_all(&bytes);
            written.tried("write", &partial.part())
        };
        held(self.partial, write).await
    }
}

fn validator_of(headers: &HeaderMap) -> Validator {
    let text = |name: HeaderName| {
        let value = headers.get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    Validator {
        etag: text(ETAG),
        modified: text(LAST_MODIFIED),
    }
}

/// Whether a part of a file begins at byte `came`; then how long the whole is, if that is told.
fn continues(headers: &HeaderMap, came: u64) -> Option<Option<u64>> {
    let range = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    let (range, total) = range.strip_prefix("bytes ")?.split_once('/')?;
    let (first, _) = range.split_once('-')?;
    (first.trim().parse() == Ok(came)).then(|| total.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_file_must_begin_where_the_rest_ended() {
        let of = |range: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_RANGE, range.parse().unwrap());
            continues(&headers, 5)
        };
        assert_eq!(of("bytes 5-9/10"), Some(Some(10)));
        assert_eq!(of("bytes 5-9/*"), Some(None));
        assert_eq!(of("bytes 4-9/10"), None);
        assert_eq!(of("bytes */10"), None);
        assert_eq!(of("lines 5-9/10"), None);
        assert_eq!(continues(&HeaderMap::new(), 5), None);
    }
}
