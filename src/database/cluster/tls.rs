//! Certificates of a cluster that speaks TLS. Each deployment has an authority of its own, which signs a certificate for each
//! instance and one for clients. Its key is nowhere but in memory while they are made: nobody can sign another one later, and a
//! deployment that is made anew gets new ones. What clients need is read back from an instance's host at every start, so that a
//! resumed run, or one that was deployed by hand, finds it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::try_join_all;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};

use super::install::said;
use super::{Cluster, DatabaseError, Member};
use crate::database::Hosts;
use crate::host::{Bounds, ask};
use crate::plan;
use crate::service::{File, Ran, Run};

/// Files in an instance's `tls` folder.
const FOLDER: &str = "tls";
const CA: &str = "ca.pem";
const CERTIFICATE: &str = "cert.pem";
const KEY: &str = "key.pem";
const CLIENT: &str = "client.pem";
const CLIENT_KEY: &str = "client-key.pem";

/// The mode of a certificate, and of a key: PostgreSQL refuses one that its group can read.
const OPEN: u32 = 0o644;
const SECRET: u32 = 0o600;

/// The longest name that a certificate may carry (X.520's `ub-common-name`).
const NAME: usize = 64;

/// How long reading a few files may take.
const READING: Duration = Duration::from_secs(60);

/// What is known of a deployment's certificates.
#[derive(Default)]
pub(super) struct Trust(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// Who signs, while the deployment is made.
    authority: Option<Authority>,
    /// What clients need.
    client: Option<plan::Tls>,
}

/// Who signs the certificates of a deployment.
struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
    client: Identity,
}

/// A certificate and its key, as PEM.
struct Identity {
    certificate: String,
    key: String,
}

impl Trust {
    fn with<T>(&self, act: impl FnOnce(&mut Known) -> T) -> T {
        // What is kept here is replaced as a whole, so a panic elsewhere leaves it sound.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Forgets who signs: nobody can afterwards.
    pub(super) fn forget_authority(&self) {
        self.with(|known| known.authority = None);
    }

    /// What clients need, once the cluster was started.
    pub(super) fn client(&self) -> Option<plan::Tls> {
        self.with(|known| known.client.clone())
    }
}

impl Authority {
    fn new(deployment: &str) -> Result<Self, rcgen::Error> {
        let mut params = named(&format!("authority of {deployment}"), Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        let issuer = Issuer::new(params, key);
        Ok(Self {
            client: identity(&issuer, "client", Vec::new())?,
            certificate,
            issuer,
        })
    }
}

/// A certificate for one who is reached by `names`, and who may ask others as well as answer them.
fn identity(
    issuer: &Issuer<'_, KeyPair>,
    name: &str,
    names: Vec<String>,
) -> Result<Identity, rcgen::Error> {
    let mut params = named(name, names)?;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyAgreement,
    ];
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let key = KeyPair::generate()?;
    Ok(Identity {
        certificate: params.signed_by(&key, issuer)?.pem(),
        key: key.serialize_pem(),
    })
}

fn named(name: &str, names: Vec<String>) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    let mut shown = DistinguishedName::new();
    shown.push(
        DnType::CommonName,
        name.chars().take(NAME).collect::<String>(),
    );
    params.distinguished_name = shown;
    Ok(params)
}

impl Cluster {
    /// Makes the authority of a deployment that is made anew, or whose certificates are not all there.
    pub(super) async fn make_authority(
        &self,
        fresh: bool,
        hosts: &Hosts,
        bounds: Bounds<'_>,
    ) -> Result<(), DatabaseError> {
        if !self.scene.tls || !fresh && self.has_certificates(hosts, bounds).await? {
            return Ok(());
        }
        let marker = &self.scene.marker;
        let name = format!("{}/{}", marker.experiment, marker.deployment);
        let authority = Authority::new(&name).map_err(unmade)?;
        self.trust.with(|known| known.authority = Some(authority));
        Ok(())
    }

