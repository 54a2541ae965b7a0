//! The TCP ports on which something listens.

use std::collections::BTreeSet;
use std::path::Path;

use super::text;

/// The state of a listening socket in `proc_net_tcp(5)`.
const LISTEN: &str = "0A";

/// The ports of IPv4 and IPv6 together, in order; `None` where the kernel does not tell.
pub(super) fn read(root: &Path) -> Option<Vec<u16>> {
    let tables: Vec<String> = ["proc/net/tcp", "proc/net/tcp6"]
        .iter()
        .filter_map(|path| text(&root.join(path)))
        .collect();
    let ports: BTreeSet<u16> = tables
        .iter()
        .flat_map(|t| t.lines())
        .filter_map(port)
        .collect();
    (!tables.is_empty()).then(|| ports.into_iter().collect())
}

/// `   0: 0100007F:1F90 00000000:0000 0A ...`: index, own address, peer, state.
fn port(line: &str) -> Option<u16> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (_, port) = fields.get(1)?.rsplit_once(':')?;
    (*fields.get(3)? == LISTEN).then(|| u16::from_str_radix(port, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_something_listens_on_here_is_found() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        assert!(read(Path::new("/")).unwrap().contains(&port));
    }

    #[test]
    fn sockets_in_other_states_do_not_listen() {
        let line = |state| format!("   1: 0100007F:1F90 0100007F:A2C4 {state} 00000000:00000000");
        assert_eq!(port(&line("0A")), Some(8080));
        assert_eq!(port(&line("01")), None);
        assert_eq!(port("  sl  local_address rem_address   st"), None);
    }
}
