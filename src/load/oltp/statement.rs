//! The statements of the OLTP scripts and how often an event runs each.

use crate::load::backend::Access;
use crate::spec::Kind;

/// One kind of statement, or of a pair that goes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    PointSelect,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    IndexUpdate,
    NonIndexUpdate,
    /// Deletes a row and puts another one of the same id in.
    DeleteInsert,
    /// Inserts a row that the database numbers.
    Insert,
    Delete,
}

impl Verb {
    /// Its statements, with `#` for the table's number.
    pub(super) const fn statements(self) -> &'static [&'static str] {
        match self {
            Self::PointSelect => &["SELECT c FROM sbtest# WHERE id=?"],
            Self::SimpleRange => &["SELECT c FROM sbtest# WHERE id BETWEEN ? AND ?"],
            Self::SumRange => &["SELECT SUM(k) FROM sbtest# WHERE id BETWEEN ? AND ?"],
            Self::OrderRange => &["SELECT c FROM sbtest# WHERE id BETWEEN ? AND ? ORDER BY c"],
            Self::DistinctRange => {
                &["SELECT DISTINCT c FROM sbtest# WHERE id BETWEEN ? AND ? ORDER BY c"]
            }
            Self::IndexUpdate => &["UPDATE sbtest# SET k=k+1 WHERE id=?"],
            Self::NonIndexUpdate => &["UPDATE sbtest# SET c=? WHERE id=?"],
            Self::DeleteInsert => &[
                "DELETE FROM sbtest# WHERE id=?",
                "INSERT INTO sbtest# (id, k, c, pad) VALUES (?, ?, ?, ?)",
            ],
            Self::Insert => &["INSERT INTO sbtest# (k, c, pad) VALUES (?, ?, ?)"],
            Self::Delete => &["DELETE FROM sbtest# WHERE id=?"],
        }
    }
}

/// What an event of an OLTP workload runs, in order, and the transaction around it, if its script has one.
pub(super) fn event(kind: Kind) -> (&'static [(Verb, u32)], Option<Access>) {
    const READS: [(Verb, u32); 5] = [
        (Verb::PointSelect, 10),
        (Verb::SimpleRange, 1),
        (Verb::SumRange, 1),
        (Verb::OrderRange, 1),
        (Verb::DistinctRange, 1),
    ];
    const WRITES: [(Verb, u32); 3] = [
        (Verb::IndexUpdate, 1),
        (Verb::NonIndexUpdate, 1),
        (Verb::DeleteInsert, 1),
    ];
    const BOTH: [(Verb, u32); 8] = [
        READS[0], READS[1], READS[2], READS[3], READS[4], WRITES[0], WRITES[1], WRITES[2],
    ];
    match kind {
        Kind::OltpPointSelect => (&[(Verb::PointSelect, 1)], None),
        Kind::OltpReadOnly => (&READS, Some(Access::Read)),
        Kind::OltpReadWrite => (&BOTH, Some(Access::Write)),
        Kind::OltpWriteOnly => (&WRITES, Some(Access::Write)),
        Kind::OltpUpdateIndex => (&[(Verb::IndexUpdate, 1)], None),
        Kind::OltpUpdateNonIndex => (&[(Verb::NonIndexUpdate, 1)], None),
        Kind::OltpInsert => (&[(Verb::Insert, 1)], None),
        Kind::OltpDelete => (&[(Verb::Delete, 1)], None),
        Kind::YcsbA | Kind::YcsbB | Kind::YcsbC | Kind::YcsbD | Kind::YcsbE | Kind::YcsbF => {
            unreachable!("ycsb workloads have no oltp events")
        }
    }
}
