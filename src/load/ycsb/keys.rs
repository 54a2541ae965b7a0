//! The record numbers that a run inserts. A record counts as there only when it and all before it are,
//! as in YCSB's `AcknowledgedCounterGenerator`, so that whoever draws among the newest never misses.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The shared counter of inserted records; only inserting operations write it.
#[derive(Debug)]
pub(super) struct Inserts {
    next: AtomicU64,
    newest: AtomicU64,
    /// Records that are in while one before them is not.
    ahead: Mutex<BTreeSet<u64>>,
}

impl Inserts {
    /// Records below `first`, which is at least 1, are there.
    pub(super) fn from(first: u64) -> Self {
        Self {
            next: AtomicU64::new(first),
            newest: AtomicU64::new(first - 1),
            ahead: Mutex::default(),
        }
    }

    /// A number that nobody else gets.
    pub(super) fn take(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Says that `record` is in the database, for every connection to see.
    pub(super) fn acknowledge(&self, record: u64) {
        let mut ahead = self.ahead.lock().expect("no holder of this lock panics");
        ahead.insert(record);
        let mut newest = self.newest.load(Ordering::Relaxed);
        while ahead.remove(&(newest + 1)) {
            newest += 1;
        }
        self.newest.store(newest, Ordering::Release);
    }

    /// The highest record that is there with all before it.
    pub(super) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_there_only_with_all_before_it() {
        let inserts = Inserts::from(100);
        let taken: Vec<u64> = (0..4).map(|_| inserts.take()).collect();
        assert_eq!((taken, inserts.newest()), (vec![100, 101, 102, 103], 99));
        for (acknowledged, newest) in [(102, 99), (100, 100), (101, 102), (103, 103)] {
            inserts.acknowledge(acknowledged);
            assert_eq!(inserts.newest(), newest);
        }
    }

    #[test]
    fn threads_share_the_numbers_without_gaps() {
        let inserts = Inserts::from(1);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| inserts.acknowledge(inserts.take())));
            }
        });
        assert_eq!((inserts.newest(), inserts.take()), (4000, 4001));
    }
}
