//! Why a host cannot be reached, read from what `ssh`, `sudo` and the host's shell say.

/// Why a host cannot be used over SSH.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// There is no `ssh` here.
    #[error("there is no `ssh` on this machine")]
    NoClient,
    /// Its name has no address.
    #[error("its name has no address: {0}")]
    Unresolved(String),
    /// Nothing answered in time.
    #[error("nothing answered in time")]
    TimedOut,
    /// The host is there, and nothing listens on the port.
    #[error("connection refused: nothing listens on its SSH port")]
    Refused,
    /// The network does not lead there.
    #[error("the network does not lead there: {0}")]
    Unreachable(String),
    /// Its key is in no list of known ones.
    #[error("its host key is not known: it presents {presented}")]
    UnknownKey {
        /// Kind and fingerprint.
        presented: String,
    },
    /// It presents another key than the known one.
    #[error("its host key has changed: it presents {presented}, known is {known}")]
    ChangedKey {
        /// Kind and fingerprint.
        presented: String,
        /// The fingerprints that were expected.
        known: String,
    },
    /// It does not let the user in.
    #[error("it does not let the user in: {0}")]
    Denied(String),
    /// Its sshd turned the connection away before logging in, as it does with too many at once.
    #[error("its sshd turned the connection away: {0}")]
    TurnedAway(String),
    /// Its sshd opens no further session on the connection.
    #[error("its sshd opens no session: {0}")]
    NoSession(String),
    /// The host on the way to it cannot be used.
    #[error("its jump host `{jump}` cannot be used")]
    Jump {
        /// The jump host as the inventory names it.
        jump: String,
        /// Why.
        source: Box<ConnectError>,
    },
    /// sudo wants a password.
    #[error("sudo wants a password there")]
    SudoPassword,
    /// sudo wants a terminal.
    #[error("sudo wants a terminal there")]
    SudoTerminal,
    /// The user may not use sudo.
    #[error("sudo does not allow it: {0}")]
    SudoForbidden(String),
    /// There is no sudo.
    #[error("there is no sudo there")]
    SudoMissing,
    /// assay cannot run there.
    #[error("assay cannot run there: {0}")]
    Unfit(String),
    /// The disk of the user's home there is full.
    #[error("there is no space left there: {0}")]
    Full(String),
    /// Something else.
    #[error("{0}")]
    Other(String),
}

impl ConnectError {
    /// Whether the same may succeed a moment later.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::TurnedAway(_) | Self::NoSession(_) => true,
            Self::Jump { source, .. } => source.is_passing(),
            Self::TimedOut
            | Self::Refused
            | Self::Unresolved(_)
            | Self::Unreachable(_)
            | Self::Other(_)
            | Self::NoClient
            | Self::UnknownKey { .. }
            | Self::ChangedKey { .. }
            | Self::Denied(_)
            | Self::SudoPassword
            | Self::SudoTerminal
            | Self::SudoForbidden(_)
            | Self::SudoMissing
            | Self::Unfit(_)
            | Self::Full(_) => false,
        }
    }

    /// Whether a host that was reached before may be reached again later.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::TimedOut
            | Self::Refused
            | Self::Unresolved(_)
            | Self::Unreachable(_)
            | Self::TurnedAway(_)
            | Self::NoSession(_)
            | Self::Jump { .. }
            | Self::Other(_) => true,
            Self::NoClient
            | Self::UnknownKey { .. }
            | Self::ChangedKey { .. }
            | Self::Denied(_)
            | Self::SudoPassword
            | Self::SudoTerminal
            | Self::SudoForbidden(_)
            | Self::SudoMissing
            | Self::Unfit(_)
            | Self::Full(_) => false,
        }
    }

    /// What `ssh` says when it does not connect. The keys' fingerprints are for the caller to fill in.
    pub(super) fn of_ssh(log: &str) -> Self {
        let has = |text: &str| log.contains(text);
        let line = |text: &str| one(log, text);
        if has("HOST IDENTIFICATION HAS CHANGED") || has("has changed and you have requested") {
            return Self::ChangedKey {
                presented: String::new(),
                known: String::new(),
            };
        }
        if has("Host key verification failed") || has("host key is known for") {
            return Self::UnknownKey {
                presented: String::new(),
            };
        }
        if has("Could not resolve hostname") {
            return Self::Unresolved(line("Could not resolve hostname"));
        }
        if has("Connection refused") {
            return Self::Refused;
        }
        if has("Connection timed out") || has("Operation timed out") || has("timed out during") {
            return Self::TimedOut;
        }
        for text in ["No route to host", "Network is unreachable"] {
            if has(text) {
                return Self::Unreachable(line(text));
            }
        }
        for text in ["Permission denied (", "Too many authentication failures"] {
            if has(text) {
                return Self::Denied(line(text));
            }
        }
        for text in [
            "kex_exchange_identification",
            "Connection reset by",
            "Connection closed by",
        ] {
            if has(text) {
                return Self::TurnedAway(line(text));
            }
        }
        Self::Other(last(log))
    }

    /// What a host's shell or its sudo says when assay does not start there.
    pub(super) fn of_shell(stderr: &str) -> Self {
        let has = |text: &str| stderr.contains(text);
        if has("sudo: a password is required") || has("sudo: a terminal is required to read") {
            return Self::SudoPassword;
        }
        if has("you must have a tty") {
            return Self::SudoTerminal;
        }
        for text in [
            "not in the sudoers",
            "not allowed to execute",
            "may not run sudo",
            "not allowed to run sudo",
        ] {
            if has(text) {
                return Self::SudoForbidden(one(stderr, text));
            }
        }
        if has("sudo: not found") || has("sudo: command not found") {
            return Self::SudoMissing;
        }
        if has("No space left on device") || has("Disk quota exceeded") {
            return Self::Full(last(stderr));
        }
        if stderr.trim().is_empty() {
            return Self::Unfit("its login shell ended and said nothing".into());
        }
        Self::Unfit(last(stderr))
    }
}

