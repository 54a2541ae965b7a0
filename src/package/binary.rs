//! A plain program as a package: whether it is one for the hosts, by its first bytes.

use std::fs::{File, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::content::{CHUNK, Summed, open, stopped};
use super::error::Tried as _;
use super::partial::Partial;
use super::{Arch, PackageError, Platform, Watch};

/// Bytes that tell what a file is.
const HEAD: usize = 20;

/// A program that is taken in.
pub(super) struct Program {
    pub(super) path: PathBuf,
    /// What it is called in the package.
    pub(super) name: String,
    /// Of the hosts.
    pub(super) platform: Platform,
}

impl Program {
    /// Refuses what is no program for the hosts.
    pub(super) fn check(&self) -> Result<(), PackageError> {
        let mut head = Vec::new();
        let file = open(&self.path)?;
        let read = file.take(HEAD as u64).read_to_end(&mut head);
        read.tried("read", &self.path)?;
        match mismatch(&head, &self.platform) {
            None => Ok(()),
            Some(found) => Err(PackageError::NoProgram {
                path: self.path.clone(),
                found,
                platform: self.platform.to_string(),
            }),
        }
    }

    /// Copies it, whose sum was `sha256`, into the folder `place`.
    pub(super) fn take(
        &self,
        partial: &Partial,
        place: &Path,
        sha256: &str,
        watch: &Watch,
    ) -> Result<(), PackageError> {
        if place.is_dir() {
            return Ok(());
        }
        let tree = partial.tree()?;
        let target = tree.path().join(&self.name);
        let mut from = Summed::new(open(&self.path)?);
        let mut to = File::create_new(&target).tried("write", &target)?;
        let mut buffer = vec![0; CHUNK];
        loop {
            partial.beat();
            stopped(watch)?;
            match from.read(&mut buffer).tried("read", &self.path)? {
                0 => break,
                got => to.write_all(&buffer[..got]).tried("write", &target)?,
            }
        }
        let mode = to.set_permissions(Permissions::from_mode(0o755));
        mode.tried("set the mode of", &target)?;
        if from.sum().tried("read", &self.path)? != sha256 {
            let what = format!("`{}`", self.path.display());
            return Err(PackageError::Changed { what });
        }
        tree.put(place)
    }
}

/// What a file that begins with `head` is, if that cannot be a program for `platform`. Scripts and what is not known may be.
fn mismatch(head: &[u8], platform: &Platform) -> Option<String> {
    if head.is_empty() {
        return Some("empty".to_owned());
    }
    if head.starts_with(&[0x1f, 0x8b]) {
        return Some("a packed archive, to be given as a tarball".to_owned());
    }
    if !head.starts_with(b"\x7fELF") {
        return None;
    }
    // `e_machine`, in the byte order that the sixth byte tells.
    let machine = [*head.get(18)?, *head.get(19)?];
    let machine = match head[5] {
        2 => u16::from_be_bytes(machine),
        _ => u16::from_le_bytes(machine),
    };
    let found = match machine {
        0x3e => "a program for linux/amd64".to_owned(),
        0xb7 => "a program for linux/arm64".to_owned(),
        other => format!("a program for another CPU (ELF machine {other})"),
    };
    let own = match platform.arch {
        Arch::Amd64 => 0x3e,
        Arch::Arm64 => 0xb7,
    };
    (machine != own || platform.os != "linux").then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_for_another_cpu_is_told() {
        let elf = |machine: u8| {
            let mut head = [0; HEAD];
            head[..6].copy_from_slice(b"\x7fELF\x02\x01");
            head[18] = machine;
            head
        };
        let found = |head: &[u8]| mismatch(head, &Platform::linux(Arch::Amd64));
        assert_eq!(found(&elf(0x3e)), None);
        assert_eq!(
            found(&elf(0xb7)).as_deref(),
            Some("a program for linux/arm64")
        );
        assert!(found(&elf(0x28)).is_some());
        assert_eq!(found(b"#!/bin/sh\n"), None);
        assert!(found(&[0x1f, 0x8b, 8]).is_some());
        assert!(found(b"").is_some());
    }
}
