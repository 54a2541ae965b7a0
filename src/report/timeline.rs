//! Per-second courses of rounds, small enough to travel inside a page.

use crate::measurement::{Interval, Phase};

/// The most points that all courses together may have: about 1 MB as JSON.
const BUDGET: usize = 90_000;
/// A course of more seconds than this (11 days) is a damaged file.
const LONGEST: usize = 1_000_000;
/// A rest of a second shorter than this gives no meaningful rate and is left out.
const SHORTEST_S: f64 = 0.1;
/// The name that intervals of all operations together carry.
const ALL: &str = "all";

/// The courses of all rounds, at one resolution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timelines {
    /// Seconds that one point stands for.
    pub step_s: u64,
    /// One for each round that left intervals.
    pub courses: Vec<Course>,
}

/// The course of one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// The round.
    pub round: String,
    /// Whether the round is good.
    pub good: bool,
    /// The second of the first point; the window begins at 0, warm-up lies before.
    pub first_s: i64,
    /// Operations/s that succeeded.
    pub rates: Vec<u64>,
    /// 99th percentile of a second in µs, the highest of its seconds where a point stands for several;
    /// `None` in seconds without a success.
    pub p99_us: Vec<Option<u64>>,
}

impl Timelines {
    /// Courses at the finest resolution that keeps all of them within the budget.
    #[must_use]
    pub fn of(courses: Vec<Course>) -> Self {
        let points: usize = courses.iter().map(|c| c.rates.len()).sum();
        let step_s = points.div_ceil(BUDGET).max(1) as u64;
        let courses = if step_s == 1 {
            courses
        } else {
            courses.into_iter().map(|c| c.coarser(step_s)).collect()
        };
        Self { step_s, courses }
    }
}

impl Course {
    /// The course that `intervals` tell; `None` without any. `lengths` are those of warm-up and window, s.
    /// Where they hold no line for all operations together, the highest p99 of an operation stands in, a bound from above.
    #[must_use]
    pub(super) fn of(
        round: &str,
        good: bool,
        intervals: &[Interval],
        lengths: (f64, f64),
    ) -> Option<Self> {
        let whole = intervals.iter().any(|i| i.operation == ALL);
        let used: Vec<&Interval> = intervals
            .iter()
            .filter(|i| (!whole || i.operation == ALL) && length(i, lengths) >= SHORTEST_S)
            .collect();
        let warmup = used
            .iter()
            .filter(|i| i.phase == Phase::Warmup)
            .map(|i| i.second + 1)
            .max()
            .unwrap_or(0);
        // Both phases count their seconds from 0; here warm-up ends where the window begins.
        let place = |i: &Interval| match i.phase {
            Phase::Warmup => i.second,
            Phase::Measure => warmup + i.second,
        };
        let points = usize::try_from(used.iter().map(|i| place(i)).max()? + 1)
            .ok()
            .filter(|n| *n <= LONGEST)?;
        let mut rates = vec![0.0; points];
        let mut p99_us = vec![None; points];
        for interval in used {
            let at = usize::try_from(place(interval)).ok()?;
            rates[at] += interval.count as f64 / length(interval, lengths);
            if interval.count > 0 {
                p99_us[at] = p99_us[at].max(Some(interval.p99_us));
            }
        }
        Some(Self {
            round: round.to_owned(),
            good,
            first_s: -i64::try_from(warmup).ok()?,
            rates: rates.into_iter().map(|r: f64| r.round() as u64).collect(),
            p99_us,
        })
    }

