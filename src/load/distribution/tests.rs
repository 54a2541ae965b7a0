//! A million draws of each distribution against its definition.

use super::*;
use crate::load::goodness::{distance, tally};
use crate::load::random::{Purpose, stream};

const DRAWS: usize = 1_000_000;

/// Lower ends of bins over ranks, and the probability of each bin under i^-s / Σ j^-s, summed term by term.
fn zipf_bins(ends: &[u64], last: u64, s: f64) -> Vec<f64> {
    let weight = |i: u64| (i as f64).powf(-s);
    let zeta: f64 = (1..=last).map(weight).sum();
    let starts = ends.iter();
    let stops = ends.iter().skip(1).copied().chain([last + 1]);
    let sums = starts
        .zip(stops)
        .map(|(start, stop)| (*start..stop).map(weight).sum::<f64>());
    sums.map(|sum| sum / zeta).collect()
}

/// The most popular ranks one by one, then wider and wider bins: 25 in all.
fn rank_bins(last: u64) -> Vec<u64> {
    let mut starts: Vec<u64> = (1..=15).collect();
    for n in 0..10 {
        let share = f64::from(n) / 10.0;
        starts.push((16.0 * (last as f64 / 16.0).powf(share)).round() as u64);
    }
    starts
}

fn bin_of(starts: &[u64], value: u64) -> usize {
    starts.partition_point(|start| *start <= value) - 1
}

#[test]
fn zipf_ranks_follow_their_definition() {
    for last in [1000, 100_000] {
        let zipf = Zipf::new(last);
        let starts = rank_bins(last);
        let mut rng = stream(11, Purpose::Thread(0));
        let observed = tally(25, DRAWS, || bin_of(&starts, zipf.draw(&mut rng)));
        assert!(distance(&observed, &zipf_bins(&starts, last, 0.99)) < 1.0);
        // And the test would see another exponent.
        assert!(distance(&observed, &zipf_bins(&starts, last, 0.98)) > 1.0);
    }
}

/// Σ i^-0.99 over 1..=10^10: `ScrambledZipfianGenerator.ZETAN` of YCSB.
const ZETAN: f64 = 26.469_028_201_783_02;

fn ycsb_probability(rank: u64) -> f64 {
    (rank as f64).powf(-0.99) / ZETAN
}

#[test]
fn zipf_over_ten_billion_ranks_has_ycsbs_zeta() {
    let zipf = Zipf::new(SCRAMBLED_RANKS);
    let starts = [1, 2, 3, 4, 5, 10, 100, 1000, 10_000, 1_000_000];
    let mut rng = stream(12, Purpose::Thread(0));
    let observed = tally(10, DRAWS, || bin_of(&starts, zipf.draw(&mut rng)));
    let bins = starts.windows(2);
    let mut expected: Vec<f64> = bins
        .map(|bin| (bin[0]..bin[1]).map(ycsb_probability).sum())
        .collect();
    expected.push(1.0 - expected.iter().sum::<f64>());
    assert!(distance(&observed, &expected) < 1.0);
}

#[test]
fn scrambled_zipf_gives_each_record_the_weight_of_its_ranks() {
    const RECORDS: usize = 1000;
    const HEAD: u64 = 1_000_000;
    // Ranks beyond the head are so many and so light that they spread evenly.
    let mut weights = vec![0.0; RECORDS];
    (1..=HEAD)
        .for_each(|rank| weights[fnv64(rank - 1) as usize % RECORDS] += ycsb_probability(rank));
    let rest = (1.0 - weights.iter().sum::<f64>()) / RECORDS as f64;
    // The 49 hottest records one by one, the others in 51 bins.
    let mut by_weight: Vec<usize> = (0..RECORDS).collect();
    by_weight.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]));
    let mut bin = vec![0; RECORDS];
    let mut expected = vec![0.0; 100];
    for (place, record) in by_weight.into_iter().enumerate() {
        bin[record] = if place < 49 { place } else { 49 + place % 51 };
        expected[bin[record]] += weights[record] + rest;
    }
    let mut records = Records::scrambled();
    let mut rng = stream(13, Purpose::Thread(0));
    let mut draw = || records.draw(&mut rng, RECORDS as u64, || unreachable!());
    let observed = tally(100, DRAWS, || bin[draw() as usize]);
    assert!(distance(&observed, &expected) < 1.0);
}

