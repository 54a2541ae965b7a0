//! The addresses of a lab: a network that clashes with none of the machine's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A network in CIDR notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    address: IpAddr,
    length: u8,
}

/// The first host's place in its network; those below are for the machine.
const FIRST: u32 = 11;
/// Where networks are taken from, as the first two bytes: private ones, and the range kept for benchmarks (RFC 2544).
const POOLS: [[u8; 2]; 6] = [
    [10, 213],
    [172, 29],
    [10, 87],
    [198, 18],
    [172, 22],
    [198, 19],
];
/// A route to a larger part of the world than this is a way out, not a network that a lab could hide.
const LEAST_LENGTH: u8 = 8;

impl Network {
    fn mask(self) -> u128 {
        let bits = self.width();
        let ones = if bits == 128 {
            u128::MAX
        } else {
            (1 << bits) - 1
        };
        let host = bits - u32::from(self.length).min(bits);
        if host == 128 { 0 } else { ones >> host << host }
    }

    fn width(self) -> u32 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    fn bits(self) -> u128 {
        match self.address {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        }
    }

    fn overlaps(self, other: Self) -> bool {
        let wider = if self.length < other.length {
            self.mask()
        } else {
            other.mask()
        };
        self.width() == other.width() && self.bits() & wider == other.bits() & wider
    }

    /// The n-th address.
    pub(super) fn nth(self, n: u32) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() + n).into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() + u128::from(n)).into(),
        }
    }

    /// The machine's own address in it.
    pub(super) fn gateway(self) -> IpAddr {
        self.nth(1)
    }

    /// The address of a host by its number, from 1.
    pub(super) fn host(self, number: usize) -> IpAddr {
        self.nth(FIRST - 1 + number as u32)
    }

    /// The length of its prefix.
    pub(super) fn length(self) -> u8 {
        self.length
    }
}

/// A network for so many hosts that overlaps none of `taken`.
pub(super) fn choose(taken: &[Network], hosts: usize) -> Option<Network> {
    let length: u8 = if hosts <= 200 { 24 } else { 22 };
    let step = 1_usize << (24 - length);
    let candidates = POOLS.iter().flat_map(|[a, b]| {
        (0..=255_u8).step_by(step).map(move |c| Network {
            address: Ipv4Addr::new(*a, *b, c, 0).into(),
            length,
        })
    });
    let is_free = |network: &Network| !clashes(*network, taken);
    candidates.into_iter().find(is_free)
}

/// The lab's own network of unique local addresses (RFC 4193), from its id.
pub(super) fn unique_local(id: u16) -> Network {
    Network {
        address: Ipv6Addr::new(0xfda5, 0x5a1a, id, 0, 0, 0, 0, 0).into(),
        length: 64,
    }
}

/// Whether a network overlaps one of those.
pub(super) fn clashes(network: Network, taken: &[Network]) -> bool {
    taken
        .iter()
        .any(|other| other.length >= LEAST_LENGTH && network.overlaps(*other))
}

/// The networks in what `ip -j address` and `ip -j route show table all` print: addresses with their prefixes, and
/// destinations.
pub(super) fn networks(json: &str) -> Vec<Network> {
    let Ok(rows) = serde_json::from_str::<Vec<serde_json::Value>>(json) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for row in &rows {
        let destination = row["dst"].as_str();
        found.extend(destination.and_then(|text| text.parse::<Network>().ok()));
        for address in row["addr_info"].as_array().into_iter().flatten() {
            let length = address["prefixlen"].as_u64();
            let parts = address["local"].as_str().zip(length);
            let text = parts.map(|(local, length)| format!("{local}/{length}"));
            found.extend(text.and_then(|text| text.parse::<Network>().ok()));
        }
    }
    found
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no network");
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let widest = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            Some(length) => length.parse().map_err(|_| wrong())?,
            None => widest,
        };
        if length > widest {
            return Err(wrong());
        }
        Ok(Self { address, length })
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(texts: &[&str]) -> Vec<Network> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn chosen(texts: &[&str], hosts: usize) -> Option<String> {
        choose(&taken(texts), hosts).map(|n| n.to_string())
    }

    #[test]
    fn a_network_avoids_every_address_and_route_of_the_machine() {
        let first = Some("10.213.0.0/24".to_owned());
        assert_eq!(chosen(&[], 4), first);
        assert_eq!(chosen(&["192.168.1.7/24", "fd00::/8"], 4), first);
        let next = Some("10.213.1.0/24".to_owned());
        assert_eq!(chosen(&["10.213.0.77"], 4), next);
        assert_eq!(chosen(&["10.213.0.0/24"], 4), next);
        let other = Some("172.29.0.0/24".to_owned());
        assert_eq!(chosen(&["10.0.0.0/8"], 4), other);
        assert_eq!(chosen(&["10.213.0.1/16"], 4), other);
    }

    #[test]
    fn a_way_out_into_the_world_is_no_clash() {
        let first = Some("10.213.0.0/24".to_owned());
        assert_eq!(chosen(&["0.0.0.0/0"], 4), first);
        assert_eq!(chosen(&["0.0.0.0/1", "128.0.0.0/1"], 4), first);
    }

    #[test]
    fn where_everything_is_taken_there_is_none() {
        let all = ["10.0.0.0/8", "172.16.0.0/12", "198.18.0.0/15"];
        assert_eq!(chosen(&all, 4), None);
    }

    #[test]
    fn many_hosts_get_a_larger_network_that_holds_them_all() {
        let network = choose(&[], super::super::MOST_HOSTS).unwrap();
        assert_eq!(network.to_string(), "10.213.0.0/22");
        let last = network.host(super::super::MOST_HOSTS);
        assert!(last < network.nth(1023), "{last}");
        assert_eq!(
            chosen(&["10.213.1.9"], 201),
            Some("10.213.4.0/22".to_owned())
        );
        let small = choose(&[], 200).unwrap();
        assert_eq!(small.host(1).to_string(), "10.213.0.11");
        assert!(small.host(200) < small.nth(255));
    }

    #[test]
    fn networks_of_the_sixth_version_are_compared_too() {
        let ours = unique_local(0x1a2b);
        assert_eq!(ours.host(1).to_string(), "fda5:5a1a:1a2b::b");
        assert!(clashes(ours, &taken(&["fda5:5a1a:1a2b::77"])));
        assert!(!clashes(
            ours,
            &taken(&["fda5:5a1a:1a2c::/64", "10.213.0.0/24"])
        ));
    }

    /// As iproute2 6.1 prints them.
    #[test]
    fn addresses_and_routes_are_read_from_what_the_system_prints() {
        let addresses = r#"[{"ifname":"eth0","addr_info":[{"family":"inet","local":"192.0.2.2","prefixlen":24},
            {"family":"inet6","local":"fd00::2","prefixlen":64}]},{"ifname":"x"},{}]"#;
        assert_eq!(networks(addresses), taken(&["192.0.2.2/24", "fd00::2/64"]));
        let routes = r#"[{"dst":"default","gateway":"192.0.2.1"},{"dst":"10.1.0.0/16"},{"type":"local","dst":"127.0.0.1"}]"#;
        assert_eq!(networks(routes), taken(&["10.1.0.0/16", "127.0.0.1"]));
        assert_eq!(networks(""), []);
    }
}
