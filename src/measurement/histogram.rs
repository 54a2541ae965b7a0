//! Latency histograms: microseconds from 1 µs to 1 h at three significant digits.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};

/// The smallest latency that is told apart, in µs.
const LOWEST_US: u64 = 1;
/// The largest latency that is told apart (1 h), in µs; longer ones are recorded as this.
const HIGHEST_US: u64 = 3_600_000_000;
/// Significant digits kept.
const DIGITS: u8 = 3;

/// A distribution of latencies in µs, with bounds and precision that are the same everywhere, so that any two merge.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency(Histogram<u64>);

/// A percentile in thousandths of a percent, so that its rank is computed in integers:
/// in floating point the rank of 7 % of 100 values comes out as 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percentile(u32);

/// A histogram that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// Its bounds or digits are not those of [`Latency`]; merging it would lose precision unseen.
    #[error("histogram has other bounds or digits (highest {highest} µs, {digits} digits)")]
    Settings {
        /// The highest trackable value found, in µs.
        highest: u64,
        /// The significant digits found.
        digits: u8,
    },
    /// The text is no HdrHistogram in the V2 encoding.
    #[error("not an HdrHistogram in V2 encoding: {0}")]
    Encoding(String),
}

impl Percentile {
    /// The median.
    pub const P50: Self = Self(50_000);
    /// The 95th percentile.
    pub const P95: Self = Self(95_000);
    /// The 99th percentile.
    pub const P99: Self = Self(99_000);
    /// The 99.9th percentile.
    pub const P999: Self = Self(99_900);

    /// The percentile of `thousandths` thousandths of a percent; above 100 % counts as 100 %.
    #[must_use]
    pub const fn from_thousandths(thousandths: u32) -> Self {
        Self(if thousandths > 100_000 {
            100_000
        } else {
            thousandths
        })
    }

    /// ⌈q·n⌉, at least 1: the rank of the value that stands for this percentile among `n` values.
    #[must_use]
    pub fn rank(self, n: u64) -> u64 {
        let exact = (u128::from(self.0) * u128::from(n)).div_ceil(100_000);
        u64::try_from(exact).expect("a rank is at most n").max(1)
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self::new()
    }
}

impl Latency {
    /// An empty distribution.
    #[must_use]
    pub fn new() -> Self {
        Self(
            Histogram::new_with_bounds(LOWEST_US, HIGHEST_US, DIGITS)
                .expect("the bounds are valid"),
        )
    }

    /// Records one latency; under 1 µs counts as 1 µs, over 1 h as 1 h.
    pub fn record(&mut self, latency: Duration) {
        self.record_us(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
    }

    /// Records one latency in µs, with the same bounds.
    pub fn record_us(&mut self, us: u64) {
        self.0.saturating_record(us.clamp(LOWEST_US, HIGHEST_US));
    }

    /// Adds every count of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.0
            .add(&other.0)
            .expect("all latency histograms share their bounds");
    }

    /// Forgets everything recorded and keeps the memory.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// How many latencies were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The mean in µs; 0 when empty.
    #[must_use]
    pub fn mean_us(&self) -> f64 {
        if self.0.is_empty() {
            0.0
        } else {
            self.0.mean()
        }
    }

    /// The smallest latency in µs, to three digits; `None` when empty.
    #[must_use]
    pub fn min_us(&self) -> Option<u64> {
        (!self.0.is_empty()).then(|| self.0.min())
    }

    /// The largest latency in µs, to three digits; `None` when empty.
    #[must_use]
    pub fn max_us(&self) -> Option<u64> {
        (!self.0.is_empty()).then(|| self.0.max())
    }

    /// The latency in µs at `percentile`: the highest value of the bucket that holds the value of rank ⌈q·n⌉.
    /// `None` when empty.
    #[must_use]
    pub fn at(&self, percentile: Percentile) -> Option<u64> {
        if self.0.is_empty() {
            return None;
        }
        let wanted = percentile.rank(self.0.len());
        let mut seen = 0;
        for step in self.0.iter_recorded() {
            seen += step.count_at_value();
            if seen >= wanted {
                return Some(self.0.highest_equivalent(step.value_iterated_to()));
            }
        }
        unreachable!("a rank is at most the count")
    }