#[test]
fn latest_is_zipf_from_the_newest_record_backwards() {
    let mut records = Records::latest();
    let mut rng = stream(14, Purpose::Thread(0));
    for newest in [999, 4999] {
        let starts = rank_bins(newest + 1);
        let expected = zipf_bins(&starts, newest + 1, 0.99);
        let mut draw = || records.draw(&mut rng, 10, || newest);
        let observed = tally(25, DRAWS, || bin_of(&starts, newest - draw() + 1));
        assert!(distance(&observed, &expected) < 1.0, "newest {newest}");
    }
}

#[test]
fn uniform_draws_every_record_and_id_alike() {
    let mut rng = stream(15, Purpose::Thread(0));
    let mut records = Records::Uniform;
    let mut draw = || records.draw(&mut rng, 100, || unreachable!()) as usize;
    assert!(distance(&tally(100, DRAWS, &mut draw), &[0.01; 100]) < 1.0);
    let mut draw = || Ids::Uniform.draw(&mut rng, 50) as usize - 1;
    assert!(distance(&tally(50, DRAWS, &mut draw), &[0.02; 50]) < 1.0);
}

/// The distribution function of the sum of twelve uniform numbers (Irwin 1927, Hall 1927).
fn irwin_hall(x: f64) -> f64 {
    let (mut sum, mut binomial, mut factorial) = (0.0, 1.0, 1.0);
    for k in 0..12 {
        if x > f64::from(k) {
            let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
            sum += sign * binomial * (x - f64::from(k)).powi(12);
        }
        binomial *= f64::from(12 - k) / f64::from(k + 1);
        factorial *= f64::from(k + 1);
    }
    sum / factorial
}

/// The probability that sysbench's `special` gives an id below `1 + x` of 10001 (its parameters at their defaults).
///
/// A quarter of the draws is t·S/12 with S as above and t = 10000. The others map the same uniform number, which is at
/// least 1/4 then, to u·(d + 1) + t/2 - d/2 with d = t/100: evenly from 4975.25 to 5051.
fn special_below(x: f64) -> f64 {
    let bell = irwin_hall((12.0 * x / 10_000.0).clamp(0.0, 12.0));
    let centre = ((x - 4975.25) / 75.75).clamp(0.0, 1.0);
    0.25 * bell + 0.75 * centre
}

#[test]
fn special_follows_sysbenchs_definition() {
    // 12 bins on each side, one for each of the 76 special ids.
    let mut starts: Vec<u64> = [
        0, 3300, 3600, 3850, 4050, 4200, 4350, 4470, 4590, 4700, 4800, 4890,
    ]
    .into();
    starts.extend(4975..=5050);
    starts.extend([
        5051, 5130, 5220, 5320, 5430, 5550, 5670, 5820, 5970, 6170, 6420, 6720,
    ]);
    let stops = starts
        .iter()
        .skip(1)
        .map(|start| *start as f64)
        .chain([10_000.0]);
    let expected: Vec<f64> = starts
        .iter()
        .zip(stops)
        .map(|(start, stop)| special_below(stop) - special_below(*start as f64))
        .collect();
    let mut rng = stream(16, Purpose::Thread(0));
    let observed = tally(100, DRAWS, || {
        bin_of(&starts, Ids::Special.draw(&mut rng, 10_001) - 1)
    });
    assert!(distance(&observed, &expected) < 1.0);
}

#[test]
fn every_draw_is_in_range_for_tiny_tables_too() {
    let mut rng = stream(17, Purpose::Thread(0));
    for last in 1..=5 {
        for _ in 0..1000 {
            assert!((1..=last).contains(&Zipf::new(last).draw(&mut rng)));
            assert!((1..=last).contains(&Ids::Special.draw(&mut rng, last)));
            assert!(Records::scrambled().draw(&mut rng, last, || 0) < last);
            assert!(Records::latest().draw(&mut rng, 1, || last) <= last);
        }
    }
}

#[test]
fn the_hash_is_fnv_1a_as_ycsb_applies_it() {
    // `user6284781860667377211` is the first key that YCSB loads.
    assert_eq!(fnv64(0), 6_284_781_860_667_377_211);
}
