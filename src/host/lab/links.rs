//! The network of a lab: a bridge, and for each host a network namespace with a cable to it.
//!
//! Neighbours are entered by hand, so that a host that is cut off is silent for its peers, as one behind a router is;
//! otherwise their own kernels would report it after three seconds.

use std::fmt::Write as _;
use std::path::Path;

use super::address::{Network, networks};
use super::tool::{command, feed, run};
use super::{Entry, Lab, LabError, io};

/// Where named network namespaces are.
pub(super) const NAMESPACES: &str = "/run/netns";
/// The name of the cable's end in a host.
const INSIDE: &str = "eth0";

/// Every network that the machine has an address in or a route to.
pub(super) fn taken() -> Result<Vec<Network>, LabError> {
    let mut found = Vec::new();
    for args in [
        &["-j", "address"][..],
        &["-j", "-4", "route", "show", "table", "all"],
        &["-j", "-6", "route", "show", "table", "all"],
    ] {
        let mut ip = command("ip", "");
        let what = "read the networks of this machine";
        found.extend(networks(&run(ip.args(args), what)?));
    }
    Ok(found)
}

/// Whether the machine speaks IPv6.
pub(super) fn has_v6() -> bool {
    let path = "/proc/sys/net/ipv6/conf/all/disable_ipv6";
    std::fs::read_to_string(path).is_ok_and(|text| text.trim() == "0")
}

/// Whether anything of the machine's network carries the name of a lab with this id.
pub(super) fn is_used(prefix: &str) -> bool {
    ["/sys/class/net", NAMESPACES].iter().any(|folder| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name());
        names
            .into_iter()
            .any(|n| n.to_string_lossy().starts_with(prefix))
    })
}

/// Makes the bridge and everything that hangs on it.
pub(super) fn make(lab: &Lab) -> Result<(), LabError> {
    batch(lab, None, &outside(lab))?;
    let all: Vec<&Entry> = lab.hosts.iter().collect();
    all.iter()
        .try_for_each(|host| batch(lab, Some(host), &inside(lab, host)))
}

/// Lines for `ip -batch`, each of which may not fail.
fn batch(lab: &Lab, host: Option<&Entry>, lines: &str) -> Result<(), LabError> {
    let mut ip = command("ip", &lab.id);
    if let Some(host) = host {
        ip.args(["-n", &lab.machine(host)]);
    }
    ip.args(["-batch", "-"]);
    feed(&mut ip, "make the network of the lab", lines).map(drop)
}

/// What is made in the machine's own namespace.
fn outside(lab: &Lab) -> String {
    let bridge = lab.bridge();
    let mut lines = format!(
        "link add {bridge} address {} type bridge stp_state 0 mcast_snooping 0\n",
        lab.mac(0)
    );
    for network in [Some(lab.network), lab.network6].into_iter().flatten() {
        let _ = writeln!(lines, "{}", address(network, network.gateway(), &bridge));
    }
    let _ = writeln!(lines, "link set {bridge} up");
    for host in &lab.hosts {
        let (port, machine) = (lab.port(host), lab.machine(host));
        let mac = lab.mac(host.number);
        let _ = write!(
            lines,
            "netns add {machine}\n\
             link add {port} type veth peer name {INSIDE} address {mac} netns {machine}\n\
             link set {port} master {bridge}\n\
             link set {port} up\n"
        );
        lines.push_str(&neighbour(host, &mac, &bridge));
    }
    lines
}

/// What is made in a host's namespace.
fn inside(lab: &Lab, host: &Entry) -> String {
    let mut lines = "link set lo up\n".to_owned();
    let addresses = [Some(host.address), host.address6];
    let networks = [Some(lab.network), lab.network6];
    for (ip, network) in addresses.into_iter().zip(networks) {
        if let (Some(ip), Some(network)) = (ip, network) {
            let _ = writeln!(lines, "{}", address(network, ip, INSIDE));
        }
    }
    let _ = writeln!(lines, "link set {INSIDE} up");
    let machine = Entry {
        name: String::new(),
        number: 0,
        address: lab.network.gateway(),
        address6: lab.network6.map(Network::gateway),
    };
    let others = lab.hosts.iter().filter(|other| *other != host);
    for other in others.chain([&machine]) {
        lines.push_str(&neighbour(other, &lab.mac(other.number), INSIDE));
    }
    lines
}

fn address(network: Network, ip: std::net::IpAddr, device: &str) -> String {
    let nodad = if ip.is_ipv6() { " nodad" } else { "" };
    format!("address add {ip}/{} dev {device}{nodad}", network.length())
}

fn neighbour(host: &Entry, mac: &str, device: &str) -> String {
    let all = [Some(host.address), host.address6].into_iter().flatten();
    all.map(|ip| format!("neighbour replace {ip} lladdr {mac} dev {device} nud permanent\n"))
        .collect()
}

/// Removes what there is of the network; a lab that was left half-made has only some of it.
pub(super) fn remove(lab: &Lab) -> Result<(), LabError> {
    let what = "remove the network of the lab";
    let delete = |kind: &[&str], name: &str| {
        let mut ip = command("ip", &lab.id);
        run(ip.args(kind).args(["delete", name]), what).map(drop)
    };
    for host in &lab.hosts {
        let machine = lab.machine(host);
        if Path::new(NAMESPACES).join(&machine).exists() {
            delete(&["netns"], &machine)?;
        }
    }
    let ports = lab.hosts.iter().map(|host| lab.port(host));
    for link in ports.chain([lab.bridge()]) {
        // A port goes with its host's namespace, but not before the kernel is done with that.
        if is_there(&link) {
            let deleted = delete(&["link"], &link);
            if is_there(&link) {
                deleted?;
            }
        }
    }
    Ok(())
}

