//! Which pods arrive, in which order: drawn from the list at random, with replacement.

use super::Pod;
use crate::seeded::Seeded;

/// Indices into `pods`, until their GPU demand reaches `demand` thousandths. At least one of the
/// pods asks for a GPU.
pub fn draw(pods: &[Pod], demand: u64, seeded: &mut Seeded) -> Vec<usize> {
    let mut arrived = 0;
    let mut drawn = Vec::new();
    while arrived < demand {
        let index = seeded.range(0, pods.len() as i64) as usize;
        arrived += u64::from(pods[index].gpu);
        drawn.push(index);
    }
    drawn
}

/// A random order of so many things.
pub(super) fn shuffled(count: usize, seeded: &mut Seeded) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, seeded.range(0, last as i64 + 1) as usize);
    }
    order
}
