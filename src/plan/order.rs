//! The order of rounds. Interleaving lets slow drift of a machine fall on all variants alike;
//! shuffling cells keeps it from falling on the same thread count in every repetition.

use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_pcg::Pcg64;

use crate::spec::Order;

/// One round's place: indices of its cell and variant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot {
    pub(super) cell: usize,
    pub(super) variant: usize,
    /// From 1.
    pub(super) repetition: u32,
    /// From 1.
    pub(super) block: u32,
}

/// Puts every cell, variant and repetition in order. `workloads` is the workload of each cell; with `together`
/// the cells of a workload stay together.
pub(super) fn arrange(
    order: Order,
    workloads: &[usize],
    variants: usize,
    repetitions: u32,
    together: bool,
    seed: u64,
) -> Vec<Slot> {
    let mut rng = Pcg64::seed_from_u64(seed);
    match order {
        Order::Interleaved => interleaved(workloads, variants, repetitions, together, &mut rng),
        Order::Blocked => blocked(workloads, variants, repetitions, together, &mut rng),
        Order::Random => random(workloads, variants, repetitions, together, &mut rng),
    }
}

/// A block is one cell with each variant once. The orders of a cell's blocks come in pairs, the second the reverse
/// of the first, so that no variant is always first.
fn interleaved(
    workloads: &[usize],
    variants: usize,
    repetitions: u32,
    together: bool,
    rng: &mut Pcg64,
) -> Vec<Slot> {
    let mut slots = Vec::new();
    let mut last: Vec<Vec<usize>> = vec![Vec::new(); workloads.len()];
    let mut block = 0;
    for repetition in 1..=repetitions {
        for cell in shuffled_cells(workloads, together, rng) {
            block += 1;
            if repetition % 2 == 1 {
                last[cell] = shuffled(variants, rng);
            } else {
                last[cell].reverse();
            }
            slots.extend(last[cell].iter().map(|&variant| Slot {
                cell,
                variant,
                repetition,
                block,
            }));
        }
    }
    slots
}

/// A block is one variant with all its rounds; the variants come in the order of the file.
fn blocked(
    workloads: &[usize],
    variants: usize,
    repetitions: u32,
    together: bool,
    rng: &mut Pcg64,
) -> Vec<Slot> {
    let mut slots = Vec::new();
    for variant in 0..variants {
        let block = u32::try_from(variant + 1).expect("variants are few");
        for repetition in 1..=repetitions {
            let cells = shuffled_cells(workloads, together, rng);
            slots.extend(cells.into_iter().map(|cell| Slot {
                cell,
                variant,
                repetition,
                block,
            }));
        }
    }
    slots
}

/// Everything shuffled; there is one block.
fn random(
    workloads: &[usize],
    variants: usize,
    repetitions: u32,
    together: bool,
    rng: &mut Pcg64,
) -> Vec<Slot> {
    let mut slots = Vec::new();
    for repetition in 1..=repetitions {
        for cell in 0..workloads.len() {
            slots.extend((0..variants).map(|variant| Slot {
                cell,
                variant,
                repetition,
                block: 1,
            }));
        }
    }
    slots.shuffle(rng);
    if together {
        let places = places(workloads, rng);
        slots.sort_by_key(|slot| places[workloads[slot.cell]]);
    }
    slots
}

fn shuffled_cells(workloads: &[usize], together: bool, rng: &mut Pcg64) -> Vec<usize> {
    let mut cells = shuffled(workloads.len(), rng);
    if together {
        let places = places(workloads, rng);
        cells.sort_by_key(|&cell| places[workloads[cell]]);
    }
    cells
}

/// The place of each workload in a random order of them.
fn places(workloads: &[usize], rng: &mut Pcg64) -> Vec<usize> {
    shuffled(workloads.iter().max().map_or(0, |last| last + 1), rng)
}

fn shuffled(n: usize, rng: &mut Pcg64) -> Vec<usize> {
    let mut all: Vec<usize> = (0..n).collect();
    all.shuffle(rng);
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const WORKLOADS: [usize; 6] = [0, 0, 0, 1, 1, 1];

    fn all(order: Order, together: bool, seed: u64) -> Vec<Slot> {
        arrange(order, &WORKLOADS, 3, 4, together, seed)
    }

    #[test]
    fn every_order_holds_every_round_exactly_once() {
        for order in [Order::Interleaved, Order::Blocked, Order::Random] {
            for together in [false, true] {
                let slots = all(order, together, 7);
                let distinct: BTreeSet<_> = slots
                    .iter()
                    .map(|s| (s.cell, s.variant, s.repetition))
                    .collect();
                assert_eq!((slots.len(), distinct.len()), (72, 72), "{order:?}");
            }
        }
    }

    #[test]
    fn an_interleaved_block_holds_every_variant_of_one_cell_side_by_side() {
        for block in all(Order::Interleaved, false, 7).chunks(3) {
            assert!(
                block
                    .iter()
                    .all(|s| s.cell == block[0].cell && s.block == block[0].block)
            );
            assert_eq!(
                block
                    .iter()
                    .map(|s| s.variant)
                    .collect::<BTreeSet<_>>()
                    .len(),
                3
            );
        }
    }

    #[test]
    fn the_second_block_of_a_pair_has_the_reverse_order() {
        let slots = all(Order::Interleaved, false, 7);
        let order = |cell, repetition| -> Vec<usize> {
            let of = |s: &&Slot| s.cell == cell && s.repetition == repetition;
            slots.iter().filter(of).map(|s| s.variant).collect()
        };
        for cell in 0..6 {
            for pair in [1, 3] {
                let mut second = order(cell, pair + 1);
                second.reverse();
                assert_eq!(order(cell, pair), second);
            }
        }
    }

    #[test]
    fn a_blocked_order_finishes_one_variant_before_the_next() {
        let variants: Vec<_> = all(Order::Blocked, false, 7)
            .iter()
            .map(|s| s.variant)
            .collect();
        assert!(variants.is_sorted());
    }

    #[test]
    fn the_seed_decides_and_another_seed_differs() {
        for order in [Order::Interleaved, Order::Random] {
            assert_eq!(all(order, false, 7), all(order, false, 7));
            assert_ne!(all(order, false, 7), all(order, false, 8));
        }
    }

    #[test]
    fn workloads_stay_together_when_asked() {
        for order in [Order::Interleaved, Order::Blocked, Order::Random] {
            let slots = all(order, true, 7);
            let changes = slots
                .windows(2)
                .filter(|w| WORKLOADS[w[0].cell] != WORKLOADS[w[1].cell])
                .count();
            // Two workloads: at most one change a pass and one between passes.
            let passes = if order == Order::Random {
                1
            } else if order == Order::Blocked {
                12
            } else {
                4
            };
            assert!(changes < 2 * passes, "{order:?}: {changes}");
        }
    }
}
