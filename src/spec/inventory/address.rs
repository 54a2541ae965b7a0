//! Addresses as written: a host name, IPv4, or IPv6 with or without brackets, a zone and a port; with ranges.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::super::suggest::shown;
use super::{Wrong, range};

/// The longest host name.
const LONGEST: usize = 253;

/// The addresses that a text stands for, and the port that it names for all of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Addresses {
    /// IPv6 without brackets.
    pub(super) hosts: Vec<String>,
    pub(super) port: Option<u16>,
}

/// An address with a port.
pub(super) fn endpoint(address: &str, port: u16) -> String {
    if address.contains(':') {
        format!("[{address}]:{port}")
    } else {
        format!("{address}:{port}")
    }
}

/// Reads an address. An IPv6 address without brackets has no port: its last group could be one, so it is none.
///
/// # Errors
/// What is wrong, and what to write instead if that is clear.
pub(super) fn parse(text: &str) -> Result<Addresses, Wrong> {
    let (host, port) = split(text)?;
    let hosts = range::expand(host)?;
    for host in &hosts {
        check(host)?;
    }
    Ok(Addresses { hosts, port })
}

/// The host and the port of a text.
fn split(text: &str) -> Result<(&str, Option<u16>), Wrong> {
    if let Some((host, rest)) = bracketed(text) {
        return match rest.strip_prefix(':') {
            _ if rest.is_empty() => Ok((host, None)),
            Some(digits) => Ok((host, Some(port(digits)?))),
            None => {
                let message = format!("expected `:` and a port after `]`, found `{}`", shown(rest));
                Err((message, None))
            }
        };
    }
    match text.rsplit_once(':') {
        Some((host, digits)) if !host.contains(':') && !digits.contains(']') => {
            Ok((host, Some(port(digits)?)))
        }
        _ => Ok((text, None)),
    }
}

/// What stands between the first bracket and the one that closes it, if that is an IPv6 address, and the rest.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let mut open = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '[' => open += 1,
            ']' => open = open.saturating_sub(1),
            _ => {}
        }
        if open == 0 {
            let inner = text[..at].strip_prefix('[')?;
            return inner
                .contains(':')
                .then(|| (inner, &text[at + 1..]))
                .filter(|(inner, _)| {
                    // `[1:3]` is more likely a range that is written wrongly.
                    inner.matches(':').count() > 1
                });
        }
    }
    None
}

fn port(digits: &str) -> Result<u16, Wrong> {
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    match digits.parse::<u16>() {
        Ok(port @ 1..) if plain => Ok(port),
        _ => {
            let found = shown(digits);
            let message = format!("expected a port from 1 to 65535 after the `:`, found `{found}`");
            Err((message, None))
        }
    }
}

/// Whether a text without ranges is an address.
fn check(host: &str) -> Result<(), Wrong> {
    let found = shown(host);
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if host.is_empty() {
        Err((
            "expected an address, found nothing before the port".to_owned(),
            None,
        ))
    } else if host.contains(':') {
        ipv6(host)
    } else if host.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        let address = host.parse::<Ipv4Addr>();
        address
            .map(|_| ())
            .map_err(|_| (format!("`{found}` is no IPv4 address"), None))
    } else if host.starts_with('-') || host.len() > LONGEST || !host.chars().all(is_name) {
        Err((
            format!("expected a host name or an IP address, found `{found}`"),
            None,
        ))
    } else {
        Ok(())
    }
}

