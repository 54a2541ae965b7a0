//! How often, and after which pauses, something is tried again that only the connection or a busy host is at fault for.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;
use tokio::time::sleep;

/// A transfer loses no more connections than that: what was written to a connection need not have arrived.
const MOST: u32 = 100;

/// How often something is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Connections that may be lost in a row without a byte transferred; with none, the first loss is the end.
    pub times: u32,
    /// The pause before the second connection; each further one is twice as long.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
    /// Where the pauses' random parts come from: each pause is shortened by up to a half, so that hosts that lost their
    /// connections together do not come back together.
    pub seed: u64,
}

impl Retry {
    /// The first failure counts.
    pub const NEVER: Self = Self {
        times: 0,
        first: Duration::ZERO,
        longest: Duration::ZERO,
        seed: 0,
    };

    /// Six attempts in a row, within half a minute or so.
    #[must_use]
    pub fn some(seed: u64) -> Self {
        Self {
            times: 5,
            first: Duration::from_secs(1),
            longest: Duration::from_secs(16),
            seed,
        }
    }

    /// As many attempts as take `patience` at most, if they themselves take no time.
    #[must_use]
    pub fn within(patience: Duration, first: Duration, longest: Duration) -> Self {
        let mut retry = Self {
            times: 0,
            first,
            longest,
            seed: RandomState::new().hash_one(first),
        };
        let mut left = patience;
        while let Some(rest) = left.checked_sub(retry.pause(retry.times)) {
            left = rest;
            retry.times += 1;
        }
        retry
    }

    /// The longest pause before one more attempt.
    fn pause(self, lost: u32) -> Duration {
        let pause = self.first.saturating_mul(1 << lost.min(20));
        pause.min(self.longest)
    }

    pub(crate) fn pauses(self) -> Pauses {
        Pauses {
            random: Pcg64::seed_from_u64(self.seed),
            retry: self,
            lost: 0,
            in_all: 0,
        }
    }
}

/// The pauses of one thing that is tried again.
pub(crate) struct Pauses {
    retry: Retry,
    random: Pcg64,
    /// Connections that were lost in a row without progress.
    lost: u32,
    in_all: u32,
}

impl Pauses {
    /// Waits before the next attempt; `false` if there is to be none.
    pub(crate) async fn next(&mut self, made_progress: bool) -> bool {
        self.lost = if made_progress { 0 } else { self.lost + 1 };
        self.in_all += 1;
        if self.retry.times == 0 || self.lost > self.retry.times || self.in_all > MOST {
            return false;
        }
        let doublings = self.lost.saturating_sub(1).min(20);
        let pause = self.retry.first.saturating_mul(1 << doublings);
        let pause = pause.min(self.retry.longest);
        sleep(pause.mul_f64(self.random.random_range(0.5..=1.0))).await;
        true
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    async fn waited(pauses: &mut Pauses, made_progress: bool) -> Option<Duration> {
        let start = Instant::now();
        let goes_on = pauses.next(made_progress).await;
        goes_on.then(|| start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_double_up_to_the_longest_with_jitter_and_then_it_gives_up() {
        let retry = Retry {
            longest: Duration::from_secs(6),
            ..Retry::some(3)
        };
        let mut pauses = retry.pauses();
        for most in [1, 2, 4, 6, 6] {
            let waited = waited(&mut pauses, false).await.unwrap();
            let most = Duration::from_secs(most);
            // The clock of tests has steps of a millisecond.
            let step = Duration::from_millis(2);
            assert!(waited >= most / 2 && waited <= most + step, "{waited:?}");
        }
        assert_eq!(waited(&mut pauses, false).await, None);
    }

    #[test]
    fn patience_is_as_many_attempts_as_fit_into_it() {
        let second = Duration::from_secs(1);
        let times =
            |seconds: u64| Retry::within(Duration::from_secs(seconds), second, 4 * second).times;
        // 1, 2, 4, 4, ... seconds.
        assert_eq!(
            [0, 1, 2, 3, 6, 7, 10, 11].map(times),
            [0, 1, 1, 2, 2, 3, 3, 4]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn progress_begins_the_count_anew() {
        let mut pauses = Retry {
            times: 1,
            ..Retry::some(3)
        }
        .pauses();
        for made_progress in [true, true, false, true, false] {
            assert!(waited(&mut pauses, made_progress).await.is_some());
        }
        assert_eq!(waited(&mut pauses, false).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn no_connection_is_lost_for_ever() {
        let mut pauses = Retry::some(3).pauses();
        let mut lost = 1;
        while waited(&mut pauses, true).await.is_some() {
            lost += 1;
        }
        assert_eq!(lost, MOST + 1);
        assert_eq!(waited(&mut Retry::NEVER.pauses(), true).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn two_hosts_do_not_come_back_together() {
        let first = waited(&mut Retry::some(1).pauses(), false).await;
        let second = waited(&mut Retry::some(2).pauses(), false).await;
        assert_ne!(first, second);
    }
}
