//! The shares of the operations in each workload, from YCSB's files `workloads/workloada` to `workloadf`.

use rand::RngExt;

use crate::load::random::Rng;
use crate::spec::Kind;

/// What a client does in one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Reads all fields of a row.
    Read,
    /// Changes one field of a row.
    Update,
    /// Adds a row.
    Insert,
    /// Reads rows in key order.
    Scan,
    /// Reads a row and changes one of its fields, in one transaction.
    ReadModifyWrite,
}

/// Operations with their shares.
#[derive(Debug)]
pub(super) struct Mix {
    /// The names, in name order.
    pub(super) names: &'static [&'static str],
    /// The operations in the same order, and the percentage that they and those before them make up.
    shares: &'static [(Operation, u32)],
}

impl Mix {
    /// The next operation and its position among the names.
    pub(super) fn draw(&self, rng: &mut Rng) -> (usize, Operation) {
        let drawn = rng.random_range(0..100);
        let position = self.shares.partition_point(|(_, up_to)| *up_to <= drawn);
        (position, self.shares[position].0)
    }
}

/// The mix of a YCSB workload.
pub(super) fn of(kind: Kind) -> &'static Mix {
    use Operation::{Insert, Read, ReadModifyWrite, Scan, Update};
    match kind {
        Kind::YcsbA => &Mix {
            names: &["read", "update"],
            shares: &[(Read, 50), (Update, 100)],
        },
        Kind::YcsbB => &Mix {
            names: &["read", "update"],
            shares: &[(Read, 95), (Update, 100)],
        },
        Kind::YcsbC => &Mix {
            names: &["read"],
            shares: &[(Read, 100)],
        },
        Kind::YcsbD => &Mix {
            names: &["insert", "read"],
            shares: &[(Insert, 5), (Read, 100)],
        },
        Kind::YcsbE => &Mix {
            names: &["insert", "scan"],
            shares: &[(Insert, 5), (Scan, 100)],
        },
        Kind::YcsbF => &Mix {
            names: &["read", "read_modify_write"],
            shares: &[(Read, 50), (ReadModifyWrite, 100)],
        },
        Kind::OltpPointSelect
        | Kind::OltpReadOnly
        | Kind::OltpReadWrite
        | Kind::OltpWriteOnly
        | Kind::OltpUpdateIndex
        | Kind::OltpUpdateNonIndex
        | Kind::OltpInsert
        | Kind::OltpDelete => unreachable!("oltp workloads are no mixes of ycsb operations"),
    }
}