    /// How many recorded values lie beyond `percentile`'s rank: with fewer than ten it says little.
    #[must_use]
    pub fn beyond(&self, percentile: Percentile) -> u64 {
        self.0.len().saturating_sub(percentile.rank(self.0.len()))
    }

    /// The recorded buckets in rising order: value in µs and count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0
            .iter_recorded()
            .map(|step| (step.value_iterated_to(), step.count_at_value()))
    }

    /// The V2 deflate encoding in base64, as HdrHistogram logs of any language hold it.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.0, &mut bytes)
            .expect("writing to memory cannot fail");
        BASE64.encode(bytes)
    }

    /// Reads what [`Latency::encode`] writes.
    ///
    /// # Errors
    /// The text is no histogram, or one with other settings.
    pub fn decode(text: &str) -> Result<Self, HistogramError> {
        let bytes = BASE64
            .decode(text.trim())
            .map_err(|e| HistogramError::Encoding(e.to_string()))?;
        let read: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|e| HistogramError::Encoding(e.to_string()))?;
        if read.high() != HIGHEST_US || read.low() != LOWEST_US || read.sigfig() != DIGITS {
            return Err(HistogramError::Settings {
                highest: read.high(),
                digits: read.sigfig(),
            });
        }
        Ok(Self(read))
    }

    pub(super) fn inner(&self) -> &Histogram<u64> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Latency {
        let mut latency = Latency::new();
        values.into_iter().for_each(|us| latency.record_us(us));
        latency
    }

    #[test]
    fn the_rank_is_computed_in_integers() {
        // The ranks that floating point gets wrong, from the recorded known answers (hdr.json, rank_floating_point_trap).
        for (per_mille, rank) in [
            (70, 7),
            (140, 14),
            (280, 28),
            (550, 55),
            (560, 56),
            (990, 99),
            (999, 100),
        ] {
            let percentile = Percentile::from_thousandths(per_mille * 100);
            assert_eq!(percentile.rank(100), rank);
            assert_eq!(of(1..=100).at(percentile), Some(rank));
        }
    }

    #[test]
    fn percentiles_of_one_to_ten_thousand_are_the_known_ones() {
        let latency = of(1..=10_000);
        for (thousandths, us) in [
            (0, 1),
            (25_000, 2501),
            (50_000, 5003),
            (90_000, 9007),
            (95_000, 9503),
            (99_000, 9903),
            (99_900, 9991),
            (100_000, 10_007),
        ] {
            assert_eq!(
                latency.at(Percentile::from_thousandths(thousandths)),
                Some(us),
                "{thousandths}"
            );
        }
        assert!((latency.mean_us() - 5000.898).abs() < 1e-6);
    }

    #[test]
    fn merging_equals_recording_together() {
        let mut merged = of(1..=5_000);
        merged.merge(&of(5_001..=10_000));
        assert_eq!(merged, of(1..=10_000));
    }

    #[test]
    fn the_encoding_keeps_every_count() {
        let latency = of((1..=1000).map(|n| n * n));
        assert_eq!(Latency::decode(&latency.encode()).unwrap(), latency);
    }

    #[test]
    fn a_histogram_with_other_digits_is_refused() {
        let coarse = Histogram::<u64>::new_with_bounds(1, HIGHEST_US, 2).unwrap();
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&coarse, &mut bytes)
            .unwrap();
        let error = Latency::decode(&BASE64.encode(bytes)).unwrap_err();
        assert!(matches!(error, HistogramError::Settings { digits: 2, .. }));
    }

    #[test]
    fn values_out_of_bounds_count_at_the_bounds() {
        let mut latency = Latency::new();
        latency.record(Duration::from_nanos(10));
        latency.record(Duration::from_secs(10_000));
        assert_eq!((latency.count(), latency.min_us()), (2, Some(1)));
        assert!(latency.max_us() >= Some(HIGHEST_US));
    }
}
