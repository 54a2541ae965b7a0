//! Time as a client thread sees it: nanoseconds since the load began. Tests move it by hand.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A clock that can be waited on.
pub(super) trait Clock {
    /// Nanoseconds since the load began.
    fn now(&self) -> u64;

    /// Returns at `at`, or soon after `stop` is set.
    fn wait_until(&self, at: u64, stop: &AtomicBool);
}

/// The real clock.
pub(super) struct Wall(Instant);

impl Wall {
    /// A clock that counts from `start`.
    pub(super) fn from(start: Instant) -> Self {
        Self(start)
    }
}

/// Sleeping overshoots by the kernel's timer slack (50 µs) and the wake-up; the last stretch is waited for awake,
/// since an open loop would count the overshoot as the database's latency.
const AWAKE: Duration = Duration::from_micros(100);
/// How often a long sleep looks whether the run was stopped.
const NAP: Duration = Duration::from_millis(100);

impl Clock for Wall {
    fn now(&self) -> u64 {
        // 2^64 ns are 584 years.
        Instant::now().saturating_duration_since(self.0).as_nanos() as u64
    }

    fn wait_until(&self, at: u64, stop: &AtomicBool) {
        loop {
            let left = Duration::from_nanos(at.saturating_sub(self.now()));
            if left.is_zero() || stop.load(Ordering::Relaxed) {
                return;
            }
            match left.checked_sub(AWAKE) {
                Some(sleep) => thread::sleep(sleep.min(NAP)),
                None => std::hint::spin_loop(),
            }
        }
    }
}
