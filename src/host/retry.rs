//! Pauses between attempts: longer each time, and never the same for two hosts that failed together.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The pauses between the attempts at one thing.
#[derive(Debug)]
pub struct Retry {
    pause: Duration,
    longest: Duration,
    deadline: Instant,
}

impl Retry {
    /// Attempts for as long as `patience`, with pauses from `first` to `longest`, doubling.
    #[must_use]
    pub fn new(patience: Duration, first: Duration, longest: Duration) -> Self {
        Self {
            pause: first,
            longest,
            deadline: Instant::now() + patience,
        }
    }

    /// Waits before the next attempt; false if there is to be none.
    pub async fn again(&mut self) -> bool {
        let pause = jittered(self.pause);
        self.pause = (self.pause * 2).min(self.longest);
        if Instant::now() + pause > self.deadline {
            return false;
        }
        sleep(pause).await;
        true
    }
}

/// Half to one and a half of a pause.
fn jittered(pause: Duration) -> Duration {
    let noise = RandomState::new().hash_one(pause) % 1024;
    let noise = u32::try_from(noise).expect("it is below 1024");
    pause / 2 + pause * noise / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn attempts_end_when_patience_does_and_pauses_grow() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut retry = Retry::new(20 * second, second, 4 * second);
        let mut pauses = Vec::new();
        let mut last = start;
        while retry.again().await {
            pauses.push(last.elapsed());
            last = Instant::now();
        }
        assert!(start.elapsed() <= 20 * second);
        assert!(
            (second / 2..second * 3 / 2).contains(&pauses[0]),
            "{pauses:?}"
        );
        assert!((second..3 * second).contains(&pauses[1]), "{pauses:?}");
        assert!(
            pauses[2..]
                .iter()
                .all(|p| (2 * second..6 * second).contains(p))
        );
        assert!(pauses.len() >= 4, "{pauses:?}");
    }

    #[test]
    fn two_that_failed_together_come_back_apart() {
        let pauses = [(); 32].map(|()| jittered(Duration::from_secs(1)));
        assert!(pauses.iter().any(|p| *p != pauses[0]));
    }
}
