//! Pearson's chi-square test, for the tests of what is drawn at random.

/// Upper 0.1 % points of the chi-square distribution by degrees of freedom:
/// NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.4.
const CRITICAL: [(usize, f64); 6] = [
    (1, 10.828),
    (4, 18.467),
    (9, 27.877),
    (24, 51.179),
    (49, 85.351),
    (99, 148.230),
];

/// How far `observed` counts are from `expected` probabilities, as a share of the critical value: above 1, one in a
/// thousand samples of the expected distribution is as far.
///
/// # Panics
/// When the bins are not as many as the table knows, a bin expects fewer than five, or the probabilities do not sum to 1.
pub(super) fn distance(observed: &[u64], expected: &[f64]) -> f64 {
    assert_eq!(observed.len(), expected.len());
    let critical = CRITICAL.iter().find(|(df, _)| df + 1 == observed.len());
    let (_, critical) = critical.expect("the table has these degrees of freedom");
    let sum: f64 = expected.iter().sum();
    assert!((sum - 1.0).abs() < 1e-9, "the probabilities sum to {sum}");
    let draws = observed.iter().sum::<u64>() as f64;
    let terms = observed.iter().zip(expected).map(|(observed, p)| {
        let expected = p * draws;
        assert!(expected >= 5.0, "a bin expects {expected}");
        (*observed as f64 - expected).powi(2) / expected
    });
    terms.sum::<f64>() / critical
}

/// The counts of `draws` draws in bins that `bin` says.
pub(super) fn tally(bins: usize, draws: usize, mut bin: impl FnMut() -> usize) -> Vec<u64> {
    let mut observed = vec![0; bins];
    (0..draws).for_each(|_| observed[bin()] += 1);
    observed
}

#[test]
fn a_die_of_pearsons_kind_is_told_from_a_fair_one() {
    // Worked by hand: (5-8)²/8 + 4·(8-8)²/8 ... = 18/8 for counts 5, 8, 8, 8, 11 of 40.
    let fair = distance(&[5, 8, 8, 8, 11], &[0.2; 5]);
    assert!((fair - 18.0 / 8.0 / 18.467).abs() < 1e-12);
    assert!(distance(&[500, 800, 800, 800, 1100], &[0.2; 5]) > 1.0);
}
