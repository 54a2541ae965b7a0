//! One metric over the rounds of one cell.

use serde::Serialize;

/// The values of some rounds in three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How many rounds.
    pub n: usize,
    /// Their arithmetic mean. Meaningless for percentiles: those are read from merged histograms.
    pub mean: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
}

impl Summary {
    /// The summary of `values`; `None` without any.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            n: values.len(),
            mean: mean(values)?,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

/// The arithmetic mean; `None` without values.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The geometric mean; `None` without values, or when one is not above 0 and finite.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let good = values.iter().all(|v| v.is_finite() && *v > 0.0);
    let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
    if good {
        mean(&logs).map(f64::exp)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::ratio::cases;

    #[test]
    fn a_summary_holds_mean_and_extremes() {
        let summary = Summary::of(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!(
            (summary.n, summary.mean, summary.min, summary.max),
            (3, 2.0, 1.0, 3.0)
        );
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn geometric_means_are_the_known_ones() {
        let mut checked = 0;
        for case in cases("overall", "geomean") {
            for side in ["a", "b"] {
                let found = geometric_mean(&case.numbers(side)).unwrap();
                let wanted = case.expected[&format!("geomean_{side}")].as_f64().unwrap();
                assert!((found / wanted - 1.0).abs() < 1e-12, "{} {side}", case.id);
                checked += 1;
            }
        }
        assert_eq!(checked, 4);
    }

    #[test]
    fn a_geometric_mean_of_zero_or_less_is_none() {
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert_eq!(geometric_mean(&[1.0, -1.0]), None);
        assert_eq!(geometric_mean(&[]), None);
    }
}