/// The line that has `text` in it.
fn one(log: &str, text: &str) -> String {
    let found = log.lines().find(|line| line.contains(text));
    found.unwrap_or_default().trim().to_owned()
}

/// The last line that says something.
fn last(log: &str) -> String {
    let mut lines = log.lines().rev().map(str::trim);
    let found = lines.find(|line| !line.is_empty());
    found.unwrap_or("it said nothing").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_says_is_told_apart() {
        for (log, error) in [
            (
                "connect to host 10.0.0.1 port 22: Connection timed out\r\n",
                ConnectError::TimedOut,
            ),
            (
                "Connection timed out during banner exchange\r\nConnection to 10.0.0.1 port 22 timed out",
                ConnectError::TimedOut,
            ),
            (
                "connect to host 127.0.0.1 port 1: Connection refused",
                ConnectError::Refused,
            ),
            (
                "Could not resolve hostname nowhere: Name or service not known",
                ConnectError::Unresolved(
                    "Could not resolve hostname nowhere: Name or service not known".into(),
                ),
            ),
            (
                "me@10.0.0.1: Permission denied (publickey).",
                ConnectError::Denied("me@10.0.0.1: Permission denied (publickey).".into()),
            ),
            (
                "kex_exchange_identification: read: Connection reset by peer\r\nConnection reset by 127.0.0.1 port 2222",
                ConnectError::TurnedAway(
                    "kex_exchange_identification: read: Connection reset by peer".into(),
                ),
            ),
            (
                "connect to host 10.9.9.9 port 22: No route to host",
                ConnectError::Unreachable(
                    "connect to host 10.9.9.9 port 22: No route to host".into(),
                ),
            ),
            ("odd\r\n\r\n", ConnectError::Other("odd".into())),
        ] {
            assert_eq!(ConnectError::of_ssh(log), error, "{log}");
        }
    }

    #[test]
    fn what_sudo_says_is_told_apart() {
        for (stderr, error) in [
            ("sudo: a password is required\n", ConnectError::SudoPassword),
            (
                "sudo: sorry, you must have a tty to run sudo\n",
                ConnectError::SudoTerminal,
            ),
            (
                "guest is not in the sudoers file.\n",
                ConnectError::SudoForbidden("guest is not in the sudoers file.".into()),
            ),
            ("sh: 1: exec: sudo: not found\n", ConnectError::SudoMissing),
            (
                "/x/assay: /lib/libc.so.6: version `GLIBC_2.38' not found\n",
                ConnectError::Unfit(
                    "/x/assay: /lib/libc.so.6: version `GLIBC_2.38' not found".into(),
                ),
            ),
            (
                "cat: write error: No space left on device\n",
                ConnectError::Full("cat: write error: No space left on device".into()),
            ),
        ] {
            assert_eq!(ConnectError::of_shell(stderr), error, "{stderr}");
        }
    }
}
