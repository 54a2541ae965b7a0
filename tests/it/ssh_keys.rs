//! Host keys of several types, certificates and revoked ones, as `ssh` judges them, with real sshds on loopback.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use assay::host::{ConnectError, HostError, SshHost, Target};
use serde_json::Value;

use crate::support::sshd::{self, Sshd};

/// An sshd, and a user's list of known hosts for it.
struct Place {
    sshd: Sshd,
}

impl Place {
    /// `hosts` are lines of the inventory.
    fn new(sshd: Sshd, hosts: &str) -> Self {
        let folder = sshd.folder.path();
        let list = folder.join("known");
        let own = format!("UserKnownHostsFile {}\n", list.display());
        std::fs::write(folder.join("ssh_config"), own).unwrap();
        let text = format!(
            "ssh_config: ssh_config\ndefaults: {{address: 127.0.0.1, port: {}, identity_file: user}}\nhosts:\n{hosts}",
            sshd.port
        );
        std::fs::write(folder.join("inventory.yaml"), text).unwrap();
        Self { sshd }
    }

    fn list(&self) -> PathBuf {
        self.sshd.folder.path().join("known")
    }

    /// A line of the list for a public key, `host.pub` or another.
    fn line(&self, marker: &str, name: &str, public: &str) -> String {
        let key = std::fs::read_to_string(self.sshd.folder.path().join(public)).unwrap();
        format!("{marker}{name} {key}")
    }

    /// What a list has it by.
    fn name(&self) -> String {
        format!("[127.0.0.1]:{}", self.sshd.port)
    }

    fn trust(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let folder = self.sshd.folder.path();
        let output = Command::new(env!("CARGO_BIN_EXE_assay"))
            .current_dir(folder)
            .env("XDG_CACHE_HOME", folder.join("control"))
            .env("XDG_RUNTIME_DIR", folder)
            .env_remove("ASSAY_ARTIFACTS")
            .args(["hosts", "trust", "-i", "inventory.yaml"])
            .args(words)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    }

    fn fingerprint(&self, public: &str) -> String {
        sshd::fingerprint(&self.sshd.folder.path().join(public))
    }
}

const ONE: &str = "  a: {directory: /tmp/a/b}\n";

fn with_rsa() -> Sshd {
    let mut sshd = Sshd::start("");
    sshd.add_key("rsa");
    sshd
}

async fn refused(sshd: &Sshd, target: Target) -> ConnectError {
    let connected = SshHost::connect(target, sshd::binary(), sshd.settings()).await;
    match connected.err().unwrap() {
        HostError::Connect { source, .. } => *source,
        other => panic!("{other:?}"),
    }
}

#[test]
fn twenty_names_are_looked_at_where_two_may_log_in() {
    let sshd = Sshd::start("MaxStartups 2:100:2");
    let pinned = sshd.fingerprint();
    let hosts: String = (0..20)
        .map(|n| match n % 2 {
            0 => format!("  a{n}: {{directory: /tmp/a/{n}}}\n"),
            _ => format!("  a{n}: {{directory: /tmp/a/{n}, host_key: \"{pinned}\"}}\n"),
        })
        .collect();
    let place = Place::new(sshd, &hosts);
    let (code, out, err) = place.trust(&["--yes", "--json"]);
    assert_eq!(code, Some(0), "{out}{err}");
    let rows: Vec<Value> = serde_json::from_str(&out).unwrap();
    assert_eq!(rows.len(), 20);
    for row in rows {
        assert_eq!(row["fingerprint"], pinned, "{row}");
        assert_eq!(row["known"], true, "{row}");
    }
    // Ten names of one address and port are one line.
    assert_eq!(
        std::fs::read_to_string(place.list())
            .unwrap()
            .lines()
            .count(),
        1
    );
}

