//! Host keys that change.

use super::user::User;
use crate::support::lab::{Lab, LabHost};
use crate::support::sshd::fingerprint;

const FILES: &str = "/etc/ssh/ssh_host_ed25519_key";

/// A host with another key than the lab gave it, until this is dropped.
struct Rekeyed<'a>(&'a LabHost);

impl<'a> Rekeyed<'a> {
    fn new(host: &'a LabHost) -> Self {
        host.run(&format!(
            "cp -a {FILES} {FILES}.old && cp -a {FILES}.pub {FILES}.pub.old && rm {FILES} {FILES}.pub && \
             ssh-keygen -q -t ed25519 -N '' -f {FILES} && systemctl restart ssh"
        ));
        Self(host)
    }
}

impl Drop for Rekeyed<'_> {
    fn drop(&mut self) {
        let back = format!(
            "mv {FILES}.old {FILES} && mv {FILES}.pub.old {FILES}.pub && systemctl restart ssh"
        );
        let mut ssh = std::process::Command::new("ssh");
        ssh.args(["-F", "none", "-o", "StrictHostKeyChecking=no", "-o"])
            .args(["UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes", "-i"])
            .arg(&self.0.identity)
            .args([&format!("root@{}", self.0.address), &back]);
        let _ = ssh.output();
    }
}

/// The fingerprint of the key that a host presents to anybody.
fn presented(user: &User, host: &LabHost) -> String {
    let scanned = std::process::Command::new("ssh-keyscan")
        .args(["-t", "ed25519", &host.address])
        .output()
        .unwrap();
    let path = user.path("scanned");
    std::fs::write(&path, scanned.stdout).unwrap();
    fingerprint(&path)
}

#[test]
fn a_changed_key_is_refused_with_both_fingerprints_and_only_a_new_one_is_made_known() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    let list = user.path("known");
    let config = format!("UserKnownHostsFile {}\n", list.display());
    std::fs::write(user.path("ssh_config"), config).unwrap();
    let exec = ["hosts", "exec", "-i", "hosts.yaml", "--", "true"];
    let trust = ["hosts", "trust", "-i", "hosts.yaml", "--yes"];
    let old = host.fingerprint();
    assert_eq!(presented(&user, &host), old);

    // Nothing is known of it.
    user.inventory(&[("db1", &host, "")]);
    let said = user.runs(&exec);
    assert_eq!(said.code, Some(3), "{said:?}");
    said.names(&["its host key is not known", &old, "`assay hosts trust"]);
    let said = user.runs(&trust[..4]);
    assert_eq!(said.code, Some(3), "{said:?}");
    said.names(&["new", &old, "nobody to ask"]);
    assert!(!list.exists());
    let said = user.runs(&trust);
    assert_eq!(said.code, Some(0), "{said:?}");
    let known = std::fs::read_to_string(&list).unwrap();
    assert!(
        known.starts_with(&format!("{} ssh-ed25519 ", host.address)),
        "{known}"
    );
    assert_eq!(user.runs(&exec).code, Some(0));

    // Another key: neither the list nor a pin lets it in, and nobody makes it known.
    let rekeyed = Rekeyed::new(&host);
    let new = presented(&user, &host);
    assert_ne!(new, old);
    for pin in [String::new(), format!(", host_key: \"{old}\"")] {
        user.inventory(&[("db1", &host, &pin)]);
        let said = user.runs(&exec);
        assert_eq!(said.code, Some(3), "{said:?}");
        said.names(&["its host key has changed", &new, &old, "`ssh-keygen -R`"]);
        let said = user.runs(&trust);
        assert_eq!(said.code, Some(3), "{said:?}");
        said.names(&["CHANGED", &new, &old, "nothing was made known"]);
    }
    assert_eq!(std::fs::read_to_string(&list).unwrap(), known);
    drop(rekeyed);
    user.has(&host);
    assert_eq!(user.runs(&exec).code, Some(0));
    // The user's own list is another file.
    assert!(!user.path(".ssh").exists());
}
