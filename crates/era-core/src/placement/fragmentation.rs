//! Fragmentation gradient descent (Weng et al., ATC '23): a node's fragmentation is the amount
//! of its free GPU that typical work could not use, weighed by how common that work is; a gang
//! goes where it raises that least.

use serde::{Deserialize, Serialize};

use crate::calendar::{GPU0, Lane, Row};
use crate::resources::{Resources, WHOLE_GPU, suits};

/// A kind of work, and how common it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Typical {
    /// What a replica of it needs.
    pub each: Resources,
    /// How common, relative to the others.
    pub weight: u32,
}

/// GPU thousandths that are free beside `taken` and of no use to typical work, times the weights.
pub fn fragmentation(lane: &Lane, taken: &[u32], typical: &[Typical]) -> i64 {
    let capacity = &lane.node.capacity;
    let gpus = &taken[GPU0..GPU0 + capacity.gpus.len()];
    let free = |used: &u32| WHOLE_GPU.saturating_sub(*used);
    let all: u32 = gpus.iter().map(free).sum();
    let mut sum = 0i64;
    for kind in typical {
        let useless = if lane.count(taken, &kind.each, 1) == 0 {
            all
        } else {
            // It fits somewhere: what remains useless are the GPUs that are too small or unfit.
            let need = kind.each.gpu.min(WHOLE_GPU);
            let unfit = gpus.iter().enumerate().filter(|(index, used)| {
                kind.each.gpu == 0
                    || free(used) < need
                    || !suits(&capacity.gpus[*index], &kind.each)
            });
            unfit.map(|(_, used)| free(used)).sum()
        };
        sum += i64::from(useless) * i64::from(kind.weight);
    }
    sum
}

/// How much putting one such replica here raises the node's fragmentation.
pub(super) fn gradient(lane: &Lane, taken: &Row, each: &Resources, typical: &[Typical]) -> i64 {
    let Some(gpus) = best_gpus(lane, taken, each, typical) else { return i64::MAX };
    let mut after = *taken;
    after.add(&lane.take(each, gpus));
    fragmentation(lane, &after, typical) - fragmentation(lane, taken, typical)
}

/// For a share of a GPU, the GPU on which it hurts least; otherwise the usual choice.
fn best_gpus(lane: &Lane, taken: &Row, each: &Resources, typical: &[Typical]) -> Option<u64> {
    if each.gpu == 0 || each.gpu >= WHOLE_GPU {
        return lane.choose_gpus(taken, each);
    }
    let gpus = &taken[GPU0..GPU0 + lane.node.capacity.gpus.len()];
    gpus.iter()
        .enumerate()
        .filter(|(index, used)| {
            **used + each.gpu <= WHOLE_GPU && suits(&lane.node.capacity.gpus[*index], each)
        })
        .map(|(index, _)| {
            let mut after = *taken;
            after.add(&lane.take(each, 1 << index));
            (fragmentation(lane, &after, typical), index)
        })
        .min()
        .map(|(_, index)| 1 << index)
}
