//! How a balancer spread the connections over the servers behind it, as HAProxy's statistics tell.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Cluster, DatabaseError, Work};
use crate::probe::{self, Http};

/// The balancer whose statistics are understood, and where its pack has them answer on its own host.
const SYSTEM: &str = "haproxy";
const PORT: &str = "stats_port";
const PATH: &str = "/haproxy;csv";

/// What a line says that is of a server, rather than of a listener or all servers together.
const SERVER: &str = "2";

/// The connections of each server behind a balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// Servers by the name that the balancer has for them.
    pub servers: BTreeMap<String, Connections>,
}

/// The connections of one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// There now.
    pub current: u64,
    /// The most that were there at once since the balancer was started.
    pub most: u64,
    /// All since then.
    pub total: u64,
    /// Whether the balancer's checks say that the server is up.
    pub up: bool,
}

impl Spread {
    /// Reads HAProxy's statistics, as CSV: the servers of the listener `proxy`.
    ///
    /// # Errors
    /// It is no such CSV.
    pub fn parse(text: &str, proxy: &str) -> Result<Self, DatabaseError> {
        let mut lines = text.lines();
        let header = lines.next().unwrap_or_default().trim_start_matches("# ");
        let names: Vec<&str> = header.split(',').collect();
        let column = |name: &str| {
            let found = names.iter().position(|other| *other == name);
            found.ok_or_else(|| {
                DatabaseError::Other(format!(
                    "what `{PATH}` answers is no CSV with a column `{name}`"
                ))
            })
        };
        let columns = ["pxname", "svname", "scur", "smax", "stot", "status", "type"];
        let places = columns.map(column);
        let mut spread = Self::default();
        let [listener, name, current, most, total, status, kind] = places;
        let (listener, name, kind) = (listener?, name?, kind?);
        let (current, most, total, status) = (current?, most?, total?, status?);
        for line in lines {
            // No text with a comma stands before the columns that are read.
            let fields: Vec<&str> = line.split(',').collect();
            let text = |place: usize| fields.get(place).copied().unwrap_or_default();
            let number = |place: usize| text(place).parse().unwrap_or(0);
            if text(kind) != SERVER || text(listener) != proxy {
                continue;
            }
            let connections = Connections {
                current: number(current),
                most: number(most),
                total: number(total),
                // `UP 1/3` is on its way down.
                up: text(status).starts_with("UP") || text(status) == "no check",
            };
            spread.servers.insert(text(name).to_owned(), connections);
        }
        Ok(spread)
    }

    /// What happened between two looks: connections that were made, and those that were there at a look between them.
    #[must_use]
    pub fn between(before: &Self, during: Option<&Self>, after: &Self) -> Self {
        let none = Connections::default();
        let of = |spread: &Self, name: &str| spread.servers.get(name).copied().unwrap_or(none);
        let servers = after.servers.iter().map(|(name, last)| {
            let during = during.map(|during| of(during, name));
            let connections = Connections {
                current: during.map_or(0, |during| during.current),
                most: last.most,
                // A balancer that was started again counts from zero.
                total: last.total.saturating_sub(of(before, name).total),
                up: last.up && during.is_none_or(|during| during.up),
            };
            (name.clone(), connections)
        });
        Self {
            servers: servers.collect(),
        }
    }

    /// The connections of each server, `db1 40, db2 8`, where two servers differ by more than `most`, a share of the mean. It
    /// goes by those that were there at once, or by all that were made where none were seen. Servers are even as long as there
    /// is one connection more at the one than at the other, or fewer connections than servers.
    #[must_use]
    pub fn uneven(&self, most: f64) -> Option<String> {
        let of = |count: fn(&Connections) -> u64| -> Vec<(&str, u64)> {
            let servers = self.servers.iter();
            servers.map(|(name, c)| (&**name, count(c))).collect()
        };
        let sum = |counts: &[(&str, u64)]| counts.iter().map(|(_, n)| n).sum::<u64>();
        let mut counts = of(|c| c.current);
        if sum(&counts) == 0 {
            counts = of(|c| c.total);
        }
        let (servers, all) = (counts.len() as u64, sum(&counts));
        let numbers = || counts.iter().map(|(_, n)| *n);
        let gap = numbers().max()? - numbers().min()?;
        let mean = all as f64 / servers as f64;
        if all < servers || gap <= 1 || gap as f64 <= most * mean {
            return None;
        }
        let said = counts.iter().map(|(name, n)| format!("{name} {n}"));
        Some(said.collect::<Vec<_>>().join(", "))
    }
}

