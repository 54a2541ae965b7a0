//! How far a host's clock is from this one's, from the midpoint of a round trip.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Host, HostError};

/// How many round trips are made; the shortest counts.
const SAMPLES: usize = 5;

/// A host's clock against this one's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// The host's clock minus this one's, ms. It is right to half of the round trip.
    pub offset_ms: f64,
    /// The round trip that it was found by, ms.
    pub round_trip_ms: f64,
}

/// One question for the time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    /// This clock when it was asked, µs of Unix time.
    asked_us: i64,
    /// The time until the answer was there.
    round_trip: Duration,
    /// The host's clock, µs of Unix time.
    told_us: i64,
}

/// Measures how far the host's clock is from this one's.
///
/// # Errors
/// The host could not be asked.
pub async fn clock_offset(host: &dyn Host) -> Result<ClockOffset, HostError> {
    let mut samples = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let (asked, start) = (jiff::Timestamp::now(), Instant::now());
        let told_us = host.time().await?;
        samples.push(Sample {
            asked_us: asked.as_microsecond(),
            round_trip: start.elapsed(),
            told_us,
        });
    }
    Ok(estimate(&samples).expect("there are samples"))
}

/// The offset by the sample with the shortest round trip, in whose middle the host is taken to have looked.
fn estimate(samples: &[Sample]) -> Option<ClockOffset> {
    let best = samples.iter().min_by_key(|sample| sample.round_trip)?;
    let round_trip_us = best.round_trip.as_secs_f64() * 1e6;
    // Whatever a host says: the difference of two numbers of 64 bits may need one more.
    let told_us = best.told_us as f64 - best.asked_us as f64;
    Some(ClockOffset {
        offset_ms: (told_us - round_trip_us / 2.0) / 1e3,
        round_trip_ms: round_trip_us / 1e3,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(asked_us: i64, round_trip_us: u64, told_us: i64) -> Sample {
        Sample {
            asked_us,
            round_trip: Duration::from_micros(round_trip_us),
            told_us,
        }
    }

    #[test]
    fn the_offset_is_that_of_the_middle_of_the_shortest_round_trip() {
        // The host is 700 ms ahead. Asked at 0, it looks after 1 of 2 ms, and later after 9 of 10 ms.
        let samples = [sample(50_000, 10_000, 759_000), sample(0, 2_000, 701_000)];
        let found = estimate(&samples).unwrap();
        assert_eq!((found.offset_ms, found.round_trip_ms), (700.0, 2.0));
    }

    #[test]
    fn no_answer_of_a_host_is_too_large() {
        for told_us in [i64::MIN, i64::MAX] {
            let found = estimate(&[sample(1_700_000_000_000_000, 4_000, told_us)]).unwrap();
            assert!(found.offset_ms.abs() > 9e15, "{found:?}");
        }
    }

    #[test]
    fn a_clock_that_is_behind_has_a_negative_offset() {
        let found = estimate(&[sample(10_000_000, 4_000, 9_402_000)]).unwrap();
        assert_eq!(found.offset_ms, -600.0);
        assert_eq!(estimate(&[]), None);
    }

    #[test]
    fn the_offset_is_off_by_half_of_the_round_trip_at_most() {
        for looked_us in [0, 1_000, 8_000] {
            let found = estimate(&[sample(0, 8_000, 5_000_000 + looked_us)]).unwrap();
            assert!((found.offset_ms - 5_000.0).abs() <= found.round_trip_ms / 2.0);
        }
    }
}
