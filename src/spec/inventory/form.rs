//! The forms of an inventory's texts: what each format of its schema wants.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::super::scalar::boolean_hint;
use super::super::suggest::shown;
use super::{address, range};

/// A message and a help.
pub(in crate::spec) type Wrong = (String, Option<String>);

/// A format of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::spec) enum Form {
    /// A name, or ranges of names.
    Hosts,
    Address,
    /// An address without a port.
    DataAddress,
    /// One address without a port.
    Host,
    User,
    Jump,
    Become,
    Fingerprint,
    /// A path that may begin with a home.
    HomePath,
    /// A path on the host.
    Directory,
}

impl Form {
    /// The form that a format of a schema stands for.
    pub(in crate::spec) fn of(format: &str) -> Option<Self> {
        Some(match format {
            "assay-hosts" => Self::Hosts,
            "assay-address" => Self::Address,
            "assay-data-address" => Self::DataAddress,
            "assay-host" => Self::Host,
            "assay-user" => Self::User,
            "assay-jump" => Self::Jump,
            "assay-become" => Self::Become,
            "assay-fingerprint" => Self::Fingerprint,
            "assay-home-path" => Self::HomePath,
            "assay-directory" => Self::Directory,
            _ => return None,
        })
    }

    /// What it wants, as "expected ..." continues.
    pub(in crate::spec) fn expected(self) -> &'static str {
        match self {
            Self::Hosts => "a name",
            Self::Address | Self::DataAddress | Self::Host => "a host name or an IP address",
            Self::User => "a user",
            Self::Jump => "a host of the inventory or `user@host:port`",
            Self::Become => "`true`, `false` or a user",
            Self::Fingerprint => "a fingerprint: `SHA256:` and 43 letters, digits, `+` or `/`",
            Self::HomePath | Self::Directory => "a path",
        }
    }

    /// Whether a text has the form.
    pub(in crate::spec) fn check(self, text: &str) -> Result<(), Wrong> {
        if text.trim().is_empty() {
            return Err((
                format!("expected {}, found an empty text", self.expected()),
                None,
            ));
        }
        match self {
            Self::Hosts => range::check(text),
            Self::Address => address::parse(text).map(|_| ()),
            Self::DataAddress => data_address(text),
            Self::Host => host(text),
            Self::User => user(text),
            Self::Jump => jump(text),
            Self::Become => match boolean_hint(text) {
                Some(word) if word != text => Err((
                    format!("expected {}, found `{text}`", self.expected()),
                    Some(format!("did you mean `{word}`?")),
                )),
                _ => user(text),
            },
            Self::Fingerprint => fingerprint(text),
            Self::HomePath | Self::Directory => Ok(()),
        }
    }
}

fn data_address(text: &str) -> Result<(), Wrong> {
    match address::parse(text)?.port {
        Some(port) => Err((
            format!("the address in the data network has no port, found `{port}`"),
            Some("leave the port away: each service has its own".to_owned()),
        )),
        None => Ok(()),
    }
}

fn host(text: &str) -> Result<(), Wrong> {
    let found = address::parse(text)?;
    match (found.port, &found.hosts[..]) {
        (Some(port), _) => Err((
            format!("expected a host without a port, found the port `{port}`"),
            Some("each port has a key of its own".to_owned()),
        )),
        (None, [_]) => Ok(()),
        (None, _) => Err((
            format!("expected one host, found the range `{}`", shown(text)),
            None,
        )),
    }
}

fn user(text: &str) -> Result<(), Wrong> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-+@\\$".contains(c);
    if text.chars().all(allowed) && !text.is_empty() && !text.starts_with('-') && text.len() <= 256
    {
        Ok(())
    } else {
        Err((format!("expected a user, found `{}`", shown(text)), None))
    }
}

/// `[user@]host[:port]`, or a host of the inventory.
fn jump(text: &str) -> Result<(), Wrong> {
    let host = match text.rsplit_once('@') {
        Some((name, host)) => {
            user(name)?;
            host
        }
        None => text,
    };
    if text.contains(',') {
        let help = "for a way over several, give the first jump host a `jump` of its own";
        return Err(("expected one jump host".to_owned(), Some(help.to_owned())));
    }
    let hosts = address::parse(host)?.hosts;
    let ranged = host.contains('[') && !hosts[0].contains(':');
    if ranged || hosts.len() != 1 {
        let message = format!("expected one jump host, found the range `{}`", shown(text));
        return Err((message, None));
    }
    if hosts[0].contains(':') && !host.starts_with('[') {
        let help = format!("write `\"{}\"`", text.replace(host, &format!("[{host}]")));
        let message = "an IPv6 address of a jump host stands in brackets".to_owned();
        return Err((message, Some(help)));
    }
    Ok(())
}

fn fingerprint(text: &str) -> Result<(), Wrong> {
    let wrong = |help: &str| {
        let message = format!(
            "expected {}, found `{}`",
            Form::Fingerprint.expected(),
            shown(text)
        );
        Err((message, Some(help.to_owned())))
    };
    let base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/');
    match text.strip_prefix("SHA256:") {
        Some(hash) if hash.len() == 43 && hash.chars().all(base64) => Ok(()),
        Some(hash) if hash.ends_with('=') => wrong("leave the `=` at its end away"),
        _ => wrong("`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` prints it on the host"),
    }
}

/// In a schema, a name or ranges of names.
pub(super) struct HostNames;

impl JsonSchema for HostNames {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "HostNames".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": range::PATTERN,
            "format": "assay-hosts",
            "description": "a name of letters, digits, `.`, `_` and `-`, with ranges such as `[1-3]`",
        })
    }
}

/// In a schema, the fingerprint of a host's key.
pub(super) struct Fingerprint;

impl JsonSchema for Fingerprint {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Fingerprint".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^SHA256:[A-Za-z0-9+/]{43}$",
            "format": "assay-fingerprint",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_have_their_form_pass() {
        let key = "SHA256:jX1cRk9qdWDLPTXzyJH0gJkPvMEBq/hTrKFYeV+SM1w";
        for (form, text) in [
            (Form::Hosts, "kv[1-3]"),
            (Form::Address, "[fe80::1%eth0]:22"),
            (Form::DataAddress, "[fd00::1]"),
            (Form::User, "EXAMPLE\\bench"),
            (Form::User, "_bench.2$"),
            (Form::Jump, "bastion"),
            (Form::Jump, "root@10.0.0.1:2222"),
            (Form::Jump, "me@example.org@[fe80::1%eth0]:22"),
            (Form::Jump, "[::1]"),
            (Form::Become, "true"),
            (Form::Become, "tidb"),
            (Form::Fingerprint, key),
            (Form::HomePath, "~/.ssh/id_ed25519"),
        ] {
            assert_eq!(form.check(text), Ok(()), "{form:?} {text}");
        }
    }

    #[test]
    fn texts_of_another_form_are_refused() {
        for (form, text) in [
            (Form::DataAddress, "10.0.0.1:22"),
            (Form::User, "-oProxyCommand=x"),
            (Form::User, "a b"),
            (Form::Jump, "-oProxyCommand=x"),
            (Form::Jump, "a,b"),
            (Form::Jump, "@a"),
            (Form::Jump, "a@"),
            (Form::Jump, "gw[1-2]"),
            (Form::Jump, "::1"),
            (Form::Become, "yes"),
            (Form::Become, "1"),
            (Form::Fingerprint, "MD5:aa:bb"),
            (Form::Fingerprint, "SHA256:short"),
            (Form::Directory, " "),
        ] {
            assert!(form.check(text).is_err(), "{form:?} {text}");
        }
    }
}