fn is_there(link: &str) -> bool {
    Path::new("/sys/class/net").join(link).exists()
}

/// Whether a host's cable hangs on the bridge.
pub(super) fn exists(lab: &Lab, host: &Entry) -> bool {
    is_there(&lab.port(host))
}

/// `BR_STATE_DISABLED` and `BR_STATE_FORWARDING` of `linux/if_bridge.h`. A disabled port drops what comes from either side,
/// and both sides believe that their cable is in.
const CUT: &str = "0";
const OPEN: &str = "3";

/// Lets a host's packets through, or drops them all in both directions.
pub(super) fn set_open(lab: &Lab, host: &Entry, is_open: bool) -> Result<(), LabError> {
    let (port, state) = (lab.port(host), if is_open { OPEN } else { CUT });
    // `ip link set ... type bridge_slave state 0` succeeds and has no effect (Linux 6.18, iproute2 6.1).
    let mut bridge = command("bridge", &lab.id);
    bridge.args(["link", "set", "dev", &port, "state", state]);
    run(&mut bridge, &format!("cut or heal `{}`", host.name)).map(drop)
}

/// Whether a host's packets are dropped.
pub(super) fn is_cut(lab: &Lab, host: &Entry) -> bool {
    let state = Path::new("/sys/class/net")
        .join(lab.port(host))
        .join("brport/state");
    std::fs::read_to_string(state).is_ok_and(|state| state.trim() == CUT)
}

/// Sets how packets are queued in both directions; `None` is the kernel's own way.
pub(super) fn set_queue(lab: &Lab, host: &Entry, queue: Option<&[String]>) -> Result<(), LabError> {
    let (port, machine) = (lab.port(host), lab.machine(host));
    for (namespace, device) in [(None, port.as_str()), (Some(&machine), INSIDE)] {
        let mut tc = command("tc", &lab.id);
        if let Some(namespace) = namespace {
            tc.args(["-n", namespace]);
        }
        let what = format!("change the speed of `{}`", host.name);
        match queue {
            Some(queue) => {
                tc.args(["qdisc", "replace", "dev", device, "root"])
                    .args(queue);
                run(&mut tc, &what)?;
            }
            None if is_slow_at(lab, namespace.map(String::as_str), device)? => {
                tc.args(["qdisc", "delete", "dev", device, "root"]);
                run(&mut tc, &what)?;
            }
            None => {}
        }
    }
    Ok(())
}

/// Whether a host's packets are slowed down.
pub(super) fn is_slow(lab: &Lab, host: &Entry) -> bool {
    is_slow_at(lab, None, &lab.port(host)).unwrap_or(false)
}

fn is_slow_at(lab: &Lab, namespace: Option<&str>, device: &str) -> Result<bool, LabError> {
    let mut tc = command("tc", &lab.id);
    if let Some(namespace) = namespace {
        tc.args(["-n", namespace]);
    }
    tc.args(["qdisc", "show", "dev", device, "root"]);
    let said = run(&mut tc, &format!("read the speed of `{device}`"))?;
    Ok(said.contains("qdisc netem") || said.contains("qdisc tbf"))
}

/// Whether `/run/netns` is mounted, as `ip netns add` does once.
pub(super) fn has_namespaces() -> bool {
    crate::host::mounts()
        .is_ok_and(|mounts| mounts.iter().any(|m| m.point == Path::new(NAMESPACES)))
}

/// Takes back what `ip netns add` did once, if nobody uses it.
pub(super) fn remove_namespaces() -> Result<(), LabError> {
    let folder = Path::new(NAMESPACES);
    let is_empty = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    if !is_empty || !has_namespaces() {
        return Ok(());
    }
    match rustix::mount::unmount(folder, rustix::mount::UnmountFlags::NOFOLLOW) {
        // Somebody else has just begun to use it.
        Err(rustix::io::Errno::BUSY) => Ok(()),
        Err(error) => Err(io("unmount", folder)(error)),
        Ok(()) => {
            let _ = std::fs::remove_dir(folder);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_is_made_as_it_is_described() {
        let lab = super::super::description::tests::sample("lab", 2);
        let text = outside(&lab);
        for line in [
            "link add al1a2b-br address 02:a5:1a:2b:00:00 type bridge stp_state 0 mcast_snooping 0",
            "address add 10.213.0.1/24 dev al1a2b-br",
            "address add fda5:5a1a:1a2b::1/64 dev al1a2b-br nodad",
            "netns add al1a2b-lab2",
            "link add al1a2b-2 type veth peer name eth0 address 02:a5:1a:2b:00:02 netns al1a2b-lab2",
            "neighbour replace 10.213.0.12 lladdr 02:a5:1a:2b:00:02 dev al1a2b-br nud permanent",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        let text = inside(&lab, &lab.hosts[1]);
        for line in [
            "address add 10.213.0.12/24 dev eth0",
            "neighbour replace 10.213.0.11 lladdr 02:a5:1a:2b:00:01 dev eth0 nud permanent",
            "neighbour replace fda5:5a1a:1a2b::1 lladdr 02:a5:1a:2b:00:00 dev eth0 nud permanent",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("neighbour replace 10.213.0.12 "));
    }
}
