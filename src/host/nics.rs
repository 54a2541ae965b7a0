//! Network interfaces with their addresses and speeds.
//! IPv4 addresses stand in `/proc/net/fib_trie` without their interface; `/proc/net/route` tells whose network it is.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::facts::text;

/// A network interface. It is printed as `eth0 192.0.2.2/24 (10000 Mbit/s)`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Nic {
    /// Its name.
    pub name: String,
    /// Its addresses, each with the length of its network's prefix.
    pub addresses: Vec<String>,
    /// Its speed, Mbit/s; virtual ones have none.
    pub speed_mbps: Option<u32>,
    /// Its driver.
    pub driver: Option<String>,
    /// The largest packet, bytes.
    pub mtu: Option<u32>,
}

impl fmt::Display for Nic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.addresses.join(" "))?;
        match self.speed_mbps {
            Some(speed) => write!(f, " ({speed} Mbit/s)"),
            None => Ok(()),
        }
    }
}

/// The interfaces that have an address that others can reach.
pub(super) fn read(root: &Path) -> Vec<Nic> {
    let file = |path: &str| text(&root.join(path)).unwrap_or_default();
    let routes: Vec<Route> = file("proc/net/route").lines().filter_map(route).collect();
    let mut nics: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for address in addresses(&file("proc/net/fib_trie")) {
        if let Some(route) = routes.iter().find(|route| route.reaches(address)) {
            let text = format!("{address}/{}", route.prefix());
            nics.entry(route.interface.clone()).or_default().push(text);
        }
    }
    for (interface, address) in file("proc/net/if_inet6").lines().filter_map(address6) {
        nics.entry(interface).or_default().push(address);
    }
    nics.into_iter()
        .map(|(name, addresses)| nic(root, name, addresses))
        .collect()
}

fn nic(root: &Path, name: String, addresses: Vec<String>) -> Nic {
    let folder = root.join("sys/class/net").join(&name);
    let number = |file: &str| text(&folder.join(file))?.parse::<u32>().ok();
    let driver = std::fs::read_link(folder.join("device/driver")).ok();
    Nic {
        name,
        addresses,
        speed_mbps: number("speed").filter(|speed| *speed > 0),
        driver: driver.and_then(|d| Some(d.file_name()?.to_string_lossy().into_owned())),
        mtu: number("mtu"),
    }
}

/// A network that an interface is on.
struct Route {
    interface: String,
    network: u32,
    mask: u32,
}

impl Route {
    fn reaches(&self, address: Ipv4Addr) -> bool {
        address.to_bits() & self.mask == self.network
    }

    fn prefix(&self) -> u32 {
        self.mask.count_ones()
    }
}

/// A line of `/proc/net/route`, unless the network is behind a gateway.
/// The numbers are in hex, as the machine stores the network's byte order.
fn route(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let number = |i: usize| {
        let number = u32::from_str_radix(fields.get(i)?, 16).ok()?;
        Some(u32::from_be_bytes(number.to_ne_bytes()))
    };
    let (network, gateway, mask) = (number(1)?, number(2)?, number(7)?);
    (gateway == 0 && mask != 0).then(|| Route {
        interface: fields[0].to_owned(),
        network,
        mask,
    })
}

/// This machine's own IPv4 addresses: in the trie, `/32 host LOCAL` follows each.
fn addresses(trie: &str) -> Vec<Ipv4Addr> {
    let mut found = Vec::new();
    let lines = trie.lines().map(str::trim);
    for (line, next) in lines.clone().zip(lines.skip(1)) {
        let address = line.strip_prefix("|-- ").and_then(|a| a.parse().ok());
        match address {
            Some(address) if next == "/32 host LOCAL" && !found.contains(&address) => {
                found.push(address);
            }
            _ => {}
        }
    }
    found.retain(|address: &Ipv4Addr| !address.is_loopback());
    found
}

/// A line of `/proc/net/if_inet6` with an address of global scope: address, index, prefix, scope, flags, interface.
fn address6(line: &str) -> Option<(String, String)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [address, _, prefix, "00", _, interface] = fields[..] else {
        return None;
    };
    let address = Ipv6Addr::from_bits(u128::from_str_radix(address, 16).ok()?);
    let prefix = u32::from_str_radix(prefix, 16).ok()?;
    Some((interface.to_owned(), format!("{address}/{prefix}")))
}
