//! Regions that nobody stores: how many leaders each store has, which evens out after a start.

use std::collections::BTreeMap;

/// Regions of a cluster.
pub(crate) const REGIONS: u64 = 30;
/// Leaders that move in a second.
const MOVES: u64 = 4;

/// Leaders by store, `seconds` after all stores have come up. They start on the first store; `balanced` says whether they move.
pub(crate) fn leaders(stores: &[u64], seconds: u64, moves: bool) -> BTreeMap<u64, u64> {
    let Some((first, others)) = stores.split_first() else {
        return BTreeMap::new();
    };
    let count = stores.len() as u64;
    let share = |index: u64| REGIONS / count + u64::from(index < REGIONS % count);
    let due: u64 = if moves {
        (seconds * MOVES).min(REGIONS - share(0))
    } else {
        0
    };
    let mut leaders = BTreeMap::from([(*first, REGIONS - due)]);
    let mut left = due;
    for (index, store) in (1..).zip(others) {
        let taken = share(index).min(left);
        left -= taken;
        leaders.insert(*store, taken);
    }
    leaders
}

/// Whether leaders have still to move.
pub(crate) fn moving(stores: &[u64], seconds: u64, moves: bool) -> bool {
    stores.len() > 1 && leaders(stores, seconds, moves) != leaders(stores, REGIONS, true)
}