    /// The certificates of a member, if they are to be written.
    pub(super) fn certificates(&self, member: &Member) -> Result<Vec<File>, DatabaseError> {
        let names = self.names(member);
        self.trust.with(|known| {
            let Some(authority) = &known.authority else {
                return Ok(Vec::new());
            };
            let own = identity(&authority.issuer, &member.instance.id, names).map_err(unmade)?;
            let file = |name: &str, content: &str, mode: u32, owner: Option<&String>| File {
                path: folder(member).join(name),
                content: content.to_owned(),
                mode,
                owner: owner.cloned(),
            };
            let (user, client) = (member.user.as_ref(), &authority.client);
            Ok(vec![
                file(CA, &authority.certificate, OPEN, user),
                file(CERTIFICATE, &own.certificate, OPEN, user),
                file(KEY, &own.key, SECRET, user),
                // The processes themselves do not need to read it.
                file(CLIENT, &client.certificate, OPEN, None),
                file(CLIENT_KEY, &client.key, SECRET, None),
            ])
        })
    }

    /// The names and addresses that a member answers to; clients may know an entry as its balancer.
    fn names(&self, member: &Member) -> Vec<String> {
        let instance = &member.instance;
        let own = [&*instance.host, &instance.address];
        let local = ["localhost", "127.0.0.1", "::1"];
        let mut names: BTreeSet<String> = own.into_iter().chain(local).map(Into::into).collect();
        if self.entries().iter().any(|e| e.instance.id == instance.id) {
            names.extend(self.addresses().into_iter().map(|address| address.host));
        }
        names.retain(|name| !name.is_empty() && name.is_ascii());
        names.into_iter().collect()
    }

    /// Whether every member has its certificates, all by one authority.
    async fn has_certificates(
        &self,
        hosts: &Hosts,
        bounds: Bounds<'_>,
    ) -> Result<bool, DatabaseError> {
        let files = [CA, CERTIFICATE, KEY, CLIENT, CLIENT_KEY];
        let each = self
            .members
            .iter()
            .map(async |member| read(hosts, member, &files, bounds).await);
        let found = try_join_all(each).await?;
        let authorities: BTreeSet<Option<String>> = found
            .into_iter()
            .map(|ran| {
                let texts = ran.is_success().then(|| texts(&ran.stdout));
                texts
                    .filter(|texts| texts.len() == files.len())?
                    .into_iter()
                    .next()
            })
            .collect();
        Ok(authorities.len() == 1 && !authorities.contains(&None))
    }

    /// Reads what clients need from the host of a member that they connect to.
    pub(super) async fn learn_trust(
        &self,
        hosts: &Hosts,
        bounds: Bounds<'_>,
    ) -> Result<(), DatabaseError> {
        let entry = self.entries().into_iter().next();
        let Some(member) = entry.filter(|_| self.scene.tls) else {
            return Ok(());
        };
        let ran = read(hosts, member, &[CA, CLIENT, CLIENT_KEY], bounds).await?;
        let found: Result<[String; 3], _> = texts(&ran.stdout).try_into();
        let (true, Ok([ca, certificate, key])) = (ran.is_success(), found) else {
            let error = DatabaseError::Other(said(&ran));
            return Err(error.of("cannot read the certificates of", member));
        };
        let client = plan::Tls {
            ca: Some(ca),
            certificate: Some(certificate),
            key: Some(key),
        };
        self.trust.with(|known| known.client = Some(client));
        Ok(())
    }
}

fn folder(member: &Member) -> PathBuf {
    member.deploy.join(FOLDER)
}

fn unmade(error: rcgen::Error) -> DatabaseError {
    DatabaseError::Other(format!("cannot make a certificate: {error}"))
}