fn ipv6(host: &str) -> Result<(), Wrong> {
    let (address, zone) = match host.split_once('%') {
        Some((address, zone)) => (address, Some(zone)),
        None => (host, None),
    };
    let in_zone = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let zoned = zone.is_none_or(|zone| !zone.is_empty() && zone.chars().all(in_zone));
    if address.parse::<Ipv6Addr>().is_ok() && zoned {
        return Ok(());
    }
    let message = format!("`{}` is no IPv6 address", shown(host));
    let parts = host
        .rsplit_once(':')
        .filter(|(before, after)| ipv6(before).is_ok() && port(after).is_ok());
    let help = parts.map(|(before, after)| {
        format!("before a port it stands in brackets: `\"[{before}]:{after}\"`")
    });
    Err((message, help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_name_its_port() {
        for (text, host, port) in [
            ("10.0.0.1", "10.0.0.1", None),
            ("10.0.0.1:2222", "10.0.0.1", Some(2222)),
            ("kv1.example.org:22", "kv1.example.org", Some(22)),
            ("kv_1", "kv_1", None),
            ("::1", "::1", None),
            ("[::1]", "::1", None),
            ("[2001:db8::1]:2222", "2001:db8::1", Some(2222)),
            ("fe80::1%eth0", "fe80::1%eth0", None),
            ("[fe80::1%eth0.5]:65535", "fe80::1%eth0.5", Some(65535)),
            ("::ffff:10.0.0.1", "::ffff:10.0.0.1", None),
            // It could be a port, so it is none.
            ("2001:db8::1:2222", "2001:db8::1:2222", None),
        ] {
            let hosts = vec![host.to_owned()];
            assert_eq!(parse(text), Ok(Addresses { hosts, port }), "{text}");
        }
    }

    #[test]
    fn ranges_and_brackets_are_told_apart() {
        for (text, hosts, port) in [
            ("10.0.0.[11-13]", "10.0.0.11 10.0.0.12 10.0.0.13", None),
            ("kv[1-2].lab:22", "kv1.lab kv2.lab", Some(22)),
            ("fd00::[1-2]", "fd00::1 fd00::2", None),
            ("[fd00::[1-2]]:22", "fd00::1 fd00::2", Some(22)),
            ("[fd00::[1-2]]", "fd00::1 fd00::2", None),
            ("[1-2].lab", "1.lab 2.lab", None),
        ] {
            let found = parse(text).unwrap();
            assert_eq!((found.hosts.join(" ").as_str(), found.port), (hosts, port));
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_a_reason() {
        for (text, message) in [
            ("10.0.0.256", "`10.0.0.256` is no IPv4 address"),
            ("10.0.0.[250-260]", "`10.0.0.256` is no IPv4 address"),
            ("10.0.0", "`10.0.0` is no IPv4 address"),
            ("1:2:3", "`1:2:3` is no IPv6 address"),
            ("fe80::1%", "`fe80::1%` is no IPv6 address"),
            ("fe80::1%eth0:22", "`fe80::1%eth0:22` is no IPv6 address"),
            ("[fe80::1", "the `[` in `[fe80::1` is never closed"),
            ("[::1]22", "expected `:` and a port after `]`, found `22`"),
            (
                "[::1]:0",
                "expected a port from 1 to 65535 after the `:`, found `0`",
            ),
            (
                "kv1:ssh",
                "expected a port from 1 to 65535 after the `:`, found `ssh`",
            ),
            (
                "kv1:+22",
                "expected a port from 1 to 65535 after the `:`, found `+22`",
            ),
            (
                "kv1:70000",
                "expected a port from 1 to 65535 after the `:`, found `70000`",
            ),
            (":22", "expected an address, found nothing before the port"),
            (
                "-oProxyCommand=x",
                "expected a host name or an IP address, found `-oProxyCommand=x`",
            ),
            ("a b", "expected a host name or an IP address, found `a b`"),
            (
                "root@kv1",
                "expected a host name or an IP address, found `root@kv1`",
            ),
            ("kv[1:3]", "`[1:3]` is no range"),
            ("[1:3].lab", "`[1:3]` is no range"),
        ] {
            assert_eq!(parse(text).unwrap_err().0, message, "{text}");
        }
        let help = |text: &str| parse(text).unwrap_err().1;
        let brackets = "before a port it stands in brackets: `\"[fe80::1%eth0]:22\"`";
        assert_eq!(help("fe80::1%eth0:22").as_deref(), Some(brackets));
        assert_eq!(help("1:2:3"), None);
    }
}