    /// The same course with points that stand for `step` seconds, one of which begins with the window.
    fn coarser(self, step: u64) -> Self {
        let step = i64::try_from(step).expect("a step is small");
        let first = self.first_s.div_euclid(step);
        let mut bins: Vec<(u64, u64, Option<u64>)> = Vec::new();
        for (n, (rate, p99)) in self.rates.iter().zip(&self.p99_us).enumerate() {
            let second = self.first_s + i64::try_from(n).expect("a course is short");
            let bin = usize::try_from(second.div_euclid(step) - first).expect("time rises");
            bins.resize(bins.len().max(bin + 1), (0, 0, None));
            bins[bin].0 += rate;
            bins[bin].1 += 1;
            bins[bin].2 = bins[bin].2.max(*p99);
        }
        Self {
            first_s: first * step,
            rates: bins.iter().map(|(sum, n, _)| sum / n.max(&1)).collect(),
            p99_us: bins.iter().map(|(.., p99)| *p99).collect(),
            ..self
        }
    }
}

/// How much of a second an interval covers: the last of a phase may be short.
fn length(interval: &Interval, (warmup, window): (f64, f64)) -> f64 {
    let phase = match interval.phase {
        Phase::Warmup => warmup,
        Phase::Measure => window,
    };
    (phase - interval.second as f64).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(phase: Phase, second: u64, operation: &str, count: u64, p99_us: u64) -> Interval {
        Interval {
            phase,
            second,
            operation: operation.into(),
            count,
            errors: 0,
            mean_us: 0.0,
            p50_us: 0,
            p95_us: 0,
            p99_us,
            max_us: 0,
        }
    }

    #[test]
    fn warm_up_lies_before_second_zero() {
        let intervals = [
            second(Phase::Warmup, 0, "read", 5, 9),
            second(Phase::Warmup, 1, "read", 6, 9),
            second(Phase::Measure, 0, "read", 7, 8),
            second(Phase::Measure, 2, "read", 8, 7),
        ];
        let course = Course::of("r", true, &intervals, (2.0, 3.0)).unwrap();
        assert_eq!(course.first_s, -2);
        assert_eq!(course.rates, [5, 6, 7, 0, 8]);
        assert_eq!(course.p99_us, [Some(9), Some(9), Some(8), None, Some(7)]);
        assert_eq!(Course::of("r", true, &[], (2.0, 3.0)), None);
    }

    #[test]
    fn a_short_last_second_counts_by_its_length_and_a_sliver_is_left_out() {
        let intervals = [
            second(Phase::Warmup, 0, "all", 30, 9),
            second(Phase::Measure, 0, "all", 100, 9),
            second(Phase::Measure, 1, "all", 50, 9),
        ];
        let rates = |lengths| Course::of("r", true, &intervals, lengths).unwrap().rates;
        assert_eq!(rates((0.25, 1.5)), [120, 100, 100]);
        assert_eq!(rates((0.25, 1.001)), [120, 100]);
    }

    #[test]
    fn a_line_for_all_operations_is_preferred_to_their_sum() {
        let intervals = [
            second(Phase::Measure, 0, "all", 10, 50),
            second(Phase::Measure, 0, "read", 6, 40),
            second(Phase::Measure, 0, "update", 4, 60),
        ];
        let course = Course::of("r", true, &intervals, (2.0, 3.0)).unwrap();
        assert_eq!((&course.rates[..], course.p99_us[0]), (&[10][..], Some(50)));
        let course = Course::of("r", true, &intervals[1..], (0.0, 1.0)).unwrap();
        assert_eq!((&course.rates[..], course.p99_us[0]), (&[10][..], Some(60)));
    }

    #[test]
    fn long_courses_are_thinned_to_the_budget_and_the_window_still_begins_at_zero() {
        let course = Course {
            round: "r".into(),
            good: true,
            first_s: -5,
            rates: (0..BUDGET as u64 * 3).collect(),
            p99_us: (0..BUDGET as u64 * 3).map(Some).collect(),
        };
        let thin = Timelines::of(vec![course]);
        assert_eq!(thin.step_s, 3);
        let course = &thin.courses[0];
        assert_eq!(course.first_s, -6);
        // Seconds -5 and -4, then -3 to -1, then 0 to 2.
        assert_eq!(course.rates[..3], [0, 3, 6]);
        assert_eq!(course.p99_us[..3], [Some(1), Some(4), Some(7)]);
        assert!(course.rates.len() <= BUDGET + 1);
    }
}