/// The texts of some files of a member, one after the other.
async fn read(
    hosts: &Hosts,
    member: &Member,
    files: &[&str],
    bounds: Bounds<'_>,
) -> Result<Ran, DatabaseError> {
    let path = |file: &&str| folder(member).join(file).to_string_lossy().into_owned();
    let request = Run {
        program: PathBuf::from("/bin/cat"),
        args: files.iter().map(path).collect(),
        env: Default::default(),
        directory: None,
        owner: None,
        limit: READING,
        stdin: String::new(),
    };
    Ok(ask(
        &*hosts[&member.instance.host],
        "service-run",
        &request,
        bounds,
    )
    .await?)
}

/// The PEM texts that stand one after the other.
fn texts(all: &str) -> Vec<String> {
    const END: &str = "-----END ";
    let mut texts = vec![String::new()];
    for line in all.lines() {
        let text = texts.last_mut().expect("there is one");
        text.push_str(line);
        text.push('\n');
        if line.starts_with(END) {
            texts.push(String::new());
        }
    }
    texts.retain(|text| text.contains(END));
    texts
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{CertificateError, Error, RootCertStore};

    use super::*;

    fn certificate(text: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(text.as_bytes()).unwrap()
    }

    /// Whether one who trusts `authority` takes a certificate for that of `name`.
    fn accepts(authority: &Authority, shown: &Identity, name: &str) -> Result<(), Error> {
        let mut roots = RootCertStore::empty();
        roots.add(certificate(&authority.certificate)).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let now = UnixTime::now();
        let shown = certificate(&shown.certificate);
        let verifier = verifier.build().unwrap();
        let verified = verifier.verify_server_cert(&shown, &[], &name, &[], now);
        verified.map(|_| ())
    }

    fn of(authority: &Authority, names: &[&str]) -> Identity {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        identity(&authority.issuer, "tidb-4000@db1", names).unwrap()
    }

    #[test]
    fn an_instance_is_trusted_by_all_of_its_names_and_by_no_other() {
        let authority = Authority::new("study/old").unwrap();
        let names = [
            "db1",
            "10.0.0.7",
            "fd00::7",
            "localhost",
            "127.0.0.1",
            "::1",
        ];
        let own = of(&authority, &names);
        for name in names {
            accepts(&authority, &own, name).unwrap();
        }
        for name in ["db2", "10.0.0.8", "fd00::8"] {
            let error = accepts(&authority, &own, name).unwrap_err();
            let Error::InvalidCertificate(why) = error else {
                panic!("{error}");
            };
            assert!(
                matches!(why, CertificateError::NotValidForNameContext { .. }),
                "{why:?}"
            );
        }
    }

    #[test]
    fn deployments_do_not_trust_each_other() {
        let (old, new) = (Authority::new("s/old"), Authority::new("s/new"));
        let (old, new) = (old.unwrap(), new.unwrap());
        let own = of(&old, &["db1"]);
        accepts(&old, &own, "db1").unwrap();
        accepts(&new, &own, "db1").unwrap_err();
    }

    #[test]
    fn a_name_that_is_too_long_for_a_certificate_is_cut() {
        let authority = Authority::new(&"x".repeat(200)).unwrap();
        let own = of(&authority, &[&"h".repeat(63)]);
        accepts(&authority, &own, &"h".repeat(63)).unwrap();
    }

    #[test]
    fn pem_texts_that_stand_one_after_the_other_are_told_apart() {
        let authority = Authority::new("s/v").unwrap();
        let Identity { certificate, key } = of(&authority, &["db1"]);
        let all = format!("{}{certificate}{key}", authority.certificate);
        let found = texts(&all);
        let expected = [&authority.certificate, &certificate, &key];
        let plain = |text: &str| text.replace("\r\n", "\n");
        let expected: Vec<String> = expected.into_iter().map(|text| plain(text)).collect();
        assert_eq!(found, expected);
        assert_eq!(texts("cat: no such file\n"), Vec::<String>::new());
    }
}
