//! Ratios of one side to the other, on natural logs: doubling and halving cancel out, as they should.

use serde::Serialize;

use super::{Summary, geometric_mean};

/// One side against the other over rounds that belong together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairedRatio {
    /// The ratio of each pair, in the order given.
    pub pairs: Vec<f64>,
    /// The ratio of the geometric means, which is the geometric mean of the pairs' ratios.
    pub ratio: f64,
    /// The smallest ratio of a pair.
    pub min: f64,
    /// The largest ratio of a pair.
    pub max: f64,
}

/// Why there is no ratio.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RatioError {
    /// There is no pair.
    #[error("there is no pair of rounds")]
    Empty,
    /// A value has no logarithm.
    #[error("a ratio needs values above 0, found {0}")]
    NotPositive(f64),
    /// Not every round has every cell.
    #[error("a round has {found} cells, the first has {wanted}")]
    Uneven {
        /// The cells of the first round.
        wanted: usize,
        /// The cells of another.
        found: usize,
    },
}

/// The ratio of the second of each pair to the first.
///
/// # Errors
/// There is no pair, or a value is not above 0 and finite.
pub fn paired_ratio(pairs: &[(f64, f64)]) -> Result<PairedRatio, RatioError> {
    if let Some(bad) = pairs
        .iter()
        .flat_map(|(a, b)| [*a, *b])
        .find(|v| !v.is_finite() || *v <= 0.0)
    {
        return Err(RatioError::NotPositive(bad));
    }
    let ratios: Vec<f64> = pairs.iter().map(|(a, b)| b / a).collect();
    let ratio = geometric_mean(&ratios).ok_or(RatioError::Empty)?;
    let spread = Summary::of(&ratios).ok_or(RatioError::Empty)?;
    Ok(PairedRatio {
        pairs: ratios,
        ratio,
        min: spread.min,
        max: spread.max,
    })
}

/// One side against the other over all cells of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Overall {
    /// The geometric mean over rounds of the geometric mean over the cells of a round.
    pub ratio: f64,
    /// Rounds that have every cell on both sides.
    pub rounds: usize,
    /// Cells.
    pub cells: usize,
    /// The ratio of the cell with the smallest.
    pub min: f64,
    /// The ratio of the cell with the largest.
    pub max: f64,
    /// Cells with a ratio above 1.
    pub up: usize,
    /// Cells with a ratio below 1.
    pub down: usize,
}

/// The ratio over all cells, from `ratios[round][cell]`; only complete rounds may be given.
///
/// # Errors
/// There is no round or no cell, rounds differ in their cells, or a ratio is not above 0 and finite.
pub fn overall(ratios: &[Vec<f64>]) -> Result<Overall, RatioError> {
    let cells = ratios.first().map_or(0, Vec::len);
    if let Some(round) = ratios.iter().find(|r| r.len() != cells) {
        return Err(RatioError::Uneven {
            wanted: cells,
            found: round.len(),
        });
    }
    if let Some(bad) = ratios
        .iter()
        .flatten()
        .find(|v| !v.is_finite() || **v <= 0.0)
    {
        return Err(RatioError::NotPositive(*bad));
    }
    let all: Vec<f64> = ratios.concat();
    let by_cell: Vec<f64> = (0..cells)
        .filter_map(|c| geometric_mean(&ratios.iter().map(|r| r[c]).collect::<Vec<_>>()))
        .collect();
    let spread = Summary::of(&by_cell).ok_or(RatioError::Empty)?;
    Ok(Overall {
        ratio: geometric_mean(&all).ok_or(RatioError::Empty)?,
        rounds: ratios.len(),
        cells,
        min: spread.min,
        max: spread.max,
        up: by_cell.iter().filter(|r| **r > 1.0).count(),
        down: by_cell.iter().filter(|r| **r < 1.0).count(),
    })
}

