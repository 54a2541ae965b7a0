//! An authority, a server's certificate for 127.0.0.1, and a client's.

use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use tempfile::TempDir;

/// PEM files in a folder of their own: `ca.pem`, `server.pem`, `server.key`, `client.pem`, `client.key`.
pub(super) struct Certificates {
    folder: TempDir,
}

impl Certificates {
    pub(super) fn make() -> Self {
        let own = Self {
            folder: TempDir::new().unwrap(),
        };
        let mut params = named("an authority", &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        own.write("ca.pem", &certificate.pem());
        let authority = Issuer::new(params, key);
        let mut server = named("a server", &["127.0.0.1"]);
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        own.sign("server", &server, &authority);
        let mut client = named("probe", &[]);
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        own.sign("client", &client, &authority);
        own
    }

    /// The path of one of the files.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn sign(&self, name: &str, params: &CertificateParams, authority: &Issuer<'_, KeyPair>) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, authority).unwrap();
        self.write(&format!("{name}.pem"), &certificate.pem());
        self.write(&format!("{name}.key"), &key.serialize_pem());
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }
}

fn named(name: &str, hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