impl Cluster {
    /// The connections behind its balancer, where there is one that tells.
    pub(super) async fn connections(
        &self,
        work: Work<'_>,
    ) -> Result<Option<Spread>, DatabaseError> {
        let Work { hosts, bounds, .. } = work;
        let mut members = self.members.iter();
        let Some(balancer) = members.find(|m| m.instance.system == SYSTEM) else {
            return Ok(None);
        };
        let Some(port) = balancer.instance.ports.get(PORT) else {
            return Ok(None);
        };
        // Its own host gets them without a password.
        let request = Http::get(probe::url("127.0.0.1", *port, PATH, false));
        let host = &*hosts[&balancer.instance.host];
        let answer = probe::http(host, &request, bounds.stop).await?;
        if !answer.is_success() {
            let (url, status) = (&request.url, answer.status);
            let error = DatabaseError::Other(format!("`{url}` answers with status {status}"));
            return Err(error.of("cannot read the statistics of", balancer));
        }
        let spread = Spread::parse(&answer.body, &self.pack.name);
        let spread = spread.map_err(|e| e.of("cannot read the statistics of", balancer))?;
        Ok(Some(spread))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HAProxy 2.6 before two servers that are up and one that is down: idle, with nine connections, and after them.
    const BEFORE: &str = include_str!("../../../tests/fixtures/haproxy/before.csv");
    const DURING: &str = include_str!("../../../tests/fixtures/haproxy/during.csv");
    const AFTER: &str = include_str!("../../../tests/fixtures/haproxy/after.csv");

    fn read(text: &str) -> Spread {
        Spread::parse(text, "mariadb").unwrap()
    }

    fn of(counts: &[u64]) -> Spread {
        let server = |(n, current): (usize, &u64)| {
            let connections = Connections {
                current: *current,
                ..Connections::default()
            };
            (format!("db{}", n + 1), connections)
        };
        Spread {
            servers: counts.iter().enumerate().map(server).collect(),
        }
    }

    #[test]
    fn the_servers_of_a_listener_are_read_from_the_statistics() {
        let during = read(DURING);
        let found: Vec<_> = during.servers.iter().collect();
        let connections = |current: u64, up: bool| Connections {
            current,
            most: current,
            total: current,
            up,
        };
        let names = ["db1:3306", "db2:3306", "db3:3306"].map(str::to_owned);
        let expected = [
            (&names[0], &connections(6, true)),
            (&names[1], &connections(3, true)),
            (&names[2], &connections(0, false)),
        ];
        assert_eq!(found, expected);
        assert_eq!(Spread::parse(DURING, "other").unwrap(), Spread::default());
    }

    #[test]
    fn a_page_that_is_no_csv_is_refused() {
        let error = Spread::parse("<html>", "mariadb").unwrap_err();
        assert!(error.to_string().contains("no CSV with a column `pxname`"));
    }

    #[test]
    fn what_happened_between_two_looks_is_the_difference_and_the_look_between() {
        let (before, during, after) = (read(BEFORE), read(DURING), read(AFTER));
        let found = Spread::between(&before, Some(&during), &after);
        let db1 = found.servers["db1:3306"];
        assert_eq!((db1.current, db1.most, db1.total), (6, 6, 6));
        let said = "db1:3306 6, db2:3306 3, db3:3306 0";
        assert_eq!(found.uneven(0.2).as_deref(), Some(said));
        // A second round of the same balancer, without a look between.
        let found = Spread::between(&after, None, &after);
        assert_eq!(found.servers["db1:3306"].total, 0);
        assert_eq!(found.uneven(0.2), None);
        let found = Spread::between(&before, None, &after);
        assert_eq!(found.uneven(0.2).as_deref(), Some(said));
    }

    #[test]
    fn servers_are_even_within_the_share_or_a_single_connection() {
        assert_eq!(of(&[40, 8]).uneven(0.2).as_deref(), Some("db1 40, db2 8"));
        assert_eq!(of(&[105, 95, 100]).uneven(0.2), None);
        assert_eq!(of(&[3, 2, 3]).uneven(0.0), None);
        // Two connections at one of three servers are no matter of the balancer.
        assert_eq!(of(&[2, 0, 0]).uneven(0.2), None);
        assert_eq!(
            of(&[3, 0, 0]).uneven(0.2).as_deref(),
            Some("db1 3, db2 0, db3 0")
        );
        assert_eq!(of(&[]).uneven(0.2), None);
    }
}