/// One known answer; computed outside, as each file says.
#[cfg(test)]
pub(super) struct Case {
    pub(super) id: String,
    pub(super) input: serde_json::Value,
    pub(super) expected: serde_json::Value,
}

#[cfg(test)]
impl Case {
    pub(super) fn numbers(&self, side: &str) -> Vec<f64> {
        serde_json::from_value(self.input[side].clone()).unwrap()
    }
}

/// The known answers of one kind.
#[cfg(test)]
pub(super) fn cases(file: &str, kind: &str) -> Vec<Case> {
    let text = match file {
        "means" => include_str!("../../tests/fixtures/statistics/means.json"),
        "overall" => include_str!("../../tests/fixtures/statistics/overall.json"),
        other => panic!("no known answers in `{other}`"),
    };
    let all: serde_json::Value = serde_json::from_str(text).unwrap();
    let of_kind = |case: &&serde_json::Value| case["kind"] == kind;
    let read = |case: &serde_json::Value| Case {
        id: case["id"].as_str().unwrap().to_owned(),
        input: case["input"].clone(),
        expected: case["expected"].clone(),
    };
    let cases = all["cases"].as_array().unwrap();
    cases.iter().filter(of_kind).map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, wanted: &serde_json::Value) -> bool {
        (found / wanted.as_f64().unwrap() - 1.0).abs() < 1e-9
    }

    #[test]
    fn paired_ratios_are_the_known_ones() {
        let cases = cases("means", "paired_log_ratio");
        assert_eq!(cases.len(), 6);
        for case in cases {
            let pairs: Vec<_> = case
                .numbers("a")
                .into_iter()
                .zip(case.numbers("b"))
                .collect();
            let found = paired_ratio(&pairs).unwrap();
            assert!(close(found.ratio, &case.expected["ratio"]), "{}", case.id);
            let logs = case.expected["d"].as_array().cloned().unwrap_or_default();
            for (ratio, log) in found.pairs.iter().zip(&logs) {
                assert!((ratio.ln() - log.as_f64().unwrap()).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn the_ratio_over_all_cells_is_the_known_one() {
        let cases = cases("overall", "overall");
        assert_eq!(cases.len(), 4);
        for case in cases {
            let side = |name: &str| -> Vec<Vec<f64>> {
                serde_json::from_value(case.input[name].clone()).unwrap()
            };
            let ratios: Vec<Vec<f64>> = side("a")
                .iter()
                .zip(&side("b"))
                .map(|(a, b)| a.iter().zip(b).map(|(a, b)| b / a).collect())
                .collect();
            let found = overall(&ratios).unwrap();
            assert!(
                close(found.ratio, &case.expected["geomean_ratio"]),
                "{}",
                case.id
            );
            let logs: Vec<f64> =
                serde_json::from_value(case.expected["cell_log_ratio"].clone()).unwrap();
            assert_eq!(found.up, logs.iter().filter(|d| **d > 0.0).count());
            assert_eq!(found.down, logs.iter().filter(|d| **d < 0.0).count());
            let largest = logs.iter().copied().fold(f64::MIN, f64::max).exp();
            assert!((found.max / largest - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn doubling_and_halving_cancel_out() {
        let found = paired_ratio(&[(100.0, 200.0), (100.0, 50.0)]).unwrap();
        assert!((found.ratio - 1.0).abs() < 1e-12);
        assert_eq!((found.min, found.max), (0.5, 2.0));
    }

    #[test]
    fn there_is_no_ratio_without_pairs_or_with_a_zero() {
        assert_eq!(paired_ratio(&[]), Err(RatioError::Empty));
        assert_eq!(
            paired_ratio(&[(1.0, 2.0), (0.0, 2.0)]),
            Err(RatioError::NotPositive(0.0))
        );
        assert_eq!(overall(&[]), Err(RatioError::Empty));
        assert_eq!(
            overall(&[vec![1.0, 2.0], vec![1.0]]),
            Err(RatioError::Uneven {
                wanted: 2,
                found: 1
            })
        );
    }
}
