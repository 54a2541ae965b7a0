//! How keys are drawn: uniform, Zipf with exponent 0.99 (scrambled, or from the newest backwards), sysbench's `special`.

use rand::RngExt;

use super::random::Rng;

/// YCSB's Zipf exponent.
const EXPONENT: f64 = 0.99;
/// The ranks that YCSB's scrambled generator draws from, whatever the number of records.
const SCRAMBLED_RANKS: u64 = 10_000_000_000;

/// How a YCSB record number is drawn.
#[derive(Clone, Debug)]
pub(super) enum Records {
    /// Every record alike.
    Uniform,
    /// Zipf over 10^10 ranks, each rank hashed to a record, as YCSB's `ScrambledZipfianGenerator`.
    Scrambled(Zipf),
    /// Zipf from the newest record backwards, as YCSB's `SkewedLatestGenerator`.
    Latest(Zipf),
}

impl Records {
    /// The scrambled Zipf distribution.
    pub(super) fn scrambled() -> Self {
        Self::Scrambled(Zipf::new(SCRAMBLED_RANKS))
    }

    /// The latest-first distribution; the number of records is given with each draw.
    pub(super) fn latest() -> Self {
        Self::Latest(Zipf::new(1))
    }

    /// A record number. `loaded` records were there before the run, `newest` is the highest that is there now.
    /// Only `latest` draws records inserted by the run: the keys that are hot under the others stay the same throughout.
    pub(super) fn draw(&mut self, rng: &mut Rng, loaded: u64, newest: impl FnOnce() -> u64) -> u64 {
        match self {
            Self::Uniform => rng.random_range(0..loaded),
            Self::Scrambled(zipf) => fnv64(zipf.draw(rng) - 1) % loaded,
            Self::Latest(zipf) => {
                let newest = newest();
                zipf.resize(newest + 1);
                newest - (zipf.draw(rng) - 1)
            }
        }
    }
}

/// YCSB's 64-bit FNV-1a hash over the eight octets of a number, lowest first, made positive.
pub(super) fn fnv64(number: u64) -> u64 {
    let hash = number
        .to_le_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| {
            (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3)
        });
    hash.cast_signed().unsigned_abs()
}

/// Zipf's distribution over the ranks 1 to n with exponent 0.99: P(i) = i^-0.99 / Σ j^-0.99.
///
/// Drawn exactly, by rejection-inversion (Hörmann and Derflinger, 1996). YCSB inverts an approximation (Gray et al., 1994)
/// that is exact for ranks 1 and 2 only.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    ranks: u64,
    /// H(n + 1/2), the upper end of the inverted integral.
    upper: f64,
    /// H(3/2) - 1, its lower end.
    lower: f64,
    /// A rank this close above its x is accepted without evaluating the integral.
    squeeze: f64,
}

impl Zipf {
    /// The distribution over `ranks` ranks, at least one.
    pub(super) fn new(ranks: u64) -> Self {
        let mut zipf = Self {
            ranks: 0,
            upper: 0.0,
            lower: integral(1.5) - 1.0,
            squeeze: 2.0 - integral_inverse(integral(2.5) - density(2.0)),
        };
        zipf.resize(ranks);
        zipf
    }

    /// Changes the number of ranks; costs nothing when it stays the same.
    pub(super) fn resize(&mut self, ranks: u64) {
        if self.ranks != ranks {
            self.ranks = ranks.max(1);
            self.upper = integral(self.ranks as f64 + 0.5);
        }
    }

    /// A rank from 1 to n; 1 is the most frequent.
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.upper + rng.random::<f64>() * (self.lower - self.upper);
            let x = integral_inverse(u);
            let rank = ((x + 0.5) as u64).clamp(1, self.ranks);
            let k = rank as f64;
            if k - x <= self.squeeze || u >= integral(k + 0.5) - density(k) {
                return rank;
            }
        }
    }
}

/// h(x) = x^-s.
fn density(x: f64) -> f64 {
    (-EXPONENT * x.ln()).exp()
}

/// H(x), the integral of h: (x^(1-s) - 1) / (1-s).
fn integral(x: f64) -> f64 {
    ((1.0 - EXPONENT) * x.ln()).exp_m1() / (1.0 - EXPONENT)
}

/// The inverse of H.
fn integral_inverse(y: f64) -> f64 {
    (((1.0 - EXPONENT) * y).max(-1.0).ln_1p() / (1.0 - EXPONENT)).exp()
}

/// How a sysbench id is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ids {
    /// Every id alike.
    Uniform,
    /// sysbench 1.0's default, `sb_rand_special`, with its default parameters.
    Special,
}

/// `--rand-spec-iter`: uniform draws averaged for the bell-shaped part.
const SPECIAL_ITERATIONS: u32 = 12;
/// `--rand-spec-pct` / 100: the share of the ids that are special.
const SPECIAL_SHARE: f64 = 0.01;
/// 100 / (100 - `--rand-spec-res`): 75 % of the draws are special.
const SPECIAL_STRETCH: f64 = 100.0 / (100.0 - 75.0);

impl Ids {
    /// An id from 1 to `last`.
    pub(super) fn draw(self, rng: &mut Rng, last: u64) -> u64 {
        match self {
            Self::Uniform => rng.random_range(1..=last),
            Self::Special => special(rng, last),
        }
    }
}

/// `sb_rand_special(1, last)` of sysbench 1.0.20 (`src/sb_rand.c`), step by step.
fn special(rng: &mut Rng, last: u64) -> u64 {
    let t = (last - 1) as f64;
    let drawn: f64 = rng.random();
    let offset = if drawn * t * SPECIAL_STRETCH < t {
        let sum: f64 = (0..SPECIAL_ITERATIONS).map(|_| rng.random::<f64>()).sum();
        sum * t / f64::from(SPECIAL_ITERATIONS)
    } else {
        drawn * (t * SPECIAL_SHARE + 1.0) + t / 2.0 - t * SPECIAL_SHARE / 2.0
    };
    (1 + offset as u64).min(last)
}

#[cfg(test)]
mod tests;
