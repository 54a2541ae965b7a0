//! The configuration of one connection, as `ssh_config(5)`: what assay insists on first, then what the inventory says, then the
//! user's own. `ssh` takes the first value of a setting.

use std::path::Path;

use super::target::{Jump, Target};

/// What holds for the host and every jump host. Settings of the user's that would change what a connection does, such as a
/// terminal or a remote command, are switched off. The link counts as lost after three silent intervals.
const ALWAYS: &str = "\
Host *
  BatchMode yes
  StrictHostKeyChecking yes
  UpdateHostKeys no
  ConnectTimeout 8
  ServerAliveInterval 2
  ServerAliveCountMax 3
  ClearAllForwardings yes
  ForwardAgent no
  ForwardX11 no
  PermitLocalCommand no
  RemoteCommand none
  RequestTTY no
  Tunnel no
  LogLevel INFO
  VisualHostKey no
";

/// Ciphers where the user's configuration names none: those that `ssh` has anyway, the ones first for which processors have
/// instructions. 200 MB to a host over loopback take 1.8 s with the first of them and 2.5 s with `ssh`'s own first choice,
/// chacha20-poly1305 (OpenSSH 9.2; both ends on two cores).
const CIPHERS: &str = "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,\
                       aes128-ctr,aes192-ctr,aes256-ctr";

/// Whether this machine's processor knows AES.
fn knows_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

/// The configuration for `target`; `known_hosts` is the file of the pinned keys on the way there.
pub(super) fn text(target: &Target, known_hosts: &Path) -> String {
    let mut text = ALWAYS.to_owned();
    for host in target.way() {
        text.push_str(&section(host, target, known_hosts));
    }
    text.push_str("Match all\n");
    match &target.ssh_config {
        Some(path) => text.push_str(&format!("  Include {}\n", quoted(&path.to_string_lossy()))),
        None => text.push_str("  Include ~/.ssh/config\n  Include /etc/ssh/ssh_config\n"),
    }
    if knows_aes() {
        text.push_str(&format!("Match all\n  Ciphers {CIPHERS}\n"));
    }
    text
}

/// What the inventory says of `host` on the way to `target`.
fn section(host: &Target, target: &Target, known_hosts: &Path) -> String {
    let name = name(host, target);
    let mut lines = vec![format!("Host {name}")];
    let mut set = |key: &str, value: &str| lines.push(format!("  {key} {value}"));
    if name != host.address {
        set("HostName", &host.address.replace('%', "%%"));
    }
    if let Some(port) = host.port {
        set("Port", &port.to_string());
    }
    if let Some(user) = &host.user {
        set("User", &quoted(user));
    }
    if let Some(file) = &host.identity_file {
        set("IdentityFile", &quoted(&file.replace('%', "%%")));
        set("IdentitiesOnly", "yes");
    }
    match &host.jump {
        Some(Jump::Host(jump)) => set("ProxyJump", &self::name(jump, target)),
        Some(Jump::Other(jump)) => set("ProxyJump", jump),
        None => {}
    }
    if !host.host_keys.is_empty() {
        set("HostKeyAlias", &host.key_alias());
        set(
            "UserKnownHostsFile",
            &quoted(&known_hosts.to_string_lossy()),
        );
        set("GlobalKnownHostsFile", "/dev/null");
        set("CheckHostIP", "no");
    }
    lines.push(String::new());
    lines.join("\n")
}

/// What `ssh` is to call a host on the way to `target`: its address, so that the user's own configuration for that applies,
/// unless the target has the same one.
pub(super) fn name(host: &Target, target: &Target) -> String {
    if host.name != target.name && host.address == target.address {
        format!("assay-jump-{}", host.name)
    } else {
        host.address.clone()
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, address: &str) -> Target {
        Target {
            name: name.into(),
            address: address.into(),
            ..Target::default()
        }
    }

    /// What `ssh -G` makes of a configuration: the program's own reading.
    fn read(target: &Target, of: &str) -> Vec<String> {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("config");
        std::fs::write(&path, text(target, Path::new("/keys here/known"))).unwrap();
        let mut ssh = std::process::Command::new("ssh");
        let output = ssh.arg("-F").arg(path).args(["-G", of]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn has(lines: &[String], line: &str) {
        assert!(lines.iter().any(|l| l == line), "no `{line}` in {lines:#?}");
    }

    #[test]
    fn ssh_reads_what_the_inventory_says_before_the_users_own() {
        let folder = tempfile::TempDir::new().unwrap();
        let own = folder.path().join("my config");
        let said = "Host db1\n  Port 1\n  HostName 192.0.2.7\n  StrictHostKeyChecking no\n  RequestTTY force\n";
        std::fs::write(&own, said).unwrap();
        let target = Target {
            user: Some("me".into()),
            identity_file: Some("/a key".into()),
            port: Some(2222),
            ssh_config: Some(own),
            ..host("db1", "db1")
        };
        let lines = read(&target, "db1");
        for line in [
            "user me",
            "port 2222",
            "hostname 192.0.2.7",
            "identityfile /a key",
            "stricthostkeychecking true",
            "requesttty false",
            "batchmode yes",
        ] {
            has(&lines, line);
        }
    }

    #[test]
    fn ciphers_are_the_users_choice_and_else_those_that_the_processor_is_quick_with() {
        let folder = tempfile::TempDir::new().unwrap();
        let ciphers = |own: &str| {
            let path = folder.path().join("own");
            std::fs::write(&path, own).unwrap();
            let target = Target {
                ssh_config: Some(path),
                ..host("db1", "db1")
            };
            let lines = read(&target, "db1");
            let line = lines.into_iter().find(|line| line.starts_with("ciphers "));
            line.unwrap()
        };
        let own = "Host db1\n  Ciphers aes256-ctr\n";
        assert_eq!(ciphers(own), "ciphers aes256-ctr");
        let default = ciphers("Host other\n  Ciphers aes256-ctr\n");
        let quick = default.starts_with("ciphers aes128-gcm@openssh.com,");
        assert_eq!(quick, knows_aes(), "{default}");
        assert!(default.contains("chacha20-poly1305@openssh.com"));
    }

    #[test]
    fn each_host_on_the_way_has_its_own_settings_also_at_one_address() {
        let jump = Target {
            port: Some(2201),
            host_keys: vec!["SHA256:x".into()],
            ..host("bastion", "127.0.0.1")
        };
        let target = Target {
            port: Some(2202),
            jump: Some(Jump::Host(Box::new(jump))),
            ..host("kv1", "127.0.0.1")
        };
        let lines = read(&target, "127.0.0.1");
        has(&lines, "port 2202");
        has(&lines, "proxyjump assay-jump-bastion");
        let lines = read(&target, "assay-jump-bastion");
        has(&lines, "port 2201");
        has(&lines, "hostname 127.0.0.1");
        has(&lines, "hostkeyalias assay-bastion");
        has(&lines, "userknownhostsfile /keys here/known");
        assert!(!lines.iter().any(|line| line.starts_with("proxyjump")));
    }

    #[test]
    fn an_address_with_a_zone_is_one_for_ssh() {
        let target = Target {
            port: Some(2022),
            ..host("kv1", "fe80::1%eth0")
        };
        let lines = read(&target, "fe80::1%eth0");
        has(&lines, "hostname fe80::1%eth0");
        has(&lines, "port 2022");
    }
}
