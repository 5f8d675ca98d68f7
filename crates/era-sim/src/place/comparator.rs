//! Rules that the paper compares with and that no administrator would want. They see the same
//! nodes as the core's scorers and give each a score, the higher the better; the first among
//! equals is taken.

use std::collections::BTreeSet;

use era_core::calendar::{CPU, GPU0, Load, NodeCalendar};
use era_core::resources::{Resources, WHOLE_GPU};

use crate::seeded::Seeded;

/// Scores are whole numbers up to this, as in the published simulator: much of what these rules
/// do is decided by ties.
const SCORE_MAX: i64 = 100;

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparator {
    /// Any node and any GPU.
    Random,
    /// The smallest product of what is free and what is asked for (Tetris).
    DotProduct,
    /// Shared GPUs first, then used nodes, then unused ones (Antman).
    GpuPacking,
    /// Where pods of the same size are (Gandiva).
    GpuClustering,
}

/// A rule at work: what it must remember.
pub(super) struct Comparing {
    rule: Comparator,
    seeded: Seeded,
    /// Sizes of the pods on each node.
    sizes: Vec<BTreeSet<u32>>,
    /// What the largest node has, cores and GPUs.
    largest: (i64, i64),
}

/// A node as a rule sees it.
struct View {
    place: usize,
    cpu: i64,
    gpus: Vec<u32>,
}

impl View {
    fn gpu(&self) -> i64 {
        self.gpus.iter().map(|free| i64::from(*free)).sum()
    }
}

impl Comparing {
    pub(super) fn new(rule: Comparator, nodes: usize, largest: (i64, i64), seed: u64) -> Comparing {
        let sizes = vec![BTreeSet::new(); nodes];
        Comparing { rule, seeded: Seeded::new(seed), sizes, largest }
    }

    /// The best of the nodes that fit, each with what is taken there, and the GPUs on it.
    pub(super) fn choose<'a>(
        &mut self,
        fitting: impl Iterator<Item = (usize, &'a NodeCalendar, Load)>,
        each: &Resources,
    ) -> Option<(usize, u64)> {
        let mut best: Option<(i64, usize, &NodeCalendar, Load)> = None;
        for (place, node_calendar, taken) in fitting {
            let score = self.score(&view(place, node_calendar, &taken), each);
            if best.as_ref().is_none_or(|(most, ..)| score > *most) {
                best = Some((score, place, node_calendar, taken));
            }
        }
        let (_, place, node_calendar, taken) = best?;
        self.sizes[place].extend((each.gpu > 0).then_some(size(each)));
        let gpus = if self.rule == Comparator::Random {
            self.any_gpus(&view(place, node_calendar, &taken), each)
        } else {
            node_calendar.choose_gpus(&taken, each)
        };
        Some((place, gpus?))
    }

    fn score(&mut self, node: &View, each: &Resources) -> i64 {
        match self.rule {
            Comparator::Random => (self.seeded.next() >> 1) as i64,
            Comparator::DotProduct => dot_product(node, each, self.largest),
            _ if each.gpu == 0 => 0,
            Comparator::GpuPacking => packing(node, each),
            Comparator::GpuClustering => {
                clustering(node, &self.sizes[node.place], each, self.largest.1)
            }
        }
    }

    /// For a share, any GPU with room; whole ones are all alike.
    fn any_gpus(&mut self, node: &View, each: &Resources) -> Option<u64> {
        let share = each.gpu.min(WHOLE_GPU);
        let mut fitting: Vec<usize> =
            (0..node.gpus.len()).filter(|index| node.gpus[*index] >= share).collect();
        let mut mask = 0;
        for _ in 0..each.gpus_touched() {
            if fitting.is_empty() {
                return None;
            }
            let pick = self.seeded.range(0, fitting.len() as i64) as usize;
            mask |= 1 << fitting.swap_remove(pick);
        }
        Some(mask)
    }
}

fn view(place: usize, node_calendar: &NodeCalendar, taken: &Load) -> View {
    let capacity = &node_calendar.node.capacity;
    let gpus = &taken[GPU0..GPU0 + capacity.gpus.len()];
    View {
        place,
        cpu: i64::from(capacity.cpu) - i64::from(taken[CPU]),
        gpus: gpus.iter().map(|used| WHOLE_GPU - used).collect(),
    }
}

