//! Random streams and texts. One job seed gives every thread and every table a stream of its own, whatever the others do.

use rand::{Rng as _, RngExt, SeedableRng};

/// The generator of all keys, values and operations.
pub(super) type Rng = rand_pcg::Pcg64;

/// What a stream is for; no two purposes share one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// The operations of a client thread, counted from 0.
    Thread(u32),
    /// The rows of a table, counted from 0.
    Table(u32),
}

/// The stream of `purpose` under `seed`. State and increment are both drawn, so that streams do not run in parallel.
pub(super) fn stream(seed: u64, purpose: Purpose) -> Rng {
    let lane = match purpose {
        Purpose::Thread(n) => u64::from(n),
        Purpose::Table(n) => 1 << 32 | u64::from(n),
    };
    let mut state = mix(seed).wrapping_add(mix(!lane));
    let mut bytes = [0; 32];
    for word in bytes.chunks_exact_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        word.copy_from_slice(&mix(state).to_le_bytes());
    }
    Rng::from_seed(bytes)
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Digits in a group of sysbench's texts.
const GROUP: usize = 11;

/// Appends `groups` groups of eleven digits joined by `-`, as sysbench fills `c` (10) and `pad` (5).
pub(super) fn digits(rng: &mut Rng, groups: usize, text: &mut Vec<u8>) {
    for group in 0..groups {
        if group > 0 {
            text.push(b'-');
        }
        let mut number: u64 = rng.random_range(0..100_000_000_000);
        let mut group = [b'0'; GROUP];
        for digit in group.iter_mut().rev() {
            *digit += (number % 10) as u8;
            number /= 10;
        }
        text.extend_from_slice(&group);
    }
}

/// Appends `length` characters, each one of the 64 from space to `_`.
pub(super) fn printable(rng: &mut Rng, length: usize, text: &mut Vec<u8>) {
    let start = text.len();
    text.resize(start + length, 0);
    for characters in text[start..].chunks_mut(10) {
        let mut bits = rng.next_u64();
        for character in characters {
            *character = b' ' + (bits & 63) as u8;
            bits >>= 6;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysbench_texts_have_the_templates_shape() {
        // c_value_template and pad_value_template of sysbench's oltp_common.lua: 119 and 59 characters.
        for (groups, length) in [(10, 119), (5, 59)] {
            let mut text = Vec::new();
            digits(&mut stream(1, Purpose::Thread(0)), groups, &mut text);
            assert_eq!(text.len(), length);
            for (at, byte) in text.iter().enumerate() {
                assert_eq!(*byte == b'-', at % 12 == 11, "at {at}");
                assert!(*byte == b'-' || byte.is_ascii_digit());
            }
        }
    }

    #[test]
    fn a_field_has_its_length_and_no_control_characters() {
        let mut text = b"kept".to_vec();
        printable(&mut stream(1, Purpose::Thread(0)), 103, &mut text);
        assert_eq!(text.len(), 107);
        assert!(text.starts_with(b"kept") && text.iter().all(|b| (b' '..=b'z').contains(b)));
    }

    #[test]
    fn streams_repeat_for_a_seed_and_differ_between_seeds_threads_and_tables() {
        let first = |seed, purpose| stream(seed, purpose).next_u64();
        assert_eq!(first(7, Purpose::Thread(3)), first(7, Purpose::Thread(3)));
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..20 {
            for n in 0..20 {
                assert!(seen.insert(first(seed, Purpose::Thread(n))));
                assert!(seen.insert(first(seed, Purpose::Table(n))));
            }
        }
    }
}
