//! A tarball of a server: downloaded, compared with its manifest, unpacked into the store.

use reqwest::Url;

use super::content::{stopped, sum_of};
use super::download::{Download, Outcome};
use super::http::Client;
use super::mirror::Expected;
use super::partial::{Partial, Validator, held};
use super::source::shown;
use super::store::{Placed, Store};
use super::{PackageError, Watch, hex_of};

/// A tarball that is downloaded.
pub(super) struct Fetch<'a> {
    pub(super) store: &'a Store,
    pub(super) url: &'a Url,
    pub(super) client: &'a Client,
    /// What a manifest says of it.
    pub(super) expected: Option<&'a Expected>,
    /// The version that is in the store, if no manifest names it.
    pub(super) known: Option<&'a Validator>,
    pub(super) watch: &'a Watch,
}

impl Fetch<'_> {
    /// Downloads and unpacks it; `None` if the server still has what is in the store.
    pub(super) async fn run(&self) -> Result<Option<(Placed, Validator)>, PackageError> {
        if let Some(there) = self.there() {
            return Ok(Some(there));
        }
        let key = match self.expected {
            Some(expected) => expected.sha256.clone(),
            None => format!("url-{}", hex_of(self.url.as_str())),
        };
        let partial = Partial::hold(&self.store.folder, &key, self.watch).await?;
        // Somebody else may have obtained it meanwhile.
        if let Some(there) = self.there() {
            return Ok(Some(there));
        }
        let Some((sha256, validator)) = self.bytes(&partial).await? else {
            return Ok(None);
        };
        let folder = self.store.place(&sha256);
        let (path, sum) = (partial.part(), sha256.clone());
        let unpacked = self
            .store
            .unpack(&partial, path, self.what(), sum, self.watch);
        let unpacked = unpacked.await;
        let is_of_use = matches!(
            unpacked,
            Err(PackageError::Stopped | PackageError::Space { .. } | PackageError::Io { .. })
        );
        if !is_of_use {
            partial.discard()?;
        }
        unpacked?;
        Ok(Some((Placed { sha256, folder }, validator)))
    }

    /// What it is called in messages.
    fn what(&self) -> String {
        format!("`{}`", shown(self.url))
    }

    /// What is in the store already, by the sha256 of a manifest.
    fn there(&self) -> Option<(Placed, Validator)> {
        let sha256 = self.expected?.sha256.clone();
        let folder = self.store.place(&sha256);
        let is_there = folder.is_dir();
        is_there.then(|| (Placed { sha256, folder }, Validator::default()))
    }

    /// Downloads its bytes and compares their sha256 with the manifest's; `None` if the server still has what is in
    /// the store.
    async fn bytes(&self, partial: &Partial) -> Result<Option<(String, Validator)>, PackageError> {
        let download = Download {
            client: self.client,
            url: self.url,
            partial,
            length: self.expected.map(|expected| expected.length),
            is_checked: self.expected.is_some(),
            known: self.known,
            watch: self.watch,
        };
        loop {
            let (validator, is_resumed) = match download.run().await {
                Ok(Outcome::Unchanged) => return Ok(None),
                Ok(Outcome::Whole {
                    validator,
                    is_resumed,
                }) => (validator, is_resumed),
                Err(error) => {
                    if matches!(error, PackageError::Length { .. }) {
                        partial.discard()?;
                    }
                    return Err(error);
                }
            };
            let sha256 = self.sum(partial).await?;
            let compared = self
                .expected
                .map(|expected| expected.same_sum(&self.what(), &sha256));
            match compared {
                None | Some(Ok(())) => return Ok(Some((sha256, validator))),
                Some(Err(error)) => {
                    partial.discard()?;
                    // The bytes that came before may be of another version of the file.
                    if !is_resumed {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// The sha256 of what came.
    async fn sum(&self, partial: &Partial) -> Result<String, PackageError> {
        let watch = self.watch.clone();
        let sum = move |partial: &Partial| {
            sum_of(&partial.part(), &|| {
                partial.beat();
                stopped(&watch)
            })
        };
        held(partial, sum).await
    }
}
