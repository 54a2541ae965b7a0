//! TLS to servers of a cluster: the authority that signed them, and the certificate that the asking side shows.

mod stream;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use serde::{Deserialize, Serialize};

use super::{ProbeError, words};

pub(super) use stream::Connector;

/// Whom to trust, and who asks. All are PEM files on the host that asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The authorities that may have signed the server's certificate, which has to carry the name that was asked.
    pub ca: PathBuf,
    /// The certificate that is shown to the server, and its private key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert: Option<PathBuf>,
    /// The private key of `cert`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
}

impl Tls {
    /// Trust in what `ca` signed, by somebody who shows no certificate.
    #[must_use]
    pub fn of(ca: impl Into<PathBuf>) -> Self {
        Self {
            ca: ca.into(),
            cert: None,
            key: None,
        }
    }

    /// The certificate to show and its key: both or none.
    pub(super) fn identity(&self) -> Result<Option<(&Path, &Path)>, ProbeError> {
        match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Ok(Some((cert, key))),
            (None, None) => Ok(None),
            (Some(_), None) | (None, Some(_)) => Err(ProbeError::Impossible(
                "a certificate to show and its key go together".to_owned(),
            )),
        }
    }
}

/// The settings of rustls; without `tls` they trust nobody.
pub(super) fn config(tls: Option<&Tls>) -> Result<ClientConfig, ProbeError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    if let Some(tls) = tls {
        for authority in certificates(&tls.ca)? {
            let added = roots.add(authority);
            added.map_err(|e| unusable(CERTIFICATE, &tls.ca, &e))?;
        }
    }
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the ciphers of the default versions")
        .with_root_certificates(roots);
    match tls.map(Tls::identity).transpose()?.flatten() {
        None => Ok(builder.with_no_client_auth()),
        Some((cert, key)) => {
            let own = PrivateKeyDer::from_pem_file(key);
            let own = own.map_err(|e| unusable(KEY, key, &e))?;
            let config = builder.with_client_auth_cert(certificates(cert)?, own);
            config.map_err(|e| unusable(KEY, key, &e))
        }
    }
}

const CERTIFICATE: &str = "certificate";
const KEY: &str = "private key";

/// The certificates of a file, at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ProbeError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|e| unusable(CERTIFICATE, path, &e))?;
    if found.is_empty() {
        let none = std::io::Error::other("there is none in it");
        return Err(unusable(CERTIFICATE, path, &none));
    }
    Ok(found)
}

fn unusable(
    what: &'static str,
    path: &Path,
    error: &(dyn std::error::Error + 'static),
) -> ProbeError {
    ProbeError::Certificate {
        what,
        path: path.to_owned(),
        why: words::innermost(error),
    }
}
