//! Waiting for a host: sshd greets, lets the lab's key in with the pinned host key, and systemd is done booting.

use std::io::Read as _;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use super::{Entry, Lab, LabError, Labs, processes, tool};

/// How long a host may take; it takes two to five seconds alone, and more beside many.
const LIMIT: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(50);
/// How much of the console's output an error quotes.
const TAIL: usize = 15;

impl Labs {
    /// Waits until a host is ready.
    pub(super) fn wait_ready(
        &self,
        lab: &Lab,
        host: &Entry,
        child: &mut Child,
    ) -> Result<(), LabError> {
        let end = Instant::now() + LIMIT;
        let mut why = "sshd does not answer".to_owned();
        while Instant::now() < end {
            if self.stop.is_cancelled() {
                return Err(LabError::Stopped);
            }
            if let Ok(Some(status)) = child.try_wait() {
                why = format!("its container has ended ({status})");
                break;
            }
            if greets(host.address) {
                match self.state(lab, host) {
                    Ok(()) => return Ok(()),
                    Err(state) => why = state,
                }
            }
            std::thread::sleep(PAUSE);
        }
        let log = tail(&self.paths(lab, host).console);
        // What did not come up in time is not left running.
        let _ = processes::kill(lab, std::slice::from_ref(host));
        let host = host.name.clone();
        Err(LabError::NotReady { host, why, log })
    }

    /// What systemd says of itself, over SSH.
    fn state(&self, lab: &Lab, host: &Entry) -> Result<(), String> {
        let mut ssh = tool::command("timeout", &lab.id);
        ssh.arg("30").arg("ssh").args(["-F", "none", "-i"]);
        ssh.arg(self.identity_file(&lab.name));
        for option in [
            "BatchMode=yes",
            "IdentitiesOnly=yes",
            "StrictHostKeyChecking=yes",
            "ConnectTimeout=5",
            "LogLevel=ERROR",
        ] {
            ssh.args(["-o", option]);
        }
        ssh.arg("-o").arg(format!(
            "UserKnownHostsFile={}",
            self.known_hosts(&lab.name).display()
        ));
        ssh.arg(format!("root@{}", host.address));
        ssh.arg("systemctl is-system-running --wait || true");
        let said = tool::run(&mut ssh, "reach it").map_err(|error| error.to_string())?;
        match said.trim() {
            "running" | "degraded" => Ok(()),
            other => Err(format!("its systemd is `{other}`")),
        }
    }
}

/// Whether an SSH server answers there.
fn greets(address: IpAddr) -> bool {
    let address = SocketAddr::new(address, 22);
    let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_secs(1)) else {
        return false;
    };
    let mut greeting = [0; 4];
    let limit = Some(Duration::from_secs(2));
    stream.set_read_timeout(limit).is_ok()
        && stream.read_exact(&mut greeting).is_ok()
        && greeting == *b"SSH-"
}

/// The last lines of a console, without what steers a terminal.
fn tail(console: &Path) -> String {
    let bytes = std::fs::read(console).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).replace(|c: char| c.is_control() && c != '\n', "");
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let from = lines.len().saturating_sub(TAIL);
    let lines = lines[from..].iter().map(|line| format!("    {line}\n"));
    lines.collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_console_is_quoted_without_what_steers_a_terminal() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let lines: Vec<String> = (0..40)
            .map(|n| format!("\u{1b}[0;32mline {n}\r\n\n"))
            .collect();
        std::fs::write(file.path(), lines.concat()).unwrap();
        let tail = tail(file.path());
        assert_eq!(tail.lines().count(), TAIL);
        assert!(
            tail.ends_with("    [0;32mline 39") && !tail.contains('\u{1b}'),
            "{tail}"
        );
    }
}