#[tokio::test]
async fn a_pin_of_another_type_than_the_first_presented_is_found() {
    let sshd = with_rsa();
    let rsa = sshd::fingerprint(&sshd.folder.path().join("host-rsa.pub"));
    let mut target = sshd.target("kv1");
    target.host_keys = vec![rsa];
    // Once asked for, once kept.
    for _ in 0..2 {
        SshHost::connect(target.clone(), sshd::binary(), sshd.settings())
            .await
            .unwrap();
    }
    let place = Place::new(
        sshd,
        &format!(
            "  a: {{directory: /tmp/a/b, host_key: \"{}\"}}\n",
            target.host_keys[0]
        ),
    );
    let (code, out, err) = place.trust(&[]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(
        out.contains(&target.host_keys[0]) && out.contains("pinned"),
        "{out}"
    );
}

#[tokio::test]
async fn of_several_pins_the_one_that_is_presented_counts_also_when_it_is_another_later() {
    let mut sshd = with_rsa();
    let (first, rsa) = (
        sshd.fingerprint(),
        sshd::fingerprint(&sshd.folder.path().join("host-rsa.pub")),
    );
    sshd.renew_key();
    let second = sshd.fingerprint();
    let mut target = sshd.target("kv1");
    // The second key is learned, then the host presents a third one.
    target.host_keys = vec![first, second];
    let connect = |target: &Target, sshd: &Sshd| {
        SshHost::connect(target.clone(), sshd::binary(), sshd.settings())
    };
    connect(&target, &sshd).await.unwrap();
    sshd.renew_key();
    let ConnectError::ChangedKey { presented, known } = refused(&sshd, target.clone()).await else {
        panic!("it is refused for its key");
    };
    assert_eq!(presented, format!("ssh-ed25519 {}", sshd.fingerprint()));
    assert!(known.contains(&target.host_keys[1]), "{known}");
    target.host_keys[0] = sshd.fingerprint();
    connect(&target, &sshd).await.unwrap();
    sshd.renew_key();
    target.host_keys[0] = rsa;
    connect(&target, &sshd).await.unwrap();
}

#[test]
fn a_known_key_of_another_type_than_the_first_presented_is_known() {
    let place = Place::new(with_rsa(), ONE);
    std::fs::write(place.list(), place.line("", &place.name(), "host-rsa.pub")).unwrap();
    let (code, out, err) = place.trust(&[]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(
        out.contains(&place.fingerprint("host-rsa.pub")) && out.contains("known"),
        "{out}"
    );
}

#[test]
fn a_known_key_of_a_type_that_the_host_has_no_more_is_a_change() {
    let mut sshd = with_rsa();
    let folder = sshd.folder.path().to_owned();
    sshd.drop_added_keys();
    let place = Place::new(sshd, ONE);
    let text = place.line("", &place.name(), "host-rsa.pub");
    std::fs::write(place.list(), &text).unwrap();
    let (code, out, err) = place.trust(&["--yes"]);
    assert_eq!(code, Some(3), "{out}{err}");
    let known = sshd::fingerprint(&folder.join("host-rsa.pub"));
    assert!(
        out.contains(&format!("CHANGED, known is ssh-rsa {known}")),
        "{out}"
    );
    assert_eq!(std::fs::read_to_string(place.list()).unwrap(), text);
}

#[test]
fn an_authority_of_others_makes_a_host_neither_known_nor_changed() {
    let place = Place::new(with_rsa(), ONE);
    let authority = place.line("@cert-authority ", "*", "user.pub");
    std::fs::write(place.list(), &authority).unwrap();
    let (code, out, err) = place.trust(&["--yes"]);
    assert_eq!(
        (code, err.as_str()),
        (Some(0), "1 key made known\n"),
        "{out}"
    );
    let first = place.fingerprint("host.pub");
    assert!(out.contains(&first) && out.contains("new"), "{out}");
    let (code, out, _) = place.trust(&[]);
    assert_eq!(code, Some(0), "{out}");
    let text = std::fs::read_to_string(place.list()).unwrap();
    assert!(
        text.starts_with(&authority) && text.lines().count() == 2,
        "{text}"
    );
}

#[test]
fn a_key_that_a_known_authority_certified_is_known() {
    let mut sshd = Sshd::start("");
    sshd.certify("user", "127.0.0.1");
    let place = Place::new(sshd, ONE);
    let authority = place.line("@cert-authority ", "*", "user.pub");
    std::fs::write(place.list(), &authority).unwrap();
    let (code, out, err) = place.trust(&["--yes"]);
    assert_eq!(code, Some(0), "{out}{err}");
    let first = place.fingerprint("host.pub");
    assert!(out.contains(&first) && out.contains("known"), "{out}");
    assert_eq!(std::fs::read_to_string(place.list()).unwrap(), authority);
}

#[tokio::test]
async fn a_revoked_key_is_refused_and_never_made_known() {
    let place = Place::new(with_rsa(), ONE);
    let revoked = place.line("@revoked ", "*", "host.pub");
    for known in ["", "host-rsa.pub"] {
        let known = match known {
            "" => String::new(),
            // Of a known type, which `ssh` asks for first; it is revoked as well.
            public => place.line("", &place.name(), public) + &place.line("@revoked ", "*", public),
        };
        let text = format!("{revoked}{known}");
        std::fs::write(place.list(), &text).unwrap();
        let (code, out, err) = place.trust(&["--yes"]);
        assert_eq!(code, Some(3), "{out}{err}");
        assert!(out.contains("REVOKED"), "{out}");
        assert!(
            err.starts_with("error: 1 key revoked; nothing was made known for it"),
            "{err}"
        );
        assert_eq!(std::fs::read_to_string(place.list()).unwrap(), text);
    }
    let mut target = place.sshd.target("kv1");
    target.host_keys.clear();
    let own = format!("UserKnownHostsFile {}\n", place.list().display());
    std::fs::write(target.ssh_config.as_ref().unwrap(), own).unwrap();
    let error = refused(&place.sshd, target).await.to_string();
    assert!(error.contains("revoked"), "{error}");
}

#[test]
fn a_key_in_a_file_of_revoked_ones_is_refused() {
    let place = Place::new(Sshd::start(""), ONE);
    let folder = place.sshd.folder.path();
    let own = format!(
        "UserKnownHostsFile {}\nRevokedHostKeys {}\n",
        place.list().display(),
        folder.join("host.pub").display()
    );
    std::fs::write(folder.join("ssh_config"), own).unwrap();
    let (code, out, err) = place.trust(&["--yes"]);
    assert_eq!(code, Some(3), "{out}{err}");
    assert!(
        out.contains(&place.fingerprint("host.pub")) && out.contains("REVOKED"),
        "{out}"
    );
    assert!(!place.list().exists());
}

#[tokio::test]
async fn a_jump_host_that_is_not_known_is_named_when_the_host_behind_it_is_looked_at() {
    let (near, far) = (Sshd::start(""), Sshd::start(""));
    let mut jump = near.target("near");
    jump.host_keys.clear();
    let mut target = far.target("far");
    target.host_keys.clear();
    let own = format!(
        "UserKnownHostsFile {}\n",
        far.folder.path().join("known").display()
    );
    std::fs::write(target.ssh_config.as_ref().unwrap(), own).unwrap();
    target.jump = Some(assay::host::Jump::Host(Box::new(jump)));
    let looked = SshHost::look_at_key(&target, &far.folders()).await;
    let HostError::Connect { source, .. } = looked.unwrap_err() else {
        panic!("it cannot be reached");
    };
    let ConnectError::Jump { jump, source } = *source else {
        panic!("{source:?}");
    };
    assert_eq!(jump, "near");
    assert!(
        source.to_string().contains("host key is known for"),
        "{source}"
    );
}
