//! Warm-up and window, cut into seconds. A second's slot is its position among those of both phases.

use std::time::Duration;

use crate::measurement::Phase;

/// One second, ns.
const SECOND: u64 = 1_000_000_000;

/// When what counts, in ns since the load began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    warmup: u64,
    end: u64,
}

impl Schedule {
    /// A warm-up with a window behind it.
    pub(super) fn new(warmup: Duration, window: Duration) -> Self {
        let nanoseconds = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX / 2);
        Self {
            warmup: nanoseconds(warmup),
            end: nanoseconds(warmup).saturating_add(nanoseconds(window)),
        }
    }

    /// When the window ends.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Length of the window, s.
    pub(super) fn window_s(&self) -> f64 {
        Duration::from_nanos(self.end - self.warmup).as_secs_f64()
    }

    /// Seconds of the warm-up; the last one may be short.
    pub(super) fn warmup_slots(&self) -> usize {
        self.warmup.div_ceil(SECOND) as usize
    }

    /// Seconds of both phases; the last one of each may be short.
    pub(super) fn slots(&self) -> usize {
        self.warmup_slots() + (self.end - self.warmup).div_ceil(SECOND) as usize
    }

    /// The slot of a moment before the end.
    pub(super) fn slot(&self, at: u64) -> usize {
        if at < self.warmup {
            (at / SECOND) as usize
        } else {
            self.warmup_slots() + ((at - self.warmup) / SECOND) as usize
        }
    }

    /// The moment that a slot ends.
    pub(super) fn until(&self, slot: usize) -> u64 {
        match slot.checked_sub(self.warmup_slots()) {
            None => self.warmup.min((slot as u64 + 1) * SECOND),
            Some(second) => self.end.min(self.warmup + (second as u64 + 1) * SECOND),
        }
    }

    /// The phase of a slot and its second within.
    pub(super) fn phase(&self, slot: usize) -> (Phase, u64) {
        match slot.checked_sub(self.warmup_slots()) {
            None => (Phase::Warmup, slot as u64),
            Some(second) => (Phase::Measure, second as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_windows_seconds_start_anew_after_a_warmup_of_broken_length() {
        let ms = |n: u64| n * 1_000_000;
        let schedule = Schedule::new(Duration::from_millis(1500), Duration::from_millis(2250));
        assert_eq!((schedule.warmup_slots(), schedule.slots()), (2, 5));
        for (at, slot, phase, second, until) in [
            (0, 0, Phase::Warmup, 0, 1000),
            (1000, 1, Phase::Warmup, 1, 1500),
            (1499, 1, Phase::Warmup, 1, 1500),
            (1500, 2, Phase::Measure, 0, 2500),
            (2499, 2, Phase::Measure, 0, 2500),
            (3500, 4, Phase::Measure, 2, 3750),
            (3749, 4, Phase::Measure, 2, 3750),
        ] {
            assert_eq!(schedule.slot(ms(at)), slot, "at {at} ms");
            assert_eq!(schedule.phase(slot), (phase, second));
            assert_eq!(schedule.until(slot), ms(until));
        }
    }

    #[test]
    fn without_a_warmup_everything_counts() {
        let schedule = Schedule::new(Duration::ZERO, Duration::from_secs(2));
        assert_eq!(schedule.phase(schedule.slot(0)), (Phase::Measure, 0));
        assert_eq!(schedule.slots(), 2);
    }
}
