//! Users of the host, by name.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::ServiceError;

/// A user of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) home: PathBuf,
}

impl Owner {
    /// Finds a user in all the places that the host knows users from.
    pub(super) fn of(name: &str) -> Result<Self, ServiceError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-@\\$".contains(c);
        if name.is_empty() || name.starts_with('-') || !name.chars().all(is_plain) {
            return Err(ServiceError::refused(name, "it is no name of a user"));
        }
        let asked = Command::new("getent").args(["passwd", name]).output();
        let text = match asked {
            Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
            // A host without the tool has no users but those in the file.
            Err(_) => fs::read_to_string("/etc/passwd").unwrap_or_default(),
        };
        let found = text.lines().filter_map(Self::read);
        let mut found = found.filter(|owner| owner.name == name);
        found.next().ok_or_else(|| ServiceError::User {
            name: name.to_owned(),
        })
    }

    /// Reads a line of `/etc/passwd`.
    fn read(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(':').collect();
        Some(Self {
            name: (*fields.first()?).to_owned(),
            uid: fields.get(2)?.parse().ok()?,
            gid: fields.get(3)?.parse().ok()?,
            home: fields.get(5)?.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_found_and_a_user_who_is_not_there_is_an_error_that_says_how_to_make_one() {
        let root = Owner::of("root").unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        let error = Owner::of("no-such-user").unwrap_err().to_string();
        assert!(error.contains("no user `no-such-user`"), "{error}");
        assert!(error.contains("useradd"), "{error}");
    }

    #[test]
    fn numbers_and_options_are_no_names() {
        assert!(Owner::of("0").is_err());
        assert!(Owner::of("--help").is_err());
        assert!(Owner::of("a b").is_err());
    }
}