/// All shares are of one size, whatever they are; whole GPUs by their number.
fn size(each: &Resources) -> u32 {
    each.whole_gpus().unwrap_or(0)
}

fn dot_product(node: &View, each: &Resources, (cpu_max, gpu_max): (i64, i64)) -> i64 {
    let term = |free: i64, need: u32, most: i64| {
        let most = most.max(1) as f64;
        free as f64 / most * f64::from(need) / most
    };
    let product = term(node.cpu, each.cpu, cpu_max) + term(node.gpu(), each.gpu, gpu_max);
    ((1.0 - product / 2.0) * SCORE_MAX as f64) as i64
}

fn packing(node: &View, each: &Resources) -> i64 {
    let whole = node.gpus.iter().filter(|free| **free == WHOLE_GPU).count();
    if whole == node.gpus.len() {
        return (SCORE_MAX / 3 - whole as i64).max(whole as i64);
    }
    let share = each.gpu.min(WHOLE_GPU);
    let mut fitting: Vec<u32> = node.gpus.iter().copied().filter(|free| *free >= share).collect();
    fitting.sort_unstable();
    let taken = &fitting[..fitting.len().min(each.gpus_touched() as usize)];
    let fresh = taken.iter().filter(|free| **free == WHOLE_GPU).count() as i64;
    if fresh > 0 {
        return (SCORE_MAX / 2 - fresh).max(SCORE_MAX / 3);
    }
    let free: i64 = taken.iter().map(|free| i64::from(*free) / 10).sum();
    (SCORE_MAX - free / 10).max(SCORE_MAX / 2)
}

fn clustering(node: &View, sizes: &BTreeSet<u32>, each: &Resources, gpu_max: i64) -> i64 {
    let quarter = SCORE_MAX / 4;
    let fullness = quarter * (gpu_max - node.gpu()) / gpu_max.max(1);
    let same = sizes.contains(&size(each));
    fullness
        + match (same, sizes.len()) {
            (true, 1) => 3 * quarter,
            (true, _) => 2 * quarter,
            (false, 0) => quarter,
            (false, _) => 0,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(cpu: i64, gpus: &[u32]) -> View {
        View { place: 0, cpu, gpus: gpus.to_vec() }
    }

    fn ask(gpu: u32) -> Resources {
        Resources { cpu: 8000, gpu, ..Resources::default() }
    }

    #[test]
    fn packing_prefers_a_shared_gpu_then_a_used_node_then_the_smallest_unused_one() {
        let half = ask(500);
        let scores = [&[500, 1000][..], &[0, 1000], &[1000], &[1000, 1000]]
            .map(|gpus| packing(&node(8000, gpus), &half));
        assert_eq!(scores, [95, 49, 32, 31]);
    }

    #[test]
    fn clustering_prefers_nodes_with_only_its_own_kind_and_shuns_those_with_others() {
        let sizes = |sizes: &[u32]| sizes.iter().copied().collect::<BTreeSet<u32>>();
        let view = node(8000, &[1000, 1000]);
        let score = |there: &[u32]| clustering(&view, &sizes(there), &ask(1000), 8000);
        assert!(score(&[1]) > score(&[0, 1]));
        assert!(score(&[0, 1]) > score(&[]));
        assert!(score(&[]) > score(&[0]));
        let share = clustering(&view, &sizes(&[0]), &ask(300), 8000);
        assert_eq!(share, score(&[1]), "shares are of one kind");
    }

    #[test]
    fn the_dot_product_prefers_the_node_with_least_of_what_is_asked_for() {
        let score = |cpu, gpus: &[u32]| dot_product(&node(cpu, gpus), &ask(1000), (100_000, 4000));
        assert!(score(10_000, &[1000]) > score(10_000, &[1000; 4]));
        assert!(score(10_000, &[1000]) > score(90_000, &[1000]));
    }

    #[test]
    fn random_gpus_are_among_those_with_room() {
        let mut comparing = Comparing::new(Comparator::Random, 1, (1, 1), 7);
        let view = node(8000, &[0, 400, 1000, 700]);
        let seen: BTreeSet<u64> =
            (0..100).filter_map(|_| comparing.any_gpus(&view, &ask(500))).collect();
        assert_eq!(seen, BTreeSet::from([1 << 2, 1 << 3]));
        assert_eq!(comparing.any_gpus(&view, &ask(2000)), None);
    }
}
