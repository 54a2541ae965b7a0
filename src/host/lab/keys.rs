//! The keys of a lab: one pair that opens its hosts, and a key of its own for each host.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use sha2::{Digest as _, Sha256};

use super::tool::{command, run};
use super::{Lab, LabError, beside, io};

/// Makes a key pair: the private one at `path`, the public one at `path.pub`.
pub(super) fn make(lab: &Lab, path: &Path, comment: &str) -> Result<(), LabError> {
    let mut keygen = command("ssh-keygen", &lab.id);
    keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", comment, "-f"]);
    run(keygen.arg(path), "make a key").map(drop)
}

/// The text of the public key beside a private one.
pub(super) fn public(path: &Path) -> Result<String, LabError> {
    let path = beside(path, "pub");
    let text = std::fs::read_to_string(&path).map_err(io("read", &path))?;
    Ok(text.trim().to_owned())
}

/// The fingerprint of a public key as ssh prints it: `SHA256:` and 43 characters.
pub(super) fn fingerprint(public: &str) -> Option<String> {
    let blob = public.split_ascii_whitespace().nth(1)?;
    let bytes = BASE64_STANDARD.decode(blob).ok()?;
    let digest = BASE64_STANDARD_NO_PAD.encode(Sha256::digest(bytes));
    Some(format!("SHA256:{digest}"))
}

#[cfg(test)]
mod tests {
    use super::super::removal::tests::skipped;
    use super::*;

    #[test]
    fn the_fingerprint_is_the_one_that_ssh_prints() {
        if super::super::tool::find("ssh-keygen").is_none() {
            return skipped("no ssh-keygen (Debian package openssh-client)");
        }
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        let lab = super::super::description::tests::sample("lab", 1);
        make(&lab, &key, "a host").unwrap();
        let public = public(&key).unwrap();
        assert!(public.starts_with("ssh-ed25519 ") && public.ends_with(" a host"));
        let mut list = command("ssh-keygen", "");
        let said = run(list.arg("-lf").arg(&key), "list").unwrap();
        let wanted = said.split(' ').nth(1).unwrap();
        assert_eq!(fingerprint(&public).unwrap(), wanted);
        assert_eq!(fingerprint("ssh-ed25519"), None);
    }
}
